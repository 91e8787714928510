//go:build !linux

package gvisor

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

var _ runtime.Engine = (*Engine)(nil)

// An Engine starts sandboxes on gVisor, which needs Linux: here it cannot.
type Engine struct{}

// New returns an engine whose every method fails with [runtime.ErrUnsupported].
func New(Options) (*Engine, error) { return &Engine{}, nil }

// Name returns "gvisor".
func (*Engine) Name() string { return engineName }

// Check always fails.
func (*Engine) Check(context.Context, string) error { return unsupported("check") }

// Start always fails.
func (*Engine) Start(context.Context, runtime.Spec) (runtime.Sandbox, error) {
	return nil, unsupported("start sandbox")
}

// Sweep finds nothing.
func (*Engine) Sweep(context.Context) (int, error) { return 0, nil }

// Close does nothing.
func (*Engine) Close() error { return nil }

func unsupported(op string) error {
	return &runtime.Error{
		Engine: engineName, Op: op,
		Err:  fmt.Errorf("%w: %w", runtime.ErrUnsupported, errors.New("gVisor runs on Linux only, not on "+goruntime.GOOS)),
		Hint: "run mcp-bridge on Linux or in WSL 2, or use another engine",
	}
}
