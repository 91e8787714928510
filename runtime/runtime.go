// Package runtime starts sandboxes: hardened containers in which untrusted
// code runs, each joined to its host by two byte streams.
//
// It knows containers and nothing else. What the program in the sandbox is and
// what travels on the streams is its caller's business; which engine runs the
// container (Podman, Docker, …) is the business of the packages below this one.
// [Spec] says what every engine must enforce, and package runtimetest is the
// executable form of that contract.
package runtime

import (
	"context"
	"io/fs"
	"net"
	"time"
)

// Paths inside every sandbox.
const (
	// FilesDir is where [Spec.Files] appear, read-only.
	FilesDir = "/run/mcp-bridge/files"
	// SocketPath is the unix socket the program connects to, twice: the first
	// connection becomes [Sandbox.Control], the second [Sandbox.Callback].
	// After the second the way in is gone.
	SocketPath = "/run/mcp-bridge/socket/s"
	// Workspace is the program's working directory and HOME, a tmpfs.
	Workspace = "/workspace"
)

// An Engine starts sandboxes on one container engine. It is safe for
// concurrent use.
type Engine interface {
	// Name is the engine's name as a user writes it after --runtime.
	Name() string

	// Check returns nil if sandboxes can be started from image, and otherwise
	// an error that wraps [ErrUnavailable], [ErrImageMissing] or
	// [ErrUnsupported] and carries a hint (see [HintOf]).
	Check(ctx context.Context, image string) error

	// Start returns a running sandbox whose two streams are connected and
	// whose hardening has been attested against spec. ctx bounds the starting
	// only. If Start fails it leaves nothing behind; if it succeeds the caller
	// must Close the sandbox.
	Start(ctx context.Context, spec Spec) (Sandbox, error)

	// Sweep removes the sandboxes that dead owners left behind, and nothing
	// else: no container of a living process, of another user, or without our
	// labels. It returns the number of containers removed.
	Sweep(ctx context.Context) (int, error)

	// Close releases what the engine itself holds, such as an API service it
	// started. Sandboxes must be closed before. It is idempotent.
	Close() error
}

// A Sandbox is one running container. Its streams may be used concurrently
// with each other and with Close.
type Sandbox interface {
	// ID identifies the sandbox in logs; it is also the container's name.
	ID() string

	// Control and Callback are the first and the second connection the program
	// made. Both return io.EOF when the program is gone. Close closes them.
	Control() net.Conn
	Callback() net.Conn

	// Wait blocks until the program has exited, or ctx is done.
	Wait(ctx context.Context) (Exit, error)

	// Close kills the program, removes the container and everything the engine
	// made for it on the host, and unblocks readers of both streams. It is
	// idempotent and may be called concurrently; every call waits until the
	// sandbox is gone.
	Close() error
}

// Exit says how a sandbox's program ended.
type Exit struct {
	Code      int  // as the container engine reports it; 137 after SIGKILL
	OOMKilled bool // the kernel's OOM killer acted in this sandbox
}

// A Spec describes one sandbox. Everything not listed here is the same for all
// sandboxes and not negotiable: no network, read-only root, no capabilities,
// no new privileges, seccomp allowlist, an unprivileged uid of its own, private
// namespaces, no logs.
type Spec struct {
	Image   string   // reference; must be present on the engine
	Command []string // argv of the program, PID 1; Command[0] is looked up in the image's PATH
	Env     []string // KEY=VALUE; the whole environment, besides HOME, PATH and what engines add unasked
	Files   fs.FS    // shown read-only below FilesDir; nil for none
	Seccomp []byte   // seccomp profile in the engines' JSON format; required
	Limits  Limits
	// ConnectTimeout bounds the wait from the container's start to the second
	// connection. Zero means 20 s.
	ConnectTimeout time.Duration
}

// Limits bounds what a sandbox may use. Zero fields take their defaults.
type Limits struct {
	MemoryBytes    int64   // cgroup memory limit, no swap on top; default 512 MiB
	PIDs           int64   // processes and threads; default 128
	CPUs           float64 // CPU time per wall time; default 1
	OpenFiles      int64   // RLIMIT_NOFILE; default 1024
	TmpBytes       int64   // size of the tmpfs at /tmp; default 64 MiB
	WorkspaceBytes int64   // size of the tmpfs at Workspace; default 128 MiB
	ShmBytes       int64   // size of the tmpfs at /dev/shm; default 8 MiB
}

// WithDefaults returns l with its zero fields replaced by the defaults.
func (l Limits) WithDefaults() Limits {
	const mib = 1 << 20
	set := func(v *int64, def int64) {
		if *v == 0 {
			*v = def
		}
	}
	set(&l.MemoryBytes, 512*mib)
	set(&l.PIDs, 128)
	set(&l.OpenFiles, 1024)
	set(&l.TmpBytes, 64*mib)
	set(&l.WorkspaceBytes, 128*mib)
	set(&l.ShmBytes, 8*mib)
	if l.CPUs == 0 {
		l.CPUs = 1
	}
	return l
}
