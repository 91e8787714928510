package podman

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

const (
	connectTimeout = 20 * time.Second
	requestTimeout = 60 * time.Second
	requestGrace   = 5 * time.Second
	removeTimeout  = 15 * time.Second
	killTimeout    = 5 * time.Second
	stderrTimeout  = 200 * time.Millisecond
	killedCode     = 128 + 9
)

// errStopped ends what waits for a program that has ended.
var errStopped = errors.New("program ended")

// A sandbox is a container on its way up, running, or on its way down. Its
// fields are set in the order below by start, and not changed after it.
type sandbox struct {
	engine  *Engine
	id      string
	begin   time.Time
	uid     int64
	dir     *local.SandboxDir
	socket  *local.Listener
	created bool // the service was asked to create the container
	process *local.Process
	cgroup  local.Cgroup
	output  io.ReadCloser // the program's stdout and stderr, of which nothing but the tail is kept
	tail    tail
	drained chan struct{} // closed when output has ended

	control, callback net.Conn

	killed atomic.Bool   // destroy has killed the program
	exited chan struct{} // closed when the program has ended and exit is set
	exit   runtime.Exit
	close  func() error
}

// Start implements [runtime.Engine].
func (e *Engine) Start(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	const op = "start sandbox"
	if err := spec.Validate(); err != nil {
		return nil, wrap(op, err)
	}
	spec.Limits = spec.Limits.WithDefaults()
	if spec.ConnectTimeout == 0 {
		spec.ConnectTimeout = connectTimeout
	}
	s := &sandbox{engine: e, id: "mcpb-" + strings.ToLower(rand.Text()[:12]), begin: time.Now()}
	detached := context.WithoutCancel(ctx)
	s.close = sync.OnceValue(func() error { return wrap("close sandbox", s.destroy(detached)) })
	if err := s.start(ctx, spec); err != nil {
		return nil, wrap(op, errors.Join(err, s.close()))
	}
	e.log.InfoContext(ctx, "sandbox started", "sandbox_id", s.id, "uid", s.uid, "duration_ms", time.Since(s.begin).Milliseconds())
	return s, nil
}

// start takes every step up to an attested sandbox. What a failed start leaves
// is for destroy. ctx is looked at between the steps, and while waiting for the
// program; requests are not cut short.
func (s *sandbox) start(ctx context.Context, spec runtime.Spec) error {
	c, err := s.engine.connect(ctx)
	if err != nil {
		return err
	}
	request, err := s.prepare(ctx, c, spec)
	if err != nil {
		return err
	}
	if err := s.create(ctx, c, request); err != nil {
		return explain("create container", spec.Image, err)
	}
	info, err := s.initialize(ctx, c)
	if err != nil {
		return explain("start container", spec.Image, err)
	}
	if err := s.await(ctx, c, spec.ConnectTimeout); err != nil {
		return err
	}
	return s.attest(spec, info)
}

// prepare makes the host's part of the sandbox.
func (s *sandbox) prepare(ctx context.Context, c *client, spec runtime.Spec) (createRequest, error) {
	var err error
	if s.uid, err = s.engine.takeUID(); err != nil {
		return createRequest{}, err
	}
	if s.dir, err = s.engine.newSandboxDir(ctx, s.id, spec); err != nil {
		return createRequest{}, err
	}
	if s.socket, err = s.dir.Listen(path.Base(runtime.SocketPath)); err != nil {
		return createRequest{}, err
	}
	return newCreateRequest(spec, placement{
		id: s.id, uid: s.uid, owner: s.engine.self, dir: s.dir,
		rootless: c.rootless, ociRuntime: s.engine.opts.OCIRuntime, hardLimit: local.HardLimit,
	})
}

// patient returns a context for a request that should not be cut short, for the
// service would go on with it behind our back. It outlives ctx by a grace, so
// that a service which hangs does not hang its caller.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(requestGrace, cancel) })
	return whole, func() {
		stop()
		cancel()
	}
}

func (s *sandbox) create(ctx context.Context, c *client, request createRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, cancel := patient(ctx)
	defer cancel()
	s.created = true
	return c.create(whole, request)
}

// initialize has the container made up to the point where its program would
// run, and takes hold of the process that will become it.
func (s *sandbox) initialize(ctx context.Context, c *client) (containerInfo, error) {
	if err := ctx.Err(); err != nil {
		return containerInfo{}, err
	}
	whole, cancel := patient(ctx)
	defer cancel()
	if err := c.initialize(whole, s.id); err != nil {
		return containerInfo{}, err
	}
	info, err := c.inspect(whole, s.id)
	if err != nil {
		return containerInfo{}, err
	}
	if s.process, err = local.OpenProcess(info.State.PID); err != nil {
		return containerInfo{}, unreadable(err)
	}
	if s.cgroup, err = local.CgroupOf(info.State.PID); err != nil {
		return containerInfo{}, unreadable(err)
	}
	s.drained, s.exited = make(chan struct{}), make(chan struct{})
	s.attach(ctx, c)
	go s.watch(context.WithoutCancel(ctx))
	return info, nil
}

// attach begins to collect what the program prints. It is for diagnosis only,
// so it may fail.
func (s *sandbox) attach(ctx context.Context, c *client) {
	output, err := c.attach(ctx, s.id)
	if err != nil {
		s.engine.log.WarnContext(ctx, "cannot read the program's stderr", "sandbox_id", s.id, "error", err)
		close(s.drained)
		return
	}
	s.output = output
	go func() {
		defer close(s.drained)
		copyFrames(&s.tail, output)
	}()
}

