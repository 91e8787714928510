package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

func TestCall(t *testing.T) {
	p := newProxy(t, upstreamtest.Good)
	if got := call(t, p, "good", "echo", `{"text":"grüß <b>&"}`).text(); got != "grüß <b>&" {
		t.Errorf("echo returned %q", got)
	}
	if res := call(t, p, "good", "fail", ""); !res.IsError || !strings.Contains(res.text(), "no luck today") {
		t.Errorf("fail returned %+v, want isError with its text", res)
	}
	if got := len(call(t, p, "good", "big", `{"bytes":10485760}`).text()); got != 10485760 {
		t.Errorf("big returned %d bytes", got)
	}
}

// Every way to begin a session ends in the same session.
func TestHandshakes(t *testing.T) {
	for _, mode := range []string{
		upstreamtest.Legacy, upstreamtest.Silent, upstreamtest.Strict, upstreamtest.Noisy,
		upstreamtest.Chatter, upstreamtest.Twice,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := newProxyWith(t, proxy.Options{ProbeTimeout: 300 * time.Millisecond}, mode)
			for range 3 {
				if got := call(t, p, mode, "weird", "{}"); got.Content[1].Text != "<b>\u2028😀" {
					t.Errorf("weird returned %+v", got)
				}
			}
		})
	}
}

// A server that has no initialize, and is slower than the probe, is tried again.
func TestHandshakeSlowModernServer(t *testing.T) {
	p := newProxyWith(t, proxy.Options{ProbeTimeout: 50 * time.Millisecond}, upstreamtest.Slow)
	if got := call(t, p, "slow", "echo", `{"text":"there"}`).text(); got != "there" {
		t.Errorf("echo returned %q", got)
	}
}

// What worked is remembered: the second start does not wait for the probe.
func TestHandshakeIsRemembered(t *testing.T) {
	p := newProxyWith(t, proxy.Options{ProbeTimeout: 300 * time.Millisecond}, upstreamtest.Silent)
	for _, want := range []string{"server/discover", "initialize"} {
		if got := call(t, p, "silent", "first", "").text(); got != want {
			t.Errorf("the session began with %q, want %q", got, want)
		}
		_, err := p.Call(t.Context(), "silent", "exit", nil)
		wantError(t, err, proxy.ServerFailed)
	}
}

func TestRawFidelity(t *testing.T) {
	p := newProxy(t, upstreamtest.Legacy)
	raw, err := p.Call(t.Context(), "legacy", "weird", nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) != upstreamtest.WeirdResult {
		t.Errorf("result is\n%s\nwant, byte for byte,\n%s", raw, upstreamtest.WeirdResult)
	}
	const args = `{"zulu":12345678901234567890,"alpha":9007199254740993,"f":1.10,"nested":{"b":1E400,"a":"\u003c"}}`
	if got := string(call(t, p, "legacy", "args", args).Structured); got != args {
		t.Errorf("arguments arrived as\n%s\nwant\n%s", got, args)
	}
}

