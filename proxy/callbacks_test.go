package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

// A sandbox is the other end of a callback connection.
type sandbox struct {
	*wire.Conn
	t    testing.TB
	raw  net.Conn
	done chan error // what ServeCallbacks returned
}

func serve(t testing.TB, p *proxy.Proxy, extra map[string]proxy.Handler) *sandbox {
	return serveContext(t.Context(), t, p, extra)
}

func serveContext(ctx context.Context, t testing.TB, p *proxy.Proxy, extra map[string]proxy.Handler) *sandbox {
	t.Helper()
	host, guest := net.Pipe()
	s := &sandbox{Conn: wire.NewConn(guest), t: t, raw: guest, done: make(chan error, 1)}
	go func() { s.done <- p.ServeCallbacks(ctx, wire.NewConn(host), extra) }()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *sandbox) send(id int64, method, params string) {
	s.t.Helper()
	msg := &wire.Message{ID: id, Method: method}
	if params != "" {
		msg.Params = json.RawMessage(params)
	}
	if err := s.Send(msg); err != nil {
		s.t.Fatalf("send %s: %v", method, err)
	}
}

func (s *sandbox) receive() *wire.Message {
	s.t.Helper()
	msg, err := s.Receive()
	if err != nil {
		s.t.Fatalf("receive: %v", err)
	}
	return msg
}

// ask sends a request and returns the answer.
func (s *sandbox) ask(method, params string) *wire.Message {
	s.t.Helper()
	s.send(1, method, params)
	msg := s.receive()
	if msg.ID != 1 {
		s.t.Fatalf("the answer is to %d", msg.ID)
	}
	return msg
}

func TestCallbacks(t *testing.T) {
	p := newProxy(t, upstreamtest.Legacy)
	s := serve(t, p, nil)
	s.send(0, "hello", `{"version":1}`)
	if got := s.ask("tools/call", `{"server":"legacy","tool":"weird","arguments":{}}`); string(got.Result) != upstreamtest.WeirdResult {
		t.Errorf("tools/call gave %s, %v", got.Result, got.Error)
	}
	var found struct {
		Hits []struct{ Server, Tool, Signature, Description string }
		Note *string
	}
	if err := json.Unmarshal(s.ask("tools/search", `{"query":"weird","limit":2}`).Result, &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Hits) == 0 || found.Hits[0].Tool != "weird" || found.Hits[0].Server != "legacy" || found.Note == nil {
		t.Errorf("tools/search gave %+v", found)
	}
	if got := string(s.ask("tools/search", `{"query":"qqqqqqqqqqqq"}`).Result); !strings.HasPrefix(got, `{"hits":[],`) {
		t.Errorf("a search for nothing gave %s", got)
	}
	var list struct {
		Tools []struct{ Name, Ident, Signature string }
	}
	if err := json.Unmarshal(s.ask("tools/list", `{"server":"legacy"}`).Result, &list); err != nil || len(list.Tools) != 9 {
		t.Errorf("tools/list gave %+v, %v", list, err)
	}
	if got := string(s.ask("tools/describe", `{"server":"legacy","tool":"weird","detail":"brief"}`).Result); got != `{"doc":"legacy.weird(zulu: int = None, alpha: str = None)"}` {
		t.Errorf("tools/describe gave %s", got)
	}
	want := `{"servers":[{"name":"legacy","ident":"legacy","description":"","tools":9,"state":"ready","error":""}]}`
	if got := string(s.ask("servers/list", "").Result); got != want {
		t.Errorf("servers/list gave %s, want %s", got, want)
	}
	_ = s.Close()
	if err := <-s.done; err != nil {
		t.Errorf("ServeCallbacks returned %v after the sandbox closed", err)
	}
}

