package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveEcho makes this test binary an MCP server with two tools: the floor for
// a call over stdio, and the upstream for calls from a sandbox.
const serveEcho = "MCP_BRIDGE_BENCH_ECHO"

// runAll keeps what bridges keep out of the user's own folders.
func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcp-bridge-bench")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("MCP_BRIDGE_STATE_DIR", dir)
	return m.Run()
}

func TestMain(m *testing.M) {
	if os.Getenv(serveEcho) != "" {
		server := mcp.NewServer(&mcp.Implementation{Name: "echo"}, nil)
		server.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
			})
		server.AddTool(&mcp.Tool{Name: "wait", InputSchema: json.RawMessage(`{"type":"object","properties":{"seconds":{"type":"number"}}}`)}, wait)
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(runAll(m))
}

// wait is a tool that takes as long as it is told to.
func wait(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Seconds float64 }
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, err
	}
	select {
	case <-time.After(time.Duration(args.Seconds * float64(time.Second))):
	case <-ctx.Done():
	}
	return &mcp.CallToolResult{}, nil
}

var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("MCP_BRIDGE_TEST_BINARY"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "mcp-bridge-bench")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "mcp-bridge")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func mustBinary(b *testing.B) string {
	b.Helper()
	path, err := binary()
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// connect starts a command as an MCP server and returns the client's session.
func connect(b *testing.B, cmd *exec.Cmd) *mcp.ClientSession {
	b.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "bench"}, nil)
	session, err := client.Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { session.Close() })
	return session
}

// start starts a bridge with the echo server as its upstream.
func (e engine) start(b *testing.B, args ...string) *bridge {
	b.Helper()
	cmd := e.command(b, args...)
	return &bridge{ClientSession: connect(b, cmd), engine: e, pid: cmd.Process.Pid}
}

// A bridge is a running `mcp-bridge run`.
type bridge struct {
	*mcp.ClientSession

	engine engine
	pid    int
}

// run runs a cell that must not fail, in a session.
func (br *bridge) run(b *testing.B, session, code string) string {
	b.Helper()
	arguments := map[string]any{"code": code}
	if session != "" {
		arguments["session"] = session
	}
	return call(b, br.ClientSession, "run_python", arguments)
}

func echoCommand() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEcho+"=1")
	return cmd
}

// command is `mcp-bridge run` with the echo server as its upstream.
func (e engine) command(b *testing.B, args ...string) *exec.Cmd {
	b.Helper()
	dir := b.TempDir()
	definition, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"bench": map[string]any{"command": os.Args[0], "env": map[string]string{serveEcho: "1"}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.json"), definition, 0o600); err != nil {
		b.Fatal(err)
	}
	args = append([]string{
		"run", "--runtime", e.name, "--transport", e.transport,
		"--config-dir", dir, "--cache-dir", filepath.Join(dir, "cache"),
	}, args...)
	if e.image != "" {
		args = append(args, "--image", e.image)
	}
	return exec.Command(mustBinary(b), args...)
}

func call(b *testing.B, session *mcp.ClientSession, tool string, arguments any) string {
	b.Helper()
	result, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		b.Fatal(err)
	}
	text := result.Content[0].(*mcp.TextContent).Text
	if result.IsError {
		b.Fatal(text)
	}
	return text
}

// timings are those of one thing measured over and over.
type timings []time.Duration

func (t *timings) time(f func()) {
	start := time.Now()
	f()
	*t = append(*t, time.Since(start))
}

func (t timings) median() time.Duration {
	sorted := slices.Sorted(slices.Values(t))
	return sorted[len(sorted)/2]
}

// value runs a cell whose value is a number.
func (br *bridge) value(b *testing.B, session, code string) float64 {
	b.Helper()
	text := br.run(b, session, code)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		b.Fatalf("%.500q is no number", text)
	}
	return n
}

func report(b *testing.B, name string, median time.Duration) {
	b.ReportMetric(float64(median.Nanoseconds())/1e3, name+"-µs")
}

// BenchmarkVersion: the whole process `mcp-bridge version`, beside `true`.
func BenchmarkVersion(b *testing.B) {
	var version, floor timings
	path := mustBinary(b)
	for b.Loop() {
		version.time(func() { exec.Command(path, "version").Run() })
		floor.time(func() { exec.Command("true").Run() })
	}
	report(b, "version", version.median())
	report(b, "true", floor.median())
	b.ReportMetric(0, "ns/op")
}
