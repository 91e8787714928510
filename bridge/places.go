package bridge

import "sync"

// places bounds how many sandboxes there are at a time, counting those that are
// on their way up, spare, or on their way down.
type places struct {
	most int

	mu      sync.Mutex
	taken   int
	leaving int           // of those taken
	freed   chan struct{} // closed when the next place is freed
}

// A place is the right to have one sandbox.
type place struct {
	of      *places
	leaving bool
	gone    bool
}

func newPlaces(most int) *places {
	return &places{most: most, freed: make(chan struct{})}
}

// take returns a place, or nil if there is none.
func (p *places) take() *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most {
		return nil
	}
	p.taken++
	return &place{of: p}
}

// next returns a channel that is closed when a place is freed, and whether one
// will be without anybody doing anything.
func (p *places) next() (freed <-chan struct{}, soon bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freed, p.leaving > 0
}

// leave says that the place will be free as soon as its sandbox is removed.
func (p *place) leave() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if !p.leaving && !p.gone {
		p.leaving = true
		p.of.leaving++
	}
}

// free gives the place back. It is idempotent.
func (p *place) free() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	if p.gone {
		return
	}
	p.gone = true
	p.of.taken--
	if p.leaving {
		p.of.leaving--
	}
	close(p.of.freed)
	p.of.freed = make(chan struct{})
}