func TestCallbackErrors(t *testing.T) {
	p := newProxy(t, upstreamtest.Legacy)
	s := serve(t, p, map[string]proxy.Handler{
		"panics": func(context.Context, json.RawMessage) (json.RawMessage, error) { panic("at the disco") },
		"fails": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return nil, errors.New("open /root/secret: no such file")
		},
		"large": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`"` + strings.Repeat("x", wire.MaxFrame) + `"`), nil
		},
		"nothing": func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil },
	})
	tests := []struct {
		method, params string
		code           int
		kind           proxy.Kind
		text           string
	}{
		{"tools/call", `{"server":"legacyy","tool":"weird"}`, -32000, proxy.UnknownServer, `"legacyy"`},
		{"tools/call", `{"server":"legacy","tool":"weirdd"}`, -32000, proxy.UnknownTool, `"weirdd"`},
		{"tools/call", `{"server":"legacy","tool":"args","arguments":[]}`, -32602, proxy.Invalid, "JSON object"},
		{"tools/call", `{"server":5,"tool":"args"}`, -32602, proxy.Invalid, "malformed"},
		{"tools/call", `[]`, -32602, proxy.Invalid, "malformed"},
		{"tools/call", ``, -32602, proxy.Invalid, "malformed"},
		{"tools/call", `{}`, -32000, proxy.UnknownServer, `""`},
		{"tools/search", `{"query":["x"]}`, -32602, proxy.Invalid, "malformed"},
		{"tools/search", `{"query":"x","limit":1e99}`, -32602, proxy.Invalid, "malformed"},
		{"tools/list", `{"server":"nope"}`, -32000, proxy.UnknownServer, `"nope"`},
		{"no/such\nmethod", `{}`, -32601, proxy.Invalid, "unknown method"},
		{"panics", `{}`, -32000, proxy.Internal, "internal error"},
		{"fails", `{}`, -32000, proxy.Internal, "internal error"},
		{"large", `{}`, -32000, proxy.Refused, "64 MiB"},
	}
	for _, test := range tests {
		got := s.ask(test.method, test.params)
		var data struct {
			Kind proxy.Kind
			Hint *string
		}
		if got.Error == nil || json.Unmarshal(got.Error.Data, &data) != nil || data.Hint == nil {
			t.Errorf("%q %s gave %s, %+v; want an error with data", test.method, test.params, got.Result, got.Error)
			continue
		}
		if got.Error.Code != test.code || data.Kind != test.kind || !strings.Contains(got.Error.Message, test.text) {
			t.Errorf("%q %s gave %d %s %q; want %d %s %q", test.method, test.params,
				got.Error.Code, data.Kind, got.Error.Message, test.code, test.kind, test.text)
		}
		if strings.Contains(got.Error.Message, "/root") {
			t.Errorf("the error tells %q", got.Error.Message)
		}
	}
	if got := s.ask("nothing", ""); string(got.Result) != "null" {
		t.Errorf("an empty result became %s", got.Result)
	}
}

func TestCallbackCancel(t *testing.T) {
	p := newProxy(t, upstreamtest.Good)
	s := serve(t, p, nil)
	s.send(7, "tools/call", `{"server":"good","tool":"sleep","arguments":{"ms":60000}}`)
	eventually(t, "the call runs", func() bool { return stats(t, p).Running == 1 })
	for _, params := range []string{`{"id":8}`, `{"id":"7"}`, `[]`, ``} { // these cancel nothing
		s.send(0, "cancel", params)
	}
	if s.ask("servers/list", "").Error != nil || stats(t, p).Running != 1 {
		t.Fatal("the call was cancelled by a stray notification")
	}
	s.send(0, "cancel", `{"id":7}`)
	if got := s.receive(); got.ID != 7 || got.Error == nil || !strings.Contains(got.Error.Message, "cancelled") {
		t.Errorf("got %+v, want the cancelled call", got)
	}
	eventually(t, "the server cancels", func() bool { return stats(t, p).Cancelled == 1 })
	s.send(7, "servers/list", "") // the id is free again
	if got := s.receive(); got.ID != 7 || got.Error != nil {
		t.Errorf("got %+v", got)
	}
}

// waitHandler answers when block is closed or the request cancelled, and counts.
func waitHandler(block <-chan struct{}, running, most *atomic.Int64) map[string]proxy.Handler {
	return map[string]proxy.Handler{"wait": func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		select {
		case <-block:
		case <-ctx.Done():
		}
		return json.RawMessage("1"), nil
	}}
}

// More requests than MaxInFlight wait; nothing is lost, and cancel still works.
func TestCallbacksWaitForTheirTurn(t *testing.T) {
	const limit, requests = 4, 20
	p := newProxyWith(t, proxy.Options{MaxInFlight: limit}, upstreamtest.Good)
	call(t, p, "good", "echo", `{"text":"warm"}`)
	s := serve(t, p, nil)
	sleep := func(id int64, ms int) {
		s.send(id, "tools/call", fmt.Sprintf(`{"server":"good","tool":"sleep","arguments":{"ms":%d}}`, ms))
	}
	for id := range int64(requests / 2) {
		sleep(id+1, 60_000)
	}
	eventually(t, "all slots are taken", func() bool { return stats(t, p).Running == limit })
	for id := range int64(requests / 2) {
		sleep(requests/2+id+1, 1)
	}
	if most := stats(t, p).Most; most != limit {
		t.Errorf("%d ran at a time, want %d", most, limit)
	}
	for id := range int64(requests / 2) { // some of them run, the others wait
		s.send(0, "cancel", fmt.Sprintf(`{"id":%d}`, id+1))
	}
	answered := map[int64]bool{}
	for len(answered) < requests {
		msg := s.receive()
		if (msg.Error != nil) != (msg.ID <= requests/2) || answered[msg.ID] {
			t.Errorf("got %+v", msg)
		}
		answered[msg.ID] = true
	}
}

