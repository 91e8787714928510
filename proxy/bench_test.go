//go:build unix

package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

// A path is a way to the same tool of the same program.
type path struct {
	name string
	call func(tool, args string) error
}

// paths returns the ways to the test server: by go-sdk alone, the floor; by
// Proxy.Call; and by the callback channel over a unix socket.
func paths(b *testing.B) []path {
	b.Helper()
	p := newProxyWith(b, proxy.Options{LearnShapes: true}, upstreamtest.Good)
	session := direct(b)
	callbacks := callbackPath(b, p)
	return []path{
		{"direct", func(tool, args string) error {
			_, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
			return err
		}},
		{"call", func(tool, args string) error {
			_, err := p.Call(b.Context(), "good", tool, json.RawMessage(args))
			return err
		}},
		{"callback", callbacks},
	}
}

func direct(b *testing.B) *mcp.ClientSession {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), upstreamtest.Command(b))
	for name, value := range upstreamtest.Env(upstreamtest.Good) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "direct", Version: "1"}, nil)
	transport := &mcp.IOTransport{Reader: stdout, Writer: stdin, MaxLineLength: -1}
	session, err := client.Connect(context.WithoutCancel(b.Context()), transport, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = session.Close()
		_ = cmd.Wait()
	})
	return session
}

func callbackPath(b *testing.B, p *proxy.Proxy) func(tool, args string) error {
	b.Helper()
	host, guest := socketPair(b)
	done := make(chan error, 1)
	go func() { done <- p.ServeCallbacks(b.Context(), wire.NewConn(host), nil) }()
	conn := wire.NewConn(guest)
	b.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	id := int64(0)
	return func(tool, args string) error {
		id++
		params := fmt.Sprintf(`{"server":"good","tool":%q,"arguments":%s}`, tool, args)
		if err := conn.Send(&wire.Message{ID: id, Method: "tools/call", Params: json.RawMessage(params)}); err != nil {
			return err
		}
		resp, err := conn.Receive()
		if err == nil && resp.Error != nil {
			err = resp.Error
		}
		return err
	}
}

func socketPair(b *testing.B) (host, guest net.Conn) {
	b.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	var conns [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		if conns[i], err = net.FileConn(f); err != nil {
			b.Fatal(err)
		}
		_ = f.Close()
	}
	return conns[0], conns[1]
}

// compare calls tool on every path in turn, and prints each path's median and
// its ratio to the first.
func compare(b *testing.B, tool, args string) {
	ways := paths(b)
	times := make([][]time.Duration, len(ways))
	for _, w := range ways {
		if err := w.call(tool, args); err != nil {
			b.Fatal(w.name, err)
		}
	}
	for b.Loop() {
		for i, w := range ways {
			begun := time.Now()
			if err := w.call(tool, args); err != nil {
				b.Fatal(w.name, err)
			}
			times[i] = append(times[i], time.Since(begun))
		}
	}
	floor := median(times[0])
	for i, w := range ways {
		m := median(times[i])
		b.ReportMetric(float64(m.Nanoseconds())/1e3, "µs-"+w.name)
		if i > 0 {
			b.ReportMetric(float64(m)/float64(floor), w.name+"/direct")
		}
	}
	b.ReportMetric(0, "ns/op") // of all paths together: means nothing
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func BenchmarkEcho(b *testing.B)  { compare(b, "echo", `{"text":"hello"}`) }
func BenchmarkLarge(b *testing.B) { compare(b, "big", `{"bytes":10485760}`) }

// BenchmarkThroughput is calls from eight goroutines at a time.
func BenchmarkThroughput(b *testing.B) {
	p := newProxyWith(b, proxy.Options{LearnShapes: true}, upstreamtest.Good)
	session := direct(b)
	const args = `{"text":"hello"}`
	for name, call := range map[string]func() error{
		"direct": func() error {
			_, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(args)})
			return err
		},
		"call": func() error {
			_, err := p.Call(b.Context(), "good", "echo", json.RawMessage(args))
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(4) // times GOMAXPROCS
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := call(); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
