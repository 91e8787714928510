package bridge

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	screenRows = 50      // how far up the cursor can go
	screenCols = 1 << 14 // characters of a row that can still be written over
	maxPadding = 1 << 16 // spaces that moves of the cursor make, beside as many as there are characters

	// What is erased, in characters and rows: a few bytes can erase as much as
	// the screen has, again and again.
	workOfByte = 16
	leastWork  = 1 << 20
)

// plain returns what text looks like in the end to who sees it on a terminal:
// a progress bar that was drawn a thousand times is one line, and there are no
// colours. What moves no cursor is left as it is. It takes a time that goes with
// the length of text: where far more is erased than text could have written, what
// remains is shown line by line.
func plain(text string) string {
	if !strings.ContainsAny(text, "\r\b\x1b\u0090\u0098\u009b\u009d\u009e\u009f") {
		return text
	}
	s := screen{padding: maxPadding + len(text), work: leastWork + workOfByte*len(text)}
	s.write(strings.ReplaceAll(text, "\r\n", "\n"))
	return s.text()
}

// unfinished returns how many bytes at the end of text are the beginning of
// something that more text would complete.
func unfinished(text string) int {
	i := strings.LastIndexByte(text, '\x1b')
	if i < 0 || len(text)-i > 32 {
		if strings.HasSuffix(text, "\r") {
			return 1
		}
		return 0
	}
	if _, whole := escape(text[i:]); !whole {
		return len(text) - i
	}
	return 0
}

// A screen is a terminal without a right margin: what has left its rows at the
// top is done, the rest can be written over.
type screen struct {
	done     strings.Builder
	rows     []screenRow
	row, col int
	padding  int // spaces it may still make up
	work     int // what it may still erase
}

type screenRow struct {
	text  []rune
	drawn bool // the cursor was moved: spaces at its end have wiped out what was there
}

func (r screenRow) String() string {
	text := string(r.text)
	if r.drawn {
		text = strings.TrimRight(text, " ")
	}
	return text
}

func (s *screen) write(text string) {
	for len(text) > 0 {
		if s.work < 0 {
			s.rest(text)
			return
		}
		r, size := utf8.DecodeRuneInString(text)
		switch r {
		case '\n':
			s.down(1)
			s.col = 0
		case '\r':
			s.col = 0
		case '\b':
			s.col = max(0, s.col-1)
		case '\x1b', '\u0090', '\u0098', '\u009b', '\u009d', '\u009e', '\u009f':
			var c control
			c, _ = escape(text)
			s.obey(c)
			size = c.size
		default:
			s.put(r)
		}
		text = text[size:]
	}
}

// rest writes text below all there is, without what controls a terminal. Of what
// is drawn over a line only the last is left.
func (s *screen) rest(text string) {
	s.flush(len(s.rows))
	s.rows = nil
	line := make([]byte, 0, len(text)) // and those before it
	start, again := 0, false
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch r {
		case '\n':
			line = append(line, '\n')
			start, again = len(line), false
		case '\r':
			again = true
		case '\b':
		case '\x1b', '\u0090', '\u0098', '\u009b', '\u009d', '\u009e', '\u009f':
			c, _ := escape(text)
			size = c.size
		default:
			if again {
				line, again = line[:start], false
			}
			line = append(line, text[:size]...)
		}
		text = text[size:]
	}
	s.done.Write(line)
}

// line returns the row of the cursor.
func (s *screen) line() *screenRow {
	for len(s.rows) <= s.row {
		s.work--
		s.rows = append(s.rows, screenRow{})
	}
	return &s.rows[s.row]
}

func (s *screen) put(r rune) {
	line := s.line()
	if s.col < len(line.text) {
		line.text[s.col] = r
		line.drawn = true
		s.col++
		return
	}
	if missing := s.col - len(line.text); missing > 0 {
		missing = min(missing, s.padding)
		s.padding -= missing
		line.text = append(line.text, slices.Repeat([]rune{' '}, missing)...)
	}
	line.text = append(line.text, r)
	s.col = len(line.text)
	if s.col >= screenCols { // so long a line is no bar: it stays as it is, and goes on
		s.flush(s.row)
		s.done.WriteString(string(s.rows[0].text))
		s.rows[0], s.col = screenRow{}, 0
	}
}

// down moves the cursor, making rows as a terminal that scrolls.
func (s *screen) down(n int) {
	s.line()
	s.row += min(n, screenRows)
	s.line()
	s.flush(len(s.rows) - screenRows)
}

// flush is done with the first n rows.
func (s *screen) flush(n int) {
	if n <= 0 {
		return
	}
	for _, row := range s.rows[:n] {
		s.done.WriteString(row.String())
		s.done.WriteByte('\n')
	}
	s.rows = slices.Delete(s.rows, 0, n)
	s.row = max(0, s.row-n)
	s.line()
}

