package runtime

import "errors"

// Conditions a caller may branch on with errors.Is.
var (
	// ErrUnavailable: the engine is missing, not running or not usable.
	ErrUnavailable = errors.New("container engine unavailable")
	// ErrImageMissing: the engine does not have the image.
	ErrImageMissing = errors.New("image missing")
	// ErrNoProgram: the image does not have Spec.Command[0], or it cannot run.
	ErrNoProgram = errors.New("program cannot run in the image")
	// ErrExited: the program ended before it had connected.
	ErrExited = errors.New("program exited")
	// ErrUnsupported: the engine cannot enforce the spec on this machine.
	ErrUnsupported = errors.New("hardening not in force")
	// ErrClosed: the sandbox or the engine was closed.
	ErrClosed = errors.New("closed")
)

// An Error is a failure of an engine, with the change or command that mends it.
type Error struct {
	Engine string // the engine's name
	Op     string // what was being done, such as "start sandbox"
	Err    error  // wraps one of the sentinels where one fits
	Hint   string // what the operator can do; may be empty
}

func (e *Error) Error() string { return e.Engine + ": " + e.Op + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// HintOf returns the hint of the first *Error in err's chain, or "".
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}
