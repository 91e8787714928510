package bridge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	sandboximage "github.com/mcp-bridge/mcp-bridge/sandbox-image"
	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

const (
	helloTimeout = 10 * time.Second // from the connection to the kernel's first word
	readyTimeout = 20 * time.Second // from a lost REPL to a new one
	exitTimeout  = time.Second      // to learn how a dead sandbox ended
	// overtime is how long past the deadline and the grace a cell's end may
	// come. The supervisor enforces both; if it cannot, the sandbox is killed.
	overtime = 10 * time.Second
)

// A kernel is the host's end of one sandbox: it sends cells, one at a time, and
// receives their output and outcome. Until it has a user it is a spare: it sends
// nothing, and nothing may come.
type kernel struct {
	box     runtime.Sandbox
	control *wire.Conn
	calls   *wire.Conn
	log     *slog.Logger
	memory  int64 // the sandbox's limit in bytes
	started time.Time
	place   *place

	// filesVersion is the version of the host's files that the latest cell was
	// told; it belongs to the session's turn.
	filesVersion int64

	wg   sync.WaitGroup // the readers of both channels, and the reaper
	dead chan struct{}  // closed when the sandbox is of no more use

	mu      sync.Mutex
	user    *kernelUser        // set once
	stop    context.CancelFunc // ends the callback server; nil without user
	err     error              // why dead was closed
	pending *pendingCell       // the cell that runs
	ready   chan struct{}      // closed while there is a REPL to send a cell to
	lastID  int64
}

type pendingCell struct {
	id      int64
	nonce   string
	done    chan outcome // buffered
	lost    string       // why the REPL is gone since the cell was accepted, or ""
	number  int          // of the cell
	overdue *time.Timer  // kills the sandbox
	end     time.Time    // when it does
	stopped time.Time    // since when that is put off; zero while the clock runs
}

// An outcome is how a cell ended, as the supervisor tells it.
type outcome struct {
	Nonce       string  `json:"nonce"`
	Interrupted string  `json:"interrupted"` // "", "timeout" or "cancel"
	Lost        string  `json:"lost"`        // why the REPL is gone, or ""
	Cell        *report `json:"cell"`        // nil if Lost
	err         error   // the sandbox died
}

// A report is how a cell ended, as the REPL tells it: the user's code could
// have written it.
type report struct {
	Status string        `json:"status"` // "ok", "error" or "exit"
	Value  *valueReport  `json:"value"`
	Images []imageReport `json:"images"`
	Notes  []string      `json:"notes"` // on images that are not shown
	Error  *errorReport  `json:"error"`
	Exit   int           `json:"exit"`
	Note   string        `json:"note"` // what became of the cell's files, if the model should know
}

type valueReport struct {
	Text  string `json:"text"`
	Shape string `json:"shape"` // set if Text is not all of it
	JSON  string `json:"json"`  // if it is asked for, there is one and it is within the limit
}

type imageReport struct {
	MIME string `json:"mime"`
	Data []byte `json:"data"`
	Note string `json:"note"` // what was done to it in the sandbox
}

type errorReport struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
}

type kernelOptions struct {
	engine         runtime.Engine
	image          string
	limits         runtime.Limits
	allowUnlimited bool
	binds          []runtime.Bind
	place          *place // freed when the sandbox is gone, or has not started
	log            *slog.Logger
}

// A kernelUser is whom a kernel runs cells for. output and lost are called by
// one goroutine.
type kernelUser struct {
	tools    Tools
	handlers map[string]proxy.Handler // more methods of the callback channel
	output   func(string, int)        // what is printed, in order; by a thread of that cell if it is not 0
	lost     func(reason string)      // the REPL is gone, which no outcome tells, and a new one is coming
}

// startKernel starts a sandbox with a kernel in it, which has no user yet. ctx
// bounds the start.
func startKernel(ctx context.Context, opts kernelOptions) (*kernel, error) {
	k, err := connectKernel(ctx, opts)
	if err != nil {
		opts.place.free()
		return nil, err
	}
	k.wg.Go(k.readControl)
	k.wg.Go(k.reap)
	return k, nil
}

