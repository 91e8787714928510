package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A fault is something that breaks around, or in, a bridge. strike makes it
// happen, at an instant that differs between the times it is tried, and checks
// what must hold after it.
type fault struct {
	name     string
	instants []time.Duration
	strike   func(t *testing.T, at time.Duration)
}

// ms are instants.
func ms(all ...int) []time.Duration {
	var instants []time.Duration
	for _, n := range all {
		instants = append(instants, time.Duration(n)*time.Millisecond)
	}
	return instants
}

// TestFaults has everything break that can, several times each: sandboxes end
// with their bridge, what is left is swept at the next start, the next call
// recovers, errors say what happened, and nothing stays on the host.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, faults := range [][]fault{killedBridge, endedBridge, brokenSandbox, brokenEngine, brokenHost} {
		for _, f := range faults {
			for _, at := range f.instants {
				t.Run(fmt.Sprintf("%s/%v", f.name, at), func(t *testing.T) {
					t.Parallel()
					f.strike(t, at)
				})
			}
		}
	}
}

// killedBridge are the ways of a bridge that gets SIGKILL.
var killedBridge = []fault{
	{"kill while idle", ms(0, 50, 500), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "1")
		w.runIn(t, "second", "1")
		kill(t, w, at)
	}},
	{"kill in a cell", ms(0, 50, 500), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.occupy(t, "", "while True: print('x' * 1000)")
		kill(t, w, at)
	}},
	{"kill in a cell that ignores everything", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.occupy(t, "", `
import os, signal, sys, time
for n in range(1, 65):
    try: signal.signal(n, signal.SIG_IGN)
    except Exception: pass
for _ in range(8):
    if os.fork() == 0: os.setsid()
while True:
    try: time.sleep(1)
    except BaseException: pass`)
		kill(t, w, at)
	}},
	{"kill in a tool call", ms(0, 50, 500), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.occupy(t, "", "while True: tools.special.sleep(ms=20)")
		upstream := w.upstream(t)
		kill(t, w, at)
		eventually(t, soon, "the upstream server has ended", func() bool { return !upstream.alive() })
	}},
	{"kill during create", ms(0, 10, 25, 40, 60, 80, 100, 130, 160, 200), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.start("", "1")
		time.Sleep(at)
		w.self.signal(t, syscall.SIGKILL)
		w.isSwept(t)
	}},
	{"kill during a sweep", ms(0, 20, 40, 80, 150), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		var orphans []string
		for range 3 {
			orphans = append(orphans, create(t, ownedBy(t, w, labelBoot, "00000000-0000-4000-8000-000000000000")))
		}
		sweeper := newWorldIn(t, w.root, special(t, "--warm=0"))
		time.Sleep(at)
		sweeper.self.signal(t, syscall.SIGKILL)
		sweeper.isSwept(t) // by another one, which ends what this has begun
		for _, id := range orphans {
			if exists(id) {
				t.Error("an orphan is left")
			}
		}
		w.leavesNothing(t)
	}},
	{"kill with a warm spare", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=2")
		eventually(t, patience, "two spares", func() bool { return len(w.boxes(t)) == 2 })
		time.Sleep(200 * time.Millisecond)
		kill(t, w, at)
	}},
	{"kill while a spare starts", ms(0, 30, 60, 90, 120), func(t *testing.T, at time.Duration) {
		w := newWorld(t)
		time.Sleep(at)
		w.self.signal(t, syscall.SIGKILL)
		w.isSwept(t)
	}},
	{"kill while a sandbox is closed", ms(0, 10, 30, 60), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0", "--max-sandboxes=1")
		w.run(t, "1")
		w.start("second", "1")
		time.Sleep(at)
		w.self.signal(t, syscall.SIGKILL)
		w.isSwept(t)
	}},
	{"kill beside another bridge", ms(0, 50, 200), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		other := newWorldIn(t, w.root, special(t, "--warm=0"))
		other.run(t, "kept = 'kept'")
		w.occupy(t, "", "while True: pass")
		kill(t, w, at)
		other.wants(t, "kept", "'kept'")
		other.leavesNothing(t)
	}},
	{"kill with a supervisor that cannot act", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "1")
		b := w.box(t)
		b.supervisor.signal(t, syscall.SIGSTOP)
		time.Sleep(at)
		w.self.signal(t, syscall.SIGKILL)
		eventually(t, patience, "the bridge is gone", func() bool { return !w.self.alive() })
		if !b.supervisor.alive() {
			t.Log("a bridge of another test has swept it already")
		}
		w.isSwept(t)
		eventually(t, soon, "it is gone for good", func() bool { return !b.supervisor.alive() })
	}},
}

