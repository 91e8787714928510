package bridge

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// A start that fails, or a spare that dies, is followed by a pause, each
	// time twice as long.
	firstPause = time.Second
	lastPause  = time.Minute
)

// A pool keeps spare sandboxes, so that a session need not wait for its own to
// start. A spare has run nothing and never will before it is given away, and
// what was given away does not come back: no cell can reach another session by
// way of the pool. Its troubles are told to nobody: whoever needs a sandbox and
// finds no spare starts one and hears why that fails.
type pool struct {
	want   int
	places *places
	start  func(context.Context, *place) (*kernel, error)
	log    *slog.Logger

	wake chan struct{}  // has room for one token; ends a sleep
	wg   sync.WaitGroup // run, and one watch for each spare

	mu       sync.Mutex
	stop     context.CancelFunc // ends run; nil before begin
	closed   bool
	spares   []*spare
	failures int       // since a spare was last of use
	resume   time.Time // nothing is started before
}

// A spare is a sandbox without a session, or one on its way up.
type spare struct {
	begun  time.Time     // when its start was
	done   chan struct{} // closed when it has started, or has not
	kernel *kernel       // nil if it has not
	given  chan struct{} // closed when it has a session
}

func newPool(want int, places *places, start func(context.Context, *place) (*kernel, error), log *slog.Logger) *pool {
	return &pool{want: want, places: places, start: start, log: log, wake: make(chan struct{}, 1)}
}

// begin starts filling the pool in the background. It is idempotent, and does
// not look at ctx's end: close ends the pool.
func (p *pool) begin(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.want == 0 || p.closed || p.stop != nil {
		return
	}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.wg.Go(func() { p.run(ctx) })
}

// run starts spares, one at a time, as long as some are missing.
func (p *pool) run(ctx context.Context) {
	for ctx.Err() == nil {
		freed, _ := p.places.next() // asked for first, so as not to miss one
		s, place, pause := p.open()
		if s == nil {
			p.sleep(ctx, freed, pause)
			continue
		}
		k, err := p.start(ctx, place)
		if err != nil && ctx.Err() == nil {
			p.log.DebugContext(ctx, "no spare sandbox", "error", err)
		}
		p.settle(s, k)
	}
}

// open returns a spare to be started, or how long there is none to start: zero
// until something happens.
func (p *pool) open() (*spare, *place, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.spares) >= p.want || p.closed {
		return nil, nil, 0
	}
	if pause := time.Until(p.resume); pause > 0 {
		return nil, nil, pause
	}
	place := p.places.take()
	if place == nil {
		return nil, nil, 0
	}
	s := &spare{begun: time.Now(), done: make(chan struct{}), given: make(chan struct{})}
	p.spares = append(p.spares, s)
	return s, place, 0
}

func (p *pool) sleep(ctx context.Context, freed <-chan struct{}, pause time.Duration) {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-freed:
	case <-p.wake:
	case <-ctx.Done():
	}
}

// settle records how the start of s has ended.
func (p *pool) settle(s *spare, k *kernel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(s.done)
	if s.kernel = k; k == nil {
		p.drop(s)
		return
	}
	p.wg.Go(func() { p.watch(s) })
}

// watch has a spare that dies replaced.
func (p *pool) watch(s *spare) {
	select {
	case <-s.given:
	case <-s.kernel.dead:
		p.mu.Lock()
		p.drop(s)
		p.mu.Unlock()
		p.nudge()
		s.kernel.close()
	}
}

// drop takes a spare that is of no use out of the pool. p.mu is held.
func (p *pool) drop(s *spare) {
	p.remove(s)
	p.resume = time.Now().Add(min(firstPause<<min(p.failures, 16), lastPause))
	p.failures++
}

// remove takes s out of the pool, if it is there. p.mu is held.
func (p *pool) remove(s *spare) {
	p.spares = slices.DeleteFunc(p.spares, func(other *spare) bool { return other == s })
}

// nudge has run look again.
func (p *pool) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// recovered says that sandboxes start, as somebody has seen: the pause is over.
func (p *pool) recovered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures, p.resume = 0, time.Time{}
	p.nudge()
}

// take gives a spare to user, waiting for one that is being started. It returns
// nil if there is none.
func (p *pool) take(ctx context.Context, user kernelUser) *kernel {
	asked := time.Now()
	for {
		s := p.claim()
		if s == nil {
			return nil
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			p.putBack(s)
			return nil
		}
		// A session sees folders as they are when it begins. They may change all the
		// time, so what was started for it will do.
		if s.kernel != nil && s.begun.Before(asked) && s.kernel.outdated(ctx) {
			close(s.given)
			s.kernel.close()
			p.nudge()
			continue
		}
		if s.kernel != nil && s.kernel.serve(ctx, user) == nil {
			close(s.given)
			p.recovered()
			return s.kernel
		}
	}
}

// claim takes a spare out of the pool, one that has started if there is any.
func (p *pool) claim() *spare {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.spares, func(s *spare) bool { return s.kernel != nil })
	if i < 0 {
		i = len(p.spares) - 1
	}
	if i < 0 {
		return nil
	}
	s := p.spares[i]
	p.remove(s)
	return s
}

// putBack returns a spare that was claimed while it started. If another has its
// place already, or the pool is closed, it is removed.
func (p *pool) putBack(s *spare) {
	p.mu.Lock()
	closed := p.closed
	switch {
	case closed || s.failed():
	case len(p.spares) < p.want:
		p.spares = append(p.spares, s)
	default:
		p.wg.Go(s.discard)
	}
	p.mu.Unlock()
	if closed { // and close does not know of it
		s.discard()
	}
}

// failed reports whether the spare's start has.
func (s *spare) failed() bool {
	select {
	case <-s.done:
		return s.kernel == nil
	default:
		return false
	}
}

// discard removes the sandbox, if there is one.
func (s *spare) discard() {
	<-s.done
	if s.kernel != nil {
		s.kernel.close()
	}
}

// close removes the spares and waits until they are gone. It is idempotent.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	if p.stop != nil {
		p.stop()
	}
	spares := p.spares
	p.spares = nil
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range spares {
		wg.Go(s.discard)
	}
	wg.Wait()
	p.wg.Wait()
}