func connectKernel(ctx context.Context, opts kernelOptions) (*kernel, error) {
	command, err := sandboximage.Command(runtime.FilesDir, sandboximage.Settings{
		DataLimit: dataLimit(opts.limits.MemoryBytes),
	})
	if err != nil {
		return nil, err
	}
	box, err := opts.engine.Start(ctx, runtime.Spec{
		Image:          opts.image,
		Command:        command,
		Env:            []string{"LANG=C.UTF-8"},
		Files:          sandboximage.Files(),
		Seccomp:        sandboximage.Seccomp(),
		Limits:         opts.limits,
		Binds:          opts.binds,
		AllowUnlimited: opts.allowUnlimited,
	})
	if errors.Is(err, runtime.ErrExited) {
		err = noKernel(err)
	}
	if err != nil {
		return nil, err
	}
	k := &kernel{
		box:     box,
		control: wire.NewConn(box.Control()),
		calls:   wire.NewConn(box.Callback()),
		log:     opts.log.With("sandbox_id", box.ID()),
		memory:  opts.limits.MemoryBytes,
		started: time.Now(),
		place:   opts.place,
		dead:    make(chan struct{}),
		ready:   make(chan struct{}),
	}
	if err := k.greet(ctx); err != nil {
		closeErr := box.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		k.log.Warn("kernel did not answer", "error", err, "close_error", closeErr)
		return nil, errNoAnswer
	}
	close(k.ready)
	return k, nil
}

// serve gives the kernel its user, for good. It fails if the sandbox has died.
func (k *kernel) serve(ctx context.Context, user kernelUser) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return k.err
	}
	if k.user != nil {
		return errors.New("the sandbox belongs to another session") // a bug: no sandbox changes hands
	}
	ctx, k.stop = context.WithCancel(context.WithoutCancel(ctx))
	k.user = &user
	k.wg.Go(func() { k.serveCalls(ctx, user.tools, user.handlers) })
	return nil
}

// outdated reports whether the sandbox shows folders of the host as they were,
// and they have changed.
func (k *kernel) outdated(ctx context.Context) bool {
	s, ok := k.box.(runtime.Snapshot)
	return ok && s.Outdated(ctx)
}

// isDead reports whether the sandbox is of no more use.
func (k *kernel) isDead() bool {
	select {
	case <-k.dead:
		return true
	default:
		return false
	}
}

// noKernel is the error of an image in which the kernel ends at once: it tells
// the operator what an engine cannot know, that it is Python.
func noKernel(err error) error {
	return &runtime.Error{
		Engine: engineOf(err),
		Op:     "start the kernel",
		Err:    fmt.Errorf("%w: %w", runtime.ErrNoProgram, err),
		Hint:   "the image needs a working Python 3.10 or later: build one with `make image`, or name another one in MCP_BRIDGE_IMAGE",
	}
}

// dataLimit leaves room below the container's limit for the supervisor and the
// tmpfs pages that count against it too.
func dataLimit(memory int64) int64 {
	return memory - min(memory/8, 64<<20)
}

// errNoAnswer is for the model; the log has what the operating system says.
var errNoAnswer = errors.New("the sandbox started, but the kernel in it did not answer")

// greet reads the kernel's first message and checks that we understand it.
func (k *kernel) greet(ctx context.Context) error {
	conn := k.box.Control()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return fmt.Errorf("wait for the kernel: %w", err)
	}
	m, err := k.control.Receive()
	if err != nil {
		return fmt.Errorf("wait for the kernel: %w", err)
	}
	var hello struct {
		Protocol int `json:"protocol"`
	}
	if m.Method != "hello" || json.Unmarshal(m.Params, &hello) != nil || hello.Protocol != sandboximage.Protocol {
		return fmt.Errorf("greet the kernel: %w", wire.ErrProtocol)
	}
	return conn.SetReadDeadline(time.Time{})
}

// A task is a cell for the kernel.
type task struct {
	kind       string // what the REPL is to do; "" is to run a cell
	limit      int    // bytes; for those that save and restore
	cell       int
	code       string
	context    json.RawMessage // for the cell's `context`; nil if it came with none
	timeout    time.Duration
	grace      time.Duration
	valueLimit int    // characters
	mode       Mode   // decides whether the value is wanted as JSON, too
	workspace  *int64 // the version of the files that the host keeps; nil if it keeps none
}

func (t *task) params(nonce string) json.RawMessage {
	params := map[string]any{
		"nonce": nonce, "cell": t.cell, "code": t.code,
		"timeout": t.timeout.Seconds(), "grace": t.grace.Seconds(), "value_limit": t.valueLimit,
	}
	if t.mode == ModeJSON {
		params["mode"] = t.mode
	}
	if t.kind != "" {
		params["task"], params["limit"] = t.kind, t.limit
	}
	if t.context != nil {
		params["context"] = t.context
	}
	if t.workspace != nil {
		params["workspace"] = *t.workspace
	}
	return mustJSON(params)
}

