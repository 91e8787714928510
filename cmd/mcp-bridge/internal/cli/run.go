package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
)

func (r *root) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Serve MCP on stdin and stdout, or over HTTP",
		Long: "Serve MCP on stdin and stdout until the client closes stdin. This is what goes into a client's\n" +
			`configuration: {"command": "mcp-bridge", "args": ["run"]}` + "\n\n" +
			"With --http it serves Streamable HTTP to many clients, until it is stopped. Each has sandboxes of its own.",
		Example: "  mcp-bridge run\n  mcp-bridge run --http 127.0.0.1:8080",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.settings.validateRun(); err != nil {
				return err
			}
			if err := r.refuseUnderBridge(); err != nil {
				return err
			}
			a, err := r.open(cmd.Context(), appOptions{
				sweep: true, follow: true, yield: time.Duration(r.settings.yield), warm: r.settings.warm,
				outputLimit: r.settings.outputLimit, outputMode: bridge.Mode(r.settings.outputMode),
				hibernate: r.settings.hibernate,
			})
			if err != nil {
				return err
			}
			defer endWithin(endLimit, cmd.Context().Done(), r.logger(), r.io.Exit)() // after close
			defer a.close(r.logger())
			if r.settings.http.address != "" {
				return r.serveHTTP(cmd.Context(), a)
			}
			if isTerminal(r.io.In) {
				fmt.Fprintln(r.io.Err, "mcp-bridge: run speaks MCP on stdin, for a client to start it; to run Python from a shell: mcp-bridge exec")
			}
			in, restore := pollable(r.io.In)
			defer restore()
			if err := a.bridge.Serve(cmd.Context(), in, r.io.Out); err != nil {
				return err
			}
			if cmd.Context().Err() != nil {
				return &hintedError{err: errShown, code: exitInterrupted}
			}
			return nil
		},
	}
	r.settings.addSandbox(cmd.Flags())
	r.settings.addRun(cmd.Flags())
	return cmd
}
