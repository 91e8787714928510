package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tiktoken-go/tokenizer"
)

// A counter counts the tokens of a text in o200k_base.
type counter func(text string) int

func newCounter() (counter, error) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, err
	}
	return func(text string) int {
		ids, _, err := codec.Encode(text)
		if err != nil {
			return 0 // no text of ours fails to encode
		}
		return len(ids)
	}, nil
}

// compareDefinitions shows what a client's model pays before its first word:
// with the bridge, and with the servers themselves.
func compareDefinitions(ctx context.Context, out io.Writer, bridge *mcp.ClientSession, servers map[string]server, count counter) error {
	own, err := definitions(ctx, bridge)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "\n── What the client loads")
	cost := tokens(own, count)
	fmt.Fprintf(out, "  mcp-bridge   %2d tool   %6d tokens\n", len(own), cost)
	total := 0
	for name, s := range servers {
		session, err := connect(ctx, exec.CommandContext(ctx, s.Command, s.Args...))
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		tools, err := definitions(ctx, session)
		session.Close()
		if err != nil {
			return fmt.Errorf("list the tools of %s: %w", name, err)
		}
		n := tokens(tools, count)
		total += n
		fmt.Fprintf(out, "  %-12s %2d tools  %6d tokens if it were loaded itself\n", name, len(tools), n)
	}
	fmt.Fprintf(out, "  %.0f times less, and about %d however many servers there are.\n", float64(total)/float64(cost), cost)
	return nil
}

// tokens counts what `mcp-bridge servers check` counts: what a model is given.
func tokens(tools []*mcp.Tool, count counter) int {
	total := 0
	for _, tool := range tools {
		text, err := json.Marshal(struct {
			Name        string `json:"name"`
			Description string `json:"description,omitempty"`
			InputSchema any    `json:"input_schema,omitempty"`
		}{tool.Name, tool.Description, tool.InputSchema})
		if err == nil { // it came from JSON
			total += count(string(text))
		}
	}
	return total
}

// errNoLimits is for machines on which only root can limit a sandbox.
var errNoLimits = errors.New("this user cannot limit a sandbox's memory, processes and processors here (no delegated control groups): " +
	"run it as root, or as `MCP_BRIDGE_ALLOW_UNLIMITED=1 make demo`")

// converse sends the cells and shows both sides.
func converse(ctx context.Context, out io.Writer, bridge *mcp.ClientSession, dir string, count counter) error {
	for _, cell := range cells {
		code := strings.ReplaceAll(strings.TrimSpace(cell.code), "DATA", filepath.Join(dir, "data"))
		fmt.Fprintf(out, "\n── %s\n\n", cell.why)
		quote(out, "  model ▸ ", "          ", code)
		start := time.Now()
		result, err := bridge.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": code}})
		if err != nil {
			return err
		}
		text := ""
		for _, content := range result.Content {
			if block, ok := content.(*mcp.TextContent); ok {
				text += block.Text
			}
		}
		if result.IsError && strings.Contains(text, "--allow-unlimited") {
			return errNoLimits
		}
		if result.IsError != cell.fails {
			return fmt.Errorf("the cell did not go as it should: %s", text)
		}
		fmt.Fprintln(out)
		quote(out, "  sees  ◂ ", "          ", text)
		fmt.Fprintf(out, "          (%d tokens, %s)\n", count(text), time.Since(start).Round(time.Millisecond))
	}
	return nil
}

func quote(out io.Writer, first, rest, text string) {
	prefix := first
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(out, prefix+line)
		prefix = rest
	}
}
