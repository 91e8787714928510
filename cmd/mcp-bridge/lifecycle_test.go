package main_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Labels that containers of a bridge have.
const (
	labelOwner   = "io.mcp-bridge.owner"
	labelBoot    = "io.mcp-bridge.boot"
	labelPID     = "io.mcp-bridge.pid"
	labelPIDNS   = "io.mcp-bridge.pidns"
	labelStart   = "io.mcp-bridge.start"
	labelSandbox = "io.mcp-bridge.sandbox"
)

// goneWithin is how soon nothing may be left of a bridge, on a machine that runs
// all the tests at once, some of which stop Podman while it holds its locks.
const goneWithin = time.Minute

// containersOf names the containers of the bridge that has, or had, that pid.
func containersOf(t *testing.T, pid int) []string {
	t.Helper()
	out, err := exec.Command("podman", "ps", "--all", "--filter", fmt.Sprintf("label=%s=%d", labelPID, pid), "--format", "{{.Names}}").Output()
	if err != nil {
		t.Fatalf("podman ps: %v", err)
	}
	return strings.Fields(string(out))
}

// A process is named by its pid and when it started: pids are used again.
type process struct {
	pid   int
	start string
}

// descendants are the processes that pid has started, and those they have.
func descendants(pid int) []process {
	var all []process
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		of, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		children = append(append(children, ' '), of...)
	}
	seen := map[int]bool{}
	for field := range strings.FieldsSeq(string(children)) {
		child, err := strconv.Atoi(field)
		if err != nil || seen[child] {
			continue
		}
		seen[child] = true
		all = append(all, process{child, startOf(child)})
		all = append(all, descendants(child)...)
	}
	return all
}

// startOf is when pid started, in clock ticks since boot; "" if it is gone or a
// zombie.
func startOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

func (p process) alive() bool { return p.start != "" && startOf(p.pid) == p.start }

// A pipe starts a command when it is connected, and keeps its stdin at hand: the
// SDK's own transport would wait for running calls before it closes that.
type pipe struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
}

func (p *pipe) Connect(ctx context.Context) (mcp.Connection, error) {
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.stdout, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait() }() // reap it
	return (&mcp.IOTransport{Reader: p.stdout, Writer: p.stdin}).Connect(ctx)
}

// piped is connect, for a client that ends without a word.
func piped(t *testing.T, s setup) (c *client, closeStdin func() error) {
	t.Helper()
	p := &pipe{cmd: s.command(t, "run")}
	c = connectBy(t, p.cmd, p)
	return c, p.stdin.Close
}

// busy starts a bridge with sandboxes, a spare one, a server and a cell that is
// running, and returns the processes that belong to it.
func busy(t *testing.T) (c *client, closeStdin func() error, processes []process) {
	t.Helper()
	c, closeStdin = piped(t, special(t))
	c.run(t, "tools.special.stats()")
	c.runIn(t, "second", "1")
	go func() {
		_, _ = c.try(context.Background(), arguments{"code": "while True: pass", "session": "third"})
	}()
	eventually(t, patience, "three containers and a spare", func() bool { return len(containersOf(t, c.cmd.Process.Pid)) == 4 })
	processes = descendants(c.cmd.Process.Pid)
	upstream, err := strconv.Atoi(c.run(t, "tools.special.stats().pid"))
	if err != nil {
		t.Fatal(err)
	}
	processes = append(processes, process{upstream, startOf(upstream)})
	if len(processes) < 2 {
		t.Fatalf("the bridge has only the processes %v", processes)
	}
	return c, closeStdin, processes
}

// end ends a bridge by a signal or, if there is none, by closing its stdin.
func end(t *testing.T, c *client, closeStdin func() error, signal os.Signal) {
	t.Helper()
	err := closeStdin
	if signal != nil {
		err = func() error { return c.cmd.Process.Signal(signal) }
	}
	if err := err(); err != nil {
		t.Error(err)
	}
}

// nothingLeft checks that no container and no process stays behind.
func nothingLeft(t *testing.T, c *client, processes []process) {
	t.Helper()
	eventually(t, goneWithin, "containers are gone", func() bool { return len(containersOf(t, c.cmd.Process.Pid)) == 0 })
	eventually(t, goneWithin, "processes are gone", func() bool {
		for _, p := range processes {
			if p.alive() {
				return false
			}
		}
		return true
	})
	homes, _ := os.ReadDir("/run/mcp-bridge")
	for _, home := range homes {
		if strings.HasPrefix(home.Name(), strconv.FormatInt(int64(c.cmd.Process.Pid), 36)+".") {
			t.Errorf("the directory %s is left", home.Name())
		}
	}
}

// TestNothingIsLeft ends a busy bridge in every orderly way.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{
		"client closes stdin": nil, "SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGHUP": syscall.SIGHUP,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, closeStdin, processes := busy(t)
			begin := time.Now()
			end(t, c, closeStdin, signal)
			self := process{c.cmd.Process.Pid, startOf(c.cmd.Process.Pid)}
			eventually(t, goneWithin, "the bridge ends", func() bool { return !self.alive() })
			nothingLeft(t, c, processes)
			t.Logf("all gone after %v", time.Since(begin).Round(time.Millisecond))
		})
	}
}

