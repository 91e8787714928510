package bridge_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// overHTTP runs test with a Bridge over e that is served on loopback.
func overHTTP(t *testing.T, e *engine, opts bridge.Options, http bridge.HTTPOptions, test func(t *testing.T, url string)) {
	t.Helper()
	tools := proxy.New(proxy.Options{})
	opts.Tools = tools
	overHTTPWith(t, e, opts, http, test)
	if err := tools.Close(); err != nil {
		t.Error(err)
	}
}

// overHTTPWith is overHTTP with Tools of the caller's.
func overHTTPWith(t *testing.T, e *engine, opts bridge.Options, http bridge.HTTPOptions, test func(t *testing.T, url string)) {
	t.Helper()
	opts.Engine, opts.Image = e, "image"
	b := bridge.New(opts)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.ServeOverHTTP(ctx, listener, http) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
		b.Close()
		if _, open := e.started(); open != 0 {
			t.Errorf("%d sandboxes are left", open)
		}
	}()
	test(t, "http://"+listener.Addr().String()+bridge.HTTPPath)
}

func connectHTTP(t *testing.T, url, version string) (*mcp.ClientSession, error) {
	t.Helper()
	return mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true, MaxRetries: -1},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
}

func callHTTP(t *testing.T, c *mcp.ClientSession, arguments map[string]any) (*mcp.CallToolResult, string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return r, r.Content[0].(*mcp.TextContent).Text
}

// Clients beyond the bound take the place of the one idle longest, and are
// turned away while all are at work.
func TestHTTPClientsAreBounded(t *testing.T) {
	e := &engine{}
	overHTTP(t, e, bridge.Options{}, bridge.HTTPOptions{MaxClients: 2}, func(t *testing.T, url string) {
		var all []*mcp.ClientSession
		for i := range 3 {
			c, err := connectHTTP(t, url, "2025-11-25")
			if err != nil {
				t.Fatalf("client %d: %v", i, err)
			}
			callHTTP(t, c, map[string]any{"code": "value 1"})
			all = append(all, c)
		}
		if _, err := all[0].CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "value 1"}}); err == nil {
			t.Error("the client idle longest is still there")
		}
		soon(t, "its sandbox is gone", func() bool { _, open := e.started(); return open == 2 })
		for _, c := range all[1:] {
			go c.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "sleep 10h"}}) // until the end
		}
		soon(t, "both are at work", func() bool { return e.asleep() == 2 })
		if _, err := connectHTTP(t, url, "2025-11-25"); err == nil || !strings.Contains(err.Error(), "2 clients are at work") {
			t.Errorf("the next one hears %v", err)
		}
	})
}

// Sessions that nobody uses are forgotten, with their sandboxes.
func TestHTTPSessionsExpire(t *testing.T) {
	e := &engine{}
	overHTTP(t, e, bridge.Options{}, bridge.HTTPOptions{SessionTimeout: time.Second}, func(t *testing.T, url string) {
		sessionless, err := connectHTTP(t, url, "2026-07-28")
		if err != nil {
			t.Fatal(err)
		}
		r, _ := callHTTP(t, sessionless, map[string]any{"code": "value 1"})
		name := r.Meta["io.mcp-bridge/session"]
		c, err := connectHTTP(t, url, "2025-11-25")
		if err != nil {
			t.Fatal(err)
		}
		callHTTP(t, c, map[string]any{"code": "value 1"})
		soon(t, "the sandboxes are gone", func() bool { _, open := e.started(); return open == 0 })
		if r, text := callHTTP(t, sessionless, map[string]any{"code": "value 1", "session": name}); !r.IsError || !strings.Contains(text, fmt.Sprintf("no session %q", name)) {
			t.Errorf("the forgotten session says %q", text)
		}
	})
}

// Connections beyond the bound wait until there is room.
func TestHTTPConnectionsAreBounded(t *testing.T) {
	overHTTP(t, &engine{}, bridge.Options{}, bridge.HTTPOptions{MaxConnections: 2}, func(t *testing.T, url string) {
		address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), bridge.HTTPPath)
		var idle []net.Conn
		for range 2 {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			idle = append(idle, c)
			if _, err := c.Write([]byte("GET " + bridge.HTTPPath + " HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(make([]byte, 1)); err != nil { // it is let in
				t.Fatal(err)
			}
		}
		answered := make(chan error, 1)
		go func() {
			r, err := http.Get(url)
			if err == nil {
				r.Body.Close()
			}
			answered <- err
		}()
		select {
		case <-answered:
			t.Fatal("there was room for a third connection")
		case <-time.After(300 * time.Millisecond):
		}
		idle[0].Close()
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}

// Strangers who do not get on with their headers keep nobody out.
func TestHTTPStrangersTakeNoPlaces(t *testing.T) {
	overHTTP(t, &engine{}, bridge.Options{}, bridge.HTTPOptions{MaxConnections: 2, Token: "secret"}, func(t *testing.T, url string) {
		for range 50 { // they would all have to be given up first: 25 times the time for a header
			c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), bridge.HTTPPath))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write([]byte("GET / HTTP/1.1\r\n")); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer secret")
		r, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusServiceUnavailable {
			t.Errorf("who has the token hears %s", r.Status)
		}
	})
}

// asleep is how many sandboxes have begun to sleep.
func (e *engine) asleep() int {
	count := 0
	for _, b := range e.all() {
		if cells := b.cells(); len(cells) > 0 && strings.HasPrefix(cells[len(cells)-1], "sleep") {
			count++
		}
	}
	return count
}

// soon polls until condition holds.
func soon(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
