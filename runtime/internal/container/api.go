package container

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

// Hostname is what every sandbox believes to be called.
const Hostname = "sandbox"

// ErrNotFound is what an [API] wraps when there is no such container.
var ErrNotFound = errors.New("no such object")

// A Driver knows how to reach one engine. The [Engine] never calls its methods
// concurrently, but for Explain.
type Driver interface {
	// Connect returns a client of a service that has answered just now. home
	// returns the engine's own directory on the host, for a service that the
	// driver starts itself.
	Connect(ctx context.Context, home func() (string, error)) (API, error)
	// Explain turns what the service answered to op, which may concern image,
	// into an error that a caller and an operator can act on. It leaves a
	// [*runtime.Error] as it is.
	Explain(op, image string, err error) error
	// Close lets go of the service.
	Close()
}

// An API makes containers. It is safe for concurrent use. Methods wrap
// [ErrNotFound] where there is no such container.
type API interface {
	// Host tells where and how the service runs containers.
	Host() Host
	// Create makes a container that removes itself when its program has ended.
	Create(ctx context.Context, p Placement) error
	// Prepare makes everything of the container up to running its program, and
	// returns the process that will become it. An engine that cannot stop there
	// returns the zero Info. One that does not know how a container ended once
	// it is gone begins to wait for that here.
	Prepare(ctx context.Context, id string) (Info, error)
	// Attach returns a stream whose reader gives the program's stdout and
	// stderr in frames: one byte for which (1 or 2), three of zero, four for the length, and
	// as many of payload. What is written to it, if stdin is set, is the
	// program's stdin. The caller must close it, whatever becomes of ctx.
	Attach(ctx context.Context, id string, stdin bool) (io.ReadWriteCloser, error)
	// Start runs the program.
	Start(ctx context.Context, id string) error
	// Inspect looks at a container.
	Inspect(ctx context.Context, id string) (Info, error)
	// Wait blocks until the program has ended, and returns its exit code. begin
	// is a moment before the container was made.
	Wait(ctx context.Context, id string, begin time.Time) (int, error)
	// Remove kills and removes a container.
	Remove(ctx context.Context, id string) error
	// List returns all containers with the label, running or not. An empty
	// value means any.
	List(ctx context.Context, label, value string) ([]Listed, error)
}

// A Volumes is an [API] whose containers may have volumes, which go with them
// unless the service dies in between.
type Volumes interface {
	// ListVolumes returns all volumes with the label. An empty value means any.
	ListVolumes(ctx context.Context, label, value string) ([]Listed, error)
	// RemoveVolume removes a volume that no container uses.
	RemoveVolume(ctx context.Context, id string) error
}

// An OOMWitness is an [API] whose service remembers what happened in a container
// that is gone, with its control group, or on another kernel.
type OOMWitness interface {
	// OOMKilled reports whether the kernel's OOM killer has acted in the
	// container. begin is a moment before it was made.
	OOMKilled(ctx context.Context, id string, begin time.Time) (bool, error)
}

// A Host is where containers run.
type Host struct {
	// Remote says that the service runs on another kernel: nothing of the host
	// can be mounted, and /proc does not show its processes.
	Remote bool
	// FirstUID and LastUID bound the ids that sandboxes get, as seen inside.
	FirstUID, LastUID int64
	// Missing are limits of the control group that cannot be put in force here.
	// Where one is missing that is allowed to, the data of every process is
	// limited by an rlimit.
	Missing []runtime.Difference
	// Expectation is what the engine may and may not do; Spec, UID and GID are
	// filled in for each sandbox.
	Expectation runtime.Expectation
}

// A Placement is one sandbox as the driver is to create it.
type Placement struct {
	ID      string
	Spec    runtime.Spec // complete: no field of Limits is zero, and Image is not empty
	Command []string     // with the transport's argument
	// Transport is TransportSocket or TransportStdio. With the socket, the
	// directories of Dir are mounted; with stdio, the program has a stdin.
	Transport runtime.Transport
	UID       int64 // and group id
	Labels    map[string]string
	Dir       *local.SandboxDir // nil on a remote host
	Rlimits   map[string]int64  // by their short names; none is higher than we may ask for
}

// Info is what the engine says of a container.
type Info struct {
	PID    int                  // of the program, in the service's PID namespace; 0 if it is not running
	Env    []string             // of the program
	Limits runtime.CgroupLimits // that were asked for, where no /proc tells what is in force
	// Differences are what else the engine itself says is not as asked for.
	Differences []runtime.Difference
	// Settings is nil where the engine's are not looked at.
	Settings *runtime.Settings
}

// Listed is one container or volume of a list.
type Listed struct {
	ID     string
	Labels map[string]string
}

// Options configure an [Engine]. All fields are required but DefaultImage and Transport.
type Options struct {
	Name         string // the engine's, for errors
	Driver       Driver
	Transport    runtime.Transport
	RuntimeDir   string // where the engine's directory goes, see [local.NewHome]
	DefaultImage string
	Logger       *slog.Logger
	// Hints say what an operator can do.
	Hints Hints
}

// Hints are what an operator can do about conditions that are found here.
type Hints struct {
	Unreadable string // the host's /proc does not show the sandbox
	Changed    string // the sandbox is not as asked for
	NoLimits   string // the limits of the control group are not in force
}
