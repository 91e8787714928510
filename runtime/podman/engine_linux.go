package podman

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

var _ runtime.Engine = (*Engine)(nil)

// An Engine starts sandboxes on Podman. It is safe for concurrent use.
type Engine struct {
	opts Options
	log  *slog.Logger
	self local.Owner

	// turn is held while the fields below it are used: a mutex that a context
	// can stop waiting for.
	turn    chan struct{}
	home    *local.Home // nil until needed
	service *service    // nil if not started, or not ours
	client  *client     // nil if not connected
	closed  bool

	ids struct {
		sync.Mutex
		taken map[int64]bool
	}
}

// New returns an engine. It starts nothing yet: the first sandbox, Check or
// Sweep does.
func New(opts Options) (*Engine, error) {
	opts = opts.withDefaults(os.Getenv, local.DefaultRoot)
	self, err := local.Self()
	if err != nil {
		return nil, failure("open engine", fmt.Errorf("%w: %w", runtime.ErrUnavailable, err), "")
	}
	e := &Engine{opts: opts, log: opts.Logger, self: self, turn: make(chan struct{}, 1)}
	e.ids.taken = map[int64]bool{}
	return e, nil
}

// Name returns "podman".
func (*Engine) Name() string { return name }

// Check implements [runtime.Engine].
func (e *Engine) Check(ctx context.Context, image string) error {
	const op = "check"
	c, err := e.connect(ctx)
	if err != nil {
		return wrap(op, err)
	}
	info, err := c.info(ctx)
	if err != nil {
		return explain(op, image, err)
	}
	host := info.Host
	if host.Security.Rootless && host.CgroupVersion == "v1" {
		return attestFailure([]runtime.Difference{{Fact: "memory limit", Got: "ignored by rootless podman on cgroup v1", Want: "in force"}})
	}
	if !host.Security.SeccompEnabled {
		return attestFailure([]runtime.Difference{{Fact: "seccomp", Got: "off in podman", Want: "on"}})
	}
	exists, err := c.imageExists(ctx, image)
	if err != nil {
		return explain(op, image, err)
	}
	if !exists {
		return imageMissing(op, image)
	}
	return nil
}

// Sweep implements [runtime.Engine]. It also removes the host directories of
// dead owners.
func (e *Engine) Sweep(ctx context.Context) (int, error) {
	const op = "sweep"
	c, err := e.connect(ctx)
	if err != nil {
		return 0, wrap(op, err)
	}
	all, err := c.list(ctx, local.LabelOwner+"="+fmt.Sprint(e.self.UID))
	if err != nil {
		return 0, explain(op, "", err)
	}
	removed := 0
	var errs []error
	for _, container := range all {
		owner, ours := local.OwnerFromLabels(container.Labels)
		if !ours || !e.self.Outlived(owner) {
			continue
		}
		switch err := c.remove(ctx, container.ID); {
		case err == nil:
			removed++
			e.log.InfoContext(ctx, "orphan removed", "sandbox_id", container.Labels[local.LabelSandbox], "owner_pid", owner.PID)
		case !errors.Is(err, errNotFound):
			errs = append(errs, err)
		}
	}
	errs = append(errs, local.SweepHomes(e.opts.RuntimeDir, e.self))
	return removed, wrap(op, errors.Join(errs...))
}

// Close implements [runtime.Engine].
func (e *Engine) Close() error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	if e.closed {
		return nil
	}
	e.closed = true
	if e.client != nil {
		e.client.close()
	}
	if e.service != nil {
		e.service.stop()
	}
	if e.home != nil {
		return wrap("close", e.home.Remove())
	}
	return nil
}

// connect returns a client of a service that listens. It starts our own if need
// be, also when it has ended since.
func (e *Engine) connect(ctx context.Context) (*client, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.unlock()
	if e.opts.URI != "" {
		return e.connectTo(ctx, e.opts.URI)
	}
	if e.service != nil {
		if _, err := probe(ctx, e.service.uri); err != nil && ctx.Err() == nil {
			e.service.stop()
			e.log.InfoContext(ctx, "service ended", "stderr", e.service.stderr.String())
			e.service = nil
		}
	}
	if e.service == nil {
		if err := e.startService(ctx); err != nil {
			return nil, err
		}
	}
	return e.connectTo(ctx, e.service.uri)
}

// connectTo makes sure that somebody listens at uri. e is locked.
func (e *Engine) connectTo(ctx context.Context, uri string) (*client, error) {
	uid, err := probe(ctx, uri)
	if err != nil {
		return nil, failure("connect to "+uri, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err),
			"start the service with `podman system service --time 0 "+uri+"`, or unset CONTAINER_HOST to have one started")
	}
	if e.client == nil {
		if e.client, err = newClient(ctx, uri, uid); err != nil {
			return nil, failure("connect to "+uri, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err),
				"podman 4.3 or later is needed: see `podman version`")
		}
	}
	return e.client, nil
}

// startService starts our own service. e is locked.
func (e *Engine) startService(ctx context.Context) error {
	home, err := e.ensureHome()
	if err != nil {
		return err
	}
	ociRuntime := e.opts.OCIRuntime
	if ociRuntime == "" {
		if ociRuntime = pickOCIRuntime(); ociRuntime != "" {
			e.log.InfoContext(ctx, "mixed control groups: not using crun", "oci_runtime", ociRuntime)
		}
	}
	begin := time.Now()
	s, err := startService(ctx, home.Path, ociRuntime)
	if err != nil {
		return err
	}
	if e.client != nil {
		e.client.close()
		e.client = nil
	}
	e.service = s
	e.log.InfoContext(ctx, "service started", "pid", s.cmd.Process.Pid, "duration_ms", time.Since(begin).Milliseconds())
	return nil
}

// ensureHome returns the engine's directory. e is locked.
func (e *Engine) ensureHome() (*local.Home, error) {
	if e.home == nil {
		home, err := local.NewHome(e.opts.RuntimeDir, e.self)
		if err != nil {
			return nil, failure("create runtime directory", err, "name a directory of your own that others cannot enter")
		}
		e.home = home
	}
	return e.home, nil
}

// newSandboxDir makes the host's directory of a sandbox.
func (e *Engine) newSandboxDir(ctx context.Context, id string, spec runtime.Spec) (*local.SandboxDir, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	home, err := e.ensureHome()
	e.unlock()
	if err != nil {
		return nil, err
	}
	return home.NewSandboxDir(id, spec.Files, spec.Seccomp)
}

func (e *Engine) lock(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if e.closed {
		e.unlock()
		return runtime.ErrClosed
	}
	return nil
}

func (e *Engine) unlock() { <-e.turn }

// takeUID returns an id that no other sandbox of this engine has. Those of
// other processes are unlikely to have it, and nothing rests on it: it keeps
// apart what the kernel counts by user.
func (e *Engine) takeUID() (int64, error) {
	e.ids.Lock()
	defer e.ids.Unlock()
	for range 1000 {
		n, err := rand.Int(rand.Reader, big.NewInt(lastUID-firstUID+1))
		if err != nil {
			return 0, err
		}
		if uid := firstUID + n.Int64(); !e.ids.taken[uid] {
			e.ids.taken[uid] = true
			return uid, nil
		}
	}
	return 0, errors.New("no free user id")
}

func (e *Engine) returnUID(uid int64) {
	e.ids.Lock()
	defer e.ids.Unlock()
	delete(e.ids.taken, uid)
}
