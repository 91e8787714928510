package proxy

import (
	"context"
	"time"
)

// maxQueued is how many requests may wait for one server.
const maxQueued = 256

// A limiter lets a bounded number of requests of one server be under way, and
// a bounded number wait for their turn. Nil lets all pass.
type limiter struct {
	turns chan struct{} // holds a token for each that is under way
	queue chan struct{} // and for each of these and those that wait
}

// newLimiter returns a limiter of n at a time; nil if n is not positive.
func newLimiter(n int) *limiter {
	if n <= 0 {
		return nil
	}
	return &limiter{turns: make(chan struct{}, n), queue: make(chan struct{}, n+maxQueued)}
}

// enter waits for a turn, which the caller has to leave. Errors are *Error.
func (l *limiter) enter(ctx context.Context, what string) *Error {
	if l == nil {
		return nil
	}
	select {
	case l.queue <- struct{}{}:
	default:
		return errorf(Busy, "wait for some of them first", "%s was not called: %d calls of its server are waiting, and it takes %d at a time",
			what, maxQueued, cap(l.turns))
	}
	select {
	case l.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		<-l.queue
		return doneError(ctx, what+", waiting for its turn")
	}
}

func (l *limiter) leave() {
	if l != nil {
		<-l.turns
		<-l.queue
	}
}

// clock bounds a request that is being sent by the server's own timeout.
func (u *upstream) clock(ctx context.Context) (context.Context, context.CancelFunc) {
	if u.server.Timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, u.server.Timeout, errServerTimeout)
}

// timedOut is the error for a request whose server took longer than it may,
// nil if it is not that.
func (u *upstream) timedOut(ctx context.Context, what string) *Error {
	if context.Cause(ctx) != errServerTimeout { //nolint:errorlint // it is set as it is
		return nil
	}
	return &Error{
		Kind: Timeout, Err: context.DeadlineExceeded,
		Message: what + " did not answer within " + u.server.Timeout.Round(time.Millisecond).String() + ", the \"timeout\" of its server",
		Hint:    "ask for less; it may have taken effect; the user can raise \"timeout\" in the server's definition",
	}
}
