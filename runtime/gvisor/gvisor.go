// Package gvisor runs sandboxes on gVisor, a kernel in user space, without any
// container engine: it starts gVisor's runsc itself, once for each sandbox.
//
// The root file system is one read-only EROFS image, which runsc's kernel maps:
// it needs no directory of the host and no gofer process, and so nothing of the
// host can be seen but what was written into that image. The image is made
// either of the host's own Python, and nothing else, or of an OCI image from an
// archive or a registry, which no container engine has to unpack. Folders of the
// host that a spec shows are copied into images of their own, at each start if
// they have changed.
//
// runsc is a program of its own, of the version [Version]: see [Options.Runsc].
package gvisor

import (
	"log/slog"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// engineName is the engine's name after --runtime.
const engineName = "gvisor"

// Version is the version of the module gvisor.dev/gvisor that runsc must be
// built from, and Sum its checksum as in go.sum.
const (
	Version = "v0.0.0-20260905035102-160fafc42237"
	Sum     = "h1:AU5+CtCvnBnxdZRNcZt1NfSLqgkXZVT3N/u6u1aXg44="
)

// InstallHint gets runsc for whoever does not have it.
const InstallHint = "CGO_ENABLED=0 go install gvisor.dev/gvisor/runsc@" + Version

// Options configure an [Engine]. The zero value is useful.
type Options struct {
	// Runsc is the path of runsc. By default it is mcp-bridge-runsc in the
	// directory of the running program, or else mcp-bridge-runsc or runsc on PATH.
	Runsc string
	// Transport is fd unless it is stdio.
	Transport runtime.Transport
	// RuntimeDir is where the sandboxes' directories go. It is created with
	// mode 0700, and must belong to this user alone. Keep it short: it holds
	// sockets. The default is mcp-bridge below XDG_RUNTIME_DIR, /run or the
	// temporary directory.
	RuntimeDir string
	// CacheDir is where root file systems are kept. The default is
	// mcp-bridge/gvisor in the user's cache directory.
	CacheDir string
	// DefaultImage is the image of specs that name none. If it is empty, too,
	// they run on the host's own Python.
	DefaultImage string
	// Python is the interpreter of the host to use where no image is named. The
	// default is the newest that is found.
	Python string
	// AllowUnlimited says that specs will have [runtime.Spec.AllowUnlimited], so
	// that Diagnose does not insist on limits.
	AllowUnlimited bool
	// Logger gets lifecycle events; nil discards them.
	Logger *slog.Logger
}
