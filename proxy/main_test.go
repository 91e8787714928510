package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

func TestMain(m *testing.M) {
	upstreamtest.Main()
	if os.Getenv(helperVar) != "" {
		runHelper()
	}
	os.Exit(m.Run())
}

// testServer defines a server named after its mode.
func testServer(t testing.TB, mode string) discovery.Server {
	return discovery.Server{Name: mode, Command: upstreamtest.Command(t), Env: upstreamtest.Env(mode)}
}

// newProxy returns a proxy over servers of those modes.
func newProxy(t testing.TB, modes ...string) *proxy.Proxy {
	t.Helper()
	return newProxyWith(t, proxy.Options{}, modes...)
}

func newProxyWith(t testing.TB, opts proxy.Options, modes ...string) *proxy.Proxy {
	t.Helper()
	for _, mode := range modes {
		opts.Servers = append(opts.Servers, testServer(t, mode))
	}
	p := proxy.New(opts)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func openCatalog(t testing.TB) *discovery.Catalog {
	t.Helper()
	catalog, err := discovery.OpenCatalog(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return catalog
}

// result is what tests look at of a CallToolResult.
type result struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

func call(t testing.TB, p *proxy.Proxy, server, tool, args string) result {
	t.Helper()
	raw, err := p.Call(t.Context(), server, tool, json.RawMessage(args))
	if err != nil {
		t.Fatalf("call %s.%s: %v", server, tool, err)
	}
	return parse(t, raw)
}

func parse(t testing.TB, raw json.RawMessage) (res result) {
	t.Helper()
	if err := json.Unmarshal(raw, &res); err != nil {
		t.Fatalf("result %.200s: %v", raw, err)
	}
	return res
}

func (r result) text() string {
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

func stats(t testing.TB, p *proxy.Proxy) (s upstreamtest.Stats) {
	t.Helper()
	if err := json.Unmarshal(call(t, p, upstreamtest.Good, "stats", "").Structured, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// wantError checks that err is a *proxy.Error of that kind with those texts.
func wantError(t testing.TB, err error, kind proxy.Kind, texts ...string) *proxy.Error {
	t.Helper()
	e, ok := errors.AsType[*proxy.Error](err)
	if !ok {
		t.Fatalf("error is %v (%T), want a *proxy.Error", err, err)
	}
	if e.Kind != kind {
		t.Errorf("kind is %q, want %q: %s", e.Kind, kind, e.Message)
	}
	for _, text := range texts {
		if !strings.Contains(e.Message+"\n"+e.Hint, text) {
			t.Errorf("error %q (hint %q) does not contain %q", e.Message, e.Hint, text)
		}
	}
	return e
}

// eventually waits for something that another process or goroutine does.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// helperVar makes the test binary a bridge that is to be killed.
const helperVar = "MCP_BRIDGE_TEST_HELPER"

// wrapped defines servers that run below a shell, as npx does it: a good one,
// and one that ignores the end of its input and SIGTERM. mark finds them.
func wrapped(command, mark string) []discovery.Server {
	script := func(mode string) discovery.Server {
		env := upstreamtest.Env(mode)
		env["MARK"] = mark
		return discovery.Server{Name: mode, Command: "/bin/sh", Args: []string{"-c", `sleep 1000 & "$0"; true`, command}, Env: env}
	}
	return []discovery.Server{script(upstreamtest.Good), script(upstreamtest.Stubborn)}
}

// runHelper starts servers, says so, and waits to be killed.
func runHelper() {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	p := proxy.New(proxy.Options{Servers: wrapped(self, os.Getenv(helperVar))})
	for server, tool := range map[string]string{"good": "echo", "stubborn": "weird"} {
		if _, err := p.Call(context.Background(), server, tool, json.RawMessage(`{"text":"x"}`)); err != nil {
			panic(err)
		}
	}
	fmt.Println("ready")
	time.Sleep(time.Hour) // select {} is a deadlock to a runtime with nothing else to do
}
