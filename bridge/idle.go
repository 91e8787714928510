package bridge

import (
	"fmt"
	"time"
)

// maxMissedImages bounds, in bytes, the images that a session without a sandbox
// keeps of a cell that ended unseen.
const maxMissedImages = 1 << 20

// state says when a session was last used, and whether it has a sandbox.
func (s *session) state() (used time.Time, live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.kernel != nil
}

// stopIdle is called when no cell has run for a while.
func (s *session) stopIdle() {
	timeout := s.bridge.opts.IdleTimeout
	s.stop(timeout, fmt.Sprintf("after %v without a cell", timeout))
}

// stop removes the sandbox of a session in which no cell has run for at least
// so long; the next result says why. It reports whether it did, and waits until
// the sandbox is gone.
func (s *session) stop(idle time.Duration, why string) bool {
	if !s.tryTurn() {
		return false // a cell runs
	}
	s.mu.Lock()
	k := s.kernel
	if s.closed || k == nil || time.Since(s.used) < idle {
		s.mu.Unlock()
		<-s.turn
		return false
	}
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.endTurn()
	text := s.saveAndStop(k, why)
	if k.isDead() {
		text = s.bridge.replacedText(k.err)
	}
	k.close()
	s.upload.drop()
	s.mu.Lock()
	s.kernel = nil
	s.notice = text
	s.outputs.drop()
	s.mu.Unlock()
	s.shrink()
	return true
}

// tryTurn takes the turn if no cell runs.
func (s *session) tryTurn() bool {
	select {
	case s.turn <- struct{}{}:
		return true
	default:
	}
	if !s.yieldTurn() {
		return false
	}
	select {
	case s.turn <- struct{}{}:
		return true
	case <-time.After(checkpointTime):
		return false
	}
}

// shrink keeps only what is shown of a cell that ended unseen, as there can be
// many sessions without a sandbox. It needs the turn; s.mu is not held while the
// cell's output and images are made fit to be shown.
func (s *session) shrink() {
	s.mu.Lock()
	e := s.missed
	if e == nil || e.kept != nil {
		s.mu.Unlock()
		return
	}
	fresh := e.output.since(e.shown) // a call may still take it
	s.mu.Unlock()
	var r Result
	r.Text = join(append([]string{e.addOutput(&r, fresh, s.bridge.opts.OutputLimit)}, s.addOutcome(outliving(), &r, e)...))
	size := 0
	for _, image := range r.Images {
		size += len(image.Data)
	}
	if size > maxMissedImages {
		r.Images, r.details.Images = nil, 0
		r.Text += fmt.Sprintf("\n[its images, %s bytes, are gone with the sandbox]", grouped(size))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missed == e {
		e.kept, e.output, e.outcome = &r, &transcript{}, outcome{}
	}
}
