//go:build !linux

package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// An Engine starts sandboxes on Docker. On this operating system it cannot yet.
type Engine struct{}

// New returns an engine whose every method fails with [runtime.ErrUnsupported].
func New(opts Options) (*Engine, error) {
	_ = opts.withDefaults(os.Getenv, os.TempDir)
	return &Engine{}, nil
}

// Name returns "docker".
func (*Engine) Name() string { return name }

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
		Engine: name, Op: op,
		Err:  fmt.Errorf("%w: %w", runtime.ErrUnsupported, errors.New("docker on "+goruntime.GOOS+" is not supported yet")),
		Hint: "run mcp-bridge on Linux, or in WSL 2",
	}
}
