package proxy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/stdio"
)

const (
	// legacyProtocol is the newest protocol that begins with initialize.
	legacyProtocol = "2025-11-25"
	modernProtocol = "2026-07-28"

	// exitGrace is how long the output of a server is read after it has exited.
	exitGrace = time.Second
)

// A handshake says how to begin with a server. Protocol 2026-07-28 begins with
// server/discover, which older servers do not know: most answer with an error,
// some with silence, a few by exiting.
type handshake int

const (
	probing handshake = iota // discover, for a short while, then initialize
	patient                  // discover, however long it takes
	legacy                   // initialize
)

// A session is one running server, connected. It is over when the server has
// gone or stop was called, and done when nothing of it is left.
type session struct {
	proc *stdio.Process
	gate *gate
	mcp  *mcp.ClientSession

	// changed holds a token when the server's tools have changed.
	changed chan struct{}
	since   time.Time
	usage   *usage

	stopping chan struct{}
	stopOnce sync.Once
	reason   string        // why it was stopped, for whom that cuts short; read after stopping
	done     chan struct{} // closed by who runs watch
}

// sessionOptions says how a session is made.
type sessionOptions struct {
	Handshake handshake
	Version   string        // ours, told to the server
	Probe     time.Duration // how long discover may take when probing
	Logger    *slog.Logger
	Env       map[string]string // besides the server's own, which wins
}

// A connectError says why there is no session.
type connectError struct {
	err     error
	silent  bool   // the server did not answer discover in time
	exited  string // how it exited; empty if it did not
	refused bool   // it answered, with an error
	tail    string // the end of its own output
}

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// errRemote is why a server with a url is not connected to.
var errRemote = errors.New("it is reached over HTTP, which this version does not do yet")

// connect starts a server and connects to it. ctx bounds the connecting. The
// caller must run watch. Errors are *connectError, or those of stdio.Start.
func connect(ctx context.Context, server discovery.Server, opts sessionOptions) (*session, error) {
	if server.Remote() {
		return nil, errRemote
	}
	unasked := &stdio.Meter{}
	env := make(map[string]string, len(opts.Env)+len(server.Env))
	maps.Copy(env, opts.Env)
	maps.Copy(env, server.Env)
	proc, err := stdio.Start(stdio.Options{
		Command: server.Command,
		Args:    server.Args,
		Env:     env,
		Dir:     server.Cwd,
		Unasked: unasked,
	})
	if err != nil {
		return nil, err
	}
	s := &session{
		proc:     proc,
		changed:  make(chan struct{}, 1),
		since:    time.Now(),
		usage:    newUsage(),
		stopping: make(chan struct{}),
		done:     make(chan struct{}),
	}
	s.gate = newGate(proc.Conn(), unasked, opts.Logger, s.noteChange)
	silent, err := s.shakeHands(ctx, opts)
	if err != nil {
		failure := s.connectError(ctx, err)
		failure.silent = silent
		proc.Stop()
		failure.tail = proc.Tail()
		return nil, failure
	}
	s.gate.open()
	return s, nil
}

// shakeHands connects go-sdk's client. It reports whether the server ignored
// discover.
func (s *session) shakeHands(ctx context.Context, opts sessionOptions) (silent bool, err error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "mcp-bridge", Version: opts.Version}, &mcp.ClientOptions{
		Logger: opts.Logger,
		// We offer servers nothing yet: neither roots, nor sampling, nor elicitation.
		Capabilities: &mcp.ClientCapabilities{},
		// The gate listens. This makes go-sdk subscribe where the protocol wants that.
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {},
	})
	client.AddSendingMiddleware(uncached)
	if opts.Handshake == probing {
		client.AddSendingMiddleware(limitDiscover(opts.Probe, &silent))
	}
	var version string
	if opts.Handshake == legacy {
		version = legacyProtocol
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.cancelOnExit(ctx, cancel)
	s.mcp, err = client.Connect(ctx, s.gate, &mcp.ClientSessionOptions{ProtocolVersion: version})
	return silent, err
}

