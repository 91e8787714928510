package bench

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkWarmCall: run_python("1") in a warm session, beside an echo call of
// the same SDK over stdio plus a round trip over a unix socket to a Python.
func BenchmarkWarmCall(b *testing.B) {
	onEngines(b, func(b *testing.B, e engine) {
		echo, bridge, socket := connect(b, echoCommand()), e.start(b), echoSocket(b)
		cell := map[string]any{"code": "1"}
		bridge.run(b, "", "1")
		var warm, echoed, raw timings
		for b.Loop() {
			echoed.time(func() { call(b, echo, "echo", cell) })
			raw.time(func() { roundTrip(b, socket) })
			warm.time(func() { bridge.run(b, "", "1") })
		}
		floor := echoed.median() + raw.median()
		report(b, "warm", warm.median())
		report(b, "echo", echoed.median())
		report(b, "socket", raw.median())
		b.ReportMetric(float64(warm.median())/float64(floor), "×floor(aim-1.5)")
		b.ReportMetric(0, "ns/op")
	})
}

// echoSocket is a unix socket on which a Python of the host sends back what it
// receives: what a sandbox's end of a channel costs at least.
func echoSocket(b *testing.B) net.Conn {
	b.Helper()
	path := filepath.Join(b.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	const program = `import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
while data := s.recv(65536): s.sendall(data)`
	cmd := exec.Command("python3", "-I", "-c", program, path)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Close()
		_ = cmd.Wait()
	})
	return c
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

// BenchmarkCallback: a tool call from a cell to a warm upstream, beside the same
// call made by the same SDK directly. The cell times its own calls.
func BenchmarkCallback(b *testing.B) {
	onEngines(b, func(b *testing.B, e engine) {
		direct, bridge := connect(b, echoCommand()), e.start(b)
		const prepare = `import time
def median(n):
    tool, times = tools.bench.echo, []
    for _ in range(n):
        start = time.perf_counter_ns(); tool(text="x"); times.append(time.perf_counter_ns() - start)
    return sorted(times)[n // 2]
_ = median(50)`
		bridge.run(b, "", prepare)
		var called, ratios timings
		var sandboxed []time.Duration
		for b.Loop() {
			called = called[:0]
			for range 50 {
				called.time(func() { call(b, direct, "echo", map[string]any{"text": "x"}) })
			}
			var nanoseconds int64
			text := bridge.run(b, "", "median(50)")
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
	})
}

// BenchmarkReset: from the end of a REPL, by a cell that ends it, to the next
// cell's result, beside a call that ends nothing.
func BenchmarkReset(b *testing.B) {
	onEngines(b, func(b *testing.B, e engine) {
		bridge := e.start(b)
		bridge.run(b, "", "1")
		var reset, warm timings
		for b.Loop() {
			warm.time(func() { bridge.run(b, "", "1") })
			end := &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "import os\nos._exit(3)"}}
			if result, err := bridge.CallTool(b.Context(), end); err != nil || !result.IsError {
				b.Fatalf("the REPL did not end: %v", err)
			}
			reset.time(func() { bridge.run(b, "", "1") })
		}
		report(b, "reset(aim-20000)", reset.median())
		report(b, "warm", warm.median())
		b.ReportMetric(0, "ns/op")
	})
}