// A notSentError is why a cell has not run: the sandbox ended before it had it.
type notSentError struct{ error }

func (e notSentError) Unwrap() error { return e.error }

// unused reports whether nothing has been sent to be run.
func (k *kernel) unused() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lastID == 0
}

// execute sends a cell. The outcome comes on the channel, always.
func (k *kernel) execute(ctx context.Context, t task) (<-chan outcome, error) {
	if err := k.awaitReady(ctx); err != nil {
		return nil, k.notSent(err)
	}
	p := &pendingCell{nonce: randomHex(), done: make(chan outcome, 1)}
	k.mu.Lock()
	if k.err != nil {
		k.mu.Unlock()
		return nil, k.notSent(k.err)
	}
	k.lastID++
	p.id = k.lastID
	p.number, p.end = t.cell, time.Now().Add(t.timeout+t.grace+overtime)
	p.overdue = time.AfterFunc(time.Until(p.end), func() {
		k.fail(errors.New("the sandbox did not answer when the cell's time was up"))
	})
	k.pending = p
	k.mu.Unlock()
	if err := k.control.Send(&wire.Message{ID: p.id, Method: "execute", Params: t.params(p.nonce)}); err != nil {
		k.fail(fmt.Errorf("send the cell: %w", err))
		return nil, k.notSent(k.err)
	}
	return p.done, nil
}

// notSent makes err, if it is a sandbox's end, a notSentError.
func (k *kernel) notSent(err error) error {
	if !k.isDead() || errors.Is(err, errClosing) {
		return err
	}
	return notSentError{err}
}

// awaitReady waits while a lost REPL is replaced.
func (k *kernel) awaitReady(ctx context.Context) error {
	k.mu.Lock()
	ready := k.ready
	k.mu.Unlock()
	select {
	case <-ready:
		return nil
	default:
	}
	select {
	case <-ready:
		return nil
	case <-k.dead:
		return k.err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(readyTimeout):
		k.fail(errors.New("the kernel did not start a new REPL"))
		return k.err
	}
}

// interrupt asks the supervisor to interrupt the cell, then to kill it.
func (k *kernel) interrupt(cell int) {
	k.putOff(cell, true)
	if err := k.control.Send(&wire.Message{Method: "interrupt", Params: mustJSON(map[string]int{"cell": cell})}); err != nil {
		k.fail(fmt.Errorf("interrupt the cell: %w", err))
	}
}

// clock stops the time of a cell, or lets it go on; of one that has ended
// nothing.
func (k *kernel) clock(cell int, running bool) {
	if !k.putOff(cell, running) {
		return
	}
	params := mustJSON(map[string]any{"cell": cell, "running": running})
	if err := k.control.Send(&wire.Message{Method: "clock", Params: params}); err != nil {
		k.fail(fmt.Errorf("set the cell's clock: %w", err))
	}
}

// putOff does for the host's own deadline what the supervisor does for its own.
// It reports whether that cell runs.
func (k *kernel) putOff(cell int, running bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pending
	if p == nil || p.number != cell {
		return false
	}
	switch {
	case !running && p.stopped.IsZero() && p.overdue.Stop():
		p.stopped = time.Now()
	case running && !p.stopped.IsZero():
		p.end = p.end.Add(time.Since(p.stopped))
		p.stopped = time.Time{}
		p.overdue.Reset(time.Until(p.end))
	}
	return true
}

// readControl receives what the supervisor says until the stream ends.
func (k *kernel) readControl() {
	for {
		m, err := k.control.Receive()
		if err == nil {
			err = k.handle(m)
		}
		if errors.Is(err, io.EOF) {
			err = k.ending()
		}
		if err != nil {
			k.fail(err)
			return
		}
	}
}

// ending says how a sandbox that hung up has ended.
func (k *kernel) ending() error {
	ctx, cancel := context.WithTimeout(context.Background(), exitTimeout) //nolint:forbidigo // it outlives every call
	defer cancel()
	exit, err := k.box.Wait(ctx)
	switch {
	case err != nil:
		return io.EOF
	case exit.OOMKilled:
		return fmt.Errorf("the sandbox ran out of memory, of which it has %d MiB", k.memory>>20)
	default:
		k.log.Info("sandbox ended", "exit_code", exit.Code)
		return io.EOF
	}
}

