package docker

import (
	"context"
	"os"
	"slices"

	"github.com/docker/docker/api/types/system"
	dockerclient "github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

var _ runtime.Engine = (*Engine)(nil)

// An Engine starts sandboxes on Docker. It is safe for concurrent use.
type Engine struct {
	*container.Engine
	host           func() string // where the daemon is
	allowUnlimited bool
	transport      runtime.Transport
}

// New returns an engine. It connects to nothing yet: the first sandbox, Check
// or Sweep does.
func New(opts Options) (*Engine, error) {
	if err := runtime.CheckTransport(name, opts.Transport, runtime.TransportSocket, runtime.TransportStdio); err != nil {
		return nil, err
	}
	opts = opts.withDefaults(os.Getenv, local.DefaultRoot)
	shared, err := container.New(container.Options{
		Name: name, Driver: &driver{opts: opts}, Transport: opts.Transport,
		RuntimeDir: opts.RuntimeDir, DefaultImage: opts.DefaultImage, Logger: opts.Logger,
		Hints: container.Hints{
			Unreadable: "the daemon is on another machine, or in another PID namespace: use --transport stdio",
			Changed:    "the daemon changed the sandbox, or is not 20.10 or later: see `docker version`, and authorization plugins in `docker info`",
			NoLimits:   "the daemon does not put limits in force here: see the warnings of `docker info`; a rootless daemon needs cgroup v2 with cpu, memory and pids delegated to its user",
		},
	})
	if err != nil {
		return nil, err
	}
	return &Engine{Engine: shared, host: opts.host, allowUnlimited: opts.AllowUnlimited, transport: opts.Transport}, nil
}

// Check implements [runtime.Engine].
func (e *Engine) Check(ctx context.Context, image string) error {
	const op = "check"
	image = e.Image(image)
	api, err := e.Connect(ctx)
	if err != nil {
		return failures.Wrap(op, err)
	}
	c := api.(*client)
	info, err := c.docker.Info(ctx)
	if err != nil {
		return explain(op, image, err)
	}
	if missing := missingLimits(info); len(missing) > 0 && !e.allowUnlimited {
		return e.Refuse(missing...)
	}
	if !slices.ContainsFunc(info.SecurityOptions, isSeccomp) {
		return e.Refuse(runtime.Difference{Fact: "seccomp", Got: "off in docker", Want: "on"})
	}
	if _, err := inspectImage(ctx, c.docker, image); err != nil {
		return explain(op, image, err)
	}
	return nil
}

// missingLimits are those that the daemon says it cannot put in force.
func missingLimits(info system.Info) []runtime.Difference {
	var found []runtime.Difference
	for _, limit := range []struct {
		fact  string
		there bool
	}{{"memory limit", info.MemoryLimit}, {"process limit", info.PidsLimit}, {"cpu limit", info.CPUCfsQuota}} {
		if !limit.there {
			found = append(found, runtime.Difference{Fact: limit.fact, Got: "not supported by the daemon", Want: "in force"})
		}
	}
	return found
}

// A driver reaches Docker for the [container.Engine] that owns it.
type driver struct {
	opts   Options
	client *client // nil if not connected
}

// Connect implements [container.Driver].
func (d *driver) Connect(ctx context.Context, home func() (string, error)) (container.API, error) {
	if d.client != nil {
		if _, err := d.client.docker.Ping(ctx); err != nil {
			d.Close()
		}
	}
	if d.client == nil {
		host := d.opts.host()
		c, err := newClient(ctx, host)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, unreachable(host, err)
		}
		d.client = c
	}
	if d.client.elsewhere == "" {
		if _, err := home(); err != nil { // better now than after the first container
			return nil, err
		}
	}
	return d.client, nil
}

// Explain implements [container.Driver].
func (*driver) Explain(op, image string, err error) error { return explain(op, image, err) }

// Close implements [container.Driver].
func (d *driver) Close() {
	if d.client != nil {
		_ = d.client.docker.Close() // drops idle connections
		d.client = nil
	}
}

// withDocker calls f with a client of the daemon, and explains its error.
func (e *Engine) withDocker(ctx context.Context, op string, f func(*dockerclient.Client) error) error {
	api, err := e.Connect(ctx)
	if err != nil {
		return failures.Wrap(op, err)
	}
	if err := f(api.(*client).docker); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return explain(op, "", err)
	}
	return nil
}
