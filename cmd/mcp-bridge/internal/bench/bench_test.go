package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	sandboximage "github.com/mcp-bridge/mcp-bridge/sandbox-image"
)

// serveEcho makes this test binary an MCP server with one tool: the floor for
// a call over stdio, and the upstream for calls from a sandbox.
const serveEcho = "MCP_BRIDGE_BENCH_ECHO"

func TestMain(m *testing.M) {
	if os.Getenv(serveEcho) != "" {
		server := mcp.NewServer(&mcp.Implementation{Name: "echo"}, nil)
		server.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
			func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
			})
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func image() string {
	return cmp.Or(os.Getenv("MCP_BRIDGE_TEST_IMAGE"), "localhost/mcp-bridge-sandbox:latest")
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

func echoCommand() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEcho+"=1")
	return cmd
}

// bridgeCommand is `mcp-bridge run` with the echo server as its upstream.
func bridgeCommand(b *testing.B) *exec.Cmd {
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
	return exec.Command(mustBinary(b), "run", "--runtime", "podman", "--image", image(),
		"--config-dir", dir, "--cache-dir", filepath.Join(dir, "cache"))
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

func report(b *testing.B, name string, median time.Duration) {
	b.ReportMetric(float64(median.Nanoseconds())/1e3, name+"-µs")
}

// socketEcho is a sandbox that sends back what it receives: the floor for a
// byte's way into a container and out again.
func socketEcho(b *testing.B) io.ReadWriter {
	b.Helper()
	engine, err := podman.New(podman.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { engine.Close() })
	const program = `import socket,sys
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[-1].removeprefix("socket:")); return s
a, b = connect(), connect()
while data := a.recv(65536): a.sendall(data)`
	box, err := engine.Start(b.Context(), runtime.Spec{
		Image:   image(),
		Command: []string{"python3", "-I", "-c", program},
		Seccomp: sandboximage.Seccomp(),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { box.Close() })
	return box.Control()
}

func roundTrip(b *testing.B, rw io.ReadWriter) {
	var buf [64]byte
	if _, err := rw.Write(buf[:]); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(rw, buf[:]); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkWarmCall: run_python("1") in a warm session, beside an echo call of
// the same SDK over stdio plus a raw socket round trip into a container.
func BenchmarkWarmCall(b *testing.B) {
	echo, bridge, socket := connect(b, echoCommand()), connect(b, bridgeCommand(b)), socketEcho(b)
	cell := map[string]any{"code": "1"}
	call(b, bridge, "run_python", cell)
	var warm, echoed, raw timings
	for b.Loop() {
		echoed.time(func() { call(b, echo, "echo", cell) })
		raw.time(func() { roundTrip(b, socket) })
		warm.time(func() { call(b, bridge, "run_python", cell) })
	}
	floor := echoed.median() + raw.median()
	report(b, "warm", warm.median())
	report(b, "echo", echoed.median())
	report(b, "socket", raw.median())
	b.ReportMetric(float64(warm.median())/float64(floor), "×floor(aim-1.5)")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCallback: a tool call from a cell to a warm upstream, beside the same
// call made by the same SDK directly. The cell times its own calls.
func BenchmarkCallback(b *testing.B) {
	direct, bridge := connect(b, echoCommand()), connect(b, bridgeCommand(b))
	const prepare = `import time
def median(n):
    tool, times = tools.bench.echo, []
    for _ in range(n):
        start = time.perf_counter_ns(); tool(text="x"); times.append(time.perf_counter_ns() - start)
    return sorted(times)[n // 2]
_ = median(50)`
	call(b, bridge, "run_python", map[string]any{"code": prepare})
	var called, ratios timings
	var sandboxed []time.Duration
	for b.Loop() {
		called = called[:0]
		for range 50 {
			called.time(func() { call(b, direct, "echo", map[string]any{"text": "x"}) })
		}
		var nanoseconds int64
		text := call(b, bridge, "run_python", map[string]any{"code": "median(50)"})
		if _, err := fmt.Sscan(text, &nanoseconds); err != nil {
			b.Fatalf("%q: %v", text, err)
		}
		sandboxed = append(sandboxed, time.Duration(nanoseconds))
		ratios = append(ratios, time.Duration(1000*float64(nanoseconds)/float64(called.median())))
	}
	report(b, "callback", timings(sandboxed).median())
	report(b, "direct", called.median())
	b.ReportMetric(float64(ratios.median())/1000, "×direct(aim-1.5)")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkFirstCall: from the start of the binary to the answer of the first
// cell, beside `podman run` of the same image with the same Python.
func BenchmarkFirstCall(b *testing.B) {
	var first, bare timings
	for b.Loop() {
		first.time(func() {
			session := connect(b, bridgeCommand(b))
			call(b, session, "run_python", map[string]any{"code": "1"})
		})
		bare.time(func() {
			run := exec.CommandContext(b.Context(), "podman", "--runtime", ociRuntime(), "run", "--rm", "--network", "none",
				"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=512:512", image(), "python3", "-c", "pass")
			if out, err := run.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
		})
	}
	report(b, "first", first.median())
	report(b, "podman-run", bare.median())
	b.ReportMetric(float64(first.median())/float64(bare.median()), "×podman-run")
	b.ReportMetric(0, "ns/op")
}

func ociRuntime() string {
	if _, err := os.Stat("/sys/fs/cgroup/unified"); err == nil {
		return "runc" // crun refuses mixed control groups
	}
	return "crun"
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
