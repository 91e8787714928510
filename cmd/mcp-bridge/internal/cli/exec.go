package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// execOutput is how many characters `exec` shows: a person or a pipe takes
// more than a model should.
const execOutput = 16 << 20

// never is longer than any cell may take: there is no second call that could
// wait for the rest.
const never = 48 * time.Hour

func (r *root) execCommand() *cobra.Command {
	var code string
	var given contextFlags
	cmd := &cobra.Command{
		Use:   "exec {-c CODE | FILE | -}",
		Short: "Run Python in a new sandbox and print its output, uncut",
		Example: "  mcp-bridge exec -c 'tools.search(\"create issue\")'\n" +
			"  mcp-bridge exec report.py\n" +
			"  echo 'print(1)' | mcp-bridge exec -",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := r.source(cmd, code, args)
			if err != nil {
				return err
			}
			value, err := r.context(given, args)
			if err != nil {
				return err
			}
			return r.exec(cmd.Context(), source, value)
		},
	}
	cmd.Flags().StringVarP(&code, "code", "c", "", "the code itself")
	cmd.Flags().StringVar(&given.file, "context", "", "file with a JSON value for the variable context, or - for stdin")
	cmd.Flags().StringVar(&given.json, "context-json", "", "the JSON value itself")
	r.settings.addSandbox(cmd.Flags())
	return cmd
}

// source returns the code to run.
func (r *root) source(cmd *cobra.Command, code string, args []string) (string, error) {
	const hint = "mcp-bridge exec -c CODE, mcp-bridge exec FILE or mcp-bridge exec -"
	given := cmd.Flags().Changed("code")
	switch {
	case given == (len(args) == 1):
		return "", usageError(hint, "exec takes either -c CODE, a file, or - for stdin")
	case given:
		return code, nil
	case args[0] == "-":
		return readCode(r.io.In, "stdin")
	}
	file, err := os.Open(args[0])
	if err != nil {
		return "", usageError(hint, "%v", err)
	}
	defer file.Close()
	return readCode(file, args[0])
}

func readCode(from io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(from, bridge.MaxCode+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return string(data), nil
}

// contextFlags are the two ways to pass data along.
type contextFlags struct{ file, json string }

// context returns the value for the variable of that name, or nil.
func (r *root) context(given contextFlags, args []string) (json.RawMessage, error) {
	const hint = "mcp-bridge exec --context FILE, or --context-json '{\"n\": 1}'"
	var from io.Reader
	switch {
	case given.file != "" && given.json != "":
		return nil, usageError(hint, "exec takes --context or --context-json, not both")
	case given.json != "":
		from = strings.NewReader(given.json)
	case given.file == "":
		return nil, nil
	case given.file == "-" && len(args) == 1 && args[0] == "-":
		return nil, usageError(hint, "stdin is either the code or --context, not both")
	case given.file == "-":
		from = r.io.In
	default:
		file, err := os.Open(given.file)
		if err != nil {
			return nil, usageError(hint, "--context: %v", err)
		}
		defer file.Close()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, bridge.MaxContext+1))
	if err != nil {
		return nil, fmt.Errorf("read --context: %w", err)
	}
	if !json.Valid(data) && len(data) <= bridge.MaxContext {
		return nil, usageError(hint, "the value of --context is not JSON")
	}
	return data, nil
}

func (r *root) exec(ctx context.Context, code string, value json.RawMessage) error {
	if code == "" {
		return usageError("", "there is no code to run")
	}
	a, err := r.open(ctx, appOptions{outputLimit: execOutput, notesApart: true, yield: never})
	if err != nil {
		return err
	}
	defer a.close(r.logger())
	pull := newProgress(r.io.Err, "mcp-bridge: getting "+r.settings.image+":")
	result := a.bridge.Run(ctx, bridge.Request{
		Code: code, Context: value, Timeout: time.Duration(r.settings.timeout), Progress: pull.update,
	})
	pull.end()
	for _, image := range result.Images {
		if result.Text != "" {
			result.Text += "\n"
		}
		result.Text += fmt.Sprintf("[%s, %d bytes]", image.MIMEType, len(image.Data))
	}
	// An unusable engine is the operator's to mend: an error here, not a result.
	if _, ok := errors.AsType[*runtime.Error](result.Err); ok {
		return result.Err
	}
	out := r.io.Err
	if !result.IsError {
		out = r.io.Out
	}
	if result.Text != "" {
		_, err = fmt.Fprintln(out, result.Text)
	}
	for _, note := range result.Notes {
		fmt.Fprintln(r.io.Err, note)
	}
	if !result.IsError {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return errShown
}
