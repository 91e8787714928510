package bridge

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	maxCellOutput    = 24 << 20 // bytes kept of one cell's output
	maxSessionOutput = 24 << 20 // bytes kept of the earlier cells of a session
)

// A transcript is what a cell printed, stdout and stderr in the order they
// came. Of more than maxCellOutput bytes the middle is dropped.
type transcript struct {
	head    []byte
	tail    []byte
	dropped int

	late        []byte // what came after the cell's end
	lateDropped int
}

func (t *transcript) write(text string) {
	if room := maxCellOutput/2 - len(t.head); len(t.tail) == 0 && room > 0 {
		n := min(room, len(text))
		t.head = append(t.head, text[:n]...)
		text = text[n:]
	}
	for len(text) > 0 {
		n := min(len(text), maxCellOutput/4)
		t.tail = append(t.tail, text[:n]...)
		text = text[n:]
		t.trim()
	}
}

// trim drops the older half of a full tail.
func (t *transcript) trim() {
	if len(t.tail) > maxCellOutput/2 {
		cut := len(t.tail) - maxCellOutput/4
		t.dropped += cut
		t.tail = append(t.tail[:0], t.tail[cut:]...)
	}
}

// size is how many bytes are kept, written how many were printed.
func (t *transcript) size() int    { return len(t.head) + len(t.tail) }
func (t *transcript) written() int { return t.size() + t.dropped }

// last returns about the last n bytes that were printed.
func (t *transcript) last(n int) string {
	tail := t.tail[max(0, len(t.tail)-n):]
	head := t.head[max(0, len(t.head)-(n-len(tail))):]
	return strings.ToValidUTF8(string(head)+string(tail), "")
}

// String returns the whole, or head and tail around a note on what is missing.
func (t *transcript) String() string { return t.since(0) }

// since returns what was printed after the first seen bytes.
func (t *transcript) since(seen int) string {
	head := t.head[min(seen, len(t.head)):]
	seen = max(0, seen-len(t.head))
	missed := max(0, t.dropped-seen)
	tail := t.tail[min(max(0, seen-t.dropped), len(t.tail)):]
	if missed == 0 {
		return strings.ToValidUTF8(string(head)+string(tail), "")
	}
	return fmt.Sprintf("%s\n[… %d bytes dropped: more than %d MiB were printed …]\n%s",
		strings.ToValidUTF8(string(head), ""), missed, maxCellOutput>>20, strings.ToValidUTF8(string(tail), ""))
}

// transcripts keeps the output of a session's latest cells.
type transcripts struct {
	cells  map[int]*transcript
	oldest int
	newest int
	late   int // bytes of late output in them
}

// begin returns the transcript of a new cell, forgetting old ones over the bound.
func (t *transcripts) begin(cell int) *transcript {
	if t.cells == nil {
		t.cells = map[int]*transcript{}
		t.oldest = cell
	}
	total := 0
	for _, c := range t.cells {
		total += c.size()
	}
	for ; t.oldest < cell && (total > maxSessionOutput || len(t.cells) >= 1000); t.oldest++ {
		if c := t.cells[t.oldest]; c != nil {
			total -= c.size()
			t.late -= len(c.late)
			delete(t.cells, t.oldest)
		}
	}
	t.newest = cell
	c := &transcript{}
	t.cells[cell] = c
	return c
}

// drop forgets what the cells so far have printed.
func (t *transcripts) drop() {
	t.cells, t.oldest, t.late = nil, t.newest+1, 0
}

// skipTo has the numbers of cells go on after that one.
func (t *transcripts) skipTo(cell int) {
	t.newest, t.oldest = cell, cell+1
}

// read returns what a cell printed, for out[cell].
func (t *transcripts) read(cell int) (string, error) {
	if c := t.cells[cell]; c != nil {
		return c.whole(), nil
	}
	if cell < 1 || cell > t.newest {
		return "", fmt.Errorf("there is no cell %d; the latest is %d", cell, t.newest)
	}
	return "", fmt.Errorf("the output of cell %d is no longer kept; the oldest kept is that of cell %d", cell, t.oldest)
}

// shorten cuts the middle out of text with more than limit characters and puts
// a note there that says where the whole is.
func shorten(text string, limit int, whole string) string {
	count := utf8.RuneCountInString(text)
	if count <= limit {
		return text
	}
	head := text[:runeOffset(text, limit*2/3)]
	tail := text[runeOffset(text, count-limit/3):]
	return fmt.Sprintf("%s\n[… %s of %s characters cut; the whole is in %s …]\n%s",
		strings.TrimRight(head, "\n"), grouped(count-limit), grouped(count), whole, strings.TrimLeft(tail, "\n"))
}

// cutEnd cuts the end off text with more than limit characters.
func cutEnd(text string, limit int) string {
	if end := runeOffset(text, limit); end < len(text) {
		return text[:end] + "…"
	}
	return text
}

// runeOffset returns the byte offset of the n-th character.
func runeOffset(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}

// grouped writes n with commas, 10,000.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