// TestStartIsEnded closes stdin and sends SIGTERM while a sandbox is being
// started.
func TestStartIsEnded(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{"client closes stdin": nil, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, closeStdin := piped(t, setup{})
			go func() {
				_, _ = c.try(context.Background(), arguments{"code": "1"})
			}()
			eventually(t, patience, "a container service is started", func() bool { return len(descendants(c.cmd.Process.Pid)) > 0 })
			end(t, c, closeStdin, signal)
			self := process{c.cmd.Process.Pid, startOf(c.cmd.Process.Pid)}
			eventually(t, goneWithin, "the bridge ends", func() bool { return !self.alive() })
			nothingLeft(t, c, nil)
		})
	}
}

// TestKilledBridge kills a bridge. Its sandboxes and servers end by themselves,
// those of another bridge go on.
func TestKilledBridge(t *testing.T) {
	t.Parallel()
	c, _, processes := busy(t)
	other := connect(t, special(t, "--warm=0"))
	other.run(t, "kept = 'kept'; pid = tools.special.stats().pid")
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "containers end with their bridge", func() bool { return len(containersOf(t, c.cmd.Process.Pid)) == 0 })
	eventually(t, patience, "processes end with their bridge", func() bool {
		for _, p := range processes {
			if p.alive() {
				return false
			}
		}
		return true
	})
	other.wants(t, "kept, tools.special.stats().pid == pid", "('kept', True)")
	if n := len(containersOf(t, other.cmd.Process.Pid)); n != 1 {
		t.Errorf("the other bridge has %d containers, want its 1", n)
	}
}

// TestOrphans leaves containers of all kinds of owners behind and starts a
// bridge, which must remove those of dead bridges and no others.
func TestOrphans(t *testing.T) {
	t.Parallel()
	live := connect(t, setup{args: []string{"--warm=0"}})
	live.run(t, "kept = 'kept'")
	name := containersOf(t, live.cmd.Process.Pid)
	if len(name) != 1 {
		t.Fatalf("the live bridge has the containers %v", name)
	}
	mine := labelsOf(t, name[0])
	// A dead bridge, with a pid that is in use again by a living process.
	start, err := strconv.Atoi(mine[labelStart])
	if err != nil {
		t.Fatal(err)
	}
	earlier := strconv.Itoa(start - 1)
	changed := func(pairs ...string) map[string]string {
		labels := maps.Clone(mine)
		for i := 0; i < len(pairs); i += 2 {
			labels[pairs[i]] = pairs[i+1]
			if pairs[i+1] == "" {
				delete(labels, pairs[i])
			}
		}
		return labels
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dead := strconv.Itoa(ended.Process.Pid)
	orphans := map[string]string{
		"dead pid":     create(t, changed(labelPID, dead)),
		"pid reused":   create(t, changed(labelStart, earlier)),
		"earlier boot": create(t, changed(labelBoot, "00000000-0000-4000-8000-000000000000")),
	}
	others := map[string]string{
		"no labels":           create(t, nil),
		"another user's":      create(t, changed(labelOwner, "54321", labelPID, dead)),
		"another namespace's": create(t, changed(labelPIDNS, "1", labelPID, dead)),
		"incomplete labels":   create(t, changed(labelPID, dead, labelBoot, "")),
		"odd pid":             create(t, changed(labelPID, "0"+dead)),
		"the live bridge's":   create(t, mine),
	}
	connect(t, setup{}) // sweeps
	eventually(t, patience, "orphans are removed", func() bool {
		for _, id := range orphans {
			if exists(id) {
				return false
			}
		}
		return true
	})
	for kind, id := range others {
		if !exists(id) {
			t.Errorf("the container of kind %q is gone", kind)
		}
	}
	live.wants(t, "kept", "'kept'")
}

// labelsOf returns the labels that identify a container's owner.
func labelsOf(t *testing.T, container string) map[string]string {
	t.Helper()
	labels := map[string]string{}
	for _, label := range []string{labelOwner, labelBoot, labelPID, labelPIDNS, labelStart, labelSandbox} {
		out, err := exec.Command("podman", "inspect", "--format", `{{index .Config.Labels "`+label+`"}}`, container).Output()
		if err != nil {
			t.Fatalf("podman inspect: %v", err)
		}
		labels[label] = strings.TrimSpace(string(out))
	}
	return labels
}

// create makes a container that does not run, and removes it with the test.
func create(t *testing.T, labels map[string]string) string {
	t.Helper()
	args := []string{"create", "--network=none"}
	for k, v := range labels {
		args = append(args, "--label", k+"="+v)
	}
	out, err := exec.Command("podman", append(args, sandboxImage, "true")...).Output()
	if err != nil {
		t.Fatalf("podman create: %v", err)
	}
	id := strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("podman", "rm", "--force", "--ignore", id).Run() })
	return id
}

func exists(container string) bool {
	return exec.Command("podman", "container", "exists", container).Run() == nil
}
