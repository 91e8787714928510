//go:build linux

package proxy_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// marked returns the processes with MARK=mark in their environment, and the
// guards that lead their groups.
func marked(t *testing.T, mark string) (pids []int) {
	t.Helper()
	groups := map[string]bool{}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		env, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && strings.Contains("\x00"+string(env), "\x00MARK="+mark+"\x00") && alive(pid) {
			pids = append(pids, pid)
			groups[group(pid)] = true
		}
	}
	for leader := range groups {
		if pid, _ := strconv.Atoi(leader); pid > 0 && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// group returns the process group of pid.
func group(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	if fields := strings.Fields(rest); len(fields) > 2 {
		return fields[2]
	}
	return ""
}

func wantGone(t *testing.T, pids []int) {
	t.Helper()
	eventually(t, "all processes are gone", func() bool {
		return !slices.ContainsFunc(pids, alive)
	})
}

// Each server: a shell, a sleep, the server itself, and the guard.
const wrappedProcesses = 2 * 4

func TestCloseLeavesNoProcess(t *testing.T) {
	mark := t.Name() + strconv.Itoa(os.Getpid())
	p := newProxyWith(t, proxy.Options{Servers: wrapped(upstreamtest.Command(t), mark)})
	call(t, p, "good", "echo", `{"text":"x"}`)
	call(t, p, "stubborn", "weird", "")
	pids := marked(t, mark)
	if len(pids) != wrappedProcesses {
		t.Errorf("found %d processes, want %d", len(pids), wrappedProcesses)
	}
	begun := time.Now()
	_ = p.Close()
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("Close took %v", took)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d outlived Close", pid)
		}
	}
}

func TestKilledBridgeLeavesNoProcess(t *testing.T) {
	mark := t.Name() + strconv.Itoa(os.Getpid())
	helper := exec.CommandContext(t.Context(), upstreamtest.Command(t))
	helper.Env = append(os.Environ(), helperVar+"="+mark)
	helper.Stderr = t.Output()
	stdout, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("helper said %q, %v", line, err)
	}
	pids := marked(t, mark)
	if len(pids) != wrappedProcesses {
		t.Errorf("found %d processes, want %d", len(pids), wrappedProcesses)
	}
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait()
	wantGone(t, pids)
}

// A server that exits and leaves a child holding its output is over.
func TestOrphanedChild(t *testing.T) {
	server := testServer(t, upstreamtest.Orphan)
	mark := t.Name() + strconv.Itoa(os.Getpid())
	server.Env["MARK"] = mark
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{server}})
	_, err := p.Call(t.Context(), "orphan", "weird", nil)
	wantError(t, err, proxy.ServerFailed, "exit status 5")
	eventually(t, "the child is gone", func() bool { return len(marked(t, mark)) == 0 })
}
