package main_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// soon is within what a sandbox is gone whose bridge was killed. The promise is 2
// s, and the log tells how long it took; a machine that runs all the tests at once
// is no judge of it.
const soon = 15 * time.Second

// A world is one bridge with a runtime directory of its own.
type world struct {
	*client

	root   string // XDG_RUNTIME_DIR
	stdin  io.Closer
	stdout io.Closer
	self   process
}

// newWorld starts a bridge below a new runtime directory.
func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	return newWorldIn(t, newRoot(t), special(t, args...))
}

// newRoot returns an empty directory with a short path: sockets are below it.
func newRoot(t *testing.T) string {
	t.Helper()
	root := ""
	for err := os.ErrExist; errors.Is(err, os.ErrExist); {
		root = filepath.Join(os.TempDir(), strings.ToLower(rand.Text()[:3]))
		if err = os.Mkdir(root, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	return root
}

func newWorldIn(t *testing.T, root string, s setup) *world {
	t.Helper()
	s.env = append(s.env, "XDG_RUNTIME_DIR="+root, "MCP_BRIDGE_LOG_LEVEL=info")
	w := &world{root: root}
	p := &pipe{cmd: s.command(t, "run")}
	w.client = connectBy(t, p.cmd, p)
	w.stdin, w.stdout = p.stdin, p.stdout
	pid := w.cmd.Process.Pid
	w.self = process{pid, startOf(pid)}
	return w
}

// A box is a running sandbox, seen from the host.
type box struct {
	name       string
	supervisor process
	monitor    process // conmon
}

// boxes are the bridge's running sandboxes.
func (w *world) boxes(t *testing.T) []box {
	t.Helper()
	out, err := exec.Command("podman", "ps", "--filter", fmt.Sprintf("label=%s=%d", labelPID, w.self.pid), "--format", "{{.Names}} {{.Pid}}").Output()
	if err != nil {
		t.Fatalf("podman ps: %v", err)
	}
	var all []box
	for line := range strings.Lines(string(out)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("podman ps: %q", line)
		}
		if parent := parentOf(pid); parent > 1 {
			all = append(all, box{name, process{pid, startOf(pid)}, process{parent, startOf(parent)}})
		}
	}
	return all
}

// box is the bridge's only sandbox.
func (w *world) box(t *testing.T) box {
	t.Helper()
	all := w.boxes(t)
	if len(all) != 1 {
		t.Fatalf("there are %d sandboxes, want 1", len(all))
	}
	return all[0]
}

func parentOf(pid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if number, ok := strings.CutPrefix(line, "PPid:"); ok {
			parent, _ := strconv.Atoi(strings.TrimSpace(number))
			return parent
		}
	}
	return 0
}

// service is the bridge's own `podman system service`.
func (w *world) service(t *testing.T) process {
	t.Helper()
	for _, p := range descendants(w.self.pid) {
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if strings.Contains(string(args), "system\x00service") && p.alive() {
			return p
		}
	}
	t.Fatal("the bridge has no service")
	return process{}
}

// hangService stops the bridge's service where it holds no lock of podman's
// storage: there it would stall every podman of the machine, and all other tests.
func (w *world) hangService(t *testing.T) {
	t.Helper()
	w.hasSwept(t)
	service := w.service(t)
	eventually(t, patience, "the service is stopped without a lock", func() bool {
		service.signal(t, syscall.SIGSTOP)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if exec.CommandContext(ctx, "podman", "ps", "--all", "--quiet").Run() == nil {
			return true
		}
		service.signal(t, syscall.SIGCONT)
		return false
	})
}

// signal sends a signal to a process that this test has caused to be.
func (p process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if !p.alive() {
		t.Errorf("process %d is gone already", p.pid)
		return
	}
	if err := syscall.Kill(p.pid, s); err != nil {
		t.Errorf("signal process %d: %v", p.pid, err)
	}
}

// inSession are the arguments for a cell in a session; "" is the default one.
func inSession(session, code string) arguments {
	args := arguments{"code": code, "timeout": 100}
	if session != "" {
		args["session"] = session
	}
	return args
}

// start sends a cell and does not wait for its end.
func (w *world) start(session, code string) (ended <-chan reply) {
	done := make(chan reply, 1)
	go func() {
		r, err := w.try(context.Background(), inSession(session, code))
		if err != nil {
			r = reply{isError: true, text: "no answer: " + err.Error()}
		}
		done <- r
	}()
	return done
}

// occupy makes a session's sandbox and has a cell run in it that does not end.
func (w *world) occupy(t *testing.T, session, code string) (ended <-chan reply) {
	t.Helper()
	if r := w.call(t, inSession(session, "import time")); r.isError {
		t.Fatalf("no sandbox: %s", r.text)
	}
	ended = w.start(session, code)
	time.Sleep(50 * time.Millisecond) // the cell is sent in far less
	return ended
}

