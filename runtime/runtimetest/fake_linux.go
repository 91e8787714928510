package runtimetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/mux"
)

// FakeImage is the one image that a [Fake] has.
const FakeImage = "fake"

// A Fake is an engine for tests of what is above engines, and of the contract
// suite: its sandboxes are child processes on this machine, as unisolated as any.
// It keeps the promises about streams and life, and none about isolation.
type Fake struct {
	dir       string
	transport runtime.Transport
	self      local.Owner
	python    func() (string, error)

	mu        sync.Mutex
	home      *local.Home
	closed    bool
	sandboxes map[string]*fakeSandbox
}

var _ runtime.Engine = (*Fake)(nil)

// NewFake returns an engine that keeps its files below dir. The transport is
// the socket if it is left to the engine.
func NewFake(dir string, transport runtime.Transport) (*Fake, error) {
	if transport == "" || transport == runtime.TransportAuto {
		transport = runtime.TransportSocket
	}
	self, err := local.Self()
	if err != nil {
		return nil, err
	}
	return &Fake{
		dir: dir, transport: transport, self: self, python: sync.OnceValues(realPython),
		sandboxes: map[string]*fakeSandbox{},
	}, nil
}

// Name returns "fake".
func (*Fake) Name() string { return "fake" }

func (f *Fake) wrap(op string, err error, hint string) error {
	if err == nil {
		return nil
	}
	return &runtime.Error{Engine: f.Name(), Op: op, Err: err, Hint: hint}
}

// Check implements [runtime.Engine].
func (f *Fake) Check(_ context.Context, image string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.open(); err != nil {
		return f.wrap("check", err, "")
	}
	return f.checkImage("check", image)
}

func (f *Fake) checkImage(op, image string) error {
	if image != FakeImage {
		return f.wrap(op, fmt.Errorf("%w: %s", runtime.ErrImageMissing, image), "use "+FakeImage)
	}
	return nil
}

// Sweep implements [runtime.Engine]. Children of a dead process are dead.
func (f *Fake) Sweep(context.Context) (int, error) {
	return 0, f.wrap("sweep", local.SweepHomes(f.dir, f.self), "")
}

// Close implements [runtime.Engine].
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.home == nil {
		return nil
	}
	home := f.home
	f.home = nil
	return f.wrap("close", home.Remove(), "")
}

// Kill kills the sandbox's processes, as somebody from outside might.
func (f *Fake) Kill(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.sandboxes[id]
	if !ok {
		return errors.New("no such sandbox")
	}
	return syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
}

// Sandboxes returns the ids of those that are there.
func (f *Fake) Sandboxes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for id := range f.sandboxes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// newDir makes the sandbox's directory, and remembers the sandbox.
func (f *Fake) newDir(s *fakeSandbox, spec runtime.Spec) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.open()
	if err != nil {
		return err
	}
	if s.dir, err = f.home.NewSandboxDir(s.id, spec.Files, spec.Seccomp); err != nil {
		return err
	}
	f.sandboxes[s.id] = s
	return os.Mkdir(filepath.Join(s.dir.Path, "workspace"), 0o700)
}

// open makes the fake's directory. f is locked.
func (f *Fake) open() (err error) {
	if f.closed {
		return runtime.ErrClosed
	}
	if f.home == nil {
		f.home, err = local.NewHome(f.dir, f.self)
	}
	return err
}

func (f *Fake) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sandboxes, id)
}

// Start implements [runtime.Engine].
func (f *Fake) Start(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	const op = "start sandbox"
	if err := spec.Validate(); err != nil {
		return nil, f.wrap(op, err, "")
	}
	if err := f.checkImage(op, spec.Image); err != nil {
		return nil, err
	}
	if spec.ConnectTimeout == 0 {
		spec.ConnectTimeout = 20 * time.Second
	}
	s := &fakeSandbox{fake: f, id: "mcpb-" + strings.ToLower(rand.Text()[:12]), exited: make(chan struct{})}
	s.close = sync.OnceValue(func() error { return f.wrap("close sandbox", s.destroy(), "") })
	if err := s.start(ctx, spec); err != nil {
		hint := ""
		if errors.Is(err, runtime.ErrNoProgram) {
			hint = "install Python, or name a program that is there"
		}
		return nil, f.wrap(op, errors.Join(err, s.close()), hint)
	}
	return s, nil
}

