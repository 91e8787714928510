package proxy_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

// goodAs is a good server of another name, which a variable makes another one.
func goodAs(t testing.TB, name, version string) discovery.Server {
	server := testServer(t, upstreamtest.Good)
	server.Name = name
	server.Env["VERSION"] = version
	return server
}

func statsOf(t testing.TB, p *proxy.Proxy, server string) (s upstreamtest.Stats) {
	t.Helper()
	if err := json.Unmarshal(call(t, p, server, "stats", "").Structured, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReloadRestartsWhatChanged(t *testing.T) {
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{goodAs(t, "kept", "1"), goodAs(t, "changed", "1"), goodAs(t, "gone", "1")}})
	kept, changed := statsOf(t, p, "kept").PID, statsOf(t, p, "changed").PID
	call(t, p, "gone", "stats", "")
	again := goodAs(t, "kept", "1")
	again.Description, again.Timeout = "as it was, but for this", time.Minute
	p.Reload([]discovery.Server{goodAs(t, "new", "1"), goodAs(t, "changed", "2"), again})
	if got := statsOf(t, p, "kept").PID; got != kept {
		t.Error("the server that did not change was restarted")
	}
	if got := statsOf(t, p, "changed").PID; got == changed {
		t.Error("the server that changed was not restarted")
	}
	call(t, p, "new", "stats", "")
	_, err := p.Call(t.Context(), "gone", "stats", nil)
	wantError(t, err, proxy.UnknownServer)
	var names []string
	for _, info := range p.Servers() {
		names = append(names, info.Name)
	}
	if want := []string{"new", "changed", "kept"}; !slices.Equal(names, want) {
		t.Errorf("servers are %v, want %v", names, want)
	}
	if got := p.Servers()[2].Description; got != again.Description {
		t.Errorf("the description is %q", got)
	}
	result, err := p.Search(t.Context(), "echo", 20)
	if err != nil {
		t.Fatal(err)
	}
	for _, hit := range result.Hits {
		if hit.Server == "gone" {
			t.Error("a tool of the server that is gone is found")
		}
	}
}

func TestReloadLetsCallsFinish(t *testing.T) {
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{goodAs(t, "a", "1"), goodAs(t, "b", "1")}})
	var calls sync.WaitGroup
	defer calls.Wait()
	pids := map[string]int{}
	for _, server := range []string{"a", "b"} {
		pids[server] = statsOf(t, p, server).PID
		calls.Go(func() {
			raw, err := p.Call(t.Context(), server, "sleep", json.RawMessage(`{"ms":1500}`))
			if err != nil {
				t.Errorf("the call of %s that ran got %v", server, err)
				return
			}
			if got := parse(t, raw).text(); got != "slept" {
				t.Errorf("the call of %s gave %q", server, got)
			}
		})
		eventually(t, "the call runs", func() bool { return statsOf(t, p, server).Running == 1 })
	}
	p.Reload([]discovery.Server{goodAs(t, "a", "2")})
	if got := statsOf(t, p, "a"); got.PID == pids["a"] || got.Running != 0 {
		t.Errorf("a new call got to %+v, the old process was %d", got, pids["a"])
	}
	_, err := p.Call(t.Context(), "b", "stats", nil)
	wantError(t, err, proxy.UnknownServer)
}

func TestReloadEndsCallsThatTakeTooLong(t *testing.T) {
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{goodAs(t, "a", "1")}, DrainTimeout: 50 * time.Millisecond})
	failed := make(chan error, 1)
	call(t, p, "a", "stats", "")
	go func() {
		_, err := p.Call(t.Context(), "a", "sleep", json.RawMessage(`{"ms":60000}`))
		failed <- err
	}()
	eventually(t, "the call runs", func() bool { return statsOf(t, p, "a").Running == 1 })
	p.Reload([]discovery.Server{goodAs(t, "a", "2")})
	wantError(t, <-failed, proxy.ServerFailed, "its definition has changed")
	call(t, p, "a", "stats", "")
}

// A definition that hangs is mended: whoever waits for it gets the new one.
func TestReloadDuringAStart(t *testing.T) {
	mute := testServer(t, upstreamtest.Mute)
	mute.Name = "a"
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{mute}})
	done := make(chan error, 1)
	go func() {
		_, err := p.Call(t.Context(), "a", "stats", nil)
		done <- err
	}()
	eventually(t, "it starts", func() bool { return p.Servers()[0].State == "starting" })
	p.Reload([]discovery.Server{goodAs(t, "a", "1")})
	if err := <-done; err != nil {
		t.Errorf("the call got %v", err)
	}
}

func TestReloadKeepsIdentifiers(t *testing.T) {
	idents := func(p *proxy.Proxy) map[string]string {
		all := map[string]string{}
		for _, info := range p.Servers() {
			all[info.Name] = info.Ident
		}
		return all
	}
	named := func(names ...string) (servers []discovery.Server) {
		for _, name := range names {
			servers = append(servers, discovery.Server{Name: name, Command: "x"})
		}
		return servers
	}
	p := newProxyWith(t, proxy.Options{Servers: named("my-server", "my.server")})
	before := idents(p)
	p.Reload(named("my server", "my.server", "my-server"))
	got := idents(p)
	for name, want := range before {
		if got[name] != want {
			t.Errorf("%s is now %s, it was %s", name, got[name], want)
		}
	}
	if got["my server"] != "my_server_3" {
		t.Errorf("the new one is %s", got["my server"])
	}
	p.Reload(named("my server"))
	if got := idents(p)["my server"]; got != "my_server_3" {
		t.Errorf("alone it is %s: a session may have used its name", got)
	}
}

func TestReloadWhileEverythingRuns(t *testing.T) {
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{goodAs(t, "a", "0"), goodAs(t, "b", "0")}})
	stop := make(chan struct{})
	var users sync.WaitGroup
	for range 3 {
		users.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := p.Call(t.Context(), "a", "echo", json.RawMessage(`{"text":"x"}`)); err != nil {
					t.Errorf("call: %v", err)
				}
				_ = p.Servers()
				if _, err := p.Search(t.Context(), "echo", 3); err != nil {
					t.Errorf("search: %v", err)
				}
			}
		})
	}
	for i := range 5 {
		call(t, p, "b", "echo", `{"text":"x"}`)
		p.Reload([]discovery.Server{goodAs(t, "b", string(rune('1'+i))), goodAs(t, "a", "0")})
	}
	close(stop)
	users.Wait()
}

// A sandbox that keeps what it was told hears once that it may be old.
func TestReloadTellsSandboxes(t *testing.T) {
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{goodAs(t, "a", "1")}})
	s := serve(t, p, nil)
	p.Reload(nil) // nobody has asked
	s.ask("servers/list", "")
	p.Reload([]discovery.Server{goodAs(t, "a", "1")})
	if msg := s.receive(); msg.Method != "changed" {
		t.Errorf("received %+v", msg)
	}
	p.Reload([]discovery.Server{goodAs(t, "a", "2")}) // it knows
	s.ask("tools/list", `{"server":"a"}`)
	s.send(1, "tools/call", `{"server":"a","tool":"grow"}`)
	seen := map[string]bool{}
	for range 2 {
		msg := s.receive()
		seen[msg.Method] = true
	}
	if !seen["changed"] || !seen[""] {
		t.Errorf("received %v after the server's tools changed", seen)
	}
}
