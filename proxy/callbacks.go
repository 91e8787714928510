package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

// codeServerError is the JSON-RPC code for everything that has none of its own.
const codeServerError = -32000

// A Handler answers one request of a sandbox. It must check params, which may
// be anything, and return valid JSON, soon: few run at a time, since each has to
// have room for a result as large as a frame. An error that is an *[Error] reaches the
// sandbox as it is; of any other the sandbox learns nothing but that it failed.
type Handler func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)

// Bounds on what one connection may have waiting for an answer.
const (
	maxAccepted      = 1024
	maxAcceptedBytes = 128 << 20 // of parameters
)

// ServeCallbacks answers the requests of one sandbox until the connection ends
// or ctx is done. Then it cancels what is in flight, waits for it, and returns:
// nil if the sandbox closed the connection, ctx's error, one that wraps
// wire.ErrProtocol if the sandbox broke the protocol, or wire.ErrResynced. It
// owns conn and closes it, except after wire.ErrResynced: then it may be served
// again.
//
// The methods are tools/call, tools/search, tools/list, tools/describe, servers/list,
// resources/list, resources/templates, resources/read, prompts/list,
// prompts/get, and those of extra, which may be nil; the notification cancel ends a request.
// A sandbox that has asked for servers or tools gets the notification changed, once, when
// what there is of them has changed.
// Options.MaxInFlight requests are answered at a time; a bounded number wait,
// and more are refused.
func (p *Proxy) ServeCallbacks(ctx context.Context, conn *wire.Conn, extra map[string]Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Unblocks Receive, and Send to a sandbox that does not read.
	closeConn := sync.OnceFunc(func() { _ = conn.Close() })
	stop := context.AfterFunc(ctx, closeConn)
	defer stop()

	c := &callbacks{
		proxy:    p,
		conn:     conn,
		extra:    extra,
		account:  p.unread.account(),
		slots:    make(chan struct{}, p.opts.MaxInFlight),
		sending:  make(chan struct{}, 1),
		inFlight: make(map[int64]context.CancelFunc),
	}
	served, end := context.WithCancel(ctx)
	c.ended = served.Done()
	// A lost REPL waits for nothing: not until all is read away comes the marker.
	over := make(chan struct{})
	c.running.Go(func() {
		select {
		case <-conn.Expecting():
			end()
		case <-over:
		}
	})
	p.register(c)
	err := c.serve(served)
	p.unregister(c)
	close(over)
	end()
	if !errors.Is(err, wire.ErrResynced) {
		closeConn()
	}
	c.running.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, wire.ErrResynced):
		return err
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// callbacks serves one connection.
type callbacks struct {
	proxy *Proxy
	conn  *wire.Conn
	extra map[string]Handler

	account *account
	slots   chan struct{}   // holds a token for every request being answered, until that is sent
	sending chan struct{}   // holds a token while somebody sends
	ended   <-chan struct{} // closed when nobody waits for answers any more
	running sync.WaitGroup  // these, and those that wait for a slot

	// asked is set when the sandbox asks for what it may keep: it is told once when
	// that has changed.
	asked atomic.Bool

	mu       sync.Mutex
	inFlight map[int64]context.CancelFunc // of the same, by id
	bytes    int                          // of their parameters
}

func (c *callbacks) serve(ctx context.Context) error {
	for {
		msg, err := c.conn.Receive()
		if err != nil {
			return err
		}
		switch {
		case msg.IsRequest():
			if err := c.begin(ctx, msg); err != nil {
				return err
			}
		case !msg.IsNotification():
			return fmt.Errorf("%w: a response that nobody asked for", wire.ErrProtocol)
		case msg.Method == "cancel":
			c.cancel(msg.Params)
		}
		// hello, and what later kernels may have to say, is ignored.
	}
}

// begin answers req in the background.
func (c *callbacks) begin(ctx context.Context, req *wire.Message) error {
	ctx, cancel := context.WithCancel(ctx)
	accepted, err := c.accept(req, cancel)
	if err != nil || !accepted {
		cancel()
	}
	if err != nil {
		return err
	}
	if !accepted {
		c.send(&wire.Message{ID: req.ID, Error: wireError(errorf(Busy, "wait for some of them first",
			"too many calls at once: %d are waiting for an answer", maxAccepted))})
		return nil
	}
	c.running.Go(func() {
		defer cancel()
		c.answerInTurn(ctx, req)
	})
	return nil
}