func TestConcurrentCallsOverlap(t *testing.T) {
	const calls = 8
	p := newProxy(t, upstreamtest.Good)
	var wg sync.WaitGroup
	for range calls {
		wg.Go(func() {
			if _, err := p.Call(t.Context(), "good", "sleep", json.RawMessage(`{"ms":300}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := stats(t, p).Most; got != calls {
		t.Errorf("%d calls ran at one time in the server, want %d", got, calls)
	}
}

func TestCancelReachesTheServer(t *testing.T) {
	for _, mode := range []string{upstreamtest.Good} {
		p := newProxy(t, mode)
		call(t, p, mode, "echo", `{"text":"warm"}`)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := p.Call(ctx, mode, "sleep", json.RawMessage(`{"ms":60000}`))
			done <- err
		}()
		eventually(t, "the call runs", func() bool { return stats(t, p).Running == 1 })
		cancel()
		e := wantError(t, <-done, proxy.Closed, "cancelled")
		if !errors.Is(e, context.Canceled) {
			t.Errorf("error %v does not wrap context.Canceled", e)
		}
		eventually(t, "the server cancels the call", func() bool {
			s := stats(t, p)
			return s.Cancelled == 1 && s.Running == 0
		})
	}
}

func TestCallTimeout(t *testing.T) {
	p := newProxyWith(t, proxy.Options{CallTimeout: 2 * time.Second}, upstreamtest.Good)
	_, err := p.Call(t.Context(), "good", "sleep", json.RawMessage(`{"ms":60000}`))
	wantError(t, err, proxy.Timeout, `"sleep"`, `"good"`, "timed out")
}

// A server that does not read holds up nobody beyond their own deadline.
func TestCallToADeafServer(t *testing.T) {
	p := newProxy(t, upstreamtest.Deaf)
	if _, err := p.Tools(t.Context(), "deaf"); err != nil {
		t.Fatal(err)
	}
	large := json.RawMessage(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		begun := time.Now()
		_, err := p.Call(ctx, "deaf", "args", large)
		cancel()
		wantError(t, err, proxy.Timeout)
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("the call took %v", took)
		}
	}
}

func TestCallErrors(t *testing.T) {
	disabled := testServer(t, upstreamtest.Mute)
	disabled.Name, disabled.Disabled = "off", true
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{disabled}}, upstreamtest.Legacy, upstreamtest.Good, upstreamtest.Broken)
	tests := []struct {
		name, server, tool, args string
		kind                     proxy.Kind
		texts                    []string
	}{
		{"unknown server", "lagacy", "weird", "", proxy.UnknownServer, []string{`"lagacy"`, `did you mean "legacy"?`}},
		{"nothing near", "zzzzzz", "weird", "", proxy.UnknownServer, []string{"tools.servers()"}},
		{"endless server name", strings.Repeat("x", 1<<20), "weird", "", proxy.UnknownServer, nil},
		{"disabled server", "off", "weird", "", proxy.UnknownServer, []string{"disabled"}},
		{"unknown tool", "legacy", "wierd", "", proxy.UnknownTool, []string{`"wierd"`, `did you mean "weird"`}},
		{"endless tool name", "legacy", strings.Repeat("x\n", 1<<20), "", proxy.UnknownTool, nil},
		{"arguments are a list", "legacy", "args", "[1]", proxy.Invalid, []string{"JSON object"}},
		{"arguments are half", "legacy", "args", `{"a":`, proxy.Invalid, []string{"JSON object"}},
		{"server refuses", "legacy", "refuse", "", proxy.Refused, []string{"bad zulu in …/file.db", "signature"}},
		{"result is null", "legacy", "nothing", "", proxy.Refused, []string{"no result"}},
		{"result too large", "legacy", "huge", "", proxy.Refused, []string{"over 64 MiB"}},
		{"result too deep", "legacy", "deep", "", proxy.Refused, []string{"512 levels"}},
		{"asks for input", "legacy", "input", "", proxy.Refused, nil},
		{"crash", "good", "crash", "", proxy.ServerFailed, []string{"exit status 3", "may or may not", "about to crash"}},
		{"broken message", "broken", "weird", "", proxy.ServerFailed, []string{"was stopped", "not valid JSON"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := p.Call(t.Context(), test.server, test.tool, json.RawMessage(test.args))
			e := wantError(t, err, test.kind, test.texts...)
			if len(e.Message) > 10_000 || len(e.Hint) > 1_000 {
				t.Errorf("the error is %d bytes long", len(e.Message)+len(e.Hint))
			}
		})
	}
	t.Run("the session has outlived all that", func(t *testing.T) {
		call(t, p, "legacy", "weird", "")
		call(t, p, "good", "echo", `{"text":"again"}`)
	})
}

func TestNamesMayBeIdentifiers(t *testing.T) {
	server := testServer(t, upstreamtest.Good)
	server.Name = "my good-server"
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{server}})
	ident := p.Servers()[0].Ident
	call(t, p, server.Name, "grow", "")
	for _, tool := range []string{"new-tool", "new_tool"} {
		if got := call(t, p, ident, tool, "").text(); got != "new" {
			t.Errorf("%s.%s returned %q", ident, tool, got)
		}
	}
}
