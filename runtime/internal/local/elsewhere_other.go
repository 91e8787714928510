//go:build !linux

package local

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// On this operating system sandboxes never run on this kernel: engines are in a
// virtual machine or elsewhere, and their sandboxes reached by stdio. What
// follows lets the engines compile; all that would be needed for sandboxes on
// this kernel says that there are none.

var errNotHere = errors.New("sandboxes do not run on this operating system's own kernel")

type (
	// A Home is the directory of one engine of one process.
	Home struct{ Path string }
	// A SandboxDir is the host's directory of one sandbox.
	SandboxDir struct{ Path, Files, Seccomp, Socket string }
	// A Listener waits for a sandbox's two connections.
	Listener struct{}
	// A Peer is the process at the other end of a connection.
	Peer struct{ PID, UID, GID int64 }
	// A Process is another process.
	Process struct{ PID int }
	// A Cgroup is the control group of a process.
	Cgroup struct{}
)

// FolderOf fails.
func FolderOf(string) (runtime.Folder, error) { return runtime.Folder{}, errNotHere }

// DefaultRoot is where runtime directories go when nothing is configured.
func DefaultRoot() string { return filepath.Join(os.TempDir(), "mcp-bridge") }

// NewHome fails.
func NewHome(string, Owner) (*Home, error) { return nil, errNotHere }

// Remove does nothing.
func (*Home) Remove() error { return nil }

// Gone is never so.
func (*Home) Gone() bool { return false }

// NewSandboxDir fails.
func (*Home) NewSandboxDir(string, fs.FS, []byte) (*SandboxDir, error) { return nil, errNotHere }

// SweepHomes finds none.
func SweepHomes(string, Owner) error { return nil }

// Remove does nothing.
func (*SandboxDir) Remove() error { return nil }

// Listen fails.
func (*SandboxDir) Listen(string) (*Listener, error) { return nil, errNotHere }

// Close does nothing.
func (*Listener) Close() error { return nil }

// AcceptPair fails.
func (*Listener) AcceptPair(context.Context, func(Peer) error) (first, second net.Conn, err error) {
	return nil, nil, errNotHere
}

// HardLimit knows none.
func HardLimit(string) (int64, error) { return runtime.Unlimited, nil }

// OpenProcess fails.
func OpenProcess(int) (*Process, error) { return nil, errNotHere }

// Done is never closed.
func (*Process) Done() <-chan struct{} { return nil }

// Alive is false.
func (*Process) Alive() bool { return false }

// Kill fails.
func (*Process) Kill(context.Context) error { return errNotHere }

// Close does nothing.
func (*Process) Close() error { return nil }

// CgroupOf fails.
func CgroupOf(int) (Cgroup, error) { return Cgroup{}, errNotHere }

// Gone is true.
func (Cgroup) Gone() bool { return true }

// OOMKills is 0.
func (Cgroup) OOMKills() int64 { return 0 }

// ReadFacts fails.
func ReadFacts(int) (runtime.Facts, error) { return runtime.Facts{}, errNotHere }

// Existing are none.
func Existing([]string) []string { return nil }
