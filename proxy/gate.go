package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/proxy/internal/stdio"
)

// Bounds on what a server may send unasked.
const (
	maxServerRequests = 32      // requests of the server that are being answered
	maxRequestBytes   = 1 << 20 // parameters of one request or notification
	maxForgotten      = 4096    // calls nobody waits for whose answers may come still
)

// errUnread is the answer to a call for whose result there is no room.
var errUnread = errors.New("results are waiting to be read")

// A gate is the connection that go-sdk sees of a server. It hands results to
// whoever asked, as the bytes the server sent, and holds back what go-sdk would
// not bound by itself.
//
// (Over Streamable HTTP a gate would hide methods that go-sdk looks for on its
// own connection; there the same has to sit below, in the round tripper.)
type gate struct {
	mcp.Connection
	logger  *slog.Logger
	changed func() // called when the server's tools changed; must not block

	mu       sync.Mutex
	ready    bool                    // the handshake is over
	asked    map[jsonrpc.ID]*sink    // the requests that were not answered; nil if no sink waits
	incoming map[jsonrpc.ID]struct{} // the server's requests being answered

	unasked *stdio.Meter // used by Read alone

	dead chan struct{} // closed when Read has failed, which ends the session
	err  error         // why; read after dead
}

// newGate returns the gate before conn, which may count on unasked too.
func newGate(conn mcp.Connection, unasked *stdio.Meter, logger *slog.Logger, changed func()) *gate {
	return &gate{
		Connection: conn,
		logger:     logger,
		changed:    changed,
		unasked:    unasked,
		asked:      make(map[jsonrpc.ID]*sink),
		incoming:   make(map[jsonrpc.ID]struct{}),
		dead:       make(chan struct{}),
	}
}

// Connect makes a gate an mcp.Transport, for one connection.
func (g *gate) Connect(context.Context) (mcp.Connection, error) { return g, nil }

// open says that the handshake is over.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ready = true
}

// A sink receives the raw result of the requests that are sent with its
// context (more than one if the server asks for input in between). The gate's mu
// guards ids and outcome.
type sink struct {
	method string // of the requests it is for
	stub   string // the result that go-sdk gets instead
	share  *share // room for the result; nil if that need not be asked

	ids     []jsonrpc.ID
	outcome outcome
}

// An outcome is what became of a call.
type outcome struct {
	sent    bool            // a request may have reached the server
	raw     json.RawMessage // its result; nil if there is none
	refusal error           // its error response; nil if there is none
}

type sinkKey struct{}

// withSink returns a context to call method with, and the sink for its result.
func withSink(ctx context.Context, method, stub string) (context.Context, *sink) {
	s := &sink{method: method, stub: stub}
	return context.WithValue(ctx, sinkKey{}, s), s
}

// finish must be called when the call of s has returned.
func (g *gate) finish(s *sink) outcome {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range s.ids {
		if g.asked[id] != nil {
			g.asked[id] = nil // the answer may come late
		}
	}
	if len(g.asked) > maxForgotten {
		maps.DeleteFunc(g.asked, func(_ jsonrpc.ID, s *sink) bool { return s == nil })
	}
	return s.outcome
}

// Write sends a message of go-sdk to the server.
func (g *gate) Write(ctx context.Context, msg jsonrpc.Message) error {
	switch msg := msg.(type) {
	case *jsonrpc.Request:
		if !g.sending(ctx, msg) {
			return nil
		}
	case *jsonrpc.Response:
		g.mu.Lock()
		delete(g.incoming, msg.ID)
		g.mu.Unlock()
	}
	return g.Connection.Write(ctx, msg)
}

// sending notes who waits for the answer to req. It reports false for what the
// server must not see: before the handshake is over it knows no notification
// but the one that ends it, and some servers give up over any other.
func (g *gate) sending(ctx context.Context, req *jsonrpc.Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !req.IsCall() {
		return g.ready || req.Method == "notifications/initialized"
	}
	g.asked[req.ID] = nil
	if s, ok := ctx.Value(sinkKey{}).(*sink); ok && s.method == req.Method {
		s.ids = append(s.ids, req.ID)
		s.outcome.sent = true
		g.asked[req.ID] = s
	}
	return true
}

// Read returns the next message for go-sdk, which stops reading at the first
// error.
func (g *gate) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := g.next(ctx)
	if err != nil {
		g.err = err
		close(g.dead)
	}
	return msg, err
}

func (g *gate) next(ctx context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := g.Connection.Read(ctx)
		if err != nil {
			return nil, err
		}
		switch msg := msg.(type) {
		case *jsonrpc.Response:
			return msg, g.take(msg)
		case *jsonrpc.Request:
			if err := g.unasked.Count(len(msg.Params)); err != nil {
				return nil, err
			}
			if g.admit(msg) {
				return msg, nil
			}
		}
	}
}

// take gives a result to the sink that waits for it. One that answers nothing
// counts as unasked.
func (g *gate) take(resp *jsonrpc.Response) error {
	g.mu.Lock()
	s, ok := g.asked[resp.ID]
	delete(g.asked, resp.ID)
	g.mu.Unlock()
	if !ok {
		return g.unasked.Count(len(resp.Result))
	}
	if s == nil {
		return nil
	}
	if !s.share.grow(len(resp.Result)) {
		resp.Result, resp.Error = nil, errUnread
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.method == "tools/list" && errors.Is(resp.Error, stdio.ErrTooDeep) {
		resp.Error = nil // it is taken apart, and one tool must not cost the others
	}
	switch {
	case resp.Error != nil:
		s.outcome.refusal = resp.Error
	case isComplete(resp.Result):
		s.outcome.raw = resp.Result
		resp.Result = json.RawMessage(s.stub)
	}
	return nil
}

// isComplete reports whether a result is an object and the last word. Since
// protocol 2026-07-28 a server may ask for input instead, which is go-sdk's
// business.
func isComplete(result json.RawMessage) bool {
	if len(result) == 0 || result[0] != '{' {
		return false
	}
	if !bytes.Contains(result, []byte(`"resultType"`)) {
		return true
	}
	var head struct {
		ResultType string `json:"resultType"`
	}
	return json.Unmarshal(result, &head) == nil && (head.ResultType == "" || head.ResultType == "complete")
}

// admit reports whether go-sdk shall see a request or notification.
func (g *gate) admit(req *jsonrpc.Request) bool {
	if len(req.Params) > maxRequestBytes {
		g.logger.Debug("dropped a large message of a server", "method", quoteName(req.Method), "bytes", len(req.Params))
		return false
	}
	if !req.IsCall() {
		switch req.Method {
		case "notifications/tools/list_changed":
			g.changed()
			return false
		case "notifications/cancelled", "notifications/subscriptions/acknowledged":
			return true
		}
		return false // nobody here listens to the others, and go-sdk would queue them
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.incoming) >= maxServerRequests {
		g.logger.Debug("dropped a request of a server with too many in flight", "method", quoteName(req.Method))
		return false
	}
	g.incoming[req.ID] = struct{}{}
	return true
}
