package podman

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

const (
	// serviceIdle ends a service that nobody talks to, should all else fail. It
	// is started again when needed.
	serviceIdle = "300"
	// serviceStart bounds the wait for a new service's socket.
	serviceStart = 20 * time.Second
	// serviceStop bounds the wait for a service to end by itself.
	serviceStop = 2 * time.Second
)

// A service is a `podman system service` of our own.
type service struct {
	uri    string
	cmd    *exec.Cmd
	stderr container.Tail
	done   chan struct{} // closed when the process is gone
}

// connectDefault connects to our own service, which it starts if need be, also
// when it has ended since.
func (d *driver) connectDefault(ctx context.Context, home func() (string, error)) (container.API, error) {
	if d.service != nil {
		_, err := probe(ctx, strings.TrimPrefix(d.service.uri, "unix://"))
		if err == nil && d.client != nil && d.client.hangs(ctx) {
			err = errors.New("it hangs")
		}
		if err != nil && ctx.Err() == nil {
			d.service.stop()
			d.log.InfoContext(ctx, "service ended", "stderr", d.service.stderr.String())
			d.service = nil
		}
	}
	if d.service == nil {
		dir, err := home()
		if err != nil {
			return nil, err
		}
		if err := d.startService(ctx, dir); err != nil {
			return nil, err
		}
	}
	return d.connectTo(ctx, connection{URI: d.service.uri})
}

// startService starts our own service.
func (d *driver) startService(ctx context.Context, dir string) error {
	ociRuntime := d.opts.OCIRuntime
	if ociRuntime == "" {
		if ociRuntime = pickOCIRuntime(); ociRuntime != "" {
			d.log.InfoContext(ctx, "mixed control groups: not using crun", "oci_runtime", ociRuntime)
		}
	}
	begin := time.Now()
	s, err := startService(ctx, dir, ociRuntime)
	if err != nil {
		return err
	}
	if d.client != nil {
		d.client.close()
		d.client = nil
	}
	d.service = s
	d.log.InfoContext(ctx, "service started", "pid", s.cmd.Process.Pid, "duration_ms", time.Since(begin).Milliseconds())
	return nil
}

// startService starts a service on a socket in dir and returns once it listens.
// ctx bounds the starting only.
func startService(ctx context.Context, dir, ociRuntime string) (*service, error) {
	binary, err := exec.LookPath(name)
	if err != nil {
		return nil, failures.New("start service", fmt.Errorf("%w: podman is not installed", runtime.ErrUnavailable),
			"install podman, for example: apt-get install podman")
	}
	noHooks := filepath.Join(dir, "hooks")
	if err := os.Mkdir(noHooks, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	// Without these, mounts.conf could mount into every container, and hooks
	// could do anything to it.
	args := []string{"--default-mounts-file", os.DevNull, "--hooks-dir", noHooks}
	if ociRuntime != "" {
		args = append(args, "--runtime", ociRuntime)
	}
	args = append(args, "system", "service", "--time", serviceIdle)
	socket := filepath.Join(dir, "api")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	s := &service{uri: "unix://" + socket, done: make(chan struct{})}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), binary, append(args, s.uri)...) //nolint:gosec // podman, and the operator's choice of OCI runtime
	s.cmd.Env = serviceEnv()
	s.cmd.Dir = "/proc" // when a container runs out of memory, conmon makes a file where it is: there it cannot
	s.cmd.Stderr = &s.stderr
	s.cmd.WaitDelay = time.Second // a child of the service may hold on to stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true,            // an interrupt typed at us must not end it before us
		Pdeathsig: syscall.SIGTERM, // it dies with us, even when we are killed
	}
	started := make(chan error, 1)
	go s.run(started)
	if err := <-started; err != nil {
		return nil, failures.New("start service", fmt.Errorf("%w: %w", runtime.ErrUnavailable, err), "")
	}
	if err := s.await(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// run starts the process and waits for its end. The kernel sends Pdeathsig when
// the thread that started the process ends, so this goroutine keeps its thread
// until then.
func (s *service) run(started chan<- error) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	defer close(s.done)
	err := s.cmd.Start()
	started <- err
	if err == nil {
		_ = s.cmd.Wait() // how it ended is in stderr
	}
}

// await returns when the service accepts connections.
func (s *service) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, serviceStart, errors.New("its socket did not appear in time"))
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := probe(ctx, strings.TrimPrefix(s.uri, "unix://")); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.done:
			return failures.New("start service", fmt.Errorf("%w: podman system service ended: %s", runtime.ErrUnavailable, s.stderr.String()),
				"run `podman info` and mend what it reports")
		case <-ctx.Done():
			return failures.New("start service", fmt.Errorf("%w: %w", runtime.ErrUnavailable, context.Cause(ctx)),
				"run `podman info` and mend what it reports")
		}
	}
}

// stop ends the process and waits for it.
func (s *service) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(serviceStop):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// serviceEnv is what the service needs of our environment. Everything else
// stays out: proxies and secrets would end up in containers, and containers.conf
// can inject mounts, variables and privileges into ours.
func serviceEnv() []string {
	env := []string{
		"CONTAINERS_CONF=/dev/null",
		"PATH=" + strings.TrimPrefix(os.Getenv("PATH")+":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin", ":"),
	}
	if home, err := os.UserHomeDir(); err == nil {
		env = append(env, "HOME="+home)
	} else if os.Geteuid() == 0 {
		env = append(env, "HOME=/root")
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		env = append(env, "XDG_RUNTIME_DIR="+dir)
	}
	return env
}

// pickOCIRuntime returns runc where crun, Podman's usual choice, refuses to
// start anything: beside cgroup v1 there is a v2 hierarchy that has
// controllers. It returns "", Podman's choice, everywhere else.
func pickOCIRuntime() string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return "" // all v2
	}
	controllers, err := os.ReadFile("/sys/fs/cgroup/unified/cgroup.controllers")
	if err != nil || strings.TrimSpace(string(controllers)) == "" {
		return ""
	}
	for _, dir := range []string{"", "/usr/local/sbin", "/usr/sbin", "/usr/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, "runc")); err == nil {
			return path
		}
	}
	return ""
}
