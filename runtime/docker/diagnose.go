package docker

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/go-units"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

var _ runtime.Diagnoser = (*Engine)(nil)

// Diagnose implements [runtime.Diagnoser].
func (e *Engine) Diagnose(ctx context.Context, image string) []runtime.Finding {
	host := e.host()
	c, err := newClient(ctx, host)
	if err != nil {
		err = unreachable(host, err)
		return []runtime.Finding{{Name: "daemon", Level: runtime.LevelFail, Detail: container.Sanitize(err.Error()), Fix: runtime.HintOf(err)}}
	}
	defer c.docker.Close()
	info, err := c.docker.Info(ctx)
	if err != nil {
		return []runtime.Finding{{Name: "daemon", Level: runtime.LevelFail, Detail: container.Sanitize(err.Error()), Fix: "docker info"}}
	}
	d := diagnosis{client: c, info: info, allowUnlimited: e.allowUnlimited, asked: e.transport}
	d.daemon(host)
	d.access()
	d.transport()
	d.limits()
	d.seccomp()
	d.userNamespace()
	d.image(ctx, e.Image(image))
	return d.found
}

// A diagnosis collects findings.
type diagnosis struct {
	client         *client
	info           system.Info
	found          []runtime.Finding
	allowUnlimited bool
	asked          runtime.Transport
}

func (d *diagnosis) add(name string, level runtime.Level, detail, fix string) {
	d.found = append(d.found, runtime.Finding{Name: name, Level: level, Detail: container.Sanitize(detail), Fix: fix})
}

func (d *diagnosis) daemon(host string) {
	d.add("daemon", runtime.LevelOK, fmt.Sprintf("Docker %s (API %s) at %s, %s on %s, kernel %s",
		d.info.ServerVersion, d.client.docker.ClientVersion(), host, d.info.OperatingSystem, d.info.Architecture, d.info.KernelVersion), "")
}

// access says what it means that this user may use the daemon.
func (d *diagnosis) access() {
	const rootEqual = "who may use this daemon is as good as root on its machine; that goes for the docker group, too"
	switch {
	case d.option("name=rootless"):
		d.add("user", runtime.LevelOK, "the daemon runs without root", "")
	case os.Geteuid() == 0:
		d.add("user", runtime.LevelOK, "the daemon runs as root, and so does mcp-bridge; "+rootEqual, "")
	default:
		d.add("user", runtime.LevelWarn, "the daemon runs as root: "+rootEqual,
			"use rootless podman (--runtime podman), or Docker in rootless mode: dockerd-rootless-setuptool.sh install")
	}
}

func (d *diagnosis) transport() {
	switch {
	case d.client.elsewhere != "" && d.asked == runtime.TransportSocket:
		d.add("transport", runtime.LevelFail, "there is no socket to a daemon elsewhere: "+d.client.elsewhere, "use --transport auto or stdio")
	case d.client.elsewhere != "":
		d.add("transport", runtime.LevelWarn, "stdio: "+d.client.elsewhere+"; what is in force is told by the sandbox itself and by the daemon's record",
			"run mcp-bridge where the daemon runs")
	case d.asked == runtime.TransportStdio:
		d.add("transport", runtime.LevelOK, "stdio, as asked for", "")
	default:
		d.add("transport", runtime.LevelOK, "socket: the daemon runs on this kernel, which shows what is in force", "")
	}
}

func (d *diagnosis) limits() {
	version := "cgroup v" + strings.TrimPrefix(d.info.CgroupVersion, "v")
	var without []string
	for _, m := range missingLimits(d.info) {
		without = append(without, strings.TrimSuffix(m.Fact, " limit"))
	}
	level := runtime.LevelFail
	if d.allowUnlimited {
		level = runtime.LevelWarn
	}
	switch {
	case len(without) > 0:
		d.add("cgroup limits", level, version+": no limit of "+strings.Join(without, ", "),
			"use cgroup v2 with cpu, memory and pids delegated to the daemon's user, or start with --allow-unlimited")
	case !d.info.SwapLimit:
		d.add("cgroup limits", runtime.LevelWarn, version+": memory, process and cpu; without swap accounting, so sandboxes start only while there is no swap",
			"boot with swapaccount=1, or swapoff --all")
	default:
		d.add("cgroup limits", runtime.LevelOK, version+": memory, swap, process and cpu", "")
	}
}

func (d *diagnosis) seccomp() {
	if !slices.ContainsFunc(d.info.SecurityOptions, isSeccomp) {
		d.add("seccomp", runtime.LevelFail, "the daemon or its kernel has none", "use a kernel with CONFIG_SECCOMP_FILTER, and a docker built with seccomp")
		return
	}
	d.add("seccomp", runtime.LevelOK, "sandboxes get a profile of their own", "")
}

func (d *diagnosis) userNamespace() {
	if d.client.mapped {
		d.add("user namespace", runtime.LevelOK, "root in a container is nobody outside", "")
		return
	}
	d.add("user namespace", runtime.LevelWarn, "the daemon maps no ids: sandboxes get an id of the host's that nobody else has",
		`set "userns-remap": "default" in /etc/docker/daemon.json (it hides existing images and containers), or use podman`)
}

func (d *diagnosis) image(ctx context.Context, image string) {
	found, err := d.client.docker.ImageInspect(ctx, image)
	if err != nil {
		err = explain("check", image, err)
		d.add("image", runtime.LevelFail, err.Error(), runtime.HintOf(err))
		return
	}
	d.add("image", runtime.LevelOK, image+", "+units.BytesSize(float64(found.Size)), "")
}

func (d *diagnosis) option(name string) bool {
	return slices.ContainsFunc(d.info.SecurityOptions, func(o string) bool { return o == name || strings.HasPrefix(o, name+",") })
}

func isSeccomp(option string) bool { return strings.HasPrefix(option, "name=seccomp") }
