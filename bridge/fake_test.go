package bridge_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

// An engine makes sandboxes whose program is a script in Go.
type engine struct {
	exit   runtime.Exit    // of every sandbox
	script func(k *kernel) // of each sandbox; nil means (*kernel).serve
	start  func(ctx context.Context, spec runtime.Spec) error
	old    bool // the folders that sandboxes show change all the time

	mu    sync.Mutex
	tries int // starts, failed ones included
	peak  int // see most
	boxes []*box
}

func (e *engine) Name() string                        { return "fake" }
func (e *engine) Check(context.Context, string) error { return nil }
func (e *engine) Sweep(context.Context) (int, error)  { return 0, nil }
func (e *engine) Close() error                        { return nil }

func (e *engine) Start(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.tries++
	e.mu.Unlock()
	if e.start != nil {
		if err := e.start(ctx, spec); err != nil {
			return nil, err
		}
	}
	b := &box{gone: make(chan struct{}), ended: make(chan struct{}), exit: e.exit, old: e.old}
	k := &kernel{box: b, inflight: map[int]*cell{}}
	var control, callback net.Conn
	b.control, control = net.Pipe()
	b.callback, callback = net.Pipe()
	k.control, k.below, k.raw, k.callback = wire.NewConn(control), control, callback, wire.NewConn(callback)
	b.program = sync.OnceFunc(func() {
		close(b.gone)
		_ = control.Close()
		_ = callback.Close()
	})
	script := e.script
	if script == nil {
		script = (*kernel).serve
	}
	go func() {
		defer close(b.ended)
		defer b.program()
		script(k)
	}()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.boxes = append(e.boxes, b)
	open := 0
	for _, b := range e.boxes {
		if !b.isClosed() {
			open++
		}
	}
	e.peak = max(e.peak, open)
	return b, nil
}

// attempts is how many starts were tried.
func (e *engine) attempts() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tries
}

// most is how many sandboxes there have been at a time.
func (e *engine) most() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peak
}

// all are the sandboxes there have been.
func (e *engine) all() []*box {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.boxes)
}

// started is how many sandboxes there have been, and open how many there are.
func (e *engine) started() (all, open int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range e.boxes {
		if !b.isClosed() {
			open++
		}
	}
	return len(e.boxes), open
}

// A box is a sandbox of an engine.
type box struct {
	control, callback net.Conn
	program           func()        // ends it
	gone              chan struct{} // closed when it is to end
	ended             chan struct{} // closed when it has
	exit              runtime.Exit

	mu     sync.Mutex
	closed bool
	ran    []string // the code of its cells
	old    bool     // the folders that it shows have changed
	clocks []string // what it was told of their clocks
}

func (b *box) Outdated(context.Context) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.old
}

func (b *box) ID() string                   { return "box" }
func (b *box) Transport() runtime.Transport { return runtime.TransportSocket }
func (b *box) Control() net.Conn            { return b.control }
func (b *box) Callback() net.Conn           { return b.callback }

func (b *box) Wait(ctx context.Context) (runtime.Exit, error) {
	select {
	case <-b.ended:
		return b.exit, nil
	case <-ctx.Done():
		return runtime.Exit{}, ctx.Err()
	}
}

func (b *box) Close() error {
	_ = b.control.Close()
	_ = b.callback.Close()
	b.program()
	<-b.ended
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// cells are the codes that it has run.
func (b *box) cells() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ran)
}

func (b *box) note(code string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ran = append(b.ran, code)
}

func (b *box) clock(cell int, running bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clocks = append(b.clocks, fmt.Sprintf("%d %v", cell, running))
}

func (b *box) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// A kernel is the far side of a sandbox. serve makes a good one of it, whose
// "Python" is a few words: see run.
type kernel struct {
	box      *box
	control  *wire.Conn
	callback *wire.Conn
	raw      net.Conn // below callback
	below    net.Conn // below control

	vars []string // what "set" has kept

	mu         sync.Mutex
	inflight   map[int]*cell
	lostReason string // between lost and start
}