func (k *kernel) handle(m *wire.Message) error {
	k.mu.Lock()
	user := k.user
	k.mu.Unlock()
	if user == nil {
		return fmt.Errorf("%w: %.32q before the first cell", wire.ErrProtocol, m.Method)
	}
	switch m.Method {
	case "output":
		var out struct {
			Text string
			Cell int
		}
		if err := json.Unmarshal(m.Params, &out); err != nil {
			return fmt.Errorf("%w: output", wire.ErrProtocol)
		}
		user.output(out.Text, out.Cell)
		return nil
	case "lost":
		var lost struct{ Reason string }
		if err := json.Unmarshal(m.Params, &lost); err != nil {
			return fmt.Errorf("%w: lost", wire.ErrProtocol)
		}
		k.noteLost(lost.Reason)
		return k.resync()
	case "":
		return k.finish(m)
	default:
		return fmt.Errorf("%w: method %.32q", wire.ErrProtocol, m.Method)
	}
}

// noteLost passes on that the REPL is gone. If a cell runs, its outcome says so,
// unless it is yet to be sent, and will run in the new REPL.
func (k *kernel) noteLost(reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pending != nil {
		k.pending.lost = reason
		return
	}
	k.user.lost(reason)
}

// finish takes the response to execute.
func (k *kernel) finish(m *wire.Message) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pending
	var result outcome
	if p == nil || m.ID != p.id || m.Error != nil || json.Unmarshal(m.Result, &result) != nil ||
		result.Nonce != p.nonce || (result.Lost == "") != (result.Cell != nil) {
		return fmt.Errorf("%w: not the answer to the running cell", wire.ErrProtocol)
	}
	p.overdue.Stop()
	k.pending = nil
	if p.lost != "" && result.Lost == "" {
		k.user.lost(p.lost)
	}
	p.done <- result
	return nil
}

// resync begins the replacement of a lost REPL, which may have died in the
// middle of a frame; serveCalls ends it.
func (k *kernel) resync() error {
	marker := make([]byte, 16)
	rand.Read(marker) // never fails
	k.mu.Lock()
	k.ready = make(chan struct{})
	k.mu.Unlock()
	k.calls.ExpectMarker(marker)
	return k.control.Send(&wire.Message{Method: "resync", Params: mustJSON(map[string]string{
		"marker": hex.EncodeToString(marker),
	})})
}

// serveCalls serves the callback channel for one REPL after the other.
func (k *kernel) serveCalls(ctx context.Context, tools Tools, handlers map[string]proxy.Handler) {
	for {
		err := tools.ServeCallbacks(ctx, k.calls, handlers)
		if err == nil { // closed at its end; if it all ended, readControl knows why
			select {
			case <-k.dead:
			case <-time.After(exitTimeout):
			}
			err = io.EOF
		}
		if !errors.Is(err, wire.ErrResynced) {
			k.fail(fmt.Errorf("callback channel: %w", err))
			return
		}
		k.mu.Lock()
		ready := k.ready // the new REPL may be lost, and this replaced, at once
		k.mu.Unlock()
		if err := k.control.Send(&wire.Message{Method: "start", Params: json.RawMessage("{}")}); err != nil {
			k.fail(err)
			return
		}
		select {
		case <-ready: // a supervisor that is not ours may have us here twice
		default:
			close(ready)
		}
	}
}

// fail declares the sandbox dead. The first reason stands. It is for the model,
// so what the operating system says of the stream, with paths of the host in
// it, goes to the log.
func (k *kernel) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return
	}
	if !errors.Is(err, errClosing) {
		k.log.Warn("sandbox lost", "error", err)
	}
	_, ofStream := errors.AsType[*net.OpError](err)
	if ofStream || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
		err = errors.New("the sandbox ended")
	}
	k.err = err
	if k.pending != nil {
		k.pending.overdue.Stop()
		k.pending.done <- outcome{err: err}
		k.pending = nil
	}
	if k.stop != nil {
		k.stop()
	}
	k.place.leave()
	close(k.dead)
}

// reap removes the sandbox once it is dead.
func (k *kernel) reap() {
	<-k.dead
	defer k.place.free()
	if err := k.box.Close(); err != nil {
		k.log.Warn("sandbox not removed", "error", err)
	}
}

// close removes the sandbox and waits until all that belonged to it has ended.
func (k *kernel) close() {
	k.fail(errClosing)
	k.wg.Wait()
}

func randomHex() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
