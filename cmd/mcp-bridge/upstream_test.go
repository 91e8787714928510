package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// upstreamVar turns the test binary into an upstream MCP server.
const upstreamVar = "E2E_UPSTREAM"

// secret is known to the upstream server alone.
const secret = "e2e-top-secret-4711"

// specialServer defines the upstream server of these tests.
func specialServer(t *testing.T) definition {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return definition{
		Command:     executable,
		Env:         map[string]string{upstreamVar: "serve", "E2E_TOKEN": secret},
		Description: "Odd tools for tests",
	}
}

// brokenServer defines one that says why it cannot start.
func brokenServer(t *testing.T) definition {
	d := specialServer(t)
	d.Env = map[string]string{upstreamVar: "broken"}
	return d
}

type counts struct{ running, most, cancelled, touched atomic.Int64 }

func serveUpstream() {
	if os.Getenv(upstreamVar) == "broken" {
		fmt.Fprintln(os.Stderr, "cannot start: the license file is missing")
		os.Exit(9)
	}
	err := newUpstream().Run(context.Background(), &mcp.StdioTransport{MaxLineLength: -1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func newUpstream() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "special", Version: "1"}, nil)
	var c counts
	add := func(name, description, properties, required string, f func(context.Context, json.RawMessage) *mcp.CallToolResult) {
		schema := fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s]}`, properties, required)
		tool := &mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}
		server.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return f(ctx, req.Params.Arguments), nil
		})
	}
	echo := func(_ context.Context, args json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: args}
	}
	add("same", "Gives back its arguments", `"value":{}`, `"value"`, echo)
	add("odd-name", "A tool with Python keywords as parameters",
		`"class":{"type":"string"},"from":{"type":"string"},"max-items":{"type":"integer"}`, `"class"`, echo)
	add("anything", "Names no parameter and rules none out", ``, ``, echo)
	add("big", "Gives a long text", `"size":{"type":"integer"}`, `"size"`, func(_ context.Context, args json.RawMessage) *mcp.CallToolResult {
		return texts(strings.Repeat("0123456789", number(args)/10))
	})
	add("fail", "Fails", `"why":{"type":"string"}`, ``, func(_ context.Context, args json.RawMessage) *mcp.CallToolResult {
		r := texts("it failed: " + string(args))
		r.IsError = true
		return r
	})
	add("sleep", "Sleeps", `"ms":{"type":"integer"}`, `"ms"`, c.sleep)
	add("stats", "Counts calls of sleep", ``, ``, func(context.Context, json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: map[string]any{
			"pid": os.Getpid(), "touched": c.touched.Load(), "running": c.running.Load(), "most": c.most.Load(), "cancelled": c.cancelled.Load(),
			"secret": os.Getenv("E2E_TOKEN") == secret,
		}}
	})
	add("touch", "Counts that it was called", ``, ``, func(context.Context, json.RawMessage) *mcp.CallToolResult {
		c.touched.Add(1)
		return texts("touched")
	})
	add("texts", "Several blocks", ``, ``, func(context.Context, json.RawMessage) *mcp.CallToolResult {
		return texts("plain", `{"a": [1, 2]}`, "007")
	})
	add("crash", "Ends the server", ``, ``, func(context.Context, json.RawMessage) *mcp.CallToolResult {
		fmt.Fprintln(os.Stderr, "crashing as asked")
		os.Exit(3)
		return nil
	})
	add("createIssue", "A name in camelCase", `"issueTitle":{"type":"string"}`, `"issueTitle"`, echo)
	add("resources", "A tool that is called as the SDK calls something of its own", ``, ``, func(context.Context, json.RawMessage) *mcp.CallToolResult {
		return texts("the tool")
	})
	add("link", "Gives a link to a resource", ``, ``, func(context.Context, json.RawMessage) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ResourceLink{URI: "note://link", Name: "link"}}}
	})
	addOthers(server)
	return server
}

// addOthers adds resources, as text, JSON and bytes, and a prompt.
func addOthers(server *mcp.Server) {
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		content := &mcp.ResourceContents{URI: req.Params.URI, MIMEType: "text/plain", Text: "the text of " + req.Params.URI}
		switch req.Params.URI {
		case "note://json":
			content.MIMEType, content.Text = "application/json", `{"rows":[{"n":9007199254740993}]}`
		case "note://bytes":
			content.MIMEType, content.Text, content.Blob = "application/octet-stream", "", []byte{0, 1, 2}
		case "note://none":
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{content}}, nil
	}
	for _, name := range []string{"text", "json", "bytes"} {
		server.AddResource(&mcp.Resource{URI: "note://" + name, Name: name, Description: "A note"}, read)
	}
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "note://{name}", Name: "any note"}, read)
	server.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greets", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			text := &mcp.TextContent{Text: "Greet " + req.Params.Arguments["who"]}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: text}}}, nil
		})
}

// sleep counts how many of it run at the same time.
func (c *counts) sleep(ctx context.Context, args json.RawMessage) *mcp.CallToolResult {
	n := c.running.Add(1)
	defer c.running.Add(-1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	select {
	case <-time.After(time.Duration(number(args)) * time.Millisecond):
		return texts("slept")
	case <-ctx.Done():
		c.cancelled.Add(1)
		return texts("cancelled")
	}
}

// number is the only argument, a number.
func number(args json.RawMessage) int {
	var fields map[string]int
	if json.Unmarshal(args, &fields) != nil {
		return 0
	}
	for _, n := range fields {
		return n
	}
	return 0
}

func texts(blocks ...string) *mcp.CallToolResult {
	r := &mcp.CallToolResult{}
	for _, text := range blocks {
		r.Content = append(r.Content, &mcp.TextContent{Text: text})
	}
	return r
}