// typed are the errors that a call may end with when the world breaks.
var typed = regexp.MustCompile(`^(Note: [^\n]*\n)?(The sandbox cannot be started|Error: the (sandbox|Python process) |the sandbox started, but the kernel in it did not answer|cancelled while waiting)`)

// recovers calls until a call succeeds. Those that fail meanwhile say why.
func (c *client) recovers(t *testing.T, session string) {
	t.Helper()
	eventually(t, patience, "a call succeeds", func() bool {
		r := c.call(t, inSession(session, "21 * 2"))
		if r.isError && !typed.MatchString(r.text) {
			t.Fatalf("an untyped error: %s", r.text)
		}
		if r.isError {
			lacksPaths(t, r.text)
			time.Sleep(100 * time.Millisecond)
		}
		return !r.isError && strings.HasSuffix(r.text, "42")
	})
}

// lacksPaths checks that no path of the host is told to the model.
func lacksPaths(t *testing.T, text string) {
	t.Helper()
	lacks(t, text, "/run/", "/tmp/", "/var/", "XDG_")
}

// isGone checks that sandboxes end soon by themselves, when their bridge has.
func isGone(t *testing.T, boxes []box) {
	t.Helper()
	if len(boxes) == 0 {
		t.Error("there was no sandbox")
	}
	begin := time.Now()
	eventually(t, soon, "the sandboxes have ended", func() bool {
		for _, b := range boxes {
			if b.supervisor.alive() {
				return false
			}
		}
		return true
	})
	t.Logf("the sandboxes have ended after %v", time.Since(begin).Round(time.Millisecond))
}

// homes are the bridge's directories below the runtime directory.
func (w *world) homes() []string {
	all, _ := filepath.Glob(filepath.Join(w.root, "mcp-bridge", strconv.FormatInt(int64(w.self.pid), 36)+".*"))
	return all
}

// leavesNothing ends the bridge in order and looks for what it has left.
func (w *world) leavesNothing(t *testing.T) {
	t.Helper()
	_ = w.stdin.Close() // it may be already
	eventually(t, patience, "the bridge ends", func() bool { return !w.self.alive() })
	if left := containersOf(t, w.self.pid); len(left) > 0 {
		t.Errorf("containers left: %v", left)
	}
	if homes := w.homes(); len(homes) > 0 {
		t.Errorf("left on the host: %v", homes)
	}
}

// isSwept starts another bridge in the place of one that has ended without
// cleaning up: it must remove everything, and work.
func (w *world) isSwept(t *testing.T) {
	t.Helper()
	eventually(t, patience, "the bridge is gone", func() bool { return !w.self.alive() })
	next := newWorldIn(t, w.root, special(t, "--warm=0"))
	next.recovers(t, "")
	next.hasSwept(t)
	eventually(t, patience, "its containers are swept", func() bool { return len(containersOf(t, w.self.pid)) == 0 })
	eventually(t, patience, "its directories are swept", func() bool { return len(w.homes()) == 0 })
	next.leavesNothing(t)
}

// hasSwept waits until the bridge has removed what others left; that takes the
// longer the more other bridges do at once.
func (w *world) hasSwept(t *testing.T) {
	t.Helper()
	eventually(t, 3*patience, "the sweep has succeeded", func() bool {
		return regexp.MustCompile(`leftovers of dead bridges removed" count=\d+ error=<nil>`).MatchString(w.stderr.String())
	})
}

// newWorldOn starts a bridge on another engine than the tests' usual one.
func newWorldOn(t *testing.T, engine string) *world {
	t.Helper()
	s := special(t, "--warm=0", "--mount="+sharedFolder(t, "data")) // for which engines make more
	s.env = append(append(s.env, "MCP_BRIDGE_RUNTIME="+engine), engineEnv(t)...)
	var w *world
	t.Cleanup(func() { // after the world's own: the bridge has ended
		if w == nil || engine != "docker" {
			return
		}
		eventually(t, patience, "the sandbox's volumes are gone", func() bool {
			out, err := exec.Command("docker", "volume", "ls", "--quiet", "--filter", fmt.Sprintf("label=%s=%d", labelPID, w.self.pid)).CombinedOutput()
			return err == nil && len(out) == 0
		})
	})
	w = newWorldIn(t, newRoot(t), s)
	return w
}

// helper is the bridge's descendant whose command line has every word.
func (w *world) helper(t *testing.T, words ...string) process {
	t.Helper()
	var seen []string
next:
	for _, p := range descendants(w.self.pid) {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		args := strings.Split(string(data), "\x00")
		seen = append(seen, strings.Join(args, " "))
		for _, word := range words {
			if !slices.Contains(args, word) {
				continue next
			}
		}
		if p.alive() {
			return p
		}
	}
	t.Fatalf("no process with %v below the bridge, only\n%s", words, strings.Join(seen, "\n"))
	return process{}
}
