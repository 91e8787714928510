// Package docker runs sandboxes on Docker, 20.10 or later, through its API.
//
// Docker's daemon is somebody else's: the engine finds it as docker's own
// command line does, by DOCKER_HOST, and neither starts nor configures it. It
// reads no configuration file of docker's client, whose proxy settings would
// end up in containers.
package docker

import (
	"log/slog"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// name is the engine's name after --runtime.
const name = "docker"

// Options configure an [Engine]. The zero value is useful.
type Options struct {
	// Host is where the daemon listens: unix:///…, tcp://…, ssh://… or npipe://…;
	// the environment variable DOCKER_HOST if empty; the first of docker's
	// usual sockets that is there if that is empty too.
	Host string
	// RuntimeDir is where the sandboxes' directories and sockets go. It is
	// created with mode 0700, and must belong to this user alone. Keep it
	// short: the path of a socket has at most 107 bytes. The default is
	// mcp-bridge below XDG_RUNTIME_DIR, /run or the temporary directory.
	RuntimeDir string
	// DefaultImage is what a spec without an image gets.
	DefaultImage string
	// Transport is how a sandbox's streams cross its border: auto, which is
	// socket where the daemon is on this kernel and stdio where it is not, or
	// one of these two.
	Transport runtime.Transport
	// AllowUnlimited says that specs will have [runtime.Spec.AllowUnlimited], so
	// that Check does not mind limits that the daemon cannot put in force.
	AllowUnlimited bool
	// Logger gets lifecycle events; nil discards them.
	Logger *slog.Logger
}

func (o Options) withDefaults(getenv func(string) string, root func() string) Options {
	if o.Host == "" {
		o.Host = getenv("DOCKER_HOST")
	}
	if o.RuntimeDir == "" {
		o.RuntimeDir = root()
	}
	if o.Transport == "" {
		o.Transport = runtime.TransportAuto
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
