package bridge

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestPlain(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"untouched", "  a \n\n\x00\tb\a \u0085 \u2028 \n ", "  a \n\n\x00\tb\a \u0085 \u2028 \n "},
		{"bar", "0%|  |\r50%|█ |\r100%|██|\n", "100%|██|\n"},
		{"bar over a longer line", "downloading everything\rdone\n", "doneloading everything\n"},
		{"bar that is wiped out", "before\n 10%|█   |\r          \rafter\n", "before\nafter\n"},
		{"bar left blank", "a\n99%\r   \r", "a\n"},
		{"CRLF", "a\r\nb\r\n", "a\nb\n"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[m", "red x"},
		{"spaces of coloured text", "\x1b[1ma  \x1b[0m\n b  ", "a  \n b  "},
		{"nested bars", "outer 0\n\rinner 0\x1b[A\router 1\n\rinner 1\x1b[A\router 2\n", "outer 2\ninner 1"},
		{"rich", "Working 1\n\x1b[1A\x1b[2KWorking 2\n\x1b[1A\x1b[2KWorking 3\n", "Working 3\n"},
		{"erase to the end", "123456789\r\x1b[Kab\n", "ab\n"},
		{"erase to the start", "12345\x1b[1K6", "     6"},
		{"erase below", "a\nb\nc\x1b[2A\r\x1b[Jx", "x"},
		{"clear and home", "a\nb\nc\x1b[2J\x1b[Hnew\n", "new\n"},
		{"clear scrolls nothing away", strings.Repeat("l\n", 60) + "\x1b[H\x1b[2Jx", strings.Repeat("l\n", 11) + "x"},
		{"place", "\x1b[2;3Hx", "\n  x"},
		{"column", "abc\x1b[2Gx\x1b[10Gy", "axc      y"},
		{"back and forth", "abc\x1b[2Dx\x1b[1Cy", "axcy"},
		{"backspace", "12\b3\b\b4", "43"},
		{"overstruck", "_\ba_\bb", "ab"},
		{"cursor hidden", "\x1b[?25lx\x1b[?25h", "x"},
		{"title", "\x1b]0;title\aa\x1b]2;t\x1b\\b", "ab"},
		{"link", "\x1b]8;;https://x.y\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"title without an end", "\x1b]0;never\nends", "\nends"},
		{"title broken off", "\x1b]0;x\x1b[1my", "y"},
		{"8-bit controls", "\u009b31mx\u009d0;t\u009cy", "xy"},
		{"character sets", "\x1b(Bx\x1b)0y\x1b=z\x1bM", "xyz"},
		{"up by ESC M", "a\nb\x1bM\rc", "c\nb"},
		{"nothing after ESC", "a\x1b", "a"},
		{"lone ESC", "a\x1b\nb\x1bé", "a\nbé"},
		{"broken sequence", "a\x1b[31\nb", "a\nb"},
		{"unfinished", "a\x1b[31", "a"},
		{"wide", "漢字\r12", "12"},
		{"numbers out of range", "\x1b[99999999999999999999Cx\x1b[-1C\x1b[0;0Hy", "y" + strings.Repeat(" ", 0) + "x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := plain(test.text); got != test.want {
				t.Errorf("%q:\ngot  %q\nwant %q", test.text, got, test.want)
			}
		})
	}
}

// What a terminal shows is about as large as what it was sent, however far the
// cursor was moved; and what is long stays whole.
func TestPlainIsBounded(t *testing.T) {
	text := strings.Repeat("\x1b[16000Cx\n", 10_000)
	if got := plain(text); len(got) > 3*len(text) {
		t.Errorf("%d bytes became %d", len(text), len(got))
	}
	long := strings.Repeat("é", 100_000)
	if got := plain(long + "\r\n\x1b[1m" + long); got != long+"\n"+long {
		t.Errorf("a long line has become %d bytes", len(got))
	}
	flood := strings.Repeat("\x1b]", 1<<20)
	if got := plain(flood); got != "" {
		t.Errorf("%.100q", got)
	}
}

// A few bytes can erase a long line, or all rows, again and again.
func TestPlainTakesItsTime(t *testing.T) {
	for name, test := range map[string]struct{ before, again, after, want string }{
		"line":   {strings.Repeat("x", screenCols-1), "\x1b[1K", "\n\x1b[1mend\x1b[0m\nold\rnew\b\r\n", "\nend\nnew\n"},
		"screen": {"", "\x1b[50H\x1b[2J\n", "end", "\nend"},
		"rows":   {"", "\x1b[2J\x1b[50H\x1b[1K", "\nend", "\nend"},
	} {
		t.Run(name, func(t *testing.T) {
			text := test.before + strings.Repeat(test.again, 1<<20/len(test.again)) + test.after
			s := screen{padding: maxPadding, work: leastWork + workOfByte*len(text)}
			s.write(strings.ReplaceAll(text, "\r\n", "\n"))
			if s.work < -screenCols {
				t.Errorf("%d more was erased than may be", -s.work)
			}
			if got := s.text(); !strings.HasSuffix(got, test.want) || len(got) > 2*len(text) {
				t.Errorf("got %d bytes, %q at the end", len(got), got[max(0, len(got)-20):])
			}
			start := time.Now()
			plain(text)
			if took := time.Since(start); took > 5*time.Second { // it was 7 s for the first
				t.Errorf("it took %v", took)
			}
			t.Log(time.Since(start))
		})
	}
}

func FuzzPlain(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"a", "é漢", "\n", "\r", "\b", "\x1b", "[", "2", ";", "A", "B", "H", "J", "K", "M", "]", "\a", "\x1b[", "\x1b[2K", "\u009b", "\x1b\\", " "}
	for range 200 {
		var b strings.Builder
		for range rng.IntN(60) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		f.Add(b.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		got := plain(text)
		if strings.ContainsAny(got, "\r\b\x1b\u009b") || !utf8.ValidString(got) || len(got) > 2*len(text)+maxPadding {
			t.Errorf("%q became %.1000q", text, got)
		}
		if !strings.ContainsAny(text, "\r\b\x1b\u0090\u0098\u009b\u009d\u009e\u009f") && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if n := unfinished(text); n < 0 || n > len(text) {
			t.Errorf("%q: %d bytes are unfinished", text, n)
		}
		lastLine(text)
	})
}

func TestUnfinished(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a": 0, "a\r": 1, "a\x1b": 1, "a\x1b[3": 3, "a\x1b[31m": 0, "a\x1b[31mb": 0, "\x1b]0;t": 5, "\x1b]0;t\a": 0,
		"\x1b]0;" + strings.Repeat("t", 100): 0,
	} {
		if got := unfinished(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\n \n": "", "a\nb\n\n": "b", "1%\r2%": "2%", "\x1b[1mx\x1b[0m\a\x00\ty\u200b": "x y",
		strings.Repeat("é", 300): strings.Repeat("é", lineLimit) + "…",
	} {
		if got := lastLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