// kill kills the bridge while it has sandboxes.
func kill(t *testing.T, w *world, at time.Duration) {
	t.Helper()
	boxes := w.boxes(t)
	time.Sleep(at)
	w.self.signal(t, syscall.SIGKILL)
	isGone(t, boxes)
	w.isSwept(t)
}

// upstream is the upstream server's process, once it has been started.
func (w *world) upstream(t *testing.T) process {
	t.Helper()
	var server process
	eventually(t, patience, "there is an upstream server", func() bool {
		for _, p := range descendants(w.self.pid) {
			if environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid)); strings.Contains(string(environ), upstreamVar) {
				server = p
				return true
			}
		}
		return false
	})
	return server
}

// ownedBy are the labels of a sandbox of w, some of them changed.
func ownedBy(t *testing.T, w *world, changed ...string) map[string]string {
	t.Helper()
	w.run(t, "1")
	labels := labelsOf(t, w.box(t).name)
	for i := 0; i < len(changed); i += 2 {
		labels[changed[i]] = changed[i+1]
	}
	return labels
}

// endedBridge are the ways of a bridge that is asked to end, or loses its client.
var endedBridge = []fault{
	{"SIGTERM with busy sessions", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t)
		w.occupy(t, "", "while True: pass")
		w.occupy(t, "second", "while True: tools.special.sleep(ms=50)")
		boxes := w.boxes(t)
		time.Sleep(at)
		w.self.signal(t, syscall.SIGTERM)
		w.endsCleanly(t, boxes)
	}},
	{"SIGTERM during create", ms(0, 30, 60, 90, 120), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.start("", "1")
		time.Sleep(at)
		w.self.signal(t, syscall.SIGTERM)
		w.endsCleanly(t, nil)
	}},
	{"stdin closed mid-create", ms(0, 30, 60, 90, 120), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.start("", "1")
		time.Sleep(at)
		w.leavesNothing(t)
	}},
	{"stdin closed while a spare starts", ms(0, 30, 60, 90, 120), func(t *testing.T, at time.Duration) {
		w := newWorld(t)
		time.Sleep(at)
		w.leavesNothing(t)
	}},
	{"client gone mid-call", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t)
		w.occupy(t, "", "while True: print('x' * 1000)")
		boxes := w.boxes(t)
		time.Sleep(at)
		_ = w.stdout.Close() // it can neither read nor write
		_ = w.stdin.Close()
		w.endsCleanly(t, boxes)
	}},
	{"client gives up mid-create", ms(1, 30, 60, 90, 120), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		ctx, cancel := context.WithTimeout(t.Context(), at)
		defer cancel()
		_, _ = w.try(ctx, arguments{"code": "1"})
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
}

// endsCleanly waits for the bridge's own end, and looks for what it has left.
func (w *world) endsCleanly(t *testing.T, boxes []box) {
	t.Helper()
	if len(boxes) > 0 {
		isGone(t, boxes)
	}
	w.leavesNothing(t)
}

