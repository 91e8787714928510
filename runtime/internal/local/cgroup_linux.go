package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A Cgroup is the control group of a process, in each hierarchy that matters.
type Cgroup struct {
	memory, pids, cpu cgroupDir
	v2                bool
}

// cgroupDir is a group's directory in one hierarchy.
type cgroupDir struct {
	mount string // where the hierarchy is mounted
	path  string // the group, below mount
}

func (d cgroupDir) dir() string { return filepath.Join(d.mount, d.path) }

// CgroupOf returns the control group of a process.
func CgroupOf(pid int) (Cgroup, error) {
	text, err := procSource(fmt.Sprintf("/proc/%d", pid))("cgroup")
	if err != nil {
		return Cgroup{}, err
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Cgroup{}, err
	}
	return parseCgroup(text, string(mountinfo))
}

// parseCgroup finds the hierarchies of a process's groups among our mounts. A
// controller is in a v1 hierarchy of its own or, failing that, in v2.
func parseCgroup(cgroup, mountinfo string) (Cgroup, error) {
	mounts, err := parseMountinfo(mountinfo)
	if err != nil {
		return Cgroup{}, err
	}
	paths := map[string]string{} // by controller, "" for v2
	for line := range strings.Lines(cgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			return Cgroup{}, errors.New("unexpected form of /proc/pid/cgroup")
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			paths[controller] = parts[2]
		}
	}
	find := func(controller string) (cgroupDir, bool, error) {
		group, v1 := paths[controller]
		want := "cgroup"
		if !v1 {
			group, controller, want = paths[""], "", "cgroup2"
		}
		for _, m := range mounts {
			holds := controller == "" || path.Base(m.Point) == controller || strings.Contains(","+path.Base(m.Point)+",", ","+controller+",")
			if m.Type != want || !holds {
				continue
			}
			below, inside := strings.CutPrefix(group, strings.TrimSuffix(m.Root, "/"))
			if inside && strings.HasPrefix(below+"/", "/") && !strings.Contains(group, "..") {
				return cgroupDir{mount: m.Point, path: below}, !v1, nil
			}
		}
		return cgroupDir{}, false, fmt.Errorf("no %s hierarchy is mounted here for controller %q", want, controller)
	}
	var g Cgroup
	var err1, err2, err3 error
	g.memory, g.v2, err1 = find("memory")
	g.pids, _, err2 = find("pids")
	g.cpu, _, err3 = find("cpu")
	return g, errors.Join(err1, err2, err3)
}

// Limits returns what is in force for the group: of each limit the tightest
// from the group up, for engines may set them on a parent.
func (g Cgroup) Limits() (runtime.CgroupLimits, error) {
	l := runtime.CgroupLimits{}
	var err1, err2, err3, err4 error
	l.PIDs, err1 = g.pids.tightest(readLimit("pids.max"))
	if g.v2 {
		l.MemoryBytes, err2 = g.memory.tightest(readLimit("memory.max"))
		l.SwapBytes, err3 = g.memory.tightest(readLimit("memory.swap.max"))
		l.MilliCPUs, err4 = g.cpu.tightest(readCPUMax)
	} else {
		l.MemoryBytes, err2 = g.memory.tightest(readLimit("memory.limit_in_bytes"))
		l.SwapBytes, err3 = g.memory.tightest(readLimit("memory.memsw.limit_in_bytes"))
		if l.SwapBytes != runtime.Unlimited && l.MemoryBytes != runtime.Unlimited {
			l.SwapBytes = max(0, l.SwapBytes-l.MemoryBytes)
		}
		l.MilliCPUs, err4 = g.cpu.tightest(readCFS)
	}
	if l.SwapBytes == runtime.Unlimited && !hostHasSwap() {
		l.SwapBytes = 0 // without swap accounting, nor anything to account
	}
	return l, errors.Join(err1, err2, err3, err4)
}

// tightest returns the smallest limit from d up to its mount.
func (d cgroupDir) tightest(read func(dir string) (int64, error)) (int64, error) {
	limit := runtime.Unlimited
	for group := path.Clean("/" + d.path); ; group = path.Dir(group) {
		n, err := read(filepath.Join(d.mount, group))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the root group has no limits
			return 0, err
		}
		if err == nil && n != runtime.Unlimited && (limit == runtime.Unlimited || n < limit) {
			limit = n
		}
		if group == "/" {
			return limit, nil
		}
	}
}

func readLimit(file string) func(string) (int64, error) {
	return func(dir string) (int64, error) {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return 0, err
		}
		return parseLimit(string(data))
	}
}

// readCPUMax reads cgroup v2's "quota period".
func readCPUMax(dir string) (int64, error) {
	data, err := os.ReadFile(filepath.Join(dir, "cpu.max"))
	if err != nil {
		return 0, err
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	return milliCPUs(quota, period)
}

func readCFS(dir string) (int64, error) {
	quota, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
	if err != nil {
		return 0, err
	}
	period, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
	if err != nil {
		return 0, err
	}
	return milliCPUs(string(quota), string(period))
}

func milliCPUs(quota, period string) (int64, error) {
	q, err := parseLimit(quota)
	if err != nil || q == runtime.Unlimited {
		return q, err
	}
	p, err := parseLimit(period)
	if err != nil || p <= 0 {
		return 0, fmt.Errorf("unexpected CPU period %q", period)
	}
	return q * 1000 / p, nil
}

func hostHasSwap() bool {
	data, err := os.ReadFile("/proc/swaps")
	return err != nil || strings.Count(string(data), "\n") > 1
}

// Gone reports whether the group has been removed.
func (g Cgroup) Gone() bool {
	_, err := os.Stat(g.memory.dir())
	return errors.Is(err, fs.ErrNotExist)
}

// OOMKills returns how often the OOM killer has acted in the process's control
// group, for a group that exists.
func (g Cgroup) OOMKills() int64 {
	for _, file := range []string{"memory.events", "memory.oom_control"} {
		data, err := os.ReadFile(filepath.Join(g.memory.dir(), file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == "oom_kill" {
				n, _ := strconv.ParseInt(value, 10, 64)
				return n
			}
		}
	}
	return 0
}
