package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// unopened is an engine that could not even be opened.
type unopened struct {
	name string
	err  error
}

func (e unopened) Name() string                        { return e.name }
func (e unopened) Check(context.Context, string) error { return e.fail("check") }
func (e unopened) Sweep(context.Context) (int, error)  { return 0, nil }
func (e unopened) Close() error                        { return nil }

func (e unopened) Start(context.Context, runtime.Spec) (runtime.Sandbox, error) {
	return nil, e.fail("start sandbox")
}

func (e unopened) fail(op string) error {
	if _, ok := errors.AsType[*runtime.Error](e.err); ok {
		return e.err
	}
	return &runtime.Error{Engine: e.name, Op: op, Err: fmt.Errorf("%w: %w", runtime.ErrUnavailable, e.err)}
}
