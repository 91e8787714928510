package gvisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/mux"
)

const (
	connectTimeout = 20 * time.Second
	removeTimeout  = 10 * time.Second
	killedCode     = 128 + 9
)

// A sandbox is one runsc on its way up, running, or on its way down. Its fields
// are set in the order below by start, and not changed after it.
type sandbox struct {
	engine    *Engine
	id        string
	begin     time.Time
	transport runtime.Transport
	spec      runtime.Spec // complete
	uid       uint32
	dir       string
	shown     []imprint        // of the spec's folders, in their order
	images    []string         // all that it may read of the host's files
	cgroup    *local.OwnCgroup // nil where there is none and none is demanded
	process   *process
	sentry    *local.Process

	stdio             *pipes // over which mux carries the streams; nil with fd
	mux               *mux.Mux
	control, callback net.Conn

	exited chan struct{} // closed when the program has ended and exit is set
	exit   runtime.Exit
	close  func() error
}

// Start implements [runtime.Engine].
func (e *Engine) Start(ctx context.Context, spec runtime.Spec) (runtime.Sandbox, error) {
	const op = "start sandbox"
	if err := spec.Validate(); err != nil {
		return nil, failures.Wrap(op, err)
	}
	spec.Image = e.image(spec.Image)
	spec.Limits = spec.Limits.WithDefaults()
	if spec.ConnectTimeout == 0 {
		spec.ConnectTimeout = connectTimeout
	}
	s := &sandbox{
		engine: e, id: "mcpb-" + strings.ToLower(rand.Text()[:12]), begin: time.Now(),
		transport: e.opts.Transport, spec: spec, exited: make(chan struct{}),
	}
	detached := context.WithoutCancel(ctx)
	s.close = sync.OnceValue(func() error { return failures.Wrap("close sandbox", s.destroy(detached)) })
	if err := s.start(ctx); err != nil {
		return nil, failures.Wrap(op, errors.Join(err, s.close()))
	}
	e.log.InfoContext(ctx, "sandbox started", "sandbox_id", s.id, "uid", s.uid, "duration_ms", time.Since(s.begin).Milliseconds())
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

// start takes every step up to an attested sandbox. What a failed start leaves
// is for destroy. ctx is looked at between the steps and while waiting.
func (s *sandbox) start(ctx context.Context) error {
	runsc, err := s.engine.runsc("start sandbox")
	if err != nil {
		return err
	}
	rootfs, err := s.engine.rootfs(ctx, s.spec.Image)
	if err != nil {
		return err
	}
	folders, err := s.engine.folders(ctx, s.spec.Binds)
	if err != nil {
		return err
	}
	// Whoever has opened them by then keeps them.
	defer s.engine.snapshots.release(folders...)
	if err := s.prepare(ctx, rootfs, folders); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := s.launch(ctx, runsc); err != nil {
		return err
	}
	return s.await(ctx)
}

// prepare makes what the sandbox has on the host.
func (s *sandbox) prepare(ctx context.Context, rootfs string, folders []*snapshot) error {
	home, err := s.engine.ensureHome()
	if err != nil {
		return err
	}
	dir := filepath.Join(home.Path, s.id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	s.dir = dir
	b := bundle{
		spec: s.spec, transport: s.transport, rootfs: rootfs,
		empty: filepath.Join(dir, "empty"), rlimits: s.spec.Limits.Rlimits(),
	}
	if err := errors.Join(os.Mkdir(b.empty, 0o700), os.Mkdir(filepath.Join(dir, "state"), 0o700)); err != nil {
		return err
	}
	const longestSocket = 107
	if path := filepath.Join(dir, "state", "runsc-"+containerID+".sock"); len(path) > longestSocket {
		return failures.New("create sandbox directory", fmt.Errorf("the path of a socket, %s, is longer than %d bytes", path, longestSocket), "use a shorter runtime directory: set XDG_RUNTIME_DIR")
	}
	if s.spec.Files != nil && s.transport != runtime.TransportStdio {
		b.files = filepath.Join(dir, "files.erofs")
		if err := writeFiles(b.files, s.spec.Files); err != nil {
			return err
		}
	}
	if len(folders) > 0 {
		b.mountPoints = filepath.Join(dir, "mnt.erofs")
		if err := writeMountPoints(b.mountPoints, s.spec.Binds); err != nil {
			return err
		}
		for _, f := range folders {
			b.folders = append(b.folders, f.path)
			s.shown = append(s.shown, f.imprint)
		}
	}
	if s.uid, err = randomUID(); err != nil {
		return err
	}
	b.uid = s.uid
	s.images = b.images()
	if err := b.write(dir); err != nil {
		return err
	}
	return s.limit(ctx, home)
}

// randomUID returns a user id for the inside. The kernel there is the sandbox's
// own, so two with the same id would not meet; nothing rests on it.
func randomUID() (uint32, error) {
	const first, count = 1 << 16, 1 << 30
	n, err := rand.Int(rand.Reader, big.NewInt(count))
	if err != nil {
		return 0, err
	}
	return uint32(first + n.Int64()), nil //nolint:gosec // below 2³¹
}

// launch starts runsc with its ends of the streams, and takes ours.
func (s *sandbox) launch(ctx context.Context, runsc string) error {
	if s.transport == runtime.TransportStdio {
		return s.launchStdio(ctx, runsc)
	}
	var ours []net.Conn
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	for range 2 {
		here, there, err := socketPair()
		if err != nil {
			return errors.Join(err, closeAll(ours))
		}
		ours, theirs = append(ours, here), append(theirs, there)
	}
	s.control, s.callback = ours[0], ours[1]
	return s.run(ctx, newProcess(runsc, s.dir, theirs))
}

// launchStdio is launch for one stream each way.
func (s *sandbox) launchStdio(ctx context.Context, runsc string) error {
	stdin, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		return errors.Join(err, in.Close())
	}
	defer stdout.Close()
	s.stdio = &pipes{Reader: out, Writer: in, ends: [2]*os.File{out, in}}
	p := newProcess(runsc, s.dir, nil)
	p.cmd.Stdin, p.cmd.Stdout = stdin, stdout
	return s.run(ctx, p)
}

// pipes are our ends of a program's stdin and stdout.
type pipes struct {
	io.Reader
	io.Writer
	ends [2]*os.File
}

// Close closes both, and unblocks who reads or writes.
func (p *pipes) Close() error { return errors.Join(p.ends[0].Close(), p.ends[1].Close()) }

func closeAll(conns []net.Conn) error {
	var errs []error
	for _, c := range conns {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// run starts the process and watches it.
func (s *sandbox) run(ctx context.Context, p *process) error {
	p.cgroup = s.cgroup
	s.process = p
	go s.watch()
	if err := p.start(); err != nil {
		return failures.New("run runsc", fmt.Errorf("%w: %w", runtime.ErrUnavailable, err), startHint(err))
	}
	return ctx.Err()
}

func startHint(err error) string {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EINVAL) {
		return "an ordinary user needs unprivileged user namespaces: see `sysctl user.max_user_namespaces kernel.unprivileged_userns_clone kernel.apparmor_restrict_unprivileged_userns`"
	}
	return ""
}

// watch waits for the end and records it.
func (s *sandbox) watch() {
	defer close(s.exited)
	<-s.process.done
	s.exit = runtime.Exit{Code: s.process.code}
	if s.cgroup != nil && s.cgroup.OOMKills() > 0 {
		// Whatever the killer took, the kernel of the sandbox went down with it.
		s.exit = runtime.Exit{Code: killedCode, OOMKilled: true}
	}
}

// socketPair returns two ends of a stream.
func socketPair() (ours net.Conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	f := os.NewFile(uintptr(fds[0]), "stream")
	defer f.Close() // FileConn duplicates it
	theirs = os.NewFile(uintptr(fds[1]), "stream")
	if ours, err = net.FileConn(f); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// await reads the program's report and attests it.
func (s *sandbox) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.spec.ConnectTimeout, fmt.Errorf("program did not connect: it has not reported within %v", s.spec.ConnectTimeout))
	defer cancel()
	if s.stdio != nil {
		if err := s.deliver(ctx); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = s.control.SetReadDeadline(time.Unix(1, 0)) })
	report, err := local.ReadReport(s.control)
	if !stop() && err != nil {
		return failures.New("wait for the program", s.withOutput(context.Cause(ctx)), "")
	}
	if err != nil {
		return s.failed(ctx, err)
	}
	if err := s.control.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	return s.attest(report)
}

