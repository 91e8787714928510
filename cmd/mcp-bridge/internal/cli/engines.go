package cli

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/gvisor"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
)

// engines are the container engines by the name --runtime knows them by, in the
// order auto tries them.
func engines() []namedEngine {
	return []namedEngine{
		{"podman", []runtime.Transport{runtime.TransportSocket, runtime.TransportStdio}, func(o engineOptions) (runtime.Engine, error) {
			return podman.New(podman.Options{DefaultImage: defaultImage, Transport: o.transport, AllowUnlimited: o.allowUnlimited, Logger: o.log})
		}},
		{"docker", []runtime.Transport{runtime.TransportSocket, runtime.TransportStdio}, func(o engineOptions) (runtime.Engine, error) {
			return docker.New(docker.Options{DefaultImage: defaultImage, Transport: o.transport, AllowUnlimited: o.allowUnlimited, Logger: o.log})
		}},
		{"gvisor", []runtime.Transport{runtime.TransportFD, runtime.TransportStdio}, func(o engineOptions) (runtime.Engine, error) {
			return gvisor.New(gvisor.Options{Transport: o.transport, AllowUnlimited: o.allowUnlimited, Logger: o.log})
		}},
	}
}

// ownImage is what an engine uses if no image is named.
func ownImage(engine string) string {
	switch engine {
	case "gvisor":
		return "this machine's Python"
	case auto: // none was taken
		return "the engine's own image"
	}
	return defaultImage
}

type namedEngine struct {
	name       string
	transports []runtime.Transport // that it has, besides auto
	open       func(engineOptions) (runtime.Engine, error)
}

// engineOptions are what the settings say to whatever engine it will be.
type engineOptions struct {
	transport      runtime.Transport
	allowUnlimited bool
	log            *slog.Logger
}

func (r *root) engineOptions(log *slog.Logger) engineOptions {
	return engineOptions{transport: runtime.Transport(r.settings.transport), allowUnlimited: r.settings.allowUnlimited, log: log}
}

func engineNames() []string {
	var names []string
	for _, e := range engines() {
		names = append(names, e.name)
	}
	return names
}

// engine opens the container engine that --runtime names; the caller closes it.
func (r *root) engine(log *slog.Logger) (runtime.Engine, error) {
	named, err := r.namedEngines()
	if err != nil {
		return nil, err
	}
	opts := r.engineOptions(log)
	if r.settings.runtime != auto {
		return named[0].open(opts)
	}
	return runtime.NewFirstOf(openAll(named, opts), r.tellEngine), nil
}

// namedEngines are those that --runtime asks for.
func (r *root) namedEngines() ([]namedEngine, error) {
	all := engines()
	if r.settings.runtime == auto {
		return all, nil
	}
	i := slices.IndexFunc(all, func(e namedEngine) bool { return e.name == r.settings.runtime })
	if i < 0 {
		return nil, usageError("", "there is no engine %q", r.settings.runtime) // its flag has seen to that
	}
	asked := runtime.Transport(r.settings.transport)
	if asked != runtime.TransportAuto && !slices.Contains(all[i].transports, asked) {
		return nil, r.settings.wrong([]string{"runtime", "transport"}, "%s has no transport %s: use auto, %s or %s",
			all[i].name, asked, all[i].transports[0], all[i].transports[1])
	}
	return all[i : i+1], nil
}

// openAll opens engines. One that cannot be opened takes its place all the
// same, to say why it is of no use.
func openAll(named []namedEngine, opts engineOptions) []runtime.Engine {
	var opened []runtime.Engine
	for _, n := range named {
		e, err := n.open(opts)
		if err != nil {
			e = unopened{name: n.name, err: err}
		}
		opened = append(opened, e)
	}
	return opened
}

// tellEngine says which engine auto has taken, and what was wrong with those
// that come before it.
func (r *root) tellEngine(e runtime.Engine, failed []*runtime.Error) {
	r.taken = e.Name()
	why := ""
	if len(failed) > 0 {
		reasons := make([]string, len(failed))
		for i, failure := range failed {
			reasons[i] = failure.Reason()
		}
		why = " (" + strings.Join(reasons, "; ") + ")"
	}
	fmt.Fprintf(r.io.Err, "mcp-bridge: engine: %s%s\n", e.Name(), why)
}
