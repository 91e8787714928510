package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// engineFaults are the ways of what is particular to one engine.
var engineFaults = map[string][]fault{
	"docker": {
		{"docker: shim killed", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
			w := newWorldOn(t, "docker")
			w.run(t, "1")
			time.Sleep(at)
			shim := parentOf(dockerPID(t, w))
			process{shim, startOf(shim)}.signal(t, syscall.SIGKILL)
			w.recovers(t, "")
			w.endsWithoutHomes(t)
		}},
		{"docker: supervisor killed", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
			w := newWorldOn(t, "docker")
			ended := w.occupy(t, "", "while True: pass")
			time.Sleep(at)
			pid := dockerPID(t, w)
			process{pid, startOf(pid)}.signal(t, syscall.SIGKILL)
			w.failsWith(t, ended, "the sandbox ended")
			w.recovers(t, "")
			w.endsWithoutHomes(t)
		}},
		{"docker: bridge killed", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
			w := newWorldOn(t, "docker")
			w.occupy(t, "", "while True: pass")
			pid := dockerPID(t, w)
			sandbox := process{pid, startOf(pid)}
			time.Sleep(at)
			w.self.signal(t, syscall.SIGKILL)
			eventually(t, soon, "the sandbox has ended", func() bool { return !sandbox.alive() })
		}},
	},
	"gvisor": {
		{"gvisor: sandbox killed", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
			w := newWorldOn(t, "gvisor")
			ended := w.occupy(t, "", "while True: pass")
			time.Sleep(at)
			w.helper(t, "boot").signal(t, syscall.SIGKILL)
			w.failsWith(t, ended, "the sandbox ended")
			w.recovers(t, "")
			w.endsWithoutHomes(t)
		}},
		{"gvisor: runsc killed", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
			w := newWorldOn(t, "gvisor")
			w.run(t, "1")
			time.Sleep(at)
			w.helper(t, "run").signal(t, syscall.SIGKILL)
			w.recovers(t, "")
			w.endsWithoutHomes(t)
		}},
		{"gvisor: bridge killed", ms(0, 100, 300), func(t *testing.T, at time.Duration) {
			w := newWorldOn(t, "gvisor")
			w.occupy(t, "", "while True: pass")
			w.helper(t, "boot")
			all := descendants(w.self.pid)
			time.Sleep(at)
			w.self.signal(t, syscall.SIGKILL)
			for _, p := range all {
				eventually(t, soon, fmt.Sprintf("process %d has ended", p.pid), func() bool { return !p.alive() })
			}
		}},
	},
}

// TestEngineFaults has engines other than Podman break, where the environment
// names them.
func TestEngineFaults(t *testing.T) {
	t.Parallel()
	named := strings.Split(os.Getenv("MCP_BRIDGE_TEST_RUNTIMES"), ",")
	for engine, faults := range engineFaults {
		if !slices.Contains(named, engine) {
			continue
		}
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

// dockerPID is the first process of the bridge's only container on Docker.
func dockerPID(t *testing.T, w *world) int {
	t.Helper()
	id, err := exec.Command("docker", "ps", "--quiet", "--filter", fmt.Sprintf("label=%s=%d", labelPID, w.self.pid)).Output()
	if err != nil {
		t.Fatalf("docker ps: %v", err)
	}
	out, err := exec.Command("docker", "inspect", "--format", "{{.State.Pid}}", strings.TrimSpace(string(id))).Output()
	if err != nil {
		t.Fatalf("docker inspect: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || pid == 0 {
		t.Fatalf("docker inspect: %s, %v", out, err)
	}
	return pid
}

// endsWithoutHomes ends the bridge in order, and looks for directories.
func (w *world) endsWithoutHomes(t *testing.T) {
	t.Helper()
	_ = w.stdin.Close()
	eventually(t, patience, "the bridge ends", func() bool { return !w.self.alive() })
	if homes := w.homes(); len(homes) > 0 {
		t.Errorf("left on the host: %v", homes)
	}
	if left := descendants(w.self.pid); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}