// What one connection may have waiting is bounded, in number and in bytes.
func TestCallbacksBeyondTheBound(t *testing.T) {
	for name, tc := range map[string]struct {
		fill   int
		params string
	}{
		"number": {1024, ""},
		"bytes":  {8, `"` + strings.Repeat("x", 16<<20-2) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			var running, most atomic.Int64
			s := serve(t, newProxy(t), waitHandler(nil, &running, &most))
			for id := range int64(tc.fill) {
				s.send(id+1, "wait", tc.params)
			}
			s.send(9999, "wait", `"one more"`)
			msg := s.receive()
			if msg.ID != 9999 || msg.Error == nil || !strings.Contains(string(msg.Error.Data), "busy") {
				t.Errorf("got %+v, want the last one refused as busy", msg)
			}
		})
	}
}

// Who does not read its results does not get the host to hold ever more of them.
func TestCallbacksUnreadResults(t *testing.T) {
	const limit = 3
	var answered atomic.Int64
	large := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	s := serve(t, newProxyWith(t, proxy.Options{MaxInFlight: limit}), map[string]proxy.Handler{
		"large": func(context.Context, json.RawMessage) (json.RawMessage, error) {
			answered.Add(1)
			return large, nil
		},
	})
	const requests = 20
	for id := range int64(requests) {
		s.send(id+1, "large", "")
	}
	eventually(t, "all slots are taken", func() bool { return answered.Load() == limit })
	time.Sleep(50 * time.Millisecond)
	if got := answered.Load(); got != limit {
		t.Errorf("%d results were made for a sandbox that has read none, want %d", got, limit)
	}
	for range requests {
		if msg := s.receive(); len(msg.Result) != len(large) {
			t.Errorf("got %d bytes, %v", len(msg.Result), msg.Error)
		}
	}
}

// What a connection may have unread is bounded in bytes, also when a server
// makes the results, many at a time. Who reads gets everything.
func TestCallbacksUnreadBytes(t *testing.T) {
	const size, each, calls = 1 << 20, 4 << 20, 8
	p := newProxy(t, upstreamtest.Good)
	p.LimitUnread(16<<20, each)
	call(t, p, "good", "echo", `{"text":"warm"}`)
	s := serve(t, p, nil)
	for _, reads := range []bool{false, true} {
		for id := range int64(calls) {
			s.send(id+1, "tools/call", fmt.Sprintf(`{"server":"good","tool":"big","arguments":{"bytes":%d}}`, size))
		}
		if !reads {
			eventually(t, "all are called", func() bool { return stats(t, p).Big == calls })
			eventually(t, "all are answered", func() bool { return p.Unanswered("good") == 0 })
		}
		kept := 0
		for range calls {
			msg := s.receive()
			switch {
			case len(msg.Result) >= size:
				kept++
			case msg.Error == nil || !strings.Contains(string(msg.Error.Data), "busy"):
				t.Errorf("got %s, %v", msg.Result, msg.Error)
			}
		}
		if reads && kept != calls || !reads && (kept < 1 || kept*size > each) {
			t.Errorf("%d results of %d were kept (the sandbox reads: %v)", kept, calls, reads)
		}
	}
}

// The results of the bridge's own handlers are not even made without room.
func TestCallbacksUnreadBytesOfHandlers(t *testing.T) {
	var made atomic.Int64
	large := json.RawMessage(`"` + strings.Repeat("x", 30<<20) + `"`)
	s := serve(t, newProxy(t), map[string]proxy.Handler{"large": func(context.Context, json.RawMessage) (json.RawMessage, error) {
		made.Add(1)
		return large, nil
	}})
	const requests = 10
	for id := range int64(requests) {
		s.send(id+1, "large", "")
	}
	time.Sleep(500 * time.Millisecond)
	if got := made.Load(); got < 1 || got > 4 {
		t.Errorf("%d results were made for a sandbox that has read none", got)
	}
	_ = s.Close()
	if err := <-s.done; err != nil {
		t.Errorf("ServeCallbacks returned %v", err)
	}
}

