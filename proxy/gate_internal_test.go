package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-bridge/mcp-bridge/proxy/internal/stdio"
)

// A fakeConn hands out prepared messages and keeps what is written.
type fakeConn struct {
	in  []jsonrpc.Message
	out []jsonrpc.Message
}

func (c *fakeConn) Read(context.Context) (jsonrpc.Message, error) {
	if len(c.in) == 0 {
		return nil, io.EOF
	}
	msg := c.in[0]
	c.in = c.in[1:]
	return msg, nil
}

func (c *fakeConn) Write(_ context.Context, msg jsonrpc.Message) error {
	c.out = append(c.out, msg)
	return nil
}

func (c *fakeConn) Close() error      { return nil }
func (c *fakeConn) SessionID() string { return "" }

func newID(t *testing.T, v any) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID(v)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newTestGate(in ...jsonrpc.Message) (*gate, *fakeConn, *int) {
	conn, changes := &fakeConn{in: in}, new(int)
	return newGate(conn, &stdio.Meter{}, slog.New(slog.DiscardHandler), func() { *changes++ }), conn, changes
}

// readAll returns what go-sdk would see.
func readAll(g *gate) (seen []jsonrpc.Message, err error) {
	for {
		msg, err := g.Read(context.Background())
		if err != nil {
			return seen, err
		}
		seen = append(seen, msg)
	}
}

func TestGateBoundsRequestsInFlight(t *testing.T) {
	var in []jsonrpc.Message
	for i := range 100 {
		in = append(in, &jsonrpc.Request{ID: newID(t, fmt.Sprint("s", i)), Method: "ping"})
	}
	g, conn, _ := newTestGate(in...)
	seen, _ := readAll(g)
	if len(seen) != maxServerRequests {
		t.Errorf("go-sdk saw %d requests, want %d", len(seen), maxServerRequests)
	}
	if err := g.Write(t.Context(), &jsonrpc.Response{ID: newID(t, "s0")}); err != nil {
		t.Fatal(err)
	}
	conn.in = in[50:]
	if seen, _ := g.next(t.Context()); seen == nil {
		t.Error("an answered request does not make room for another")
	}
}

func TestGateEndsFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a clock that stands still
		for name, flood := range map[string]struct {
			msg  jsonrpc.Message
			most int
		}{
			"messages":  {&jsonrpc.Request{Method: "notifications/message"}, 20_000},
			"bytes":     {&jsonrpc.Request{ID: newID(t, "x"), Method: "ping", Params: make([]byte, 1<<20)}, 64},
			"responses": {&jsonrpc.Response{ID: newID(t, "x"), Result: make([]byte, 1<<20)}, 64},
		} {
			in := slices.Repeat([]jsonrpc.Message{flood.msg}, flood.most+1)
			g, _, _ := newTestGate(in...)
			if _, err := readAll(g); !errors.Is(err, stdio.ErrFlood) {
				t.Errorf("%s: error is %v, want ErrFlood", name, err)
			}
			<-g.dead
			g, _, _ = newTestGate(in[1:]...)
			if _, err := readAll(g); !errors.Is(err, io.EOF) {
				t.Errorf("%s: error is %v: one less is no flood", name, err)
			}
		}
	})
}

func TestGateDropsWhatNobodyListensTo(t *testing.T) {
	g, _, changes := newTestGate(
		&jsonrpc.Request{Method: "notifications/tools/list_changed"},
		&jsonrpc.Request{Method: "notifications/progress"},
		&jsonrpc.Request{Method: "notifications/cancelled"},
		&jsonrpc.Request{ID: newID(t, "large"), Method: "ping", Params: json.RawMessage(strings.Repeat(" ", maxRequestBytes+1))},
	)
	seen, _ := readAll(g)
	if len(seen) != 1 || seen[0].(*jsonrpc.Request).Method != "notifications/cancelled" {
		t.Errorf("go-sdk saw %v", seen)
	}
	if *changes != 1 {
		t.Errorf("%d changes of tools were noticed, want 1", *changes)
	}
}