// brokenSandbox are the ways of a sandbox that loses a part of itself.
var brokenSandbox = []fault{
	{"supervisor killed while idle", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "1")
		time.Sleep(at)
		w.box(t).supervisor.signal(t, syscall.SIGKILL)
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
	{"supervisor killed in a cell", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		ended := w.occupy(t, "", "while True: pass")
		time.Sleep(at)
		w.box(t).supervisor.signal(t, syscall.SIGKILL)
		w.failsWith(t, ended, "the sandbox ended")
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
	{"supervisor killed in a tool call", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		ended := w.occupy(t, "", "tools.special.sleep(ms=100_000)")
		time.Sleep(at)
		w.box(t).supervisor.signal(t, syscall.SIGKILL)
		w.failsWith(t, ended, "the sandbox ended")
		w.recovers(t, "")
		w.wants(t, "tools.special.stats().running", "0")
		w.leavesNothing(t)
	}},
	{"REPL killed", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		ended := w.occupy(t, "", "while True: pass")
		time.Sleep(at)
		for _, p := range descendants(w.box(t).supervisor.pid) {
			p.signal(t, syscall.SIGKILL)
		}
		w.failsWith(t, ended, "the Python process ended", "SIGKILL")
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
	{"supervisor stopped in a cell", ms(0, 100), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0", "--timeout=1")
		w.call(t, arguments{"code": "import time"})
		done := make(chan reply, 1)
		go func() {
			r, _ := w.try(context.Background(), arguments{"code": "time.sleep(100)"})
			done <- r
		}()
		time.Sleep(50*time.Millisecond + at)
		w.box(t).supervisor.signal(t, syscall.SIGSTOP)
		w.failsWith(t, done, "did not answer when the cell's time was up")
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
	{"conmon killed while idle", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "kept = 'kept'")
		time.Sleep(at)
		w.box(t).monitor.signal(t, syscall.SIGKILL)
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
	{"conmon killed in a cell", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.occupy(t, "", "time.sleep(1)\nlater = 1")
		time.Sleep(at)
		w.box(t).monitor.signal(t, syscall.SIGKILL)
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
	{"conmon and supervisor killed", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "1")
		b := w.box(t)
		b.monitor.signal(t, syscall.SIGKILL)
		time.Sleep(at)
		b.supervisor.signal(t, syscall.SIGKILL)
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
	{"container removed from outside", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		ended := w.occupy(t, "", "while True: pass")
		time.Sleep(at)
		podman(t, nil, "rm", "--force", "--time=0", w.box(t).name)
		w.failsWith(t, ended, "the sandbox ended")
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
	{"spare killed as it is taken", ms(0, 1, 5, 20), func(t *testing.T, at time.Duration) {
		w := newWorld(t)
		eventually(t, patience, "a spare", func() bool { return len(w.boxes(t)) == 1 })
		time.Sleep(100 * time.Millisecond)
		w.box(t).supervisor.signal(t, syscall.SIGKILL)
		time.Sleep(at)
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
}

// failsWith waits for the end of a cell that must fail and say why.
func (*world) failsWith(t *testing.T, ended <-chan reply, words ...string) {
	t.Helper()
	select {
	case r := <-ended:
		if !r.isError || !typed.MatchString(strings.TrimSpace(r.text)) {
			t.Errorf("the call answered %.2000s", r.text)
		}
		contains(t, r.text, words...)
		lacksPaths(t, r.text)
	case <-time.After(patience):
		t.Error("the call does not answer")
	}
}

// brokenEngine are the ways of an engine that breaks.
var brokenEngine = []fault{
	{"service killed", ms(0, 50, 200), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "kept = 'kept'")
		w.service(t).signal(t, syscall.SIGKILL)
		time.Sleep(at)
		w.wants(t, "kept", "'kept'")
		w.recovers(t, "second")
		w.leavesNothing(t)
	}},
	{"service killed during create", ms(0, 20, 40, 60, 90, 120), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "kept = 'kept'")
		service := w.service(t)
		ended := w.start("second", "1")
		time.Sleep(at)
		service.signal(t, syscall.SIGKILL)
		if r := <-ended; r.isError && !typed.MatchString(r.text) {
			t.Errorf("the call answered %.2000s", r.text)
		}
		w.wants(t, "kept", "'kept'")
		w.recovers(t, "second")
		w.leavesNothing(t)
	}},
	{"service hung", ms(0, 50), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "kept = 'kept'")
		time.Sleep(at)
		w.hangService(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = w.try(ctx, inSession("second", "1"))
		w.wants(t, "kept", "'kept'") // who has a sandbox needs no service
		w.recovers(t, "second")
		w.leavesNothing(t)
	}},
	{"service hung at the end", ms(0, 50), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "1")
		boxes := w.boxes(t)
		w.hangService(t)
		time.Sleep(at)
		_ = w.stdin.Close()
		isGone(t, boxes)
		w.isSwept(t)
	}},
	{"OCI runtime fails", ms(0, 100, 200), func(t *testing.T, at time.Duration) {
		bin := brokenRuntime(t, "#!/bin/sh\necho 'broken on purpose' >&2\nexit 1\n")
		s := special(t, "--warm=0")
		s.env = append(s.env, "PATH="+bin+":"+os.Getenv("PATH"))
		w := newWorldIn(t, newRoot(t), s)
		time.Sleep(at)
		r := w.call(t, arguments{"code": "1"})
		if !r.isError || !typed.MatchString(r.text) {
			t.Errorf("the call answered %.2000s", r.text)
		}
		lacksPaths(t, r.text)
		mendRuntime(t, bin)
		w.recovers(t, "")
		w.leavesNothing(t)
	}},
	{"OCI runtime fails now and then", ms(7, 9, 11), func(t *testing.T, every time.Duration) {
		bin := brokenRuntime(t, "")
		count := filepath.Join(bin, "count")
		script := fmt.Sprintf("#!/bin/sh\necho >>%[1]s\n[ $(( $(wc -l <%[1]s) %% %[2]d )) -ne 0 ] || exit 1\nexec %[3]s \"$@\"\n",
			count, every.Milliseconds(), realRuntime(t))
		if err := os.WriteFile(filepath.Join(bin, "runc"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		s := special(t, "--warm=0")
		s.env = append(s.env, "PATH="+bin+":"+os.Getenv("PATH"))
		w := newWorldIn(t, newRoot(t), s)
		for i := range 4 {
			w.recovers(t, fmt.Sprint("s", i))
		}
		mendRuntime(t, bin)
		w.self.signal(t, syscall.SIGTERM) // a container whose removal has failed is left for the next
		w.isSwept(t)
	}},
}

// realRuntime is the OCI runtime that the tests' engine uses.
func realRuntime(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// brokenRuntime returns a folder to put first in PATH, with a script in place of
// the OCI runtimes.
func brokenRuntime(t *testing.T, script string) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"runc", "crun"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

func mendRuntime(t *testing.T, bin string) {
	t.Helper()
	for _, name := range []string{"runc", "crun"} {
		path := filepath.Join(bin, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if whole, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(whole, path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// brokenHost are the ways of a host that has too little of something.
var brokenHost = []fault{
	{"runtime directory deleted", ms(0, 50, 100), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "kept = 'kept'")
		time.Sleep(at)
		if err := os.RemoveAll(filepath.Join(w.root, "mcp-bridge")); err != nil {
			t.Fatal(err)
		}
		w.wants(t, "kept", "'kept'")
		w.recovers(t, "second")
		w.leavesNothing(t)
	}},
	{"runtime directory read-only", ms(0, 50, 100), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "kept = 'kept'")
		time.Sleep(at)
		unmount := mount(t, filepath.Join(w.root, "mcp-bridge"), syscall.MS_RDONLY, "size=4k")
		w.refuses(t, "second")
		w.wants(t, "kept", "'kept'")
		unmount()
		w.recovers(t, "second")
		w.leavesNothing(t)
	}},
	{"disk full", ms(0, 50, 100), func(t *testing.T, at time.Duration) {
		root := newRoot(t)
		unmount := mount(t, root, 0, "size=1m")
		defer unmount()
		w := newWorldIn(t, root, special(t, "--warm=0"))
		w.run(t, "kept = 'kept'")
		filler := filepath.Join(root, "filler")
		_ = os.WriteFile(filler, make([]byte, 2<<20), 0o600) // as much as there is room for
		time.Sleep(at)
		w.refuses(t, "second")
		w.wants(t, "kept", "'kept'")
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		w.recovers(t, "second")
		w.leavesNothing(t)
	}},
	{"no file descriptors", ms(0, 50, 100), func(t *testing.T, at time.Duration) {
		w := newWorld(t, "--warm=0")
		w.run(t, "kept = 'kept'")
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.self.pid))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(at)
		limitFiles(t, w.self.pid, len(open)+1)
		w.refuses(t, "second")
		w.wants(t, "kept", "'kept'")
		limitFiles(t, w.self.pid, 1024)
		w.recovers(t, "second")
		w.leavesNothing(t)
	}},
	{"bridge stopped for a while", ms(100, 1000, 3000), func(t *testing.T, at time.Duration) {
		w := newWorld(t)
		w.run(t, "kept = 'kept'")
		ended := w.occupy(t, "", "time.sleep(1)\nprint('slept')")
		w.self.signal(t, syscall.SIGSTOP)
		time.Sleep(at)
		w.self.signal(t, syscall.SIGCONT)
		if r := <-ended; r.isError || !strings.Contains(r.text, "slept") {
			t.Errorf("the call answered %s", r.text)
		}
		w.wants(t, "kept", "'kept'")
		w.leavesNothing(t)
	}},
	{"decoys", ms(0, 1, 2), func(t *testing.T, _ time.Duration) {
		w := newWorld(t, "--warm=0")
		mine := ownedBy(t, w)
		living := process{os.Getpid(), startOf(os.Getpid())}
		other := func(pairs ...string) string { return create(t, ownedBy(t, w, pairs...)) }
		dead := fmt.Sprint(endedPID(t))
		decoys := map[string]string{
			"another user, dead":        other(labelOwner, "54321", labelPID, dead),
			"another namespace, dead":   other(labelPIDNS, "1", labelPID, dead),
			"a living bridge":           other(),
			"a living process":          other(labelPID, fmt.Sprint(living.pid), labelStart, living.start),
			"a name that looks like us": create(t, map[string]string{"io.mcp-bridge.own": mine[labelOwner], "io.mcp-bridgex.pid": dead}),
			"no start time":             other(labelPID, dead, labelStart, ""),
			"odd boot":                  other(labelPID, dead, labelBoot, ""),
			"pid with a sign":           other(labelPID, "+"+dead),
		}
		orphans := map[string]string{
			"power cut, pid in use": other(labelBoot, "00000000-0000-4000-8000-000000000000"),
			"power cut":             other(labelBoot, "00000000-0000-4000-8000-000000000000", labelPID, dead),
			"pid reused":            other(labelPID, fmt.Sprint(living.pid), labelStart, "1"),
			"dead":                  other(labelPID, dead),
		}
		sweeper := newWorldIn(t, w.root, special(t, "--warm=0"))
		for kind, id := range orphans {
			eventually(t, patience, "orphan removed: "+kind, func() bool { return !exists(id) })
		}
		sweeper.leavesNothing(t)
		for kind, id := range decoys {
			if !exists(id) {
				t.Errorf("the decoy %q is gone", kind)
			}
			podman(t, nil, "rm", "--force", id)
		}
		w.leavesNothing(t)
	}},
}

// refuses has a session ask for a sandbox that cannot be made.
func (w *world) refuses(t *testing.T, session string) {
	t.Helper()
	r := w.call(t, inSession(session, "1"))
	if !r.isError || !typed.MatchString(r.text) {
		t.Errorf("the call answered %.2000s", r.text)
	}
	lacksPaths(t, r.text)
}

// endedPID is the pid of a process that has ended.
func endedPID(t *testing.T) int {
	t.Helper()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	return ended.Process.Pid
}

// mount puts a small file system in the place of a directory.
func mount(t *testing.T, dir string, flags uintptr, options string) (unmount func()) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options+",mode=0700"); err != nil {
		t.Fatalf("mount: %v", err)
	}
	unmount = sync.OnceFunc(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	t.Cleanup(unmount)
	return unmount
}

// limitFiles bounds how many files a process may open; it can be raised again.
func limitFiles(t *testing.T, pid, n int) {
	t.Helper()
	if out, err := exec.Command("prlimit", fmt.Sprintf("--pid=%d", pid), fmt.Sprintf("--nofile=%d:", n)).CombinedOutput(); err != nil {
		t.Fatalf("prlimit: %v: %s", err, out)
	}
}
