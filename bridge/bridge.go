package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

// Tools answers what cells ask on the callback channel. *proxy.Proxy is one.
type Tools interface {
	// ServeCallbacks serves conn until it fails or ctx is done, and returns
	// when nothing it started is running any more.
	ServeCallbacks(ctx context.Context, conn *wire.Conn, extra map[string]proxy.Handler) error
}

// Options configure a Bridge. Zero fields take the defaults they name.
type Options struct {
	Engine         runtime.Engine // required
	Image          string         // "" is the engine's own
	Limits         runtime.Limits
	AllowUnlimited bool           // see runtime.Spec
	Binds          []runtime.Bind // folders of the host that every sandbox shows
	Tools          Tools          // required
	Servers        []string       // Python names of the configured servers, for the tool's description
	Version        string         // of this program, told to clients
	Logger         *slog.Logger

	// StateDir is where what outlasts sessions is kept, such as memory and
	// skills: a directory of the user's own. "" keeps nothing.
	StateDir string
	// WorkspaceQuota bounds the files of cells that are kept there, in bytes;
	// 100 MiB. Less than 0 keeps none.
	WorkspaceQuota int64
	// Hibernate saves there what cells have made when their sandbox is stopped or
	// the Bridge closed, and restores it with the session's next call.
	Hibernate bool
	// StateLimit is how many bytes are saved of a session; 64 MiB.
	StateLimit int
	// Directory is where the bridge was started. What is saved of a session is
	// restored where it was saved.
	Directory string

	Timeout     time.Duration // of a cell that does not ask for one; 30 s
	MaxTimeout  time.Duration // the most a cell may ask for; 120 s
	Grace       time.Duration // from an interrupt to a kill; 3 s
	Yield       time.Duration // after which a call answers "still running"; 45 s
	PullTimeout time.Duration // of getting an image that is missing; 10 min

	OutputLimit  int // characters of output and value shown to the model; 20,000
	OutputMode   Mode
	NotesApart   bool // notes are in Result.Notes, not in its Text, which may be empty; nothing is said of the next call's variables
	MaxSandboxes int  // at the same time, spare ones included; 16
	MaxSessions  int  // remembered, with a sandbox or without; 256
	MaxWaiting   int  // calls waiting for one session; 32

	// Warm is how many spare sandboxes Serve keeps, once there is a client, for
	// sessions to come; 0.
	Warm int
	// IdleTimeout is how long a session keeps its sandbox after a cell; zero is
	// for ever.
	IdleTimeout time.Duration
}

// A Bridge runs cells in sessions. Its methods may be called concurrently.
type Bridge struct {
	opts    Options
	log     *slog.Logger
	entry   entry
	refusal lastText     // why cells were not run
	calls   atomic.Int64 // of the tool, running
	places  *places
	pool    *pool
	image   *download
	images  *imager
	keeper  keeper
	skills  skillDocs
	files   keptFiles

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session
	leaving  sync.WaitGroup // sessions that are closed, and no longer there; added to with mu held
}