// A cell is what the host asks to be run.
type cell struct {
	id          int64
	Nonce       string  `json:"nonce"`
	Number      int     `json:"cell"`
	Code        string  `json:"code"`
	Task        string  `json:"task"`
	Limit       int     `json:"limit"`
	Timeout     float64 `json:"timeout"`
	Grace       float64 `json:"grace"`
	ValueLimit  int     `json:"value_limit"`
	interrupted chan struct{}
}

type object = map[string]any

func (k *kernel) notify(method string, params any) {
	_ = k.control.Send(&wire.Message{Method: method, Params: toJSON(params)})
}

func (k *kernel) hello() { k.notify("hello", object{"protocol": 1, "python": "3.14.0"}) }

func (k *kernel) print(text string) { k.notify("output", object{"text": text}) }

// answer ends a cell with what the REPL said of it.
func (k *kernel) answer(c *cell, more, report object) {
	result := object{"nonce": c.Nonce, "interrupted": nil, "lost": nil, "cell": nil}
	if report != nil {
		result["cell"] = merged(object{"cell": c.Number, "status": "ok"}, report)
	}
	_ = k.control.Send(&wire.Message{ID: c.id, Result: toJSON(merged(result, more))})
}

func merged(a, b object) object {
	maps.Copy(a, b)
	return a
}

// receive returns the host's next message.
func (k *kernel) receive() (*wire.Message, bool) {
	m, err := k.control.Receive()
	return m, err == nil
}

// nextCell receives until the host sends a cell.
func (k *kernel) nextCell() (*cell, bool) {
	for {
		m, ok := k.receive()
		if !ok {
			return nil, false
		}
		if m.Method == "execute" {
			return newCell(m), true
		}
	}
}

func newCell(m *wire.Message) *cell {
	c := &cell{id: m.ID, interrupted: make(chan struct{})}
	if err := json.Unmarshal(m.Params, c); err != nil {
		panic(err)
	}
	return c
}

// serve runs cells until the host hangs up.
func (k *kernel) serve() {
	k.hello()
	k.loop()
}

func (k *kernel) loop() {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		m, ok := k.receive()
		if !ok {
			return
		}
		var params struct {
			Cell    int
			Marker  string
			Running bool
		}
		if err := json.Unmarshal(m.Params, &params); err != nil {
			panic(err)
		}
		k.mu.Lock()
		switch m.Method {
		case "execute":
			c := newCell(m)
			if c.Task != "keep" { // as each sandbox is asked before it ends
				k.box.note(cmp.Or(c.Task, c.Code))
			}
			k.inflight[c.Number] = c
			switch {
			case k.lostReason != "": // as the real one does when a cell crosses the loss
				go k.answer(c, object{"lost": k.lostReason}, nil)
			case strings.HasPrefix(c.Code, "then lost "):
				k.mu.Unlock()
				k.run(c)
				k.mu.Lock()
			default:
				wg.Go(func() { k.run(c) })
			}
		case "interrupt":
			if c := k.inflight[params.Cell]; c != nil {
				close(c.interrupted)
				delete(k.inflight, params.Cell)
			}
		case "clock":
			k.box.clock(params.Cell, params.Running)
		case "resync":
			marker, _ := hex.DecodeString(params.Marker)
			wg.Go(func() { _, _ = k.raw.Write(marker) })
		case "start":
			k.lostReason = ""
		default:
			panic("unknown method " + m.Method)
		}
		k.mu.Unlock()
	}
}

