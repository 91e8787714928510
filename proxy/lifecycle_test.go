package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

func TestOneStartForManyWaiters(t *testing.T) {
	p := newProxy(t, upstreamtest.Good)
	if state := p.Servers()[0].State; state != "idle" {
		t.Errorf("state before the first use is %q, want idle", state)
	}
	var mu sync.Mutex
	pids := map[int]int{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			pid := stats(t, p).PID
			mu.Lock()
			defer mu.Unlock()
			pids[pid]++
		})
	}
	wg.Wait()
	if len(pids) != 1 {
		t.Errorf("calls were answered by %d processes, want 1", len(pids))
	}
	if state := p.Servers()[0].State; state != "ready" {
		t.Errorf("state is %q, want ready", state)
	}
}

// The first caller's context bounds its own wait, and not the start.
func TestStartOutlivesItsFirstCaller(t *testing.T) {
	p := newProxyWith(t, proxy.Options{ProbeTimeout: 500 * time.Millisecond}, upstreamtest.Silent)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	second := make(chan error, 1)
	go func() {
		_, err := p.Call(t.Context(), "silent", "weird", nil)
		second <- err
	}()
	_, err := p.Call(ctx, "silent", "weird", nil)
	wantError(t, err, proxy.Timeout, "starting server")
	if err := <-second; err != nil {
		t.Errorf("the second caller got %v", err)
	}
}

func TestRestartAfterACrash(t *testing.T) {
	p := newProxy(t, upstreamtest.Good)
	before := stats(t, p).PID
	_, err := p.Call(t.Context(), "good", "crash", nil)
	wantError(t, err, proxy.ServerFailed)
	if after := stats(t, p).PID; after == before {
		t.Error("the server was not started anew")
	}
}

func TestCrashLoopDoesNotSpin(t *testing.T) {
	p := newProxy(t, upstreamtest.Good)
	var crashes int
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		_, _ = p.Call(ctx, "good", "crash", nil)
		crashes++
	}
	if crashes > 10 {
		t.Errorf("%d crashes in two seconds", crashes)
	}
}

func TestStartFailures(t *testing.T) {
	server := func(name, command string, change func(*discovery.Server)) discovery.Server {
		s := discovery.Server{Name: name, Command: command, Env: map[string]string{"API_KEY": "hunter2hunter2"}}
		if change != nil {
			change(&s)
		}
		return s
	}
	mode := func(mode string) func(*discovery.Server) {
		return func(s *discovery.Server) { s.Env["MCP_BRIDGE_TEST_UPSTREAM"] = mode }
	}
	self := upstreamtest.Command(t)
	p := proxy.New(proxy.Options{StartTimeout: 2 * time.Second, Servers: []discovery.Server{
		server("absent", "no-such-command-anywhere", nil),
		server("absent-path", "/opt/nowhere/bin/thing", nil),
		server("no-command", "", nil),
		server("no-dir", self, func(s *discovery.Server) { s.Cwd = "/home/someone/gone" }),
		server("failing", self, mode(upstreamtest.Failing)),
		server("refusing", self, mode(upstreamtest.Refusing)),
		server("mute", self, mode(upstreamtest.Mute)),
	}})
	t.Cleanup(func() { _ = p.Close() })
	tests := []struct {
		server string
		texts  []string
	}{
		{"absent", []string{`"no-such-command-anywhere"`, "not found", "install"}},
		{"absent-path", []string{`"thing"`, "not found"}},
		{"no-command", []string{"not found"}},
		{"no-dir", []string{"working directory does not exist", `"cwd"`}},
		{"failing", []string{"exit status 7", "cannot log in with key [redacted] at …/index.js:3"}},
		{"refusing", []string{"no license for key [redacted]"}},
		{"mute", []string{"did not answer", "2s"}},
	}
	for _, test := range tests {
		t.Run(test.server, func(t *testing.T) {
			t.Parallel()
			_, err := p.Call(t.Context(), test.server, "x", nil)
			e := wantError(t, err, proxy.ServerFailed, append(test.texts, `"`+test.server+`"`)...)
			text := e.Message + e.Hint
			for _, leak := range []string{"hunter2", "/home", "/opt", "\x1b"} {
				if strings.Contains(text, leak) {
					t.Errorf("the error tells %q: %s", leak, text)
				}
			}
			i := slices.IndexFunc(p.Servers(), func(s proxy.ServerInfo) bool { return s.Name == test.server })
			if info := p.Servers()[i]; info.State != "failed" || info.Error != e.Message {
				t.Errorf("info is %+v, want the failure", info)
			}
		})
	}
}

