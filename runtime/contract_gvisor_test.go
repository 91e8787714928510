//go:build linux

package runtime_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/gvisor"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	sandboximage "github.com/mcp-bridge/mcp-bridge/sandbox-image"
)

// gvisorOptions are for the runsc that `make build` has put beside the bridge,
// on the host's own Python.
func gvisorOptions(t *testing.T) runtimetest.Options {
	left := gvisorLeftovers{homes: map[string]*local.Home{}, groups: map[string]*local.OwnCgroup{}, labels: map[string]map[string]string{}}
	return runtimetest.Options{
		Snapshots:  true,
		Name:       "gvisor",
		Transports: []runtime.Transport{runtime.TransportFD, runtime.TransportStdio},
		Seccomp:    sandboximage.Seccomp(),
		Unlimited:  os.Geteuid() != 0,
		Open: func(t testing.TB, dir string, transport runtime.Transport) runtime.Engine {
			t.Helper()
			left.dir = dir
			engine, err := gvisor.New(gvisor.Options{
				Runsc: runsc(t), Transport: transport, RuntimeDir: dir, Logger: logger(t),
				CacheDir: filepath.Join(os.TempDir(), fmt.Sprintf("mcpb-gvisor-contract-%d", os.Geteuid())),
			})
			if err != nil {
				t.Fatal(err)
			}
			return engine
		},
		Containers: func(t testing.TB, label, value string) []string { return left.find(t, label, value) },
		Kill: func(t testing.TB, name string) {
			for _, pid := range runscProcesses(t, func(p runscProcess) bool { return p.id == name && p.kernel }) {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		},
		Create:  left.create,
		Remove:  left.remove,
		CPUTime: gvisorCPUTime,
		Instead: map[string]string{
			// gVisor's seccomp has EPERM and ENOSYS, whatever else a profile asks for.
			"socket": "EPERM",
			// It has no such call.
			"cachestat": "ENOSYS",
			// Priorities count among the processes of one sandbox only.
			"renice": "ok",
			// There is one table of calls, and one filter, for all conventions: what
			// is called is another call, or none.
			"32-bit system call": "0",
			"x32 system call":    "0",
			// What all processes share is the Sentry's memory: it goes, and they with it.
			"memory of a child": "the sandbox",
		},
	}
}

// runsc is the path of the helper.
func runsc(t testing.TB) string {
	t.Helper()
	path := os.Getenv("MCP_BRIDGE_TEST_RUNSC")
	if path == "" {
		path = "../bin/mcp-bridge-runsc"
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// gvisorCPUTime is what the Sentry and the processes below it have used: clocks
// inside count the time in which a process could have run.
func gvisorCPUTime(t testing.TB, name string) time.Duration {
	t.Helper()
	ticks := int64(0)
	todo := runscProcesses(t, func(p runscProcess) bool { return p.id == name && p.kernel })
	for len(todo) > 0 {
		pid := todo[0]
		todo = todo[1:]
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 {
			user, _ := strconv.ParseInt(fields[11], 10, 64)
			system, _ := strconv.ParseInt(fields[12], 10, 64)
			ticks += user + system
		}
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, list := range lists {
			children, _ := os.ReadFile(list)
			for child := range strings.FieldsSeq(string(children)) {
				if n, err := strconv.Atoi(child); err == nil {
					todo = append(todo, n)
				}
			}
		}
	}
	return time.Duration(ticks) * time.Second / 100
}

// runscProcess is a process of a sandbox as the host's /proc shows it.
type runscProcess struct {
	id     string // the sandbox's
	parent int
	kernel bool // it is the Sentry
}

// runscProcesses returns the processes of runsc's that match.
func runscProcesses(t testing.TB, match func(runscProcess) bool) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
		if len(args) < 2 || !strings.Contains(args[0], "runsc") {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		p := runscProcess{kernel: args[0] == "runsc-sandbox"}
		for _, arg := range args {
			if bundle, ok := strings.CutPrefix(arg, "--bundle="); ok {
				p.id = filepath.Base(bundle)
			}
		}
		if fields := strings.Fields(rest); len(fields) > 1 {
			p.parent, _ = strconv.Atoi(fields[1])
		}
		if match(p) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// gvisorLeftovers makes what a dead owner leaves: there is no engine that would
// keep containers.
type gvisorLeftovers struct {
	dir    string
	homes  map[string]*local.Home
	groups map[string]*local.OwnCgroup
	labels map[string]map[string]string
}

// create makes a control group like those of an owner with the labels. Without
// all of them there is no owner's name for it to have.
func (l *gvisorLeftovers) create(t testing.TB, name string, labels map[string]string) {
	t.Helper()
	owner, ok := local.OwnerFromLabels(labels)
	if !ok {
		owner = local.Owner{Boot: "not-ours", PID: 1}
	}
	home, err := local.NewHome(l.dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	l.homes[name], l.labels[name] = home, labels
	if !ok {
		renamed := home.Path + ".not-ours"
		if err := os.Rename(home.Path, renamed); err != nil {
			t.Fatal(err)
		}
		home.Path = renamed
	}
	if os.Geteuid() != 0 {
		return
	}
	limits := runtime.CgroupLimits{MemoryBytes: 1 << 26, PIDs: 10, MilliCPUs: 100}
	if l.groups[name], err = home.NewOwnCgroup(t.Context(), name, limits); err != nil {
		t.Fatal(err)
	}
	if owner.UID != os.Geteuid() {
		if err := l.groups[name].Chown(owner.UID); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *gvisorLeftovers) remove(t testing.TB, name string) {
	t.Helper()
	for _, pid := range runscProcesses(t, func(p runscProcess) bool { return p.id == name && !p.kernel }) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if home := l.homes[name]; home != nil {
		if err := home.Remove(); err != nil {
			t.Error(err)
		}
	}
	if group := l.groups[name]; group != nil {
		if err := group.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// find looks for processes of sandboxes, and for what create has made.
func (l *gvisorLeftovers) find(t testing.TB, label, value string) []string {
	t.Helper()
	var found []string
	runscProcesses(t, func(p runscProcess) bool {
		if label == local.LabelSandbox && p.id == value || label == local.LabelPID && strconv.Itoa(p.parent) == value {
			found = append(found, p.id)
		}
		return false
	})
	for name, labels := range l.labels {
		group := l.groups[name]
		there := group != nil && group.Exists()
		if group == nil {
			_, err := os.Stat(l.homes[name].Path)
			there = err == nil
		}
		if there && labels[label] == value {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
