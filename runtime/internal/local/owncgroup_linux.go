package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// ErrNoCgroup is wrapped by the error of [NewOwnCgroup] where this process may
// not make control groups with the limits that are wanted.
var ErrNoCgroup = errors.New("no control group for limits")

// An OwnCgroup is a control group that we made, for engines that leave that to
// us. With cgroup v1 it is one in each hierarchy that matters.
type OwnCgroup struct {
	Cgroup
	home Cgroup // where this process is
}

// ownCgroupPrefix begins the name of every control group of ours; after it come
// the name of the owner's [Home], a dash and the sandbox's id.
const ownCgroupPrefix = "mcpb-"

// NewOwnCgroup makes a control group for the sandbox id, with its limits.
func (h *Home) NewOwnCgroup(ctx context.Context, id string, limits runtime.CgroupLimits) (*OwnCgroup, error) {
	home, err := CgroupOf(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCgroup, err)
	}
	base := home.base()
	g := &OwnCgroup{home: home, Cgroup: base.child(ownCgroupPrefix + filepath.Base(h.Path) + "-" + id)}
	if err := g.create(base, limits); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoCgroup, err), g.Remove(ctx))
	}
	return g, nil
}

// base is below what we make control groups: with v1 our own group, with v2,
// where a group with processes can have none below it, the one above.
func (g Cgroup) base() Cgroup {
	if g.v2 {
		for _, d := range []*cgroupDir{&g.memory, &g.pids, &g.cpu} {
			d.path = path.Dir(path.Clean("/" + d.path))
		}
	}
	return g
}

func (g Cgroup) child(name string) Cgroup {
	for _, d := range []*cgroupDir{&g.memory, &g.pids, &g.cpu} {
		d.path = path.Join("/", d.path, name)
	}
	return g
}

// dirs are the group's directories, each once.
func (g Cgroup) dirs() []string {
	dirs := []string{g.memory.dir(), g.pids.dir(), g.cpu.dir()}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func (g *OwnCgroup) create(base Cgroup, l runtime.CgroupLimits) error {
	if g.v2 {
		if err := base.delegate(); err != nil {
			return err
		}
	}
	for _, dir := range g.dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // like all of its kind; what is in it belongs to us
			return err
		}
	}
	for _, s := range g.settings(l) {
		err := writeSetting(filepath.Join(s.dir, s.file), s.value)
		if s.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A setting is one file of a control group.
type setting struct {
	dir, file, value string
	optional         bool // whether it is in force is for attestation to judge
}

func (g *OwnCgroup) settings(l runtime.CgroupLimits) []setting {
	memory := g.memory.dir()
	quota, period := runtime.CPUQuota(l.MilliCPUs)
	if g.v2 {
		return []setting{
			{memory, "memory.max", decimal(l.MemoryBytes), false},
			{memory, "memory.swap.max", decimal(l.SwapBytes), true}, // not there without swap
			{memory, "memory.oom.group", "1", true},
			{memory, "pids.max", decimal(l.PIDs), false},
			{memory, "cpu.max", decimal(quota) + " " + decimal(period), false},
		}
	}
	return []setting{
		{memory, "memory.limit_in_bytes", decimal(l.MemoryBytes), false},
		{memory, "memory.memsw.limit_in_bytes", decimal(l.MemoryBytes + l.SwapBytes), true}, // not there without swap accounting
		{g.pids.dir(), "pids.max", decimal(l.PIDs), false},
		{g.cpu.dir(), "cpu.cfs_period_us", decimal(period), false},
		{g.cpu.dir(), "cpu.cfs_quota_us", decimal(quota), false},
	}
}

// delegate turns the controllers on for the groups below g, if they are not yet.
func (g Cgroup) delegate() error {
	file := filepath.Join(g.memory.dir(), "cgroup.subtree_control")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	on := strings.Fields(string(data))
	for _, controller := range []string{"memory", "pids", "cpu"} {
		if slices.Contains(on, controller) {
			continue
		}
		if err := writeSetting(file, "+"+controller); err != nil {
			return fmt.Errorf("controller %s: %w", controller, err)
		}
	}
	return nil
}

// Start starts cmd in the group. The calling goroutine must be locked to its
// thread, which with v1 is in the group for that moment: what a thread starts
// is where the thread is.
func (g *OwnCgroup) Start(cmd *exec.Cmd) error {
	if g.v2 {
		dir, err := os.Open(g.memory.dir())
		if err != nil {
			return err
		}
		defer dir.Close()
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
		return cmd.Start()
	}
	if err := enter(g.Cgroup); err != nil {
		return errors.Join(err, enter(g.home))
	}
	err := cmd.Start()
	return errors.Join(err, enter(g.home))
}

// enter moves the calling thread.
func enter(g Cgroup) error {
	for _, dir := range g.dirs() {
		if err := writeSetting(filepath.Join(dir, "tasks"), strconv.Itoa(unix.Gettid())); err != nil {
			return err
		}
	}
	return nil
}

// Exists reports whether anything of the group is there.
func (g *OwnCgroup) Exists() bool {
	return slices.ContainsFunc(g.dirs(), func(dir string) bool { _, err := os.Lstat(dir); return err == nil })
}

// Chown gives the group to a user, who may then remove it.
func (g *OwnCgroup) Chown(uid int) error {
	var errs []error
	for _, dir := range g.dirs() {
		errs = append(errs, os.Chown(dir, uid, -1))
	}
	return errors.Join(errs...)
}

// Remove kills what is in the group and removes it.
func (g *OwnCgroup) Remove(ctx context.Context) error {
	return removeCgroups(ctx, g.dirs())
}

// removeCgroups waits for processes to go for as long as ctx lets it.
func removeCgroups(ctx context.Context, dirs []string) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		var errs []error
		for _, dir := range dirs {
			if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
				killCgroup(dir)
				errs = append(errs, &fs.PathError{Op: "remove control group", Path: dir, Err: err})
			}
		}
		if len(errs) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(errs...)
		case <-time.After(wait):
		}
	}
}

// killCgroup kills the processes in a group of ours. None of them can be
// anything else: they are in it because we started them in it.
func killCgroup(dir string) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for field := range strings.FieldsSeq(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL) // it may be gone
		}
	}
}

// SweepCgroups removes the control groups that dead owners have left where this
// process would make its own, and returns how many sandboxes they were of.
func SweepCgroups(ctx context.Context, self Owner) (int, error) {
	home, err := CgroupOf(os.Getpid())
	if err != nil {
		return 0, nil //nolint:nilerr // without control groups there are none of ours
	}
	orphans := map[string][]string{}
	for _, dir := range home.base().dirs() {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if owner, ok := ownerOfCgroup(e.Name(), self); ok && self.Outlived(owner) && belongsTo(path, self.UID) {
				orphans[e.Name()] = append(orphans[e.Name()], path)
			}
		}
	}
	removed := 0
	var errs []error
	for _, dirs := range orphans {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := removeCgroups(ctx, dirs)
		cancel()
		if err == nil {
			removed++
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

func belongsTo(dir string, uid int) bool {
	var st unix.Stat_t
	err := unix.Lstat(dir, &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == uid
}

func ownerOfCgroup(name string, self Owner) (Owner, bool) {
	rest, ours := strings.CutPrefix(name, ownCgroupPrefix)
	home, _, ok := strings.Cut(rest, "-")
	if !ours || !ok {
		return Owner{}, false
	}
	return ownerOfHome(home, self)
}

func writeSetting(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