// run runs a cell: its first word says what to do with the rest.
func (k *kernel) run(c *cell) {
	word, rest, _ := strings.Cut(c.Code, " ")
	if c.Task != "" {
		word = c.Task
	}
	switch word {
	case "keep":
		k.answer(c, nil, object{"value": object{"text": "{}"}})
	case "save":
		k.save(c)
	case "restore":
		k.restore(c)
	case "set":
		k.vars = append(k.vars, rest)
		k.answer(c, nil, object{})
	case "vars":
		k.answer(c, nil, object{"value": object{"text": strings.Join(k.vars, " ")}})
	case "print":
		k.print(rest)
		k.answer(c, nil, object{})
	case "value":
		k.answer(c, nil, object{"value": object{"text": rest}})
	case "raise":
		k.answer(c, nil, object{"status": "error", "error": object{"type": "E", "message": rest, "traceback": "Traceback: " + rest}})
	case "exit":
		k.answer(c, nil, object{"status": "exit", "exit": 7, "notes": []string{rest}, "note": "a hint"})
	case "sleep":
		d, err := time.ParseDuration(strings.Fields(rest)[0])
		if err != nil {
			panic(err)
		}
		k.print("asleep\n")
		select {
		case <-time.After(d):
			k.answer(c, nil, object{"value": object{"text": "slept"}})
		case <-c.interrupted:
			k.answer(c, object{"interrupted": "cancel"}, object{"status": "error", "error": object{"traceback": "KeyboardInterrupt"}})
		case <-k.box.gone:
		}
	case "draw": // prints, and takes 3 s
		k.print(rest)
		time.Sleep(3 * time.Second)
		k.answer(c, nil, object{})
	case "timeout":
		k.answer(c, object{"interrupted": "timeout"}, object{"status": "error", "error": object{"traceback": "KeyboardInterrupt"}})
	case "lose":
		k.lose(rest)
		k.answer(c, object{"lost": rest}, nil)
	case "die":
		k.box.program()
	case "then": // answer, and then do the rest
		k.answer(c, nil, object{})
		k.run(&cell{Number: c.Number, Code: rest})
	case "lost":
		k.lose(rest)
	case "later":
		select {
		case <-time.After(time.Second):
			k.run(&cell{Number: c.Number, Code: rest})
		case <-k.box.gone:
		}
	case "output":
		k.print(rest)
	case "call":
		k.answer(c, nil, object{"value": object{"text": k.call(rest)}})
	case "approve":
		k.approveAll(c, strings.Fields(rest))
	case "deaf":
		<-k.box.gone
	default:
		k.answer(c, nil, object{})
	}
}

func (k *kernel) lose(reason string) {
	k.mu.Lock()
	k.lostReason = reason
	k.mu.Unlock()
	k.notify("lost", object{"reason": reason})
}

// call asks the host on the callback channel: method and params.
func (k *kernel) call(text string) string {
	method, params, _ := strings.Cut(text, " ")
	if err := k.callback.Send(&wire.Message{ID: 1, Method: method, Params: json.RawMessage(params)}); err != nil {
		return err.Error()
	}
	m, err := k.callback.Receive()
	switch {
	case err != nil:
		return err.Error()
	case m.Error != nil:
		return "error: " + m.Error.Message
	default:
		return string(m.Result)
	}
}

func toJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// inBubble runs test with a Bridge over e in a synctest bubble: whatever
// goroutine is left at its end fails it, and so does a sandbox.
func inBubble(t *testing.T, e *engine, opts bridge.Options, test func(t *testing.T, b *bridge.Bridge)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tools := proxy.New(proxy.Options{})
		opts := opts
		opts.Engine, opts.Image, opts.Tools = e, "image", tools
		b := bridge.New(opts)
		test(t, b)
		b.Close()
		if err := tools.Close(); err != nil {
			t.Error(err)
		}
		if _, open := e.started(); open != 0 {
			t.Errorf("%d sandboxes are left", open)
		}
	})
}

func run(t *testing.T, b *bridge.Bridge, code string) bridge.Result {
	t.Helper()
	return b.Run(t.Context(), bridge.Request{Code: code})
}

// runs runs a cell and compares what is shown.
func runs(t *testing.T, b *bridge.Bridge, code, want string) {
	t.Helper()
	if got := run(t, b, code); got.Text != want || got.IsError {
		t.Errorf("%.60s: got %q (error: %v), want %q", code, got.Text, got.IsError, want)
	}
}

// fails runs a cell that must fail and have all words in what is shown.
func fails(t *testing.T, b *bridge.Bridge, code string, words ...string) {
	t.Helper()
	got := run(t, b, code)
	if !got.IsError {
		t.Errorf("%.60s: is no error: %q", code, got.Text)
	}
	contains(t, got, words...)
}

func contains(t *testing.T, r bridge.Result, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(r.Text, word) {
			t.Errorf("%q does not say %q", r.Text, word)
		}
	}
}
