package bridge

import (
	"fmt"
	"strings"
)

const (
	maxLateOutput = 64 << 10 // bytes of late output kept for the next result
	maxLatePieces = 200      // changes from one cell to another in it
	maxLateKept   = 1 << 20  // bytes of late output kept for out[n], of all cells
	maxLateShown  = 2000     // characters shown of one piece
)

// lateOutput is what came when the cell it belongs to had ended, in order. The
// next result tells it.
type lateOutput struct {
	pieces []latePiece
	size   int
}

// A latePiece is what was printed in one go after a cell had ended: by a thread
// that it had started, or while no other cell ran, by whatever was still there.
type latePiece struct {
	cell     int
	ofThread bool
	text     []byte
	dropped  int
}

// add takes text in. What is over the bounds is counted, not kept.
func (l *lateOutput) add(cell int, ofThread bool, text string) {
	n := len(l.pieces)
	if n == 0 || l.pieces[n-1].cell != cell || l.pieces[n-1].ofThread != ofThread {
		if n == maxLatePieces {
			l.pieces[n-1].dropped += len(text)
			return
		}
		l.pieces = append(l.pieces, latePiece{cell: cell, ofThread: ofThread})
		n++
	}
	piece := &l.pieces[n-1]
	room := min(len(text), maxLateOutput-l.size)
	piece.text = append(piece.text, text[:room]...)
	piece.dropped += len(text) - room
	l.size += room
}

// take tells what belongs to those cells, and forgets it.
func (l *lateOutput) take(of func(cell int) bool) []string {
	var notices []string
	var rest lateOutput
	for _, p := range l.pieces {
		if of(p.cell) {
			notices = append(notices, p.notice())
		} else {
			rest.pieces = append(rest.pieces, p)
			rest.size += len(p.text)
		}
	}
	*l = rest
	return notices
}

func (p *latePiece) notice() string {
	by := ""
	if p.ofThread {
		by = fmt.Sprintf("by a thread of cell %d ", p.cell)
	}
	text := shorten(plain(strings.ToValidUTF8(string(p.text), "")), maxLateShown, fmt.Sprintf("out[%d]", p.cell))
	if p.dropped > 0 {
		text += fmt.Sprintf("\n[… %s more bytes …]", grouped(p.dropped))
	}
	return fmt.Sprintf("[printed %safter cell %d had ended:]\n%s\n[end]", by, p.cell, strings.TrimSuffix(text, "\n"))
}

// takeLate tells what came after the end of a cell whose result this is: behind
// what that cell itself has printed.
func (s *session) takeLate(cell int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late.take(func(c int) bool { return c == cell })
}

// writeLate keeps what was printed after a cell's end for out[n].
func (t *transcripts) writeLate(cell int, text string) {
	c := t.cells[cell]
	if c == nil {
		return
	}
	room := min(len(text), maxLateKept-t.late)
	c.late = append(c.late, text[:room]...)
	c.lateDropped += len(text) - room
	t.late += room
}

// whole is all that a cell printed, whenever.
func (t *transcript) whole() string {
	text := t.String()
	if len(t.late) == 0 && t.lateDropped == 0 {
		return text
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += "[printed after it had ended:]\n" + strings.ToValidUTF8(string(t.late), "")
	if t.lateDropped > 0 {
		text += fmt.Sprintf("\n[… %d bytes dropped: more than %d MiB were printed late …]\n", t.lateDropped, maxLateKept>>20)
	}
	return text
}