// A fakeSandbox is a child process and what leads to it.
type fakeSandbox struct {
	fake   *Fake
	id     string
	dir    *local.SandboxDir
	socket *local.Listener
	cmd    *exec.Cmd
	stderr container.Tail
	theirs []*os.File // the child's ends

	pipes             *pipes
	mux               *mux.Mux
	control, callback net.Conn

	running bool
	exited  chan struct{} // closed when exit is set
	exit    runtime.Exit
	close   func() error
}

func (s *fakeSandbox) start(ctx context.Context, spec runtime.Spec) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.fake.newDir(s, spec); err != nil {
		return err
	}
	argument, err := s.prepare()
	if err != nil {
		return err
	}
	if err := s.run(spec, argument); err != nil {
		return err
	}
	late := fmt.Errorf("program did not connect within %v", spec.ConnectTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, spec.ConnectTimeout, late)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-s.exited:
			stop(runtime.ErrExited)
		case <-ctx.Done():
		}
	}()
	if err := s.meet(ctx, spec); err != nil {
		return s.explain(ctx, err)
	}
	return nil
}

// prepare makes the ends of the transport, and returns the program's argument.
func (s *fakeSandbox) prepare() (string, error) {
	s.cmd = &exec.Cmd{}
	switch s.fake.transport {
	case runtime.TransportSocket:
		var err error
		s.socket, err = s.dir.Listen(path.Base(runtime.SocketPath))
		return "socket:" + filepath.Join(s.dir.Socket, path.Base(runtime.SocketPath)), err
	case runtime.TransportFD:
		ours, err := s.socketPairs()
		if err != nil {
			return "", err
		}
		s.control, s.callback = ours[0], ours[1]
		s.cmd.ExtraFiles = s.theirs
		return "fd:3,4", nil
	case runtime.TransportStdio:
		in, toChild, err := os.Pipe()
		if err != nil {
			return "", err
		}
		s.theirs = append(s.theirs, in)
		fromChild, out, err := os.Pipe()
		if err != nil {
			return "", errors.Join(err, toChild.Close())
		}
		s.theirs = append(s.theirs, out)
		s.cmd.Stdin, s.cmd.Stdout = in, out
		s.pipes = &pipes{fromChild, toChild}
		return "stdio", nil
	}
	return "", fmt.Errorf("%w: transport %q", runtime.ErrUnsupported, s.fake.transport)
}

func (s *fakeSandbox) socketPairs() (ours [2]net.Conn, err error) {
	for i := range ours {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return ours, err
		}
		s.theirs = append(s.theirs, os.NewFile(uintptr(fds[1]), "theirs"))
		end := os.NewFile(uintptr(fds[0]), "ours")
		ours[i], err = net.FileConn(end)
		end.Close()
		if err != nil {
			return ours, err
		}
	}
	return ours, nil
}

// run starts the program. What it would see at its fixed path is somewhere else.
func (s *fakeSandbox) run(spec runtime.Spec, argument string) error {
	program, err := s.fake.findProgram(spec.Command[0])
	if err != nil {
		return fmt.Errorf("%w: %w", runtime.ErrNoProgram, err)
	}
	s.cmd.Path, s.cmd.Args = program, []string{program}
	for _, arg := range append(spec.Command[1:len(spec.Command):len(spec.Command)], argument) {
		s.cmd.Args = append(s.cmd.Args, strings.ReplaceAll(arg, runtime.FilesDir, s.dir.Files))
	}
	s.cmd.Env = spec.Environment()
	s.cmd.Dir = filepath.Join(s.dir.Path, "workspace")
	s.cmd.Stderr = &s.stderr
	s.cmd.WaitDelay = time.Second
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = s.cmd.Start()
	s.closeTheirs()
	if err != nil {
		return fmt.Errorf("%w: %w", runtime.ErrNoProgram, err)
	}
	s.running = true
	go s.watch()
	return nil
}

func (s *fakeSandbox) closeTheirs() {
	for _, f := range s.theirs {
		f.Close()
	}
	s.theirs = nil
}

// findProgram looks past the wrappers that some put before python3.
func (f *Fake) findProgram(name string) (string, error) {
	file, err := exec.LookPath(name)
	if err != nil || name != "python3" {
		return file, err
	}
	return f.python()
}

func realPython() (string, error) {
	out, err := exec.Command("python3", "-I", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(out)), err
}

// watch waits for the program's end and records it.
func (s *fakeSandbox) watch() {
	defer close(s.exited)
	s.cmd.Wait()
	status, _ := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	s.exit.Code = status.ExitStatus()
	if status.Signaled() {
		s.exit.Code = 128 + int(status.Signal())
	}
}

