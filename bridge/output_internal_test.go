package bridge

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	for _, text := range []string{"", "abc", "üüü", strings.Repeat("🙂é漢x", 100), strings.Repeat("\n", 500), "\xff\xfe" + strings.Repeat("a", 100)} {
		count := utf8.RuneCountInString(text)
		for limit := 0; limit <= count+1; limit++ {
			got := shorten(text, limit, "out[3]")
			if count <= limit {
				if got != text {
					t.Fatalf("%q to %d: changed to %q", text, limit, got)
				}
				continue
			}
			head, rest, _ := strings.Cut(got, "\n[… ")
			_, tail, found := strings.Cut(rest, "; the whole is in out[3] …]\n")
			if !found || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
				t.Fatalf("%q to %d: %q", text, limit, got)
			}
			if n := utf8.RuneCountInString(head) + utf8.RuneCountInString(tail); n > limit {
				t.Fatalf("%q to %d: %d characters kept", text, limit, n)
			}
			if utf8.ValidString(text) && !utf8.ValidString(got) {
				t.Fatalf("%q to %d: a character was cut: %q", text, limit, got)
			}
		}
	}
}

// Reading piece by piece gives what reading at once gives, as long as nothing
// was dropped; after that no byte comes twice and the bound holds.
func TestTranscript(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var c transcript
	var whole, read strings.Builder
	seen := 0
	for c.written() < 40<<20 {
		piece := strings.Repeat("aé漢🙂"[:1+rng.IntN(10)], 1+rng.IntN(100_000))
		piece = strings.ToValidUTF8(piece, "")
		c.write(piece)
		whole.WriteString(piece)
		if c.size() > 3*maxCellOutput/2 {
			t.Fatalf("%d bytes are kept", c.size())
		}
		if rng.IntN(3) == 0 {
			read.WriteString(c.since(seen))
			seen = c.written()
		}
	}
	read.WriteString(c.since(seen))
	if c.written() != whole.Len() {
		t.Errorf("%d bytes written, %d counted", whole.Len(), c.written())
	}
	if read.String() != whole.String() {
		t.Error("reading in pieces lost something or repeated it")
	}
	last := "the end"
	seen = c.written()
	for range 5 {
		c.write(strings.Repeat("🙂", 5<<20))
	}
	c.write(last)
	text := c.since(seen)
	if !strings.Contains(text, "bytes dropped") || !strings.HasSuffix(text, last) || !utf8.ValidString(text) {
		t.Errorf("after a drop: %d bytes, ends %q", len(text), text[max(0, len(text)-20):])
	}
	if all := c.String(); !strings.HasPrefix(whole.String(), all[:1<<20]) || !strings.HasSuffix(all, last) || !utf8.ValidString(all) {
		t.Error("head or tail of the whole are not as printed")
	}
}

func TestTranscriptsAreBounded(t *testing.T) {
	var ts transcripts
	for cell := 1; cell <= 10; cell++ {
		ts.begin(cell).write(strings.Repeat("x", 20<<20))
	}
	total := 0
	for _, c := range ts.cells {
		total += c.size()
	}
	if total > maxSessionOutput+20<<20 {
		t.Errorf("%d bytes are kept", total)
	}
	if _, err := ts.read(10); err != nil {
		t.Errorf("the latest: %v", err)
	}
	if _, err := ts.read(1); err == nil || !strings.Contains(err.Error(), "no longer kept") {
		t.Errorf("the first: %v", err)
	}
	for _, cell := range []int{0, -1, 11} {
		if _, err := ts.read(cell); err == nil || !strings.Contains(err.Error(), "there is no cell") {
			t.Errorf("cell %d: %v", cell, err)
		}
	}
	for cell := 11; cell <= 5000; cell++ {
		ts.begin(cell)
	}
	if len(ts.cells) > 1000 {
		t.Errorf("%d transcripts are kept", len(ts.cells))
	}
}

func TestJoin(t *testing.T) {
	for want, parts := range map[string][]string{
		"":           {"", ""},
		"a":          {"", "a", ""},
		"a\nb":       {"a\n", "b\n"},
		"a\n\nb":     {"a\n\n", "b"},
		"\n\na\nb":   {"\n\na", "b"},
		"a\nb\nc\n ": {"a", "b", "c", " "},
	} {
		if got := join(parts); got != want {
			t.Errorf("%q: got %q, want %q", parts, got, want)
		}
	}
}
