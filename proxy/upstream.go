package proxy

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	// After a failure the next start waits, twice as long each time.
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
	// A session that lasted this long counts as a success.
	stableAfter = 30 * time.Second
)

// An upstream is one configured server, running or not. It does not change, but
// for what is running: a new definition of the server makes a new one, which
// goes on with that if the same would be started.
type upstream struct {
	proxy   *Proxy
	server  discovery.Server
	aliases []string
	text    *redactor
	logger  *slog.Logger
	limit   *limiter
	*running
}

// running is what there is of a server beside its definition.
type running struct {
	after   <-chan struct{} // before the first start this is waited for; nil for nothing
	retired chan struct{}   // closed when the definition no longer counts

	mu        sync.Mutex
	start     *flight[*session] // the current start and its session; nil before the first
	handshake handshake         // what worked last
	failures  int               // starts that failed and sessions that died early, in a row
	failed    *Error            // of the last start; nil if it succeeded
	failedAt  time.Time

	warned  warned
	tools   toolbox // these have locks of their own
	lessons lessons
}

func newRunning() *running { return &running{retired: make(chan struct{})} }

func (r *running) isRetired() bool {
	select {
	case <-r.retired:
		return true
	default:
		return false
	}
}

// A flight is one piece of work that many callers wait for.
type flight[T any] struct {
	done  chan struct{}
	value T // read after done
	err   error
}

func newFlight[T any]() *flight[T] { return &flight[T]{done: make(chan struct{})} }

func (f *flight[T]) land(value T, err error) {
	f.value, f.err = value, err
	close(f.done)
}

// wait returns the work's result, or ctx's error if that comes first.
func (f *flight[T]) wait(ctx context.Context, doing string) (T, error) {
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		var zero T
		return zero, doneError(ctx, doing)
	}
}

func (f *flight[T]) landed() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// session returns the running session, and starts the server if there is none.
// ctx bounds the caller's wait; the start goes on without it.
func (u *upstream) session(ctx context.Context) (*session, error) {
	u.mu.Lock()
	if u.isRetired() {
		u.mu.Unlock()
		return nil, u.retiredError()
	}
	f := u.start
	if f == nil || f.landed() && (f.err != nil || f.value.over()) {
		f = u.begin(ctx, f)
	}
	u.mu.Unlock()
	return f.wait(ctx, "starting server "+quoteName(u.server.Name))
}

// begin starts the server in the background; last is the start before. The
// caller holds u.mu.
func (u *upstream) begin(ctx context.Context, last *flight[*session]) *flight[*session] {
	f := newFlight[*session]()
	u.start = f
	// The start serves all who wait for it: it keeps nothing of ctx but values.
	started := u.proxy.background(ctx, func(ctx context.Context) {
		if last != nil && last.err == nil {
			<-last.value.done // two processes of one server may not get along
		}
		s, err := u.connectInTurn(ctx)
		f.land(s, err)
		if err == nil {
			u.run(ctx, s)
		}
	})
	if !started {
		f.land(nil, closedError())
	}
	return f
}

// connectInTurn connects when it is time to, unless the definition changes first.
func (u *upstream) connectInTurn(ctx context.Context) (*session, error) {
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-u.retired:
			cancel()
		case <-starting.Done():
		}
	}()
	if u.after != nil {
		select {
		case <-u.after:
		case <-starting.Done():
		}
	}
	if err := sleep(starting, u.backoff()); err != nil {
		if u.isRetired() {
			return nil, u.retiredError()
		}
		return nil, closedError()
	}
	return u.connect(starting)
}

// run looks after a session until nothing is left of it.
func (u *upstream) run(ctx context.Context, s *session) {
	defer close(s.done)
	alive, over := context.WithCancel(ctx)
	var follower sync.WaitGroup
	follower.Go(func() { u.follow(alive, s) })
	follower.Go(func() { u.rest(alive, s) })
	s.watch(ctx)
	over()
	follower.Wait()
	u.ended(s)
}

// backoff returns how long to wait before the next start.
func (u *upstream) backoff() time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.restLeft()
}

// restLeft is backoff for who holds u.mu.
func (u *upstream) restLeft() time.Duration {
	if u.failures == 0 {
		return 0
	}
	rest := min(firstBackoff<<min(u.failures-1, 10), maxBackoff)
	if u.failed != nil {
		rest -= time.Since(u.failedAt)
	}
	return max(rest, 0)
}

// resting returns why the last start failed, if it is too early for another one.
func (u *upstream) resting() *Error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failed == nil || u.restLeft() == 0 {
		return nil
	}
	return u.failed
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connect makes a session within StartTimeout, and notes how it went.
func (u *upstream) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, u.proxy.opts.StartTimeout)
	defer cancel()
	begun := time.Now()
	s, err := u.dial(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil && u.isRetired() {
		return nil, u.retiredError()
	}
	if err != nil {
		if u.proxy.isClosed() {
			return nil, closedError() // a start that we cut short is no failure
		}
		e := u.startError(ctx, err)
		u.failures++
		u.failed, u.failedAt = e, time.Now()
		u.logger.Warn("server did not start", "error", e.Message)
		return nil, e
	}
	u.failed = nil
	u.handshake = legacy
	if s.modern() {
		u.handshake = patient
	}
	u.logger.Info("server started", "pid", s.proc.PID(), "protocol", s.mcp.InitializeResult().ProtocolVersion,
		"duration_ms", time.Since(begun).Milliseconds())
	return s, nil
}

// dial connects, and once more with a fresh process if the way to begin may
// have been the reason that it failed.
func (u *upstream) dial(ctx context.Context) (*session, error) {
	opts := sessionOptions{
		Handshake: u.handshake, // nobody writes it during a start
		Version:   u.proxy.opts.Version,
		Probe:     u.proxy.opts.ProbeTimeout,
		Logger:    u.logger,
		Env:       u.proxy.opts.ServerEnv,
	}
	s, err := connect(ctx, u.server, opts)
	failure, ok := err.(*connectError) //nolint:errorlint // connect returns it unwrapped
	if !ok || ctx.Err() != nil || opts.Handshake == legacy {
		return s, err
	}
	switch {
	case failure.silent && failure.refused:
		opts.Handshake = patient // it was starting, and knows no initialize
	case failure.exited != "":
		opts.Handshake = legacy // it may have exited over discover
	default:
		return nil, err
	}
	return connect(ctx, u.server, opts)
}

// ended notes that a session is over and its process gone.
func (u *upstream) ended(s *session) {
	if u.proxy.isClosed() || s.usage.isClosed() {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(s.since) >= stableAfter {
		u.failures = 0
	}
	u.failures++
	u.logger.Warn("server ended", "status", s.proc.ExitStatus(), "reason", s.why(), "output", u.text.clean(s.proc.Tail(), tailShown))
}

// state is what Servers says of u.
func (u *upstream) state() (state string, failed *Error) {
	if u.server.Disabled {
		return "disabled", nil
	}
	if u.server.Remote() {
		return "failed", u.remoteError()
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.start != nil && !u.start.landed():
		return "starting", nil
	case u.start != nil && u.start.err == nil && !u.start.value.over():
		return "ready", nil
	case u.failed != nil:
		return "failed", u.failed
	}
	return "idle", nil
}

// commandName is the command without its folder.
func (u *upstream) commandName() string {
	name := u.server.Command
	return name[strings.LastIndexAny(name, `/\`)+1:]
}
