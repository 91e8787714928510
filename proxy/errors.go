package proxy

import (
	"context"
	"errors"
	"fmt"
)

// A Kind says what went wrong, in the words of the callback protocol.
type Kind string

// The kinds of errors.
const (
	UnknownServer Kind = "unknown_server" // no such server, or it is disabled
	UnknownTool   Kind = "unknown_tool"   // the server has no such tool
	ServerFailed  Kind = "server_failed"  // the server did not start, died, or broke the protocol
	Invalid       Kind = "invalid"        // the request makes no sense; it did not reach the server
	Refused       Kind = "refused"        // the server answered with an error, or with what cannot be passed on
	Unsupported   Kind = "unsupported"    // the server does not offer such things
	NotFound      Kind = "not_found"      // no server offers it
	Timeout       Kind = "timeout"        // it took too long
	Busy          Kind = "busy"           // over a limit; worth trying again
	Closed        Kind = "closed"         // cancelled, or the proxy was closed
	Internal      Kind = "internal"       // a fault of the bridge
	Full          Kind = "full"           // what is kept would exceed a limit
	Conflict      Kind = "conflict"       // somebody else has changed it meanwhile
	Damaged       Kind = "damaged"        // what was kept cannot be read
	Unavailable   Kind = "unavailable"    // this bridge cannot do it
	Policy        Kind = "policy"         // the user does not allow it, or could not be asked
)

// An Error is what the proxy's methods return. Message and Hint are written for
// a model: they hold no paths of the host and no secrets.
type Error struct {
	Kind    Kind
	Message string // what happened, and to what
	Hint    string // what to do about it; may be empty
	Err     error  // the cause, for Go callers; may be nil, not part of the text
}

func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func errorf(kind Kind, hint, format string, args ...any) *Error {
	return &Error{Kind: kind, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// doneError is the error of an operation whose context is done.
func doneError(ctx context.Context, doing string) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{
			Kind: Timeout, Err: ctx.Err(), Message: doing + ": timed out",
			Hint: "allow more time, or ask for less",
		}
	}
	return &Error{Kind: Closed, Err: ctx.Err(), Message: doing + ": cancelled"}
}

func closedError() *Error {
	return &Error{Kind: Closed, Message: "the bridge is shutting down"}
}

// asError returns err as an *Error; anything unforeseen is the server's fault.
func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: ServerFailed, Message: err.Error(), Err: err}
}