// New returns a Bridge. Nothing is started before the first cell, but for what
// Options.Warm asks for. The caller must Close it before the engine and the
// tools.
func New(opts Options) *Bridge {
	setDefault(&opts.Timeout, 30*time.Second)
	setDefault(&opts.MaxTimeout, 120*time.Second)
	setDefault(&opts.Grace, 3*time.Second)
	setDefault(&opts.Yield, 45*time.Second)
	setDefault(&opts.PullTimeout, 10*time.Minute)
	setDefault(&opts.OutputLimit, 20_000)
	setDefault(&opts.MaxSandboxes, 16)
	setDefault(&opts.MaxSessions, 256)
	setDefault(&opts.MaxWaiting, 32)
	setDefault(&opts.StateLimit, 64<<20)
	setDefault(&opts.Logger, slog.New(slog.DiscardHandler))
	opts.Timeout = min(opts.Timeout, opts.MaxTimeout)
	opts.Limits = opts.Limits.WithDefaults()
	b := &Bridge{
		opts: opts, log: opts.Logger, sessions: map[string]*session{}, places: newPlaces(opts.MaxSandboxes),
		image: newDownload(opts.Engine, opts.Image, opts.PullTimeout), keeper: keeper{dir: opts.StateDir},
		files:  keptFiles{quota: opts.WorkspaceQuota},
		images: newImager(),
	}
	b.entry.servers = opts.Servers
	b.pool = newPool(opts.Warm, b.places, b.startKernel, b.log)
	return b
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// A Request asks for one cell.
type Request struct {
	Code    string        // Python; empty waits for the cell that is running
	Timeout time.Duration // zero means the default; at most Options.MaxTimeout count
	Session string        // zero means the connection's own

	// Context is a JSON value that the cell finds in its variable `context`. Nil
	// leaves what an earlier one has set.
	Context json.RawMessage

	client  string    // whose session: names of one client mean nothing to another
	known   bool      // the session has to be there already
	program string    // that the client is, by its own word
	until   time.Time // when the client is to be answered
	asker   *asker    // of the client's user; nil if nobody can be asked
	reply   *reply    // the answer to a question that was the result of an earlier call, or nil
	owner   bool      // the cell is to end if the call is cancelled

	// Progress is told how far the image is if it has to be got first. It may
	// be nil; it is called by Run itself, and may take its time.
	Progress func(runtime.PullProgress)
	// Working is told, about once a second while the cell runs, what it has
	// printed last, or that it still runs. It may be nil, and take its time.
	Working func(line string)
}

// A Result is what a call answers.
type Result struct {
	Text    string
	Images  []Image
	Notes   []string // what is said beside the cell's own output, with Options.NotesApart
	IsError bool     // the cell failed, or could not be run
	Err     error    // why no cell was run; nil if one was

	inquiry *inquiry // what the client's user is to be asked before there is a result, or nil
	details details
}

// An Image is shown to the model.
type Image struct {
	MIMEType string
	Data     []byte
}

// Run runs a cell and returns what the model is to see. A cell that fails, or
// cannot be run at all, is a Result with IsError. If ctx is done while the cell
// runs, the cell is interrupted.
func (b *Bridge) Run(ctx context.Context, req Request) Result {
	if err := b.validate(&req); err != nil {
		return failure(err)
	}
	s, err := b.session(req)
	if err != nil {
		return failure(err)
	}
	defer b.release(s)
	start := time.Now()
	result, err := s.run(ctx, req)
	if err != nil {
		return failure(err)
	}
	b.log.Debug("cell ended", "session_id", req.logged(), "is_error", result.IsError,
		"duration_ms", time.Since(start).Milliseconds())
	return result
}

// key is what a session is found by.
func (r *Request) key() string {
	if r.client == "" {
		return r.Session
	}
	return r.client + "/" + r.Session // a name has no slash
}

// logged is the session's name for logs and for what is kept, unless whoever
// reads it could use that session.
func (r *Request) logged() string {
	if r.client == sessionlessClient && len(r.Session) > 8 {
		return r.Session[:6] + "…"
	}
	return r.Session
}

// session returns the session that a request asks for, new or not. The caller
// must release it.
func (b *Bridge) session(req Request) (*session, error) {
	name := req.key()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosing
	}
	s := b.sessions[name]
	if s == nil && req.known {
		return nil, fmt.Errorf("there is no session %q (any more), and nothing was run: leave `session` out to begin a new one; the answer has its name", req.Session)
	}
	if s == nil {
		if len(b.sessions) >= b.opts.MaxSessions && !b.forget() {
			return nil, fmt.Errorf("there are %d sessions in use already, the most allowed: use one of them", len(b.sessions))
		}
		s = newSession(b, req.logged())
		s.program, s.transient = req.program, req.client != ""
		b.sessions[name] = s
	}
	s.calls++
	return s, nil
}

func (b *Bridge) release(s *session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.calls--
}

