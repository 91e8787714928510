package podman

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

var _ runtime.Diagnoser = (*Engine)(nil)

// Diagnose implements [runtime.Diagnoser]. It starts the engine's own service,
// if that is what sandboxes would run on.
func (e *Engine) Diagnose(ctx context.Context, image string) []runtime.Finding {
	var d diagnosis
	c, err := e.connectClient(ctx)
	if err != nil {
		d.fail("service", err)
		return d.found
	}
	info, err := c.info(ctx)
	if err != nil {
		d.fail("service", explain("ask the service", "", err))
		return d.found
	}
	d.service(c, info)
	d.rootless(c)
	d.transport(c, e.opts.Transport)
	d.limits(info, e.opts.AllowUnlimited)
	d.seccomp(info)
	d.add("user namespace", runtime.LevelOK, "every sandbox has one of its own, in which nobody is anybody outside", "")
	d.image(ctx, c, e.Image(image))
	return d.found
}

// A diagnosis collects findings.
type diagnosis struct{ found []runtime.Finding }

func (d *diagnosis) add(name string, level runtime.Level, detail, fix string) {
	d.found = append(d.found, runtime.Finding{Name: name, Level: level, Detail: container.Sanitize(detail), Fix: fix})
}

func (d *diagnosis) fail(name string, err error) {
	d.add(name, runtime.LevelFail, err.Error(), runtime.HintOf(err))
}

func (d *diagnosis) service(c *client, info hostInfo) {
	whose := "its own service"
	if !c.own {
		whose = c.uri
	}
	d.add("service", runtime.LevelOK, fmt.Sprintf("Podman %s with %s (%s storage) by %s, kernel %s on %s",
		info.Version.Version, info.Host.OCIRuntime.Name, info.Store.GraphDriverName, whose, info.Host.Kernel, info.Host.Arch), "")
}

func (d *diagnosis) rootless(c *client) {
	if c.rootless {
		d.add("rootless", runtime.LevelOK, "the service runs as an ordinary user", "")
		return
	}
	d.add("rootless", runtime.LevelOK, "the service runs as root, its sandboxes do not", "")
}

func (d *diagnosis) transport(c *client, asked runtime.Transport) {
	switch {
	case c.elsewhere != "":
		d.add("transport", runtime.LevelWarn, "stdio: "+c.elsewhere+"; what is in force is told by the sandbox itself and by the service's record",
			"run mcp-bridge where the service runs")
	case asked == runtime.TransportStdio:
		d.add("transport", runtime.LevelOK, "stdio, as asked for", "")
	default:
		d.add("transport", runtime.LevelOK, "socket: the service runs on this kernel, which shows what is in force", "")
	}
}

func (d *diagnosis) limits(info hostInfo, allowUnlimited bool) {
	version := "cgroup " + info.Host.CgroupVersion
	missing := info.missingLimits()
	if len(missing) == 0 {
		d.add("cgroup limits", runtime.LevelOK, version+": memory, swap, process and cpu", "")
		return
	}
	var facts []string
	for _, m := range missing {
		facts = append(facts, m.Fact)
	}
	level := runtime.LevelFail
	if allowUnlimited {
		level = runtime.LevelWarn
	}
	d.add("cgroup limits", level, version+": no "+strings.Join(facts, ", no ")+"; only rlimits would bound each process", noLimitsHint)
}

func (d *diagnosis) seccomp(info hostInfo) {
	if !info.Host.Security.SeccompEnabled {
		d.add("seccomp", runtime.LevelFail, "podman or its kernel has none", "use a kernel with CONFIG_SECCOMP_FILTER, and a podman built with seccomp")
		return
	}
	d.add("seccomp", runtime.LevelOK, "sandboxes get a profile of their own", "")
}

func (d *diagnosis) image(ctx context.Context, c *client, image string) {
	exists, err := c.imageExists(ctx, image)
	switch {
	case err != nil:
		d.fail("image", explain("look for the image", image, err))
	case !exists:
		d.fail("image", imageMissing("check", image))
	default:
		d.add("image", runtime.LevelOK, image, "")
	}
}