// The end is prompt whatever waits: no request begins after it, and nothing is
// sent to a REPL that is lost.
func TestCallbacksEndWithManyWaiting(t *testing.T) {
	var began atomic.Int64
	host, guest := net.Pipe()
	hostConn, guestConn := wire.NewConn(host), wire.NewConn(guest)
	t.Cleanup(func() { _ = guestConn.Close() })
	done := make(chan error, 1)
	go func() {
		done <- newProxyWith(t, proxy.Options{MaxInFlight: 1}).ServeCallbacks(t.Context(), hostConn, map[string]proxy.Handler{
			"wait": func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
				began.Add(1)
				<-ctx.Done()
				return json.RawMessage("1"), nil
			},
		})
	}()
	for id := range int64(1000) {
		if err := guestConn.Send(&wire.Message{ID: id + 1, Method: "wait"}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a request begins", func() bool { return began.Load() > 0 })
	hostConn.ExpectMarker([]byte("marker"))
	if _, err := guest.Write([]byte("marker")); err != nil { // and nobody reads
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if !errors.Is(err, wire.ErrResynced) {
			t.Errorf("ServeCallbacks returned %v", err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("ServeCallbacks goes on")
	}
	if got := began.Load(); got != 1 {
		t.Errorf("%d requests began, want 1", got)
	}
}

// A resynchronised connection is not closed: what was in flight is cancelled,
// and the connection can be served again.
func TestCallbacksResync(t *testing.T) {
	host, guest := net.Pipe()
	hostConn, guestConn := wire.NewConn(host), wire.NewConn(guest)
	t.Cleanup(func() { _ = guestConn.Close() })
	p := newProxy(t)
	var running, most atomic.Int64
	done := make(chan error, 1)
	go func() { done <- p.ServeCallbacks(t.Context(), hostConn, waitHandler(nil, &running, &most)) }()
	go func() { // the supervisor's part: read away what is sent to the lost REPL
		for {
			if _, err := guestConn.Receive(); err != nil {
				return
			}
		}
	}()
	if err := guestConn.Send(&wire.Message{ID: 1, Method: "wait"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the request runs", func() bool { return running.Load() == 1 })
	hostConn.ExpectMarker([]byte("marker"))
	eventually(t, "it is cancelled before the marker comes", func() bool { return running.Load() == 0 })
	if _, err := guest.Write([]byte("\x00\x00half a framemarker")); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, wire.ErrResynced) || running.Load() != 0 {
		t.Fatalf("ServeCallbacks returned %v with %d requests running", err, running.Load())
	}
	go func() { done <- p.ServeCallbacks(t.Context(), hostConn, nil) }()
	if err := guestConn.Send(&wire.Message{ID: 1, Method: "servers/list", Params: json.RawMessage("{}")}); err != nil {
		t.Fatal(err)
	}
	_ = guestConn.Close()
	if err := <-done; err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "closed pipe") {
		t.Errorf("the second time it returned %v", err)
	}
}

func TestCallbackViolations(t *testing.T) {
	blocks := map[string]proxy.Handler{"block": func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	tests := map[string]func(*sandbox){
		"id in use": func(s *sandbox) {
			s.send(1, "block", "")
			s.send(1, "block", "")
		},
		"a response": func(s *sandbox) { _ = s.Send(&wire.Message{ID: 1, Result: json.RawMessage("1")}) },
		"no JSON":    func(s *sandbox) { _, _ = s.raw.Write([]byte("\x00\x00\x00\x02{]")) },
		"negative id": func(s *sandbox) {
			_, _ = fmt.Fprintf(s.raw, "\x00\x00\x00\x2a%s", `{"jsonrpc":"2.0","id":-1,"method":"block"}`)
		},
	}
	for name, violate := range tests {
		t.Run(name, func(t *testing.T) {
			s := serve(t, newProxy(t), blocks)
			violate(s)
			select {
			case err := <-s.done:
				if !errors.Is(err, wire.ErrProtocol) {
					t.Errorf("ServeCallbacks returned %v, want wire.ErrProtocol", err)
				}
			case <-time.After(10 * time.Second):
				t.Error("the connection goes on")
			}
		})
	}
}

// The end of ctx, or of the connection, ends and awaits what is in flight,
// though the sandbox reads nothing.
func TestCallbacksEnd(t *testing.T) {
	p := newProxy(t, upstreamtest.Good)
	call(t, p, "good", "echo", `{"text":"warm"}`)
	for _, end := range []string{"context", "connection"} {
		t.Run(end, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := serveContext(ctx, t, p, nil)
			s.send(1, "tools/call", `{"server":"good","tool":"sleep","arguments":{"ms":60000}}`)
			s.send(2, "servers/list", "") // its answer is never read
			eventually(t, "the call runs", func() bool { return stats(t, p).Running == 1 })
			want := error(nil)
			if end == "context" {
				cancel()
				want = context.Canceled
			} else {
				_ = s.Close()
			}
			if err := <-s.done; !errors.Is(err, want) {
				t.Errorf("ServeCallbacks returned %v, want %v", err, want)
			}
			eventually(t, "the server cancels", func() bool { return stats(t, p).Running == 0 })
		})
	}
}
