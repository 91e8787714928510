package podman

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

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
	if err := runtime.CheckTransport(name, opts.Transport, runtime.TransportSocket, runtime.TransportStdio); err != nil {
		return nil, err
	}
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
		return d.connectTo(ctx, connection{URI: d.opts.URI})
	}
	return d.connectDefault(ctx, home)
}

// A listener is the process that listens at a unix socket.
type listener struct{ pid, uid int }

// connectTo makes sure that somebody answers at the connection's other end.
func (d *driver) connectTo(ctx context.Context, at connection) (container.API, error) {
	var by *listener
	var err error
	if path, ok := strings.CutPrefix(at.URI, "unix://"); ok {
		by, err = probe(ctx, path)
	} else if d.client != nil {
		if err = d.client.ping(ctx); err != nil && ctx.Err() == nil {
			d.client.close()
			d.client, err = nil, nil // and try anew
		}
	}
	if err == nil && d.client == nil {
		d.client, err = d.newClient(ctx, at, by)
	}
	if err == nil {
		return d.client, nil
	}
	if container.IsFailure(err) {
		return nil, err
	}
	uri := redacted(at.URI)
	hint := "start the service with `podman system service --time 0 $CONTAINER_HOST`, or unset CONTAINER_HOST to have one started; podman 4.3 or later is needed"
	if !strings.HasPrefix(uri, "unix://") {
		hint = "see whether `podman --remote info` works; if it leads to a virtual machine, start that: podman machine start; or unset CONTAINER_HOST to have a service started here"
	}
	return nil, failures.New("connect to "+uri, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err), hint)
}

// redacted is a URI without a password.
func redacted(uri string) string {
	if u, err := url.Parse(uri); err == nil {
		return u.Redacted()
	}
	return "CONTAINER_HOST"
}

// newClient returns a client that knows what the service can do, and where it is.
func (d *driver) newClient(ctx context.Context, at connection, by *listener) (*client, error) {
	c, err := newClient(ctx, at)
	if err != nil {
		return nil, err
	}
	c.ociRuntime, c.own = d.opts.OCIRuntime, d.service != nil
	c.rootless = by != nil && by.uid != 0
	if c.own && !c.rootless {
		return c, nil // a service of root has all limits; of others one has to ask
	}
	info, err := c.info(ctx)
	if err != nil {
		c.close()
		return nil, explain("connect to "+redacted(at.URI), "", err)
	}
	c.rootless, c.missing = info.Host.Security.Rootless, info.missingLimits()
	if !c.own && d.opts.Transport != runtime.TransportSocket { // who asks for the socket knows better
		c.elsewhere = elsewhere(at.URI, by, info)
	}
	return c, nil
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
