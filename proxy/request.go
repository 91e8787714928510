package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// errNotSent is wrapped by errors of requests that did not reach the server, so
// that it is safe to make them again.
var errNotSent = errors.New("not sent")

// A request is what a sandbox wants of a server.
type request struct {
	method string
	stub   string // the result that go-sdk gets instead of the server's; see sink
	what   string // what is asked for, in messages
	hint   string // what to look at if the server finds its parameters invalid
	glance bool   // it does not count as use of the session
	send   func(context.Context, *mcp.ClientSession) error
}

// limit bounds a request by Options.CallTimeout.
func (p *Proxy) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return p.limitSince(ctx, time.Now())
}

// limitSince is limit for a request that began then.
func (p *Proxy) limitSince(ctx context.Context, begun time.Time) (context.Context, context.CancelFunc) {
	if p.opts.CallTimeout <= 0 {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, begun.Add(p.opts.CallTimeout))
}

// twice calls f again if what it asks has not reached the server: its session
// may just have ended.
func twice[T any](ctx context.Context, f func() (T, error)) (T, error) {
	result, err := f()
	if errors.Is(err, errNotSent) && ctx.Err() == nil {
		return f()
	}
	return result, err
}

// offered makes a request for one of the things that a server may offer.
func (u *upstream) offered(ctx context.Context, kind kindOf, r request) (json.RawMessage, error) {
	return twice(ctx, func() (json.RawMessage, error) {
		u, err := u.proxy.upstream(u.server.Name) // which may be another by now
		if err != nil {
			return nil, err
		}
		s, err := u.session(ctx)
		if err != nil {
			return nil, err
		}
		if err := u.offers(s, kind.what, kind.offers); err != nil {
			return nil, err
		}
		return u.send(ctx, s, r)
	})
}

// send makes a request and returns the result as the JSON that the server sent.
func (u *upstream) send(ctx context.Context, s *session, r request) (json.RawMessage, error) {
	if !r.glance {
		if err := u.limit.enter(ctx, r.what); err != nil {
			return nil, err
		}
		defer u.limit.leave()
		if !s.usage.begin() {
			if u.isRetired() {
				return nil, u.retiredError()
			}
			return nil, u.broken(ctx, s, r.what, false, errNotSent)
		}
		defer s.usage.end()
	}
	ctx, cancel := u.clock(ctx)
	defer cancel()
	ctx, result := withSink(ctx, r.method, r.stub)
	result.share = shareOf(ctx)
	err := r.send(ctx, s.mcp)
	switch out := s.gate.finish(result); {
	case out.raw != nil:
		return out.raw, nil
	case u.timedOut(ctx, r.what) != nil:
		return nil, u.timedOut(ctx, r.what)
	case errors.Is(out.refusal, errUnread) && ctx.Err() != nil:
		return nil, doneError(ctx, r.what)
	case errors.Is(out.refusal, errUnread):
		return nil, errorf(Busy, "it took effect; make fewer calls with large results at a time",
			"the result of %s was dropped: others of up to %d MiB are waiting to be read", r.what, maxUnread>>20)
	case out.refusal != nil:
		return nil, u.refused(r, out.refusal)
	case ctx.Err() != nil:
		return nil, doneError(ctx, r.what)
	case s.over():
		return nil, u.broken(ctx, s, r.what, out.sent, err)
	}
	return nil, &Error{
		Kind: Refused, Err: err,
		Message: r.what + " answered with no result, or asked for input, which the bridge cannot give",
	}
}

// refused is the error for an error response of the server, or for a result
// that stdio did not let through.
func (u *upstream) refused(r request, err error) *Error {
	e := &Error{Kind: Refused, Err: err}
	if rpcErr, ok := errors.AsType[*jsonrpc.Error](err); ok && rpcErr.Code == jsonrpc.CodeInvalidParams {
		e.Hint = r.hint
	}
	e.Message = fmt.Sprintf("%s failed: %s", r.what, u.text.clean(err.Error(), refusalShown))
	return e
}

// broken is the error for a session that ended under a request.
func (u *upstream) broken(ctx context.Context, s *session, what string, sent bool, err error) *Error {
	if u.proxy.isClosed() {
		return closedError()
	}
	ours := !sent && s.usage.isClosed() // it may run on for other requests
	if !ours {
		s.awaitExit(ctx)
	}
	e := &Error{Kind: ServerFailed, Err: err}
	if !sent {
		why := s.why()
		if ours {
			why = cmp.Or(s.ownReason(), "was stopped")
		}
		e.Err = errNotSent
		e.Message = fmt.Sprintf("server %s %s before it was asked for %s", quoteName(u.server.Name), why, what)
		return e
	}
	e.Message = fmt.Sprintf("server %s %s during the call of %s, which may or may not have taken effect%s",
		quoteName(u.server.Name), s.why(), what, u.quoteTail(s.proc.Tail()))
	e.Hint = "check whether it took effect before calling again; the next call starts the server anew"
	return e
}
