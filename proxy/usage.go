package proxy

import (
	"context"
	"sync"
	"time"
)

// A usage counts the requests of one session, and ends it between two of them.
// Its methods may be called concurrently.
type usage struct {
	mu     sync.Mutex
	made   int           // requests so far
	now    int           // requests that wait for an answer
	last   time.Time     // when one last began or ended
	closed bool          // no more may begin
	idle   chan struct{} // closed when closed and nothing waits; made by close
}

func newUsage() *usage { return &usage{last: time.Now()} }

// begin must be called before a request; end after it. It reports false if the
// session takes no more.
func (u *usage) begin() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.made++
	u.now++
	u.last = time.Now()
	return true
}

// hold is begin for what is no use of the session, and must not be cut short.
func (u *usage) hold() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.now++
	}
	return !u.closed
}

func (u *usage) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now--
	u.last = time.Now()
	if u.closed && u.now == 0 {
		close(u.idle)
	}
}

// close lets no more requests begin. The channel is closed when none waits any
// more; busy reports whether one does now.
func (u *usage) close() (idle <-chan struct{}, busy bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.closed {
		u.closed = true
		u.idle = make(chan struct{})
		if u.now == 0 {
			close(u.idle)
		}
	}
	return u.idle, u.now > 0
}

// closeUnused is close for a session that has never been used. It reports whether
// it was one.
func (u *usage) closeUnused() bool {
	return u.closeIf(func() bool { return u.made == 0 })
}

// closeIf closes if nothing waits, and what, called with the lock held, is true.
func (u *usage) closeIf(what func() bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.now > 0 || !what() {
		return false
	}
	u.closed = true
	u.idle = make(chan struct{})
	close(u.idle)
	return true
}

// isUnused reports whether the session still runs, and has never been used.
func (u *usage) isUnused() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.made == 0 && !u.closed
}

func (u *usage) isClosed() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.closed
}

// closeAfter closes once nothing has been asked for so long, and reports true;
// or false when ctx is done first.
func (u *usage) closeAfter(ctx context.Context, rest time.Duration) bool {
	for {
		u.mu.Lock()
		left := rest
		if u.now == 0 {
			left = rest - time.Since(u.last)
		}
		u.mu.Unlock()
		if left <= 0 && u.closeIf(func() bool { return time.Since(u.last) >= rest }) {
			return true
		}
		if sleep(ctx, max(left, time.Millisecond)) != nil || u.isClosed() {
			return false
		}
	}
}