// watch waits for the program's end and records it.
func (s *sandbox) watch(ctx context.Context) {
	defer close(s.exited)
	<-s.process.Done()
	// Soon the engine removes the control group, and then the container.
	s.exit = runtime.Exit{Code: -1, OOMKilled: s.cgroup.OOMKills() > 0}
	if s.killed.Load() {
		s.exit.Code = killedCode
		return // without a word to the service: removing goes faster before it notices
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	c, err := s.engine.connect(ctx)
	if err == nil {
		var code int
		if code, err = c.wait(ctx, s.id, s.begin); err == nil {
			s.exit.Code = code
		}
	}
	if err != nil {
		s.engine.log.DebugContext(ctx, "exit code unknown", "sandbox_id", s.id, "error", err)
	}
}

// await runs the program and waits until it has connected twice.
func (s *sandbox) await(ctx context.Context, c *client, limit time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, cancelWhole := patient(ctx)
	defer cancelWhole()
	if err := c.start(whole, s.id); err != nil {
		return explain("start container", "", err)
	}
	late := fmt.Errorf("program did not connect within %v", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-s.process.Done():
			stop(errStopped)
		case <-ctx.Done():
		}
	}()
	control, callback, err := s.socket.AcceptPair(ctx, s.allowed)
	if err != nil {
		if errors.Is(err, errStopped) {
			return s.exitError()
		}
		return failure("wait for the program", s.withOutput(err), "")
	}
	s.control, s.callback = control, callback
	return s.socket.Close() // from now on there is no way in
}

// allowed admits the container's first process only. The user id is attested
// later, and with it that it is the one of this sandbox.
func (s *sandbox) allowed(peer local.Peer) error {
	if peer.PID != int64(s.process.PID) {
		return fmt.Errorf("connection of process %d, want %d", peer.PID, s.process.PID)
	}
	return nil
}

// exitError says how the program ended instead of connecting.
func (s *sandbox) exitError() error {
	<-s.exited
	err := fmt.Errorf("%w with code %d before it had connected", runtime.ErrExited, s.exit.Code)
	if s.exit.OOMKilled {
		err = fmt.Errorf("%w: out of memory", err)
	}
	return failure("wait for the program", s.withOutput(err), "")
}

// withOutput adds the last words of the program to err.
func (s *sandbox) withOutput(err error) error {
	select {
	case <-s.drained:
	case <-time.After(stderrTimeout):
	}
	if text := s.tail.String(); text != "" {
		return fmt.Errorf("%w; its last output:\n%s", err, text)
	}
	return err
}

// attest compares what is in force with the spec.
func (s *sandbox) attest(spec runtime.Spec, info containerInfo) error {
	facts, err := local.ReadFacts(s.process.PID)
	if !s.process.Alive() {
		return s.exitError()
	}
	if err != nil {
		return unreadable(err)
	}
	if facts.Env == nil { // a rootless engine's, which /proc does not show us
		facts.Env = info.Config.Env
	}
	differences := runtime.Attest(runtime.Expectation{
		Spec: spec, UID: s.uid, GID: s.uid,
		EngineEnv: []string{"HOSTNAME=" + hostname, "container=*", "TERM=*"},
	}, facts)
	if len(differences) > 0 {
		return attestFailure(differences)
	}
	return nil
}

// ID implements [runtime.Sandbox].
func (s *sandbox) ID() string { return s.id }

// Transport implements [runtime.Sandbox].
func (s *sandbox) Transport() runtime.Transport { return runtime.TransportSocket }

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

// destroy undoes what start has done, however far it came.
func (s *sandbox) destroy(ctx context.Context) error {
	var errs []error
	if s.socket != nil {
		s.socket.Close() // usually is already
	}
	if s.process != nil {
		s.kill(ctx)
	}
	for _, c := range []net.Conn{s.control, s.callback} {
		if c != nil {
			c.Close()
		}
	}
	if s.created {
		errs = append(errs, s.remove(ctx))
	}
	if s.output != nil {
		s.output.Close()
		<-s.drained
	}
	if s.process != nil {
		s.process.Close()
		<-s.exited
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Remove())
	}
	if s.uid != 0 {
		s.engine.returnUID(s.uid)
	}
	err := errors.Join(errs...)
	s.engine.log.InfoContext(ctx, "sandbox closed", "sandbox_id", s.id, "exit_code", s.exit.Code, "error", err)
	return err
}

// kill ends the program at once; the kernel then ends all others in its PID
// namespace. Should that not work, removing the container will.
func (s *sandbox) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	s.killed.Store(s.process.Alive())
	if err := s.process.Kill(ctx); err != nil {
		s.engine.log.WarnContext(ctx, "program not killed", "sandbox_id", s.id, "error", err)
		return
	}
	select {
	case <-s.exited: // it may need the container for the exit code
	case <-ctx.Done():
	}
}

// remove removes the container, which the engine, too, does when its program
// has ended: they may get in each other's way for a moment.
func (s *sandbox) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	const attempts = 10
	for attempt := 1; ; attempt++ {
		c, err := s.engine.connect(ctx)
		if err == nil {
			err = c.remove(ctx, s.id)
		}
		if err == nil || errors.Is(err, errNotFound) {
			return nil
		}
		if attempt == attempts || errors.Is(err, runtime.ErrClosed) {
			return explain("remove container", "", err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return explain("remove container", "", err)
		}
	}
}
