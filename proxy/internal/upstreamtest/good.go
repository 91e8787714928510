package upstreamtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// counters are what the tool stats returns.
type counters struct {
	Running   atomic.Int64
	Most      atomic.Int64 // of Running, ever
	Cancelled atomic.Int64
	Big       atomic.Int64 // calls of big
}

// Stats is the structured content of the tool stats.
type Stats struct {
	PID       int   `json:"pid"`
	Most      int64 `json:"most"`      // calls of sleep that ran at one time
	Running   int64 `json:"running"`   // that run now
	Cancelled int64 `json:"cancelled"` // that were cancelled
	Big       int64 `json:"big"`       // calls of big
}

func (c *counters) enter() {
	n := c.Running.Add(1)
	for most := c.Most.Load(); n > most && !c.Most.CompareAndSwap(most, n); most = c.Most.Load() {
	}
}

type (
	none     struct{}
	echoArgs struct {
		Text string `json:"text"`
	}
	sleepArgs struct {
		MS int `json:"ms"`
	}
	bigArgs struct {
		Bytes int `json:"bytes"`
	}
)

func runGood() error {
	server := newGood()
	return server.Run(context.Background(), &mcp.StdioTransport{MaxLineLength: -1})
}

// runSlow is slow to begin, and refuses initialize.
func runSlow() error {
	time.Sleep(700 * time.Millisecond)
	server := newGood()
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "initialize" {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "initialize is gone"}
			}
			return next(ctx, method, req)
		}
	})
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

func newGood() *mcp.Server {
	var c counters
	server := mcp.NewServer(&mcp.Implementation{Name: "good", Version: "1"}, nil)
	add(server, "echo", "Echoes its text", func(_ context.Context, a echoArgs) (*mcp.CallToolResult, error) {
		return text(a.Text), nil
	})
	add(server, "sleep", "Sleeps", func(ctx context.Context, a sleepArgs) (*mcp.CallToolResult, error) {
		c.enter()
		defer c.Running.Add(-1)
		select {
		case <-time.After(time.Duration(a.MS) * time.Millisecond):
			return text("slept"), nil
		case <-ctx.Done():
			c.Cancelled.Add(1)
			return nil, ctx.Err()
		}
	})
	add(server, "big", "Returns much", func(_ context.Context, a bigArgs) (*mcp.CallToolResult, error) {
		defer c.Big.Add(1)
		return text(strings.Repeat("0123456789abcdef", a.Bytes/16)), nil
	})
	add(server, "fail", "Fails", func(context.Context, none) (*mcp.CallToolResult, error) {
		return nil, fmt.Errorf("no luck today")
	})
	add(server, "crash", "Exits", func(context.Context, none) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "about to crash")
		os.Exit(3)
		return nil, nil
	})
	add(server, "stats", "Counts", func(context.Context, none) (*mcp.CallToolResult, error) {
		return structured(Stats{os.Getpid(), c.Most.Load(), c.Running.Load(), c.Cancelled.Load(), c.Big.Load()})
	})
	add(server, "environment", "The environment and the working directory", func(context.Context, none) (*mcp.CallToolResult, error) {
		dir, _ := os.Getwd()
		return structured(map[string]any{"env": os.Environ(), "dir": dir})
	})
	add(server, "grow", "Adds a tool named new-tool", func(context.Context, none) (*mcp.CallToolResult, error) {
		add(server, "new-tool", "Was not there before", func(context.Context, none) (*mcp.CallToolResult, error) {
			return text("new"), nil
		})
		return text("grown"), nil
	})
	addResources(server)
	return server
}

// addResources adds the resources note://1 to note://3, a template note://{n}, and the prompt greet.
func addResources(server *mcp.Server) {
	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := req.Params.URI
		if uri == "note://none" {
			return nil, mcp.ResourceNotFoundError(uri)
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: "the text of " + uri}}}, nil
	}
	for _, n := range []string{"1", "2", "3"} {
		server.AddResource(&mcp.Resource{URI: "note://" + n, Name: "note " + n}, read)
	}
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "note://{n}", Name: "notes"}, read)
	server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.TextContent{Text: "Greet " + req.Params.Arguments["who"]}},
			}}, nil
		})
}

func add[A any](server *mcp.Server, name, description string, f func(context.Context, A) (*mcp.CallToolResult, error)) {
	mcp.AddTool(server, &mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, _ *mcp.CallToolRequest, args A) (*mcp.CallToolResult, any, error) {
			res, err := f(ctx, args)
			return res, nil, err
		})
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func structured(v any) (*mcp.CallToolResult, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: json.RawMessage(data)}, nil
}