// deliver sends the files that the program over stdio reads first, and makes
// two streams of one.
func (s *sandbox) deliver(ctx context.Context) error {
	archive, err := local.Archive(s.spec.Files)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.stdio.ends[1].SetWriteDeadline(time.Unix(1, 0)) })
	_, err = s.stdio.Write(archive)
	if !stop() && err != nil {
		return failures.New("wait for the program", s.withOutput(context.Cause(ctx)), "")
	}
	if err != nil {
		return s.failed(ctx, err)
	}
	if err := s.stdio.ends[1].SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	s.mux = mux.New(s.stdio)
	s.control, s.callback = s.mux.Control(), s.mux.Callback()
	return nil
}

// failed says why there is no report.
func (s *sandbox) failed(ctx context.Context, err error) error {
	select {
	case <-s.exited:
	case <-time.After(time.Second): // it violates the protocol, and lives on
		return failures.New("wait for the program", s.withOutput(err), "")
	case <-ctx.Done():
		return failures.New("wait for the program", s.withOutput(context.Cause(ctx)), "")
	}
	return s.exitError()
}

// exitError says how runsc ended instead.
func (s *sandbox) exitError() error {
	const op = "wait for the program"
	<-s.exited
	err := fmt.Errorf("%w with code %d before it had reported", runtime.ErrExited, s.exit.Code)
	if s.exit.OOMKilled {
		return failures.New(op, fmt.Errorf("%w: out of memory", err), "give it more memory: gVisor's kernel itself needs about 40 MiB")
	}
	text := s.process.stderr.String()
	if known, ok := container.Match(conditions, text); ok && s.exit.Code == runscFailed {
		return failures.New(op, fmt.Errorf("%w: %s", known.Sentinel, text), known.Hint)
	}
	return failures.New(op, s.withOutput(err), "")
}

// runscFailed is the exit code of a runsc that could not start the program.
const runscFailed = 128

// withOutput adds the last words of runsc and the program to err.
func (s *sandbox) withOutput(err error) error {
	if text := s.process.stderr.String(); text != "" {
		return fmt.Errorf("%w; its last output:\n%s", err, text)
	}
	return err
}

// destroy undoes what start has done, however far it came.
func (s *sandbox) destroy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	var errs []error
	if s.process != nil {
		errs = append(errs, s.process.kill(ctx))
		<-s.exited
	}
	// None of these can say anything but that it is closed.
	_ = closeAll([]net.Conn{s.control, s.callback})
	if s.mux != nil {
		_ = s.mux.Close()
	} else if s.stdio != nil {
		_ = s.stdio.Close()
	}
	if s.sentry != nil {
		s.sentry.Close()
	}
	if s.cgroup != nil {
		errs = append(errs, s.cgroup.Remove(ctx))
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	err := errors.Join(errs...)
	s.engine.log.InfoContext(ctx, "sandbox closed", "sandbox_id", s.id, "exit_code", s.exit.Code, "error", err)
	return err
}
