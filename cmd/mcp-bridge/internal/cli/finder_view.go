package cli

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"
)

const (
	finderPrompt = "> "
	finderKeys   = "↑↓ choose · Enter prints the call · Shift+↑↓ scrolls · Esc leaves"

	wideFinder = 100 // columns from which a tool is described beside the list
	tallFinder = 10  // lines from which it is described below
)

// A finderLayout is where things are in a window.
type finderLayout struct {
	columns, rows               int // of the list
	aboutColumns, aboutRows     int // of the description; 0 for none
	beside, withState, withKeys bool
}

// layout fits what there is into the window: in a small one the query and the list
// come first.
func (f *finder) layout() finderLayout {
	l := finderLayout{columns: f.width, withState: f.height >= 3, withKeys: f.height >= 6}
	l.rows = f.height - 1
	if l.withState {
		l.rows--
	}
	if l.withKeys {
		l.rows--
	}
	switch {
	case f.width >= wideFinder && f.height >= 6:
		l.beside = true
		l.columns = f.width / 2
		l.aboutColumns, l.aboutRows = f.width-l.columns-3, l.rows
	case f.height >= tallFinder:
		l.aboutColumns, l.aboutRows = f.width, l.rows/2-1 // a line is between them
		l.rows -= l.aboutRows + 1
	}
	l.rows = max(l.rows, 0)
	return l
}

// View is the whole window. Nothing of what servers said is in it as it came.
func (f *finder) View() tea.View {
	view := tea.NewView("")
	view.AltScreen = true
	if f.width <= 0 || f.height <= 0 {
		return view // the size is not known yet
	}
	l := f.layout()
	lines := []string{cut(finderPrompt, f.width) + f.queryLine()}
	view.Cursor = tea.NewCursor(min(displaywidth.String(lines[0]), f.width-1), 0)
	if l.withState {
		lines = append(lines, f.paint(cut(f.state(), f.width), faint))
	}
	about := f.aboutLines(l.aboutColumns, l.aboutRows)
	for i := range l.rows {
		line := f.row(i, l)
		if l.beside {
			text := ""
			if i < len(about) {
				text = about[i]
			}
			line += f.paint(" │ ", faint) + text
		}
		lines = append(lines, line)
	}
	if !l.beside && l.aboutRows > 0 {
		lines = append(lines, f.paint(strings.Repeat("─", f.width), faint))
		for i := range l.aboutRows {
			text := ""
			if i < len(about) {
				text = about[i]
			}
			lines = append(lines, text)
		}
	}
	if l.withKeys {
		lines = append(lines, f.paint(cut(finderKeys, f.width), faint))
	}
	view.SetContent(strings.Join(lines[:min(len(lines), f.height)], "\n"))
	return view
}

func (f *finder) paint(text string, s style) string {
	if !f.colour {
		return text
	}
	return paint(text, s)
}

// queryLine is the end of the query, as much as there is room for.
func (f *finder) queryLine() string {
	query := printable(string(f.query))
	room := max(f.width-len(finderPrompt)-1, 0)
	for displaywidth.String(query) > room && query != "" {
		query = string([]rune(query)[1:])
	}
	return query
}

// state says in one line what is in the list.
func (f *finder) state() string {
	text := fmt.Sprintf("  %d of %d tools", len(f.shown.tools), f.shown.total)
	switch {
	case f.err != nil:
		text = "  " + oneLined(f.err.Error())
	case !f.seen:
		text = "  looking for tools…"
	case f.shown.total+f.shown.listing+f.shown.failed == 0:
		text = "  no tools: mcp-bridge servers list shows the servers"
	case f.searched == "" && len(f.query) == 0:
		text = fmt.Sprintf("  %d tools", f.shown.total)
	}
	if f.shown.listing > 0 {
		text += fmt.Sprintf(" · servers still listing theirs: %d", f.shown.listing)
	}
	if f.shown.failed > 0 {
		text += fmt.Sprintf(" · servers that failed: %d (mcp-bridge tools list says why)", f.shown.failed)
	}
	return text
}

// row is a line of the list, of exactly the list's width.
func (f *finder) row(i int, l finderLayout) string {
	f.top = max(min(f.top, f.selected), f.selected-l.rows+1, 0)
	line, width := "", 0
	if n := f.top + i; n < len(f.shown.tools) {
		tool := f.shown.tools[n]
		mark, text := "  ", oneLined(tool.signature)
		if n == f.selected {
			mark = "▸ "
		}
		text = cut(mark+text, l.columns)
		width = displaywidth.String(text)
		rest := ""
		if about := oneLined(firstLine(tool.description)); about != "" && l.columns-width > 4 {
			rest = cut("  "+about, l.columns-width)
		}
		width += displaywidth.String(rest)
		if n == f.selected {
			line = f.paint(text, bold) + f.paint(rest, cyan)
		} else {
			line = text + f.paint(rest, faint)
		}
	}
	if !l.beside {
		return line
	}
	return line + strings.Repeat(" ", max(l.columns-width, 0))
}

// aboutLines are the lines of the description that are seen, broken where they are
// too long.
func (f *finder) aboutLines(columns, rows int) []string {
	if columns <= 0 || rows <= 0 || f.about == "" {
		return nil
	}
	const most = 2_000 // lines that are laid out
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(printable(f.about), "\t", "  "), "\n") {
		for {
			part := cutPlain(line, columns)
			lines = append(lines, part)
			line = line[len(part):]
			if line == "" || part == "" || len(lines) >= most {
				break
			}
		}
		if len(lines) >= most {
			break
		}
	}
	f.aboutFrom = max(min(f.aboutFrom, len(lines)-rows), 0)
	return lines[f.aboutFrom:min(f.aboutFrom+rows, len(lines))]
}

// cutPlain is the beginning of text that fits into so many columns, to the end of
// a word if there is one.
func cutPlain(text string, columns int) string {
	part := displaywidth.TruncateString(text, columns, "")
	if len(part) == len(text) {
		return part
	}
	if space := strings.LastIndexByte(part, ' '); space > len(part)/2 {
		return part[:space+1]
	}
	return part
}
