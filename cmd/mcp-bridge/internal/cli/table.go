package cli

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"golang.org/x/term"
)

const (
	columnGap    = 2
	leastColumn  = 8  // columns of a terminal that a cut cell keeps at least
	widestColumn = 60 // that cells are aligned by where nothing is cut
)

// A display is where a command writes for a person. What is written to w has to
// be harmless on a terminal: see [oneLined] and [printable].
type display struct {
	w       io.Writer // takes escape sequences
	columns int       // of the terminal; 0 if it is none, and nothing has to fit
	lines   int       // of the terminal; 0 if it is none
	colour  bool
}

// display is that of the results.
func (r *root) display() *display { return newDisplay(r.io.Out, r.settings.colour) }

func newDisplay(w io.Writer, mode colourMode) *display {
	d := &display{w: w, colour: mode.colours(w)}
	t, ok := w.(terminal)
	if !ok {
		return d
	}
	d.w = t.w
	d.columns, d.lines = 80, 24
	if file, ok := t.w.(*os.File); ok {
		if columns, lines, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 && lines > 0 {
			d.columns, d.lines = columns, lines
		}
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 { // a user's own wish
		d.columns = columns
	}
	return d
}

// paint is text in a style, if this display has colours.
func (d *display) paint(text string, s style) string {
	if !d.colour {
		return text
	}
	return paint(text, s)
}

// A span is a part of a cell. Its text may come from anywhere.
type span struct {
	text  string
	style style
}

// A cell is the text of one column.
type cell []span

func plainCell(text string) cell           { return cell{{text: text}} }
func styledCell(text string, s style) cell { return cell{{text, s}} }

// width is the number of columns that a cell takes on a terminal.
func (c cell) width() int {
	n := 0
	for _, s := range c {
		n += displaywidth.String(s.text)
	}
	return n
}

// A table has columns that are aligned by what they take on a terminal, where
// wide characters take two columns, and cut to the terminal's width. It keeps all
// rows until it is written, so their number has to be bounded.
type table struct {
	display *display
	head    bool
	rows    [][]cell
}

// newTable returns a table with a line of headings, or without if there are none.
func (d *display) newTable(headings ...string) *table {
	t := &table{display: d}
	if len(headings) > 0 {
		t.head = true
		row := make([]cell, len(headings))
		for i, heading := range headings {
			row[i] = styledCell(heading, faint)
		}
		t.add(row...)
	}
	return t
}

// add adds a row. Text from elsewhere is put on one line and made harmless.
func (t *table) add(cells ...cell) {
	row := make([]cell, len(cells))
	for i, c := range cells {
		row[i] = make(cell, len(c))
		for j, s := range c {
			row[i][j] = span{harmlessSpan(s.text), s.style}
		}
	}
	t.rows = append(t.rows, row)
}

// harmlessSpan is oneLined that keeps the spaces at both ends, which part spans.
func harmlessSpan(text string) string {
	line := oneLined(text)
	if line != "" && strings.HasPrefix(text, " ") {
		line = " " + line
	}
	if line != "" && strings.HasSuffix(text, " ") {
		line += " "
	}
	return cmp.Or(line, strings.Repeat(" ", min(len(text), 1)))
}

// write writes all rows.
func (t *table) write() error {
	var b strings.Builder
	widths := t.widths()
	for _, row := range t.rows {
		t.writeRow(&b, row, widths)
	}
	_, err := io.WriteString(t.display.w, b.String())
	return err
}

func (t *table) writeRow(b *strings.Builder, row []cell, widths []int) {
	last := len(row) - 1
	for last > 0 && row[last].width() == 0 { // no spaces at the end of a line
		last--
	}
	for i, c := range row[:last+1] {
		width := c.width()
		room := width
		if t.display.columns > 0 {
			room = widths[i]
		}
		used := t.writeCell(b, c, width, room)
		if i < last {
			b.WriteString(strings.Repeat(" ", max(widths[i]-used, 0)+columnGap))
		}
	}
	b.WriteString("\n")
}

// writeCell writes as much of a cell as there is room for, and returns how many
// columns that took.
func (t *table) writeCell(b *strings.Builder, c cell, width, room int) int {
	if width <= room {
		for _, s := range c {
			b.WriteString(t.display.paint(s.text, s.style))
		}
		return width
	}
	used := 0
	for _, s := range c {
		text, left := s.text, room-used
		full := displaywidth.String(text) >= left // and "…" belongs at its end
		if full {
			text = cut(text+"…", left)
		}
		b.WriteString(t.display.paint(text, s.style))
		used += displaywidth.String(text)
		if full {
			break
		}
	}
	return used
}

// cut returns as much of text as fits into so many columns, with "…" at the end
// if something is missing.
func cut(text string, columns int) string {
	if columns <= 0 {
		return ""
	}
	return displaywidth.TruncateString(text, columns, "…")
}

// widths are those of the columns, so that the table fits where it has to.
func (t *table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], c.width())
		}
	}
	if t.display.columns == 0 {
		for i := range widths {
			widths[i] = min(widths[i], widestColumn)
		}
		return widths
	}
	total := columnGap * max(len(widths)-1, 0)
	for i := range widths {
		widths[i] = min(widths[i], t.display.columns)
		total += widths[i]
	}
	for ; total > t.display.columns; total-- {
		widest := 0
		for i, w := range widths {
			if w >= widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= leastColumn {
			break // a terminal that narrow wraps
		}
		widths[widest]--
	}
	return widths
}