// forget drops the session that was used least recently, of those that have no
// sandbox. b.mu is held.
func (b *Bridge) forget() bool {
	var oldest string
	var since time.Time
	found := false
	for name, s := range b.sessions {
		used, live := s.state()
		if s.calls == 0 && !live && (!found || used.Before(since)) {
			oldest, since, found = name, used, true
		}
	}
	if found {
		if err := b.sessions[oldest].sleeping().end(); err != nil {
			b.log.Warn("a session's saved state is not let go of", "error", err)
		}
		delete(b.sessions, oldest)
	}
	return found
}

// startKernel starts a sandbox that takes place.
func (b *Bridge) startKernel(ctx context.Context, place *place) (*kernel, error) {
	return startKernel(ctx, kernelOptions{
		engine: b.opts.Engine, image: b.opts.Image, limits: b.opts.Limits, allowUnlimited: b.opts.AllowUnlimited, binds: b.opts.Binds,
		place: place, log: b.log,
	})
}

// place returns a place for a session's sandbox. Where there is none, the
// sandbox that has been idle for the longest time makes room.
func (b *Bridge) place(ctx context.Context) (*place, error) {
	for {
		freed, soon := b.places.next()
		if place := b.places.take(); place != nil {
			return place, nil
		}
		if !soon && !b.stopIdlest() { //nolint:contextcheck // it is stopped whoever gives up
			return nil, fmt.Errorf("all %d sandboxes are busy, the most allowed: try again when a cell has ended, or use a session that has one",
				b.opts.MaxSandboxes)
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// stopIdlest stops the sandbox that has been idle for the longest time. It
// reports whether there was one.
func (b *Bridge) stopIdlest() bool {
	type candidate struct {
		session *session
		used    time.Time
	}
	var all []candidate
	b.mu.Lock()
	for _, s := range b.sessions {
		if used, live := s.state(); live {
			all = append(all, candidate{s, used})
		}
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(a, b candidate) int { return a.used.Compare(b.used) })
	return slices.ContainsFunc(all, func(c candidate) bool {
		return c.session.stop(0, fmt.Sprintf("to make room, as it had been idle longest of the %d there may be", b.opts.MaxSandboxes))
	})
}

var errClosing = errors.New("mcp-bridge is shutting down")

// Close interrupts every cell, saves the sessions that are to be, and removes
// every sandbox. It is idempotent.
func (b *Bridge) Close() {
	b.mu.Lock()
	b.closed = true
	sessions := b.sessions
	b.sessions = map[string]*session{}
	b.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(b.leaving.Wait)
	wg.Go(b.pool.close)
	wg.Go(b.image.close)
	for _, s := range sessions {
		wg.Go(s.close)
	}
	wg.Wait()
	if err := b.files.close(); err != nil {
		b.log.Warn("workspace not closed", "error", err)
	}
}

func failure(err error) Result {
	return Result{Text: modelText(err), IsError: true, Err: err}
}

// modelText is an error in words for the model: no host paths, no secrets. Of
// an engine's error only what is known to be free of them is told; the log has
// the rest.
func modelText(err error) string {
	engineErr, ok := errors.AsType[*runtime.Error](err)
	if !ok {
		return err.Error()
	}
	text := "The sandbox cannot be started "
	if none, ok := errors.AsType[*runtime.NoneError](err); ok {
		reasons := make([]string, len(none.Failures))
		for i, failure := range none.Failures {
			reasons[i] = failure.Engine + condition(failure)
		}
		text += "(" + strings.Join(reasons, "; ") + ")"
	} else {
		text += "(" + engineErr.Engine + ")" + condition(err)
	}
	if engineErr.Hint != "" {
		text += ". To mend it on the host: " + engineErr.Hint
	}
	return text
}

// condition is what kind of failure an engine's error is, if it is known.
func condition(err error) string {
	for _, known := range []error{
		runtime.ErrUnavailable, runtime.ErrImageMissing, runtime.ErrNoProgram, runtime.ErrUnsupported, runtime.ErrNoBinds,
	} {
		if errors.Is(err, known) {
			return ": " + known.Error()
		}
	}
	return ""
}

// mustJSON encodes values that cannot fail to encode.
func mustJSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // a type of ours that has no JSON: a bug a test finds
	}
	return data
}
