package proxy

import (
	"context"
	"sync"
	"time"
)

// Bounds on the memory that results take until a sandbox has read them.
const (
	maxUnread    = 128 << 20 // of one connection
	maxAllUnread = 512 << 20 // of all connections of a Proxy
	// smallResult is what a request has room for from its beginning.
	smallResult = 256 << 10
	// patience is how long the messages of a server are held up for want of
	// room for one of them.
	patience = 2 * time.Second
)

// A budget is the room for the results of all connections.
type budget struct {
	each  int // for one connection
	mu    sync.Mutex
	left  int
	freed chan struct{} // closed, and replaced, when something is given back
}

func newBudget(all, each int) *budget {
	return &budget{each: each, left: all, freed: make(chan struct{})}
}

// An account is what one connection may use of a budget, whose mu guards it.
type account struct {
	budget *budget
	left   int
	stuck  bool // somebody waited in vain, and nothing was given back since
}

func (b *budget) account() *account { return &account{budget: b, left: b.each} }

// A share is the room that one request has. It must be released.
type share struct {
	account *account
	done    <-chan struct{} // closed when nobody waits for the result any more

	size     int // guarded by the budget's mu, like the next
	released bool
}

type shareKey struct{}

// shareOf returns the share of the request that ctx is for; nil, which is room
// for anything, if it is not one of a sandbox.
func shareOf(ctx context.Context) *share {
	s, _ := ctx.Value(shareKey{}).(*share)
	return s
}

// resize waits until there is room for size bytes, or ctx is done.
func (s *share) resize(ctx context.Context, size int) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		ok, freed := s.try(size)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
		}
	}
}

// grow makes room for a result that has come, and reports whether there is any.
// Its server's other messages wait meanwhile, those for other sandboxes too: so
// not for long, and not at all for a sandbox that has let one wait in vain.
func (s *share) grow(size int) bool {
	if s == nil {
		return true
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		ok, freed := s.try(max(size, smallResult))
		if ok || s.stuck(false) {
			return ok
		}
		select {
		case <-freed:
		case <-s.done:
			return false
		case <-timeout.C:
			s.stuck(true)
			return false
		}
	}
}

// try makes the share that large if there is room; else it returns what is
// closed when there may be.
func (s *share) try(size int) (ok bool, freed <-chan struct{}) {
	a, b := s.account, s.account.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	more := size - s.size
	if more > 0 && (s.released || more > min(a.left, b.left)) {
		return false, b.freed
	}
	a.left, b.left, s.size = a.left-more, b.left-more, size
	if more < 0 {
		a.stuck = false
		close(b.freed)
		b.freed = make(chan struct{})
	}
	return true, nil
}

// stuck reports whether the connection is stuck, or says that it is.
func (s *share) stuck(now bool) bool {
	b := s.account.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	s.account.stuck = s.account.stuck || now
	return s.account.stuck
}

func (s *share) release() {
	b := s.account.budget
	b.mu.Lock()
	s.released = true
	b.mu.Unlock()
	s.try(0)
}
