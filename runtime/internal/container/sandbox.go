package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/mux"
)

const (
	connectTimeout = 20 * time.Second
	requestTimeout = 60 * time.Second
	requestGrace   = 5 * time.Second
	removeTimeout  = 15 * time.Second
	killTimeout    = 5 * time.Second
	exitGrace      = 500 * time.Millisecond
	stderrTimeout  = time.Second
	endTimeout     = 2 * time.Second
	killedCode     = 128 + 9
)

// errStopped ends what waits for a program that has ended.
var errStopped = errors.New("program ended")

// A sandbox is a container on its way up, running, or on its way down. Its
// fields are set in the order below by start, and not changed after it.
type sandbox struct {
	engine    *Engine
	id        string
	begin     time.Time
	uid       int64
	host      Host
	transport runtime.Transport
	folders   map[string]runtime.Folder // of the host, to be shown, by their place
	dir       *local.SandboxDir         // nil on a remote host
	socket    *local.Listener           // nil but for TransportSocket
	created   bool                      // the service was asked to create the container
	stdio     *stdio                    // the program's; nil if it could not be attached to
	tail      Tail                      // of what the program prints
	info      Info
	ended     <-chan struct{}    // closed when the program has ended
	process   *local.Process     // nil on a remote host
	unfollow  context.CancelFunc // nil but on a remote host
	unwatch   context.CancelFunc // ends the question how the program ended
	cgroup    local.Cgroup
	// oomKills is how often the OOM killer had acted before, in a group that is
	// not the sandbox's alone.
	oomKills int64

	mux               *mux.Mux // nil but for TransportStdio
	control, callback net.Conn
	report            runtime.Report // nil with TransportSocket

	killed atomic.Bool   // destroy has killed the program
	exited chan struct{} // closed when the program has ended and exit is set
	exit   runtime.Exit
	close  func() error
}

// Start implements [runtime.Engine].
func (e *Engine) Start(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	const op = "start sandbox"
	if err := spec.Validate(); err != nil {
		return nil, e.fail.Wrap(op, err)
	}
	if spec.Image = e.Image(spec.Image); spec.Image == "" {
		return nil, e.fail.Wrap(op, errors.New("spec: no image, and the engine has no default"))
	}
	spec.Limits = spec.Limits.WithDefaults()
	if spec.ConnectTimeout == 0 {
		spec.ConnectTimeout = connectTimeout
	}
	s := &sandbox{engine: e, id: "mcpb-" + strings.ToLower(rand.Text()[:12]), begin: time.Now()}
	detached := context.WithoutCancel(ctx)
	s.close = sync.OnceValue(func() error { return e.fail.Wrap("close sandbox", s.destroy(detached)) })
	if err := s.start(ctx, spec); err != nil {
		return nil, e.fail.Wrap(op, errors.Join(err, s.close()))
	}
	e.opts.Logger.InfoContext(ctx, "sandbox started", "sandbox_id", s.id, "uid", s.uid, "duration_ms", time.Since(s.begin).Milliseconds())
	return s, nil
}

// ID implements [runtime.Sandbox].
func (s *sandbox) ID() string { return s.id }

// Transport implements [runtime.Sandbox].
func (s *sandbox) Transport() runtime.Transport { return s.transport }

// Control implements [runtime.Sandbox].
func (s *sandbox) Control() net.Conn { return s.control }

// Callback implements [runtime.Sandbox].
func (s *sandbox) Callback() net.Conn { return s.callback }

// Wait implements [runtime.Sandbox].
func (s *sandbox) Wait(ctx context.Context) (runtime.Exit, error) {
	select {
	case <-s.exited:
		return s.exit, nil
	case <-ctx.Done():
		return runtime.Exit{}, context.Cause(ctx)
	}
}

// Close implements [runtime.Sandbox].
func (s *sandbox) Close() error { return s.close() }

// watch waits for the program's end and records it.
func (s *sandbox) watch(ctx context.Context) {
	defer close(s.exited)
	<-s.process.Done()
	// Soon the engine removes the control group, and then the container.
	s.exit = runtime.Exit{Code: -1, OOMKilled: s.cgroup.OOMKills() > s.oomKills}
	late := !s.exit.OOMKilled && s.cgroup.Gone()
	if s.killed.Load() {
		s.exit.Code = killedCode
		return // without a word to the service: removing goes faster before it notices
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	api, err := s.engine.Connect(ctx)
	if err == nil {
		err = s.ask(ctx, api, late)
	}
	if err != nil {
		s.engine.opts.Logger.DebugContext(ctx, "exit unknown", "sandbox_id", s.id, "error", err)
	}
}

// ask asks the service how the program ended and, if so told, whether for lack
// of memory.
func (s *sandbox) ask(ctx context.Context, api API, memory bool) error {
	code, err := api.Wait(ctx, s.id, s.begin)
	if err != nil {
		return err
	}
	s.exit.Code = code
	if witness, ok := api.(OOMWitness); ok && memory {
		s.exit.OOMKilled, err = witness.OOMKilled(ctx, s.id, s.begin)
	}
	return err
}

// follow watches the program of a remote host.
func (s *sandbox) follow(ctx context.Context, info Info) {
	s.info, s.exited = info, make(chan struct{})
	s.ended = s.exited
	ctx, s.unfollow = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(s.exited)
		s.exit.Code = -1
		api, err := s.engine.Connect(ctx)
		if err == nil {
			err = s.ask(ctx, api, true)
		}
		if s.killed.Load() {
			s.exit.Code = killedCode
		} else if err != nil {
			s.engine.opts.Logger.WarnContext(ctx, "lost the sandbox", "sandbox_id", s.id, "error", err)
		}
	}()
}

// exitError says how the program ended instead of connecting.
func (s *sandbox) exitError() error {
	<-s.exited
	err := fmt.Errorf("%w with code %d before it had connected", runtime.ErrExited, s.exit.Code)
	if s.exit.OOMKilled {
		err = fmt.Errorf("%w: out of memory", err)
	}
	return s.engine.fail.New("wait for the program", s.withOutput(err), "")
}

// withOutput adds the last words of the program to err.
func (s *sandbox) withOutput(err error) error {
	if s.stdio != nil {
		select {
		case <-s.stdio.ended:
		case <-time.After(stderrTimeout):
		}
	}
	if text := s.tail.String(); text != "" {
		return fmt.Errorf("%w; its last output:\n%s", err, text)
	}
	return err
}
