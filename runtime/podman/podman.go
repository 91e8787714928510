// Package podman runs sandboxes on Podman, 4.3 or later, through its API.
//
// Unless it is told a service to use, an [Engine] starts `podman system
// service` on a socket of its own, with a clean environment and without
// containers.conf, so that neither proxy settings nor configuration files
// weaken a sandbox. The service dies with the process that started it.
//
// Where the service is on this machine, files and a socket are bind-mounted, and
// the hardening is attested from /proc. A service on another kernel, reached by
// ssh, tcp or a forwarded socket, is only talked to: the streams go over stdio,
// the program reports what is in force on it, and the service's record tells
// what no program can see. A virtual machine is never started, changed or stopped.
package podman

import (
	"log/slog"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// name is the engine's name after --runtime.
const name = "podman"

// Options configure an [Engine]. The zero value is useful.
type Options struct {
	// URI of the service, unix:///…, ssh://… or tcp://…; the environment variable
	// CONTAINER_HOST if empty; if that is empty too, a service of the engine's
	// own, or where Podman needs a virtual machine its default connection.
	URI string
	// RuntimeDir is where the sandboxes' directories and sockets go. It is
	// created with mode 0700, and must belong to this user alone. Keep it
	// short: the path of a socket has at most 107 bytes. The default is
	// mcp-bridge below XDG_RUNTIME_DIR, /run or the temporary directory.
	RuntimeDir string
	// Transport is how the sandboxes' streams cross their border. The default is
	// the socket where the service is on this kernel, and stdio elsewhere.
	Transport runtime.Transport
	// AllowUnlimited says that specs will have [runtime.Spec.AllowUnlimited], so
	// that Check does not insist on limits.
	AllowUnlimited bool
	// OCIRuntime is what the engine's own service runs containers with, such as
	// runc or the path of runsc. The default is Podman's own, or runc where
	// that is known to fail.
	OCIRuntime string
	// DefaultImage is the image of specs that name none.
	DefaultImage string
	// Logger gets lifecycle events; nil discards them.
	Logger *slog.Logger
}

func (o Options) withDefaults(getenv func(string) string, root func() string) Options {
	if o.URI == "" {
		o.URI = getenv("CONTAINER_HOST")
	}
	if o.RuntimeDir == "" {
		o.RuntimeDir = root()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
