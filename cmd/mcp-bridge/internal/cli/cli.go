// Package cli is the command line of mcp-bridge: the commands, how flags and
// environment become settings, exit codes, and what is written to whom. It is
// the only place that knows which engine, proxy and configuration are put
// together; how any of them works is theirs.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailure     = 1 // a cell or a tool failed, or anything without a code of its own
	exitUsage       = 2
	exitNoEngine    = 3
	exitConfig      = 4
	exitInterrupted = 130
)

// IO is what a command reads and writes. Out carries results, and the MCP
// protocol of `run`, and nothing else.
type IO struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	// Exit ends the program at once where an orderly end hangs. It may be nil.
	Exit func(code int)
}

// Main runs the command line and returns the exit code. SIGINT, SIGTERM and
// SIGHUP end what runs in an orderly way; a second one kills.
func Main(ctx context.Context, args []string, stdio IO) int {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is below nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	defer stop()
	context.AfterFunc(ctx, stop)
	err := newRoot(stdio).execute(ctx, args) //nolint:contextcheck // cobra hands ctx to the commands
	if err == nil {
		return exitOK
	}
	report(stdio.Err, err)
	return exitCode(ctx, err)
}

// report writes an error for the operator: what happened, and what mends it.
func report(w io.Writer, err error) {
	if errors.Is(err, errShown) {
		return
	}
	fmt.Fprintf(w, "mcp-bridge: error: %v\n", err)
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(w, "mcp-bridge: hint: %s\n", hint)
	}
}

// errShown is the error of a command that has already written why it failed.
var errShown = errors.New("failed")

// A hintedError is an error with a code of its own and a remedy.
type hintedError struct {
	err  error
	code int
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

func usageError(hint, format string, args ...any) error {
	return &hintedError{err: fmt.Errorf(format, args...), code: exitUsage, hint: hint}
}

func configError(hint, format string, args ...any) error {
	return &hintedError{err: fmt.Errorf(format, args...), code: exitConfig, hint: hint}
}

func hintOf(err error) string {
	if e, ok := errors.AsType[*hintedError](err); ok {
		return e.hint
	}
	if e, ok := errors.AsType[*proxy.Error](err); ok {
		return shellHint.Replace(e.Hint)
	}
	return runtime.HintOf(err)
}

func exitCode(ctx context.Context, err error) int {
	if e, ok := errors.AsType[*hintedError](err); ok {
		return e.code
	}
	for _, engine := range []error{
		runtime.ErrUnavailable, runtime.ErrImageMissing, runtime.ErrNoProgram, runtime.ErrUnsupported,
	} {
		if errors.Is(err, engine) {
			return exitNoEngine
		}
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return exitFailure
}

// root is the command tree and what its commands share.
type root struct {
	*cobra.Command
	io       IO
	settings settings
	taken    string // the engine that auto took, once it has
}

func newRoot(stdio IO) *root {
	stdio.Out, stdio.Err = plain(stdio.Out), plain(stdio.Err)
	r := &root{io: stdio}
	r.Command = &cobra.Command{
		Use:   "mcp-bridge",
		Short: "One MCP tool, run_python, in front of all your MCP servers",
		Long: "mcp-bridge is an MCP server with one tool, run_python. Its code runs in a hardened container\n" +
			"and reaches the tools of every MCP server defined in ~/MCPs.",
		Version:       programVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return r.settings.complete(cmd.Flags())
		},
	}
	r.SetIn(stdio.In)
	r.SetOut(stdio.Out)
	r.SetErr(stdio.Err)
	r.SetFlagErrorFunc(flagError)
	r.settings.addCommon(r.PersistentFlags())
	r.AddCommand(r.runCommand(), r.execCommand(), r.toolsCommand(), r.serversCommand(), r.workspaceCommand(), r.imageCommand(), r.doctorCommand(), r.versionCommand())
	r.addCompletion()
	return r
}

func (r *root) execute(ctx context.Context, args []string) error {
	r.SetArgs(args)
	cmd, err := r.ExecuteContextC(ctx)
	if err != nil && isCobraUsage(err) {
		return cobraUsage(cmd, err)
	}
	return err
}