func TestEnvironmentOfAServer(t *testing.T) {
	t.Setenv("SECRET_OF_THE_BRIDGE", "x")
	t.Setenv("LC_TEST", "y")
	dir := t.TempDir()
	server := testServer(t, upstreamtest.Good)
	server.Cwd = dir
	server.Env["TOKEN"] = "of its own"
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{server}})
	var got struct {
		Env []string `json:"env"`
		Dir string   `json:"dir"`
	}
	if err := json.Unmarshal(call(t, p, "good", "environment", "").Structured, &got); err != nil {
		t.Fatal(err)
	}
	if got.Dir != dir {
		t.Errorf("it runs in %q, want %q", got.Dir, dir)
	}
	for _, want := range []string{"TOKEN=of its own", "LC_TEST=y"} {
		if !slices.Contains(got.Env, want) {
			t.Errorf("the environment lacks %q", want)
		}
	}
	for _, entry := range got.Env {
		if strings.HasPrefix(entry, "SECRET_OF_THE_BRIDGE") {
			t.Errorf("the environment has %q", entry)
		}
	}
}

// One server's flood ends that server, and Close is not held up by it.
func TestRequestFlood(t *testing.T) {
	p := newProxy(t, upstreamtest.Flood, upstreamtest.Good)
	for _, tool := range []string{"weird", "huge", "nothing", "deep"} { // requests, large ones, garbage, answers to nothing
		_, err := p.Call(t.Context(), "flood", tool, nil)
		wantError(t, err, proxy.ServerFailed, "was stopped", "flood")
	}
	call(t, p, "good", "echo", `{"text":"undisturbed"}`)
	go func() { _, _ = p.Call(t.Context(), "flood", "weird", nil) }()
	eventually(t, "the second flood begins", func() bool { return p.Servers()[0].State == "ready" })
	begun := time.Now()
	_ = p.Close()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
}

func TestClosedProxy(t *testing.T) {
	p := newProxy(t, upstreamtest.Good)
	running := make(chan error, 1)
	call(t, p, "good", "echo", `{"text":"warm"}`)
	go func() {
		_, err := p.Call(t.Context(), "good", "sleep", json.RawMessage(`{"ms":60000}`))
		running <- err
	}()
	eventually(t, "the call runs", func() bool { return stats(t, p).Running == 1 })
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { _ = p.Close() })
	}
	wg.Wait()
	wantError(t, <-running, proxy.Closed, "shutting down")
	_, err := p.Call(t.Context(), "good", "echo", nil)
	wantError(t, err, proxy.Closed)
	_, err = p.Tools(t.Context(), "good")
	wantError(t, err, proxy.Closed)
	_, err = p.Search(t.Context(), "echo", 1)
	wantError(t, err, proxy.Closed)
}

// Close leaves nothing running in this process either.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := goruntime.NumGoroutine()
	for range 3 {
		p := newProxyWith(t, proxy.Options{ProbeTimeout: 50 * time.Millisecond}, upstreamtest.Good, upstreamtest.Silent, upstreamtest.Flood)
		if _, err := p.Search(t.Context(), "echo", 1); err != nil {
			t.Fatal(err)
		}
		_, _ = p.Call(t.Context(), "flood", "weird", nil)
		_ = p.Close()
	}
	eventually(t, "as few goroutines as before", func() bool { return goruntime.NumGoroutine() <= before })
}

// Close during a start neither waits for it nor leaves it behind.
func TestCloseDuringStart(t *testing.T) {
	p := newProxy(t, upstreamtest.Mute)
	done := make(chan error, 1)
	go func() {
		_, err := p.Call(t.Context(), "mute", "x", nil)
		done <- err
	}()
	eventually(t, "it starts", func() bool { return p.Servers()[0].State == "starting" })
	begun := time.Now()
	_ = p.Close()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
	wantError(t, <-done, proxy.Closed)
}

// TestRemoteIsTold: a server with a url is listed, and says at use that it
// cannot be used, without its address, which may hold a secret.
func TestRemoteIsTold(t *testing.T) {
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{{Name: "far", Type: discovery.TypeHTTP, URL: "https://x.invalid/?key=s3cret"}}})
	info := p.Servers()[0]
	_, err := p.Call(t.Context(), "far", "tool", nil)
	for _, text := range []string{info.Error, fmt.Sprint(err)} {
		if info.State != "failed" || !strings.Contains(text, "reached over HTTP") || strings.Contains(text, "s3cret") {
			t.Errorf("%s: %s", info.State, text)
		}
	}
}
