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
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"slices"
	"strings"
	"time"
)

// Paths inside every sandbox.
const (
	// FilesDir is where [Spec.Files] appear, read-only.
	FilesDir = "/run/mcp-bridge/files"
	// SocketPath is where the unix socket of [TransportSocket] appears.
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

	// Transport is the one in use, never TransportAuto.
	Transport() Transport

	// Control and Callback are the program's two streams. Both return io.EOF when the program is gone. Close closes them.
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
	Code      int  // as the container engine reports it; 137 after SIGKILL, -1 if it no longer knows
	OOMKilled bool // the kernel's OOM killer acted in this sandbox
}

// A Spec describes one sandbox. Everything not listed here is the same for all
// sandboxes and not negotiable: no network, read-only root, no capabilities,
// no new privileges, seccomp allowlist, an unprivileged uid of its own, private
// namespaces, no logs.
type Spec struct {
	Image   string   // reference; must be present on the engine. "" is the engine's own default
	Command []string // argv of the program, PID 1, but for its last argument, see Transport; Command[0] is looked up in the image, along PATH
	Env     []string // KEY=VALUE; the whole environment, besides HOME, PATH and what engines add unasked
	Files   fs.FS    // for the program, see Transport; nil for none
	Binds   []Bind   // folders of the host to show
	Seccomp []byte   // seccomp profile in the engines' JSON format; required
	Limits  Limits
	// AllowUnlimited starts the sandbox even where the engine cannot put the
	// control group's limits (memory, processes, CPU) in force, as rootless
	// Podman on cgroup v1. Everything else is attested all the same.
	AllowUnlimited bool
	// ConnectTimeout bounds the wait from the container's start to the second
	// connection. Zero means 20 s.
	ConnectTimeout time.Duration
}

// Path is the PATH of every sandbox.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environment is the program's environment: HOME and PATH, which Env may
// override, and Env.
func (s Spec) Environment() []string {
	var env []string
	for _, kv := range []string{"HOME=" + Workspace, "PATH=" + Path} {
		if !slices.ContainsFunc(s.Env, func(own string) bool { return envName(own) == envName(kv) }) {
			env = append(env, kv)
		}
	}
	return append(env, s.Env...)
}

// Validate returns an error that names the first field no engine can use.
func (s Spec) Validate() error {
	l := s.Limits.WithDefaults()
	switch {
	case len(s.Command) == 0 || s.Command[0] == "":
		return errors.New("spec: no command")
	case !json.Valid(s.Seccomp):
		return errors.New("spec: no seccomp profile, or it is not JSON")
	case s.ConnectTimeout < 0:
		return errors.New("spec: negative connect timeout")
	case l.MemoryBytes < 16<<20:
		return errors.New("spec: memory limit below 16 MiB")
	case l.PIDs < 1 || l.OpenFiles < 16 || !(l.CPUs >= 0.01 && l.CPUs <= 1024):
		return errors.New("spec: process, file or CPU limit out of range")
	case l.TmpBytes < 4096 || l.WorkspaceBytes < 4096 || l.ShmBytes < 4096:
		return errors.New("spec: tmpfs smaller than a page")
	}
	if err := validateBinds(s.Binds); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, kv := range s.Env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || names[name] || strings.ContainsRune(kv, 0) {
			return fmt.Errorf("spec: environment entry %q is not KEY=VALUE, or there twice", name)
		}
		names[name] = true
	}
	return nil
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

// MilliCPUs is CPUs in thousandths, which is as finely as engines can tell.
func (l Limits) MilliCPUs() int64 { return int64(math.Round(l.CPUs * 1000)) }

// CPUQuota is a limit in thousandths of a processor as control groups take it:
// so many microseconds in every period of so many.
//
// The period is short. A sandbox that spins on several processors has its
// quota used up early in each, holding all of them until then, and that long
// everybody else waits, the host and its own supervisor among them.
func CPUQuota(milliCPUs int64) (quota, period int64) {
	const least = 1000 // the kernel takes no smaller quota
	period = 10_000
	if milliCPUs*period/1000 < least {
		period = 100_000
	}
	return milliCPUs * period / 1000, period
}

// Rlimits are the resource limits of every process in the sandbox, soft and
// hard alike, by their short names. An engine may set lower ones where it lacks
// the right to these.
func (l Limits) Rlimits() map[string]int64 {
	return map[string]int64{
		"core":    0,
		"fsize":   max(l.TmpBytes, l.WorkspaceBytes, l.ShmBytes),
		"memlock": 0,
		"nofile":  l.OpenFiles,
		"nproc":   l.PIDs,
	}
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