func TestGateSinks(t *testing.T) {
	const stub = `{"content":[]}`
	tests := []struct {
		name, result string
		taken        bool
	}{
		{"plain", `{"content":[{"type":"x"}]}`, true},
		{"complete", `{"content":[],"resultType":"complete"}`, true},
		{"words in the text", `{"content":[{"text":"\"resultType\":\"input_required\""}]}`, true},
		{"nested word", `{"structuredContent":{"resultType":"input_required"},"content":[]}`, true},
		{"asks for input", `{"resultType":"input_required","inputRequests":{}}`, false},
		{"unknown type", `{"resultType":"task"}`, false},
		{"null", `null`, false},
		{"a list", `[]`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			id := newID(t, float64(7))
			g, _, _ := newTestGate(&jsonrpc.Response{ID: id, Result: json.RawMessage(test.result)},
				&jsonrpc.Response{ID: id, Result: json.RawMessage(`"again"`)})
			ctx, s := withSink(t.Context(), "tools/call", stub)
			if err := g.Write(ctx, &jsonrpc.Request{ID: id, Method: "tools/call"}); err != nil {
				t.Fatal(err)
			}
			seen, _ := readAll(g)
			want := test.result
			if test.taken {
				want = stub
			}
			if got := string(seen[0].(*jsonrpc.Response).Result); got != want {
				t.Errorf("go-sdk saw %s, want %s", got, want)
			}
			out := g.finish(s)
			if (string(out.raw) == test.result) != test.taken || !out.sent || out.refusal != nil {
				t.Errorf("outcome is %+v", out)
			}
			if len(g.asked) != 0 {
				t.Error("a sink was left behind")
			}
		})
	}
}

// Other requests made with the same context do not fill the sink.
func TestGateSinkIsForItsMethod(t *testing.T) {
	g, _, _ := newTestGate()
	ctx, s := withSink(t.Context(), "tools/call", "{}")
	_ = g.Write(ctx, &jsonrpc.Request{ID: newID(t, "x"), Method: "ping"})
	if out := g.finish(s); out.sent || len(g.asked) != 1 {
		t.Errorf("outcome is %+v with %d requests", out, len(g.asked))
	}
}

// The late answers to calls that nobody waits for any more are no flood, and
// what is kept to know them is bounded.
func TestGateLateAnswers(t *testing.T) {
	g, conn, _ := newTestGate()
	for i := range 2 * maxForgotten {
		id := newID(t, float64(i))
		ctx, s := withSink(t.Context(), "tools/call", "{}")
		if err := g.Write(ctx, &jsonrpc.Request{ID: id, Method: "tools/call"}); err != nil {
			t.Fatal(err)
		}
		g.finish(s)
		if len(g.asked) > maxForgotten {
			t.Fatalf("%d requests are remembered", len(g.asked))
		}
		if i < 1000 {
			conn.in = append(conn.in, &jsonrpc.Response{ID: id, Result: make([]byte, 1<<20)})
		}
		if i == 1000 {
			if seen, err := readAll(g); len(seen) != 1000 || !errors.Is(err, io.EOF) {
				t.Fatalf("go-sdk saw %d answers, then %v", len(seen), err)
			}
			g.dead = make(chan struct{})
		}
	}
}

// Before the handshake is over, no notification but the one that ends it.
func TestGateKeepsTheHandshakeClean(t *testing.T) {
	g, conn, _ := newTestGate()
	for _, method := range []string{"notifications/cancelled", "notifications/initialized"} {
		_ = g.Write(t.Context(), &jsonrpc.Request{Method: method})
	}
	g.open()
	_ = g.Write(t.Context(), &jsonrpc.Request{Method: "notifications/cancelled"})
	if len(conn.out) != 2 {
		t.Errorf("the server got %d notifications, want 2", len(conn.out))
	}
}