// accept enters req into the books, or reports false if they are full.
func (c *callbacks) accept(req *wire.Message, cancel context.CancelFunc) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight[req.ID] != nil {
		return false, fmt.Errorf("%w: request id %d is in use", wire.ErrProtocol, req.ID)
	}
	if len(c.inFlight) >= maxAccepted || c.bytes+len(req.Params) > maxAcceptedBytes {
		return false, nil
	}
	c.inFlight[req.ID] = cancel
	c.bytes += len(req.Params)
	return true, nil
}

// answerInTurn answers req once it has a slot, and keeps the slot until the
// sandbox has read the answer: who does not read does not get more to read.
func (c *callbacks) answerInTurn(ctx context.Context, req *wire.Message) {
	resp := &wire.Message{ID: req.ID, Error: wireError(errorf(Closed, "", "the call was cancelled before it began"))}
	room := &share{account: c.account, done: ctx.Done()}
	defer room.release()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
		if room.resize(ctx, smallResult) == nil && !c.over() { // not if cancelled meanwhile
			resp = c.answer(context.WithValue(ctx, shareKey{}, room), req)
		}
	case <-ctx.Done():
	}
	c.finish(req)
	c.send(resp)
}

// finish takes req from the books.
func (c *callbacks) finish(req *wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.inFlight, req.ID)
	c.bytes -= len(req.Params)
}

// produce calls f, which makes a result at once, when there is room for any.
func (c *callbacks) produce(ctx context.Context, f func() (json.RawMessage, error)) (json.RawMessage, error) {
	room := shareOf(ctx)
	room.try(0) // who waits for much must not keep a little from the others
	if room.resize(ctx, wire.MaxFrame) != nil || c.over() {
		return nil, doneError(ctx, "the request")
	}
	result, err := f()
	room.try(min(len(result), wire.MaxFrame))
	return result, err
}

// cancel handles the notification of that name; one for a request that is
// answered already is late, not wrong.
func (c *callbacks) cancel(params json.RawMessage) {
	var target struct {
		ID int64 `json:"id"`
	}
	if json.Unmarshal(params, &target) != nil {
		return
	}
	c.mu.Lock()
	cancel := c.inFlight[target.ID]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// over reports whether serving has ended. The contexts of requests learn of it
// one after the other; this is before all of them.
func (c *callbacks) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// send sends an answer, unless nobody waits for any more.
func (c *callbacks) send(resp *wire.Message) {
	select {
	case <-c.ended:
		return
	case c.sending <- struct{}{}:
		defer func() { <-c.sending }()
	}
	if c.over() { // both may have been so
		return
	}
	err := c.conn.Send(resp)
	if errors.Is(err, wire.ErrTooLarge) {
		err = c.conn.Send(&wire.Message{ID: resp.ID, Error: wireError(errorf(Refused, "ask for less",
			"the result is over the %d MiB that fit through the bridge", wire.MaxFrame>>20))})
	}
	if err != nil { // the connection is gone, and Receive says so too
		c.proxy.opts.Logger.Debug("callback was not answered", "error", err)
	}
}

// answer returns the response to req, whatever its handler does.
func (c *callbacks) answer(ctx context.Context, req *wire.Message) (resp *wire.Message) {
	resp = &wire.Message{ID: req.ID}
	defer func() {
		if v := recover(); v != nil {
			c.proxy.opts.Logger.Error("callback panicked", "method", quoteName(req.Method), "panic", v, "stack", string(debug.Stack()))
			resp.Result, resp.Error = nil, wireError(internalError(nil))
		}
	}()
	handler := c.handler(req.Method)
	if handler == nil {
		resp.Error = wireError(errorf(Invalid, "", "unknown method %s", quoteName(req.Method)))
		resp.Error.Code = wire.CodeMethodNotFound
		return resp
	}
	result, err := handler(ctx, req.Params)
	switch {
	case err != nil:
		e, ok := errors.AsType[*Error](err)
		if !ok {
			c.proxy.opts.Logger.Error("callback failed", "method", req.Method, "error", err)
			e = internalError(err)
		}
		resp.Error = wireError(e)
	case len(result) == 0:
		resp.Result = json.RawMessage("null")
	default:
		resp.Result = result
	}
	return resp
}

func internalError(err error) *Error {
	return &Error{Kind: Internal, Message: "internal error in the bridge; its log says more", Err: err}
}

func wireError(e *Error) *wire.Error {
	code := codeServerError
	if e.Kind == Invalid {
		code = wire.CodeInvalidParams
	}
	data, err := json.Marshal(struct {
		Kind Kind   `json:"kind"`
		Hint string `json:"hint"`
	}{e.Kind, e.Hint})
	if err != nil {
		data = nil // two strings: cannot happen
	}
	return &wire.Error{Code: code, Message: e.Message, Data: data}
}

func (c *callbacks) handler(method string) Handler {
	switch method {
	case "tools/call":
		return c.toolsCall
	case "tools/search":
		return c.toolsSearch
	case "tools/list":
		return c.toolsList
	case "tools/describe":
		return c.toolsDescribe
	case "servers/list":
		return c.serversList
	case "resources/list":
		return c.resourcesList
	case "resources/templates":
		return c.resourcesTemplates
	case "resources/read":
		return c.resourcesRead
	case "prompts/list":
		return c.promptsList
	case "prompts/get":
		return c.promptsGet
	}
	handler := c.extra[method]
	if handler == nil {
		return nil
	}
	return func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		return c.produce(ctx, func() (json.RawMessage, error) { return handler(ctx, params) })
	}
}