// text returns all that is done, and the rows.
func (s *screen) text() string {
	for i, row := range s.rows {
		if i > 0 {
			s.done.WriteByte('\n')
		}
		s.done.WriteString(row.String())
	}
	s.rows = nil
	return s.done.String()
}

// obey does what a control sequence says, of those that programs write whose
// output is lines.
func (s *screen) obey(c control) {
	switch c.final {
	case 'A', 'F', 'M':
		s.row = max(0, s.row-c.number(0, 1))
	case 'B', 'E', 'e':
		s.row = min(s.row+c.number(0, 1), screenRows-1)
	case 'C', 'a':
		s.col = min(s.col+c.number(0, 1), screenCols-1)
	case 'D':
		s.col = max(0, s.col-c.number(0, 1))
	case 'G', '`':
		s.col = min(c.number(0, 1), screenCols) - 1
	case 'H', 'f':
		s.row = min(c.number(0, 1), screenRows) - 1
		s.col = min(c.number(1, 1), screenCols) - 1
	case 'J':
		s.eraseBelow(c.number(0, 0))
	case 'K':
		s.eraseLine(c.number(0, 0))
	}
	if c.final == 'E' || c.final == 'F' {
		s.col = 0
	}
}

// eraseBelow is ED: 0 erases from the cursor on, 2 and 3 everything.
func (s *screen) eraseBelow(how int) {
	switch how {
	case 0:
		s.eraseLine(0)
		s.rows = s.rows[:s.row+1]
	case 2, 3:
		clear(s.rows)
		s.rows = s.rows[:0]
	}
}

// eraseLine is EL: 0 erases what is right of the cursor, 1 what is left, 2 all.
func (s *screen) eraseLine(how int) {
	line := s.line()
	line.drawn = true
	switch how {
	case 0:
		line.text = line.text[:min(s.col, len(line.text))]
	case 1:
		n := min(s.col+1, len(line.text))
		s.work -= n
		for i := range n {
			line.text[i] = ' '
		}
	case 2:
		line.text = nil
	}
}

// A control is a control sequence.
type control struct {
	size   int    // in bytes
	final  byte   // of ESC [ … or of two-character sequences; 0 if there is nothing to obey
	params string // between the two
}

// number returns the i-th parameter, or what it is if it is not there. It is
// never less than that, as in ECMA-48 zero means the same.
func (c control) number(i, absent int) int {
	for ; i > 0; i-- {
		_, c.params, _ = strings.Cut(c.params, ";")
	}
	first, _, _ := strings.Cut(c.params, ";")
	n, err := strconv.Atoi(first)
	if err != nil {
		return absent
	}
	return max(absent, min(n, screenCols))
}

// escape returns the control sequence at the start of text, and whether it is
// all there.
func escape(text string) (control, bool) {
	kind, size := introducer(text)
	switch kind {
	case 0:
		return control{size: size}, false
	case '[':
		return sequence(text, size)
	case ']', 'P', 'X', '^', '_': // a string for the terminal: a title, a link, a picture
		for i := size; i < len(text); i++ {
			switch {
			case text[i] == '\a':
				return control{size: i + 1}, true
			case text[i] == '\n':
				return control{size: i}, true
			case text[i] == '\x1b' && strings.HasPrefix(text[i+1:], `\`):
				return control{size: i + 2}, true
			case text[i] == '\x1b':
				return control{size: i}, i+1 < len(text)
			case strings.HasPrefix(text[i:], "\u009c"):
				return control{size: i + len("\u009c")}, true
			}
		}
		return control{size: len(text)}, false
	case ' ', '#', '%', '(', ')', '*', '+': // one more character says which
		return control{size: min(size+1, len(text))}, size < len(text)
	case 'M':
		return control{size: size, final: 'M'}, true
	default:
		return control{size: size}, true
	}
}

// introducer returns the character after ESC, and the bytes up to behind it.
// C1 controls mean the same as ESC and a character.
func introducer(text string) (byte, int) {
	if text[0] != '\x1b' {
		r, size := utf8.DecodeRuneInString(text)
		return byte(r - 0x40), size //nolint:gosec // only C1 controls get here
	}
	if len(text) == 1 {
		return 0, 1
	}
	if text[1] < ' ' || text[1] > '~' { // a lone ESC
		return '=', 1
	}
	return text[1], 2
}

// sequence returns the control sequence whose parameters begin at start.
func sequence(text string, start int) (control, bool) {
	end := start
	for end < len(text) && text[end] >= ' ' && text[end] <= '?' {
		end++
	}
	switch {
	case end == len(text):
		return control{size: end}, false
	case text[end] < '@' || text[end] > '~': // broken off: a terminal shows none of it
		return control{size: end}, true
	}
	c := control{size: end + 1, params: text[start:end]}
	if strings.Trim(c.params, "0123456789;") == "" { // others are private: hide the cursor and so on
		c.final = text[end]
	}
	if c.final == 'M' { // delete lines, not ESC M
		c.final = 0
	}
	return c, true
}
