package bridge

import (
	"strings"
	"testing"
)

func TestLateOutputNamesItsCell(t *testing.T) {
	t.Parallel()
	var l lateOutput
	l.add(1, true, "a\n")
	l.add(1, true, "b\n")
	l.add(2, false, "c")
	l.add(1, true, "d\n")
	if got := l.take(func(cell int) bool { return cell == 2 }); len(got) != 1 || got[0] != "[printed after cell 2 had ended:]\nc\n[end]" {
		t.Errorf("of cell 2: %q", got)
	}
	got := strings.Join(l.take(func(int) bool { return true }), "|")
	if want := "[printed by a thread of cell 1 after cell 1 had ended:]\na\nb\n[end]|[printed by a thread of cell 1 after cell 1 had ended:]\nd\n[end]"; got != want {
		t.Errorf("the rest: %q", got)
	}
	if l.size != 0 || len(l.pieces) != 0 {
		t.Errorf("left: %+v", l)
	}
}

func TestLateOutputIsBounded(t *testing.T) {
	t.Parallel()
	var l lateOutput
	for i := range 10_000 {
		l.add(i%2+1, true, strings.Repeat("x", 100))
	}
	if l.size > maxLateOutput || len(l.pieces) > maxLatePieces {
		t.Errorf("%d bytes in %d pieces", l.size, len(l.pieces))
	}
	told := 0
	for _, p := range l.pieces {
		told += len(p.text) + p.dropped
	}
	if told != 1_000_000 {
		t.Errorf("of 1,000,000 bytes %d are told", told)
	}
}

func TestLateOutputIsInOut(t *testing.T) {
	t.Parallel()
	var ts transcripts
	ts.begin(1).write("own")
	ts.writeLate(1, "later\n")
	ts.writeLate(7, "of no cell")
	if got, _ := ts.read(1); got != "own\n[printed after it had ended:]\nlater\n" {
		t.Errorf("out[1] is %q", got)
	}
	ts.writeLate(1, strings.Repeat("y", 2*maxLateKept))
	if ts.late > maxLateKept {
		t.Errorf("%d late bytes kept", ts.late)
	}
	for cell := 2; cell < 2000; cell++ {
		ts.begin(cell)
	}
	if ts.late != 0 {
		t.Errorf("%d late bytes of cells that are gone", ts.late)
	}
}
