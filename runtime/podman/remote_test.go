//go:build linux

package podman_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// startRemoteService runs a service that is reached through the network, as one
// on another machine is, and returns its URI.
func startRemoteService(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	args := []string{"system", "service", "--time", "600", "tcp://" + addr}
	if oci := ociRuntime(); oci != "" {
		args = append([]string{"--runtime", oci}, args...)
	}
	cmd := exec.CommandContext(t.Context(), "podman", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	within(t, 10*time.Second, "the service listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "tcp://" + addr
}

// TestRemote uses a service as if it were on another machine: no path of ours
// means anything to it, and no /proc shows its sandboxes.
func TestRemote(t *testing.T) {
	dir := shortDir(t)
	engine := openWith(t, podman.Options{RuntimeDir: dir, URI: startRemoteService(t)})
	defer engine.Close()
	spec := runtimetest.Spec(image(), seccomp(t))
	spec.AllowUnlimited = os.Geteuid() != 0
	sandbox, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err, runtime.HintOf(err))
	}
	defer sandbox.Close()
	if sandbox.Transport() != runtime.TransportStdio {
		t.Errorf("transport is %s", sandbox.Transport())
	}
	peer := runtimetest.NewPeer(sandbox)
	// The profile is ours, not the service's default, which allows both.
	const inside = `
import ctypes, os, socket
def refused(f):
    try:
        f()
    except OSError as e:
        return e.errno
libc = ctypes.CDLL(None, use_errno=True)
def unshare():
    if libc.unshare(0x10000000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
result = [refused(lambda: socket.socket(socket.AF_INET)) is not None, refused(unshare) is not None, os.path.exists("/run/mcp-bridge")]
`
	if got := peer.Eval(t, inside).([]any); got[0] != true || got[1] != true {
		t.Errorf("sockets and user namespaces refused: %v", got)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	if _, err := io.WriteString(sandbox.Control(), "\"echo(callback, "+strconv.Itoa(len(data))+")\"\n"); err != nil {
		t.Fatal(err)
	}
	go sandbox.Callback().Write(data)
	back := make([]byte, len(data))
	if _, err := io.ReadFull(sandbox.Callback(), back); err != nil || !bytes.Equal(back, data) {
		t.Errorf("echo of %d bytes: %v", len(data), err)
	}
	begin := time.Now()
	if err := sandbox.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	t.Logf("closed after %v", time.Since(begin).Round(time.Millisecond))
	if exit, err := sandbox.Wait(t.Context()); err != nil || exit.Code != 137 {
		t.Errorf("exit is %+v, %v", exit, err)
	}
	if left := containers(t, "io.mcp-bridge.sandbox", sandbox.ID()); len(left) > 0 {
		t.Errorf("container left: %v", left)
	}
}

// TestRemoteEnds sees a remote sandbox's program end by itself, its container
// removed behind the engine's back, and a program that is not there.
func TestRemoteEnds(t *testing.T) {
	engine := openWith(t, podman.Options{RuntimeDir: shortDir(t), URI: startRemoteService(t)})
	defer engine.Close()
	start := func(t *testing.T) runtime.Sandbox {
		t.Helper()
		sandbox, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sandbox.Close() })
		return sandbox
	}
	t.Run("exit", func(t *testing.T) {
		sandbox := start(t)
		runtimetest.NewPeer(sandbox).Try("import os; os._exit(7)")
		if exit, err := sandbox.Wait(t.Context()); err != nil || exit != (runtime.Exit{Code: 7}) {
			t.Errorf("exit is %+v, %v, want code 7", exit, err)
		}
	})
	t.Run("removed", func(t *testing.T) {
		sandbox := start(t)
		cli(t, "rm", "--force", "--time", "0", sandbox.ID())
		if _, err := sandbox.Control().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read: %v, want EOF", err)
		}
	})
	t.Run("no program", func(t *testing.T) {
		spec := runtimetest.Spec(image(), seccomp(t))
		spec.Command = []string{"no-such-program"}
		if _, err := engine.Start(t.Context(), spec); !errors.Is(err, runtime.ErrNoProgram) {
			t.Errorf("error %v, want ErrNoProgram", err)
		}
	})
	t.Run("no image", func(t *testing.T) {
		spec := runtimetest.Spec("localhost/mcp-bridge-no-such-image:none", seccomp(t))
		if _, err := engine.Start(t.Context(), spec); !errors.Is(err, runtime.ErrImageMissing) {
			t.Errorf("error %v, want ErrImageMissing", err)
		}
	})
	t.Run("exits at once", func(t *testing.T) {
		spec := runtimetest.Spec(image(), seccomp(t))
		spec.Command = []string{"python3", "-I", "-c", "import sys; sys.exit('last words')"}
		if _, err := engine.Start(t.Context(), spec); !errors.Is(err, runtime.ErrExited) || !strings.Contains(err.Error(), "last words") {
			t.Errorf("error %v, want ErrExited with the last words", err)
		}
	})
	if left := containers(t, "io.mcp-bridge.pid", strconv.Itoa(os.Getpid())); len(left) > 0 {
		t.Errorf("containers left: %v", left)
	}
}

// TestRemoteSweep removes no sandbox of another machine, whose processes nobody
// here can know.
func TestRemoteSweep(t *testing.T) {
	remote := openWith(t, podman.Options{RuntimeDir: shortDir(t), URI: startRemoteService(t)})
	defer remote.Close()
	name := "mcpb-remote-sweep-" + strconv.Itoa(os.Getpid())
	t.Cleanup(func() { cli(t, "rm", "--force", "--ignore", name) })
	owner := []string{"boot=another", "owner=" + strconv.Itoa(os.Geteuid()), "pid=1", "pidns=1", "start=1", "sandbox=" + name}
	args := []string{"create", "--name", name, "--network", "none"}
	for _, label := range owner {
		args = append(args, "--label", "io.mcp-bridge."+label)
	}
	cli(t, append(args, image(), "true")...)
	if _, err := remote.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(containers(t, "io.mcp-bridge.sandbox", name)) != 1 {
		t.Error("a sandbox of another machine was removed")
	}
}
