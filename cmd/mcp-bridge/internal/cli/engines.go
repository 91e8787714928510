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
		{"podman", func(o engineOptions) (runtime.Engine, error) {
			return podman.New(podman.Options{DefaultImage: defaultImage, Transport: o.transport, AllowUnlimited: o.allowUnlimited, Logger: o.log})
		}},
		{"docker", func(o engineOptions) (runtime.Engine, error) {
			return docker.New(docker.Options{DefaultImage: defaultImage, Transport: o.transport, AllowUnlimited: o.allowUnlimited, Logger: o.log})
		}},
		{"gvisor", func(o engineOptions) (runtime.Engine, error) {
			return gvisor.New(gvisor.Options{Transport: o.transport, AllowUnlimited: o.allowUnlimited, Logger: o.log})
		}},
	}
}

type namedEngine struct {
	name string
	open func(engineOptions) (runtime.Engine, error)
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
		return nil, usageError("use --runtime "+strings.Join(engineNames(), " or ")+", or auto", "unknown container engine %q", r.settings.runtime)
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
