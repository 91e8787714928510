package podman

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

var _ runtime.Engine = (*Engine)(nil)

// An Engine starts sandboxes on Podman. It is safe for concurrent use.
type Engine struct {
	*container.Engine
	opts Options
}

// New returns an engine. It starts nothing yet: the first sandbox, Check or
// Sweep does.
func New(opts Options) (*Engine, error) {
	opts = opts.withDefaults(os.Getenv, local.DefaultRoot)
	shared, err := container.New(container.Options{
		Name: name, Driver: &driver{opts: opts, log: opts.Logger},
		Transport: opts.Transport, RuntimeDir: opts.RuntimeDir, DefaultImage: opts.DefaultImage, Logger: opts.Logger,
		Hints: container.Hints{
			Unreadable: "the engine must run on this machine, in the same PID namespace",
			Changed:    "the engine changed the sandbox, or does not run on this machine: look for containers.conf, hooks and CONTAINER_HOST",
			NoLimits:   noLimitsHint,
		},
	})
	if err != nil {
		return nil, err
	}
	return &Engine{Engine: shared, opts: opts}, nil
}

// Check implements [runtime.Engine].
func (e *Engine) Check(ctx context.Context, image string) error {
	const op = "check"
	image = e.Image(image)
	c, err := e.connectClient(ctx)
	if err != nil {
		return failures.Wrap(op, err)
	}
	info, err := c.info(ctx)
	if err != nil {
		return explain(op, image, err)
	}
	if missing := info.missingLimits(); len(missing) > 0 && !e.opts.AllowUnlimited {
		return e.Refuse(missing...)
	}
	if !info.Host.Security.SeccompEnabled {
		return e.Refuse(runtime.Difference{Fact: "seccomp", Got: "off in podman", Want: "on"})
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

// A driver reaches Podman for the [container.Engine] that owns it.
type driver struct {
	opts    Options
	log     *slog.Logger
	service *service // nil if not started, or not ours
	client  *client  // nil if not connected
}

// Connect implements [container.Driver]. It starts our own service if need be,
// also when it has ended since.
func (d *driver) Connect(ctx context.Context, home func() (string, error)) (container.API, error) {
	if d.opts.URI != "" {
		return d.connectTo(ctx, d.opts.URI)
	}
	if d.service != nil {
		_, err := probe(ctx, d.service.uri)
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
	return d.connectTo(ctx, d.service.uri)
}

// connectTo makes sure that somebody listens at uri.
func (d *driver) connectTo(ctx context.Context, uri string) (container.API, error) {
	uid, err := probe(ctx, uri)
	if err != nil {
		return nil, failures.New("connect to "+uri, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err),
			"start the service with `podman system service --time 0 "+uri+"`, or unset CONTAINER_HOST to have one started")
	}
	if d.client == nil {
		c, err := newClient(ctx, uri, uid)
		if err != nil {
			return nil, failures.New("connect to "+uri, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err),
				"podman 4.3 or later is needed: see `podman version`")
		}
		c.ociRuntime, c.uri, c.own = d.opts.OCIRuntime, uri, d.service != nil
		if c.rootless { // a service of root has all limits; of others one has to ask
			info, err := c.info(ctx)
			if err != nil {
				return nil, explain("connect to "+uri, "", err)
			}
			c.missing = info.missingLimits()
		}
		d.client = c
	}
	return d.client, nil
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

// Explain implements [container.Driver].
func (*driver) Explain(op, image string, err error) error { return explain(op, image, err) }

// Close implements [container.Driver].
func (d *driver) Close() {
	if d.client != nil {
		d.client.close()
	}
	if d.service != nil {
		d.service.stop()
	}
}
