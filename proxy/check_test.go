package proxy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

// A wrong call fails here, in words that mend it, and not at the server.
func TestWrongCallsAreNotSent(t *testing.T) {
	p := newProxy(t, upstreamtest.Good)
	for args, want := range map[string]string{
		`{}`:                    "missing argument text: str",
		`{"txt":"hello"}`:       "unknown argument txt; did you mean text?",
		`{"text":7}`:            "argument text: expected str, got int 7",
		`{"text":"a","more":1}`: "unknown argument more; the arguments are text",
	} {
		_, err := p.Call(t.Context(), "good", "echo", json.RawMessage(args))
		var e *proxy.Error
		if !errors.As(err, &e) || e.Kind != proxy.Invalid {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if text := `tool "echo" of server "good" was not called: ` + want; e.Message != text {
			t.Errorf("%s:\n got %s\nwant %s", args, e.Message, text)
		}
		if e.Hint != "its signature is good.echo(text: str)" {
			t.Errorf("hint %q", e.Hint)
		}
	}
	call(t, p, "good", "echo", `{"text":"a"}`)
}

// What the catalog says of a tool may be old: the server is asked again before
// a call is refused.
func TestCallsAreCheckedByWhatTheServerSaysNow(t *testing.T) {
	catalog := openCatalog(t)
	old := discovery.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"integer"}},"required":["message"],"additionalProperties":false}`)}
	if err := catalog.Put(testServer(t, upstreamtest.Good), []discovery.Tool{old}); err != nil {
		t.Fatal(err)
	}
	p := newProxyWith(t, proxy.Options{Catalog: catalog}, upstreamtest.Good)
	call(t, p, "good", "echo", `{"text":"a"}`)
}

// A tool whose schema makes no sense is called unchecked, which is said once.
func TestUselessSchemasCheckNothing(t *testing.T) {
	var log bytes.Buffer
	p := newProxyWith(t, proxy.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, upstreamtest.Odd)
	for range 3 {
		call(t, p, "odd", "listed", `{"any":"thing"}`)
	}
	_ = p.Close()
	if n := strings.Count(log.String(), "arguments are not checked"); n != 1 {
		t.Errorf("said %d times: %s", n, log.String())
	}
}