func (c *callbacks) marshal(ctx context.Context, v any) (json.RawMessage, error) {
	return c.produce(ctx, func() (json.RawMessage, error) { return json.Marshal(v) })
}

func (c *callbacks) toolsCall(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var call struct {
		Server    string          `json:"server"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := decodeParams(params, &call); err != nil {
		return nil, err
	}
	return c.proxy.Call(ctx, call.Server, call.Tool, call.Arguments)
}

func (c *callbacks) toolsSearch(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var search struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}
	if err := decodeParams(params, &search); err != nil {
		return nil, err
	}
	found, err := c.proxy.Search(ctx, search.Query, search.Limit)
	if err != nil {
		return nil, err
	}
	found.Hits = nonNil(found.Hits)
	return c.marshal(ctx, found)
}

func (c *callbacks) toolsList(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var list struct {
		Server string `json:"server"`
	}
	if err := decodeParams(params, &list); err != nil {
		return nil, err
	}
	c.asked.Store(true)
	tools, err := c.proxy.Tools(ctx, list.Server)
	if err != nil {
		return nil, err
	}
	return c.marshal(ctx, map[string][]discovery.ToolDoc{"tools": nonNil(tools)})
}

func (c *callbacks) toolsDescribe(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var describe struct {
		Server string           `json:"server"`
		Tool   string           `json:"tool"`
		Detail discovery.Detail `json:"detail"` // full if it is left out
	}
	if err := decodeParams(params, &describe); err != nil {
		return nil, err
	}
	text, err := c.proxy.Describe(ctx, describe.Server, describe.Tool, describe.Detail)
	if err != nil {
		return nil, err
	}
	return c.marshal(ctx, map[string]string{"doc": text})
}

func (c *callbacks) serversList(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
	c.asked.Store(true)
	return c.marshal(ctx, map[string][]ServerInfo{"servers": c.proxy.Servers()})
}

// nonNil makes an empty list out of none, for JSON.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func decodeParams(params json.RawMessage, into any) error {
	if len(params) == 0 || params[0] != '{' || json.Unmarshal(params, into) != nil {
		return errorf(Invalid, "", "the request's parameters are malformed")
	}
	return nil
}

func (p *Proxy) register(c *callbacks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.serving[c] = struct{}{}
}

// unregister must be called before what runs for c is waited for.
func (p *Proxy) unregister(c *callbacks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.serving, c)
}

// tellChange tells sandboxes that what they know of servers and tools may be old.
// It waits for none of them.
func (p *Proxy) tellChange() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.serving {
		if c.asked.Swap(false) {
			c.running.Go(func() { c.send(&wire.Message{Method: "changed"}) })
		}
	}
}
