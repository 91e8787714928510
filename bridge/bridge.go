package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	AllowUnlimited bool     // see runtime.Spec
	Tools          Tools    // required
	Servers        []string // Python names of the configured servers, for the tool's description
	Version        string   // of this program, told to clients
	Logger         *slog.Logger

	Timeout    time.Duration // of a cell that does not ask for one; 30 s
	MaxTimeout time.Duration // the most a cell may ask for; 120 s
	Grace      time.Duration // from an interrupt to a kill; 3 s
	Yield      time.Duration // after which a call answers "still running"; 45 s

	OutputLimit int // characters of output, and of a value, shown to the model; 20,000
	MaxSessions int // sandboxes at the same time; 16
	MaxWaiting  int // calls waiting for one session; 32
}

// A Bridge runs cells in sessions. Its methods may be called concurrently.
type Bridge struct {
	opts  Options
	log   *slog.Logger
	calls atomic.Int64 // of the tool, running

	mu       sync.Mutex
	closed   bool
	sessions map[string]*session
}

// New returns a Bridge. Nothing is started before the first cell. The caller
// must Close it before the engine and the tools.
func New(opts Options) *Bridge {
	setDefault(&opts.Timeout, 30*time.Second)
	setDefault(&opts.MaxTimeout, 120*time.Second)
	setDefault(&opts.Grace, 3*time.Second)
	setDefault(&opts.Yield, 45*time.Second)
	setDefault(&opts.OutputLimit, 20_000)
	setDefault(&opts.MaxSessions, 16)
	setDefault(&opts.MaxWaiting, 32)
	setDefault(&opts.Logger, slog.New(slog.DiscardHandler))
	opts.Timeout = min(opts.Timeout, opts.MaxTimeout)
	opts.Limits = opts.Limits.WithDefaults()
	return &Bridge{opts: opts, log: opts.Logger, sessions: map[string]*session{}}
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
	Timeout time.Duration // zero means the default
	Session string        // zero means the connection's own
}

// A Result is what a call answers.
type Result struct {
	Text    string
	Images  []Image
	IsError bool  // the cell failed, or could not be run
	Err     error // why no cell was run; nil if one was
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
	s, err := b.session(req.Session)
	if err != nil {
		return failure(err)
	}
	start := time.Now()
	result, err := s.run(ctx, req)
	if err != nil {
		return failure(err)
	}
	b.log.Debug("cell ended", "session_id", req.Session, "is_error", result.IsError,
		"duration_ms", time.Since(start).Milliseconds())
	return result
}

// session returns the session of that name, new or not.
func (b *Bridge) session(name string) (*session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosing
	}
	if s := b.sessions[name]; s != nil {
		return s, nil
	}
	if len(b.sessions) >= b.opts.MaxSessions {
		return nil, fmt.Errorf("there are %d sessions already, the most allowed: use one of them", len(b.sessions))
	}
	s := newSession(b)
	b.sessions[name] = s
	return s, nil
}

var errClosing = errors.New("mcp-bridge is shutting down")

// Close interrupts every cell and removes every sandbox. It is idempotent.
func (b *Bridge) Close() {
	b.mu.Lock()
	b.closed = true
	sessions := b.sessions
	b.sessions = map[string]*session{}
	b.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(s.close)
	}
	wg.Wait()
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
		runtime.ErrUnavailable, runtime.ErrImageMissing, runtime.ErrNoProgram, runtime.ErrUnsupported,
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