// limitDiscover gives server/discover a time limit of its own; when it is over,
// go-sdk goes on with initialize, which the server may be waiting for.
func limitDiscover(limit time.Duration, silent *bool) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method != "server/discover" {
				return next(ctx, method, req)
			}
			short, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			res, err := next(short, method, req)
			*silent = err != nil && short.Err() != nil && ctx.Err() == nil
			return res, err
		}
	}
}

// cancelOnExit ends a handshake whose server has exited while a child of it
// holds its output open. It returns when ctx is done.
func (s *session) cancelOnExit(ctx context.Context, cancel context.CancelFunc) {
	select {
	case <-ctx.Done():
		return
	case <-s.proc.Exited():
	}
	select {
	case <-ctx.Done():
	case <-time.After(exitGrace):
		cancel()
	}
}

func (s *session) connectError(ctx context.Context, err error) *connectError {
	if fault := s.fault(); fault != nil {
		err = fault
	}
	failure := &connectError{err: err, refused: isRPCError(err)}
	if !failure.refused && ctx.Err() == nil {
		s.awaitExit(ctx)
		failure.exited = s.proc.ExitStatus()
	}
	if s.fault() != nil {
		failure.exited = ""
	}
	return failure
}

// awaitExit waits for the exit of a server whose output has ended, which comes a
// moment later.
func (s *session) awaitExit(ctx context.Context) {
	select {
	case <-s.proc.Exited():
	case <-time.After(exitGrace):
	case <-ctx.Done():
	}
}

// noteChange is called by the gate.
func (s *session) noteChange() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// modern reports whether the server speaks a protocol that begins with discover.
func (s *session) modern() bool {
	res := s.mcp.InitializeResult()
	return res != nil && res.ProtocolVersion >= modernProtocol
}

// watch waits until the session is over, or ctx is done, and ends the process.
// It returns when nothing is left.
func (s *session) watch(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.stopping:
	case <-s.gate.dead:
	case <-s.proc.Exited():
		select { // what it said last
		case <-s.stopping:
		case <-s.gate.dead:
		case <-time.After(exitGrace):
		}
	}
	s.stop("")
	s.proc.Stop()
	_ = s.mcp.Close()
}

// stop makes watch end the session.
func (s *session) stop(reason string) {
	s.stopOnce.Do(func() {
		s.reason = reason
		close(s.stopping)
	})
}

// retire stops a session that has never been used.
func (s *session) retire() {
	if s.usage.closeUnused() {
		s.stop(unusedReason)
	}
}

// over reports whether the session can no longer be used.
func (s *session) over() bool {
	select {
	case <-s.stopping:
	case <-s.gate.dead:
	case <-s.proc.Exited():
	default:
		return s.usage.isClosed()
	}
	return true
}

// fault returns for what the server has to be stopped, nil if it did nothing.
func (s *session) fault() error {
	select {
	case <-s.gate.dead:
		if errors.Is(s.gate.err, stdio.ErrProtocol) || errors.Is(s.gate.err, stdio.ErrFlood) {
			return s.gate.err
		}
	default:
	}
	return nil
}

// unusedReason is why a session is stopped that is not needed.
const unusedReason = "was stopped, for nobody used it,"

// ownReason is why the proxy stopped the session, "" if it did not, or has not yet.
func (s *session) ownReason() string {
	select {
	case <-s.stopping:
		return s.reason
	default:
		return ""
	}
}

// why describes how a session that is over ended.
func (s *session) why() string {
	if own := s.ownReason(); own != "" {
		return own
	}
	if fault := s.fault(); fault != nil {
		return "was stopped: " + fault.Error()
	}
	if status := s.proc.ExitStatus(); status != "" {
		return "exited (" + status + ")"
	}
	return "closed the connection"
}
