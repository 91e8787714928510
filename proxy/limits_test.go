package proxy_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

func TestServerTimeout(t *testing.T) {
	server := testServer(t, upstreamtest.Good)
	server.Timeout = 200 * time.Millisecond
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{server}})
	_, err := p.Call(t.Context(), "good", "sleep", json.RawMessage(`{"ms":60000}`))
	wantError(t, err, proxy.Timeout, `within 200ms, the "timeout" of its server`)
	server.Timeout = 0 // the same process goes on, and may take its time to say so
	p.Reload([]discovery.Server{server})
	eventually(t, "the server learns of it", func() bool { return stats(t, p).Cancelled == 1 })
}

func TestServerConcurrency(t *testing.T) {
	server := testServer(t, upstreamtest.Good)
	server.Concurrency = 1
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{server}})
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if _, err := p.Call(t.Context(), "good", "sleep", json.RawMessage(`{"ms":50}`)); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if got := stats(t, p); got.Most != 1 {
		t.Errorf("%d calls ran at a time", got.Most)
	}
}

func TestServerIdle(t *testing.T) {
	server := testServer(t, upstreamtest.Good)
	server.Idle = 500 * time.Millisecond // longer than between its start and the call
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{server}})
	before := stats(t, p).PID
	eventually(t, "it is stopped", func() bool { return p.Servers()[0].State == "idle" })
	if stats(t, p).PID == before {
		t.Error("it was not stopped")
	}
}