// meet waits until both streams are there.
func (s *fakeSandbox) meet(ctx context.Context, spec runtime.Spec) error {
	if s.socket != nil {
		pid := int64(s.cmd.Process.Pid)
		control, callback, err := s.socket.AcceptPair(ctx, func(peer local.Peer) error {
			if peer.PID != pid {
				return fmt.Errorf("connection of process %d, want %d", peer.PID, pid)
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.control, s.callback = control, callback
		return s.socket.Close()
	}
	if s.pipes != nil {
		files, err := local.Archive(spec.Files)
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { s.pipes.Close() })
		_, err = s.pipes.Write(files)
		if !stop() {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		s.mux = mux.New(s.pipes)
		s.control, s.callback = s.mux.Control(), s.mux.Callback()
	}
	stop := context.AfterFunc(ctx, func() { s.control.SetDeadline(time.Unix(1, 0)) })
	_, err := local.ReadReport(s.control)
	if !stop() {
		return context.Cause(ctx)
	}
	return err
}

// explain says why the program and we have not met.
func (s *fakeSandbox) explain(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) {
		select {
		case <-s.exited:
		case <-time.After(time.Second):
		}
	}
	select {
	case <-s.exited:
		if cause := context.Cause(ctx); cause == nil || errors.Is(cause, runtime.ErrExited) {
			return fmt.Errorf("%w with code %d before it had connected; its last output:\n%s", runtime.ErrExited, s.exit.Code, &s.stderr)
		}
	default:
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// ID implements [runtime.Sandbox].
func (s *fakeSandbox) ID() string { return s.id }

// Transport implements [runtime.Sandbox].
func (s *fakeSandbox) Transport() runtime.Transport { return s.fake.transport }

// Control implements [runtime.Sandbox].
func (s *fakeSandbox) Control() net.Conn { return s.control }

// Callback implements [runtime.Sandbox].
func (s *fakeSandbox) Callback() net.Conn { return s.callback }

// Wait implements [runtime.Sandbox].
func (s *fakeSandbox) Wait(ctx context.Context) (runtime.Exit, error) {
	select {
	case <-s.exited:
		return s.exit, nil
	case <-ctx.Done():
		return runtime.Exit{}, context.Cause(ctx)
	}
}

// Close implements [runtime.Sandbox].
func (s *fakeSandbox) Close() error { return s.close() }

func (s *fakeSandbox) destroy() error {
	s.closeTheirs()
	if s.running {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // it may be gone
		<-s.exited
	}
	for _, c := range []net.Conn{s.control, s.callback} {
		if c != nil {
			c.Close()
		}
	}
	if s.mux != nil {
		s.mux.Close()
	} else if s.pipes != nil {
		s.pipes.Close()
	}
	if s.socket != nil {
		s.socket.Close()
	}
	s.fake.forget(s.id)
	if s.dir == nil {
		return nil
	}
	return s.dir.Remove()
}

// pipes are a child's stdout and stdin.
type pipes struct{ in, out *os.File }

func (p *pipes) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p *pipes) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p *pipes) Close() error                { return errors.Join(p.out.Close(), p.in.Close()) }

// FakeOptions are the options with which a [Fake] runs the contract.
func FakeOptions(seccomp []byte) Options {
	var mu sync.Mutex
	var all []*Fake
	each := func(do func(*Fake)) {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range all {
			do(f)
		}
	}
	return Options{
		Name:       "fake",
		Image:      FakeImage,
		Seccomp:    seccomp,
		Unisolated: true,
		Transports: []runtime.Transport{runtime.TransportSocket, runtime.TransportFD, runtime.TransportStdio},
		Open: func(t testing.TB, dir string, transport runtime.Transport) runtime.Engine {
			f, err := NewFake(dir, transport)
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, f)
			return f
		},
		Containers: func(_ testing.TB, label, value string) []string {
			var found []string
			each(func(f *Fake) {
				for _, id := range f.Sandboxes() {
					if label == local.LabelSandbox && id == value || label == local.LabelPID && value == strconv.Itoa(os.Getpid()) {
						found = append(found, id)
					}
				}
			})
			return found
		},
		Kill: func(t testing.TB, name string) {
			killed := false
			each(func(f *Fake) { killed = f.Kill(name) == nil || killed })
			if !killed {
				t.Fatalf("no sandbox %s to kill", name)
			}
		},
	}
}
