//go:build linux

package docker_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// A daemon is a dockerd of the test's own, which it may kill.
type daemon struct {
	dir  string
	args []string
	cmd  *exec.Cmd
	log  bytes.Buffer
}

// startDaemon starts a dockerd that has the sandbox's image.
func startDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a daemon")
	}
	d := &daemon{dir: shortDir(t)}
	if err := os.Chmod(d.dir, 0o711); err != nil { // containers with mapped ids go through it
		t.Fatal(err)
	}
	if err := os.WriteFile(d.dir+"/config.json", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.args = append([]string{
		"--config-file", d.dir + "/config.json", "--host", d.host(), "--pidfile", d.dir + "/pid",
		"--data-root", d.dir + "/data", "--exec-root", d.dir + "/exec",
		"--iptables=false", "--ip6tables=false", "--bridge=none",
		"--default-ulimit", "nofile=1024:1024", "--default-ulimit", "nproc=512:512",
	}, args...)
	if help, _ := exec.Command("dockerd", "--help").Output(); bytes.Contains(help, []byte("--oom-score-adjust")) {
		d.args = append(d.args, "--oom-score-adjust", "0")
	}
	t.Cleanup(func() { d.end(t) })
	d.start(t)
	load := exec.CommandContext(t.Context(), "sh", "-c", `docker save "$1" | docker --host "$2" load`, "sh", image(), d.host())
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("load image: %v\n%s", err, out)
	}
	return d
}

func (d *daemon) host() string { return "unix://" + d.dir + "/api" }

func (d *daemon) start(t *testing.T) {
	t.Helper()
	d.cmd = exec.Command("dockerd", d.args...)
	d.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/root"}
	d.cmd.Stderr = &d.log
	d.cmd.WaitDelay = time.Second // containerd may hold on to stderr
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, "dockerd answers", func() bool {
		return exec.Command("docker", "--host", d.host(), "version").Run() == nil
	})
}

// kill kills dockerd, and with it its containerd, but not the containers.
func (d *daemon) kill(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait()
	d.cmd = nil
	file := d.dir + "/exec/containerd/containerd.pid"
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	within(t, 5*time.Second, "containerd is dead", func() bool {
		cmdline, _ := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/cmdline")
		return !bytes.Contains(cmdline, []byte(d.dir))
	})
	// Where init reaps late, the next dockerd would take the zombie for a
	// containerd that runs.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// end ends dockerd and what it has started.
func (d *daemon) end(t *testing.T) {
	if d.cmd != nil {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		_ = d.cmd.Wait()
	}
	_ = syscall.Unmount(d.dir+"/data", syscall.MNT_DETACH) // if it was killed
	if t.Failed() {
		t.Logf("dockerd:\n%s", d.log.String())
	}
}

func (d *daemon) open(t *testing.T) *docker.Engine {
	t.Helper()
	engine, err := docker.New(docker.Options{Host: d.host(), RuntimeDir: shortDir(t) + "/rt"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return engine
}

// TestDaemonRestarts kills the daemon under a running sandbox.
func TestDaemonRestarts(t *testing.T) {
	d := startDaemon(t)
	engine := d.open(t)
	spec := runtimetest.Spec(image(), seccomp(t))
	sandbox, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Close()
	peer := runtimetest.NewPeer(sandbox)
	d.kill(t)
	if got := peer.Eval(t, "result = 1"); got != 1.0 {
		t.Errorf("without the daemon the sandbox answers %v", got)
	}
	begin := time.Now()
	_, startErr := engine.Start(t.Context(), spec)
	_, sweepErr := engine.Sweep(t.Context())
	for _, err := range []error{startErr, sweepErr, engine.Check(t.Context(), image())} {
		if !errors.Is(err, runtime.ErrUnavailable) || runtime.HintOf(err) == "" {
			t.Errorf("without the daemon: %v (hint %q), want ErrUnavailable with a hint", err, runtime.HintOf(err))
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v to find out", took)
	}
	d.start(t)
	other, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("start on the new daemon: %v", err)
	}
	for _, s := range []runtime.Sandbox{sandbox, other} {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	out, err := exec.Command("docker", "--host", d.host(), "ps", "--all", "--quiet").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("containers left: %s %v", out, err)
	}
}

// TestCloseWithoutDaemon closes a sandbox when nobody is there to remove the
// container: its program ends all the same, and the next sweep does the rest.
func TestCloseWithoutDaemon(t *testing.T) {
	d := startDaemon(t)
	engine := d.open(t)
	sandbox, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t)))
	if err != nil {
		t.Fatal(err)
	}
	d.kill(t)
	if err := sandbox.Close(); !errors.Is(err, runtime.ErrUnavailable) || runtime.HintOf(err) == "" {
		t.Errorf("close: %v, want ErrUnavailable with a hint", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if exit, err := sandbox.Wait(ctx); err != nil {
		t.Errorf("wait: %+v, %v", exit, err)
	}
	d.start(t)
	within(t, 10*time.Second, "the new daemon removes the container by itself", func() bool {
		out, err := exec.Command("docker", "--host", d.host(), "ps", "--all", "--quiet").CombinedOutput()
		return err == nil && len(out) == 0
	})
}

// within waits until what is promised holds.
func within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v it is not so that %s", limit, what)
		}
	}
}

// TestUserNamespace starts a sandbox on a daemon that maps ids: then a user
// namespace is demanded, and the sandbox's ids are inside it.
func TestUserNamespace(t *testing.T) {
	ranges, err := os.ReadFile("/etc/subuid")
	user, _, ok := strings.Cut(string(ranges), ":")
	if err != nil || !ok {
		t.Fatalf("no user has subordinate ids, see .ci/provision: %v", err)
	}
	d := startDaemon(t, "--userns-remap", user)
	engine := d.open(t)
	sandbox, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Close()
	const code = "import os; result = [open('/proc/self/uid_map').read().split()[1] != '0', os.getuid() < 60000]"
	if got := runtimetest.NewPeer(sandbox).Eval(t, code); !equal(got, []any{true, true}) {
		t.Errorf("mapped, and id inside the mapping: %v", got)
	}
}
