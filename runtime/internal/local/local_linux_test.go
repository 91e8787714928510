package local

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

func self(t *testing.T) Owner {
	t.Helper()
	o, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOwnerLabels(t *testing.T) {
	o := self(t)
	if got, ok := OwnerFromLabels(o.Labels()); !ok || got != o {
		t.Errorf("%+v came back as %+v", o, got)
	}
	if o.Outlived(o) {
		t.Error("a living process is taken for dead")
	}
	for _, spoil := range []struct{ label, value string }{
		{LabelPID, "0"},
		{LabelPID, "-1"},
		{LabelPID, "+5"},
		{LabelPID, ""},
		{LabelPID, " 1"},
		{LabelStart, "x"},
		{LabelBoot, ""},
		{LabelOwner, "00"},
		{LabelPIDNS, "-1"},
	} {
		labels := o.Labels()
		labels[spoil.label] = spoil.value
		if got, ok := OwnerFromLabels(labels); ok {
			t.Errorf("%s=%q was read as %+v", spoil.label, spoil.value, got)
		}
	}
}

func TestOutlivedZombie(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/bin/true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := self(t)
	zombie := o
	zombie.PID = cmd.Process.Pid
	alive := true
	for range 1000 {
		if zombie.Start, alive, _ = processStart(zombie.PID); !alive {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if alive || !o.Outlived(zombie) {
		t.Errorf("a zombie is taken for alive")
	}
	cmd.Wait()
	if !o.Outlived(zombie) {
		t.Error("process that is gone is taken for alive")
	}
}

func TestHomes(t *testing.T) {
	root, o := filepath.Join(t.TempDir(), "rt"), self(t)
	mine, err := NewHome(root, o)
	if err != nil {
		t.Fatal(err)
	}
	gone, past, elsewhere := o, o, o
	gone.Start++
	past.Boot = "11111111-2222"
	elsewhere.PIDNS, elsewhere.Start = o.PIDNS+1, o.Start+1
	var paths []string
	for _, owner := range []Owner{gone, past, elsewhere} {
		h, err := NewHome(root, owner)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, h.Path)
	}
	for _, other := range []string{"notes", "1.2.3", "1.2.3.4.5.6", "zz.x!.1.1.1"} {
		if err := os.Mkdir(filepath.Join(root, other), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := SweepHomes(root, o); err != nil {
		t.Fatal(err)
	}
	exists := func(path string) bool { _, err := os.Lstat(path); return err == nil }
	if exists(paths[0]) || exists(paths[1]) {
		t.Error("the home of a dead owner is still there")
	}
	for _, path := range []string{mine.Path, paths[2], root + "/notes", root + "/1.2.3", root + "/1.2.3.4.5.6", root + "/zz.x!.1.1.1"} {
		if !exists(path) {
			t.Errorf("%s was removed", path)
		}
	}
	if err := SweepHomes(root+"/none", o); err != nil {
		t.Errorf("sweep of a directory that does not exist: %v", err)
	}
}

func TestSandboxDirModes(t *testing.T) {
	h, err := NewHome(filepath.Join(t.TempDir(), "rt"), self(t))
	if err != nil {
		t.Fatal(err)
	}
	d, err := h.NewSandboxDir("id", fstest.MapFS{"a/b.py": {Data: []byte("x")}}, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Listen("s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for path, want := range map[string]fs.FileMode{
		d.Path: 0o700, d.Seccomp: 0o600, d.Socket: 0o711, d.Socket + "/s": 0o666, d.Files: 0o755, d.Files + "/a": 0o755, d.Files + "/a/b.py": 0o644,
	} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestSandboxDirRefuses(t *testing.T) {
	h, err := NewHome(filepath.Join(t.TempDir(), "rt"), self(t))
	if err != nil {
		t.Fatal(err)
	}
	many := fstest.MapFS{}
	for i := range maxFiles + 1 {
		many[strings.Repeat("x", 1+i%200)+string(rune('a'+i/200))] = &fstest.MapFile{}
	}
	for name, files := range map[string]fs.FS{
		"symlink":  fstest.MapFS{"l": {Data: []byte("/etc/shadow"), Mode: fs.ModeSymlink | 0o777}},
		"too many": many,
		"too big":  fstest.MapFS{"big": {Data: make([]byte, maxFileBytes+1)}},
	} {
		if _, err := h.NewSandboxDir("id", files, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if entries, _ := os.ReadDir(h.Path); len(entries) > 0 {
			t.Errorf("%s: left %v", name, entries)
		}
	}
}

// TestLongDirectory has a path for which there is no room in a socket's address.
func TestLongDirectory(t *testing.T) {
	d := &SandboxDir{Socket: filepath.Join(t.TempDir(), strings.Repeat("x", 200))}
	if err := os.Mkdir(d.Socket, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := d.Listen("s")
	if err != nil {
		t.Fatal(err)
	}
	if name := l.unix.Addr().String(); strings.Contains(name, d.Socket) {
		t.Errorf("the socket is bound to %s, which tells where it is", name)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if left, err := os.ReadDir(d.Socket); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestAcceptPair(t *testing.T) {
	d := &SandboxDir{Socket: t.TempDir()}
	dial := func() net.Conn {
		c, err := net.Dial("unix", d.Socket+"/s")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	listen := func() *Listener {
		l, err := d.Listen("s")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}

	l := listen()
	refused, first, second := dial(), dial(), dial()
	calls := 0
	control, callback, err := l.AcceptPair(t.Context(), func(p Peer) error {
		if calls++; calls == 1 {
			return errors.New("not you")
		}
		if p.PID != int64(os.Getpid()) || p.UID != int64(os.Getuid()) {
			t.Errorf("peer is %+v", p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	defer callback.Close()
	if _, err := refused.Read(make([]byte, 1)); err == nil {
		t.Error("refused connection is open")
	}
	for from, to := range map[net.Conn]net.Conn{first: control, second: callback} {
		from.Write([]byte("x"))
		to.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := to.Read(make([]byte, 1)); err != nil {
			t.Errorf("connections are not in order: %v", err)
		}
	}
	l.Close()

	l = listen()
	dial()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("late"))
	defer cancel()
	if _, _, err := l.AcceptPair(ctx, func(Peer) error { return nil }); err == nil || err.Error() != "late" {
		t.Errorf("accept of one connection: %v, want the context's cause", err)
	}
	l.Close()

	l = listen()
	for range 16 {
		dial()
	}
	if _, _, err := l.AcceptPair(t.Context(), func(Peer) error { return errors.New("no") }); err == nil || err.Error() != "no" {
		t.Errorf("accept with strangers only: %v", err)
	}
}

func TestProcess(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := OpenProcess(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Alive() {
		t.Error("a living process is not alive")
	}
	if err := p.Kill(t.Context()); err != nil {
		t.Errorf("kill: %v", err)
	}
	if p.Alive() {
		t.Error("a killed process is alive")
	}
	cmd.Wait()
	if err := p.Kill(t.Context()); err != nil {
		t.Errorf("kill again: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := OpenProcess(cmd.Process.Pid); err == nil {
		t.Error("a process that is gone could be opened")
	}

	// Close ends the watch of a process that lives on.
	p, err = OpenProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestReadFactsOfSelf(t *testing.T) {
	f, err := ReadFacts(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if f.UID != int64(os.Getuid()) || f.GID != int64(os.Getgid()) || len(f.Env) != len(os.Environ()) || len(f.Mounts) == 0 {
		t.Errorf("facts of this process: %+v", f)
	}
	for kind, id := range f.Namespaces {
		if id == "" || id != f.HostNamespaces[kind] {
			t.Errorf("%s namespace is %q, the host's %q", kind, id, f.HostNamespaces[kind])
		}
	}
	if len(f.Rlimits) != len(rlimitNames) {
		t.Errorf("rlimits: %v", f.Rlimits)
	}
}

func TestReachableMounts(t *testing.T) {
	const mountinfo = `1 0 0:1 / / ro - overlay overlay rw
2 1 0:2 / /sys ro,nosuid - sysfs sysfs ro
3 2 0:3 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw,mode=755
4 3 0:4 /a /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu
5 3 0:5 / /sys/fs/cgroup ro - tmpfs tmpfs ro
6 2 0:6 / /sys/kernel/debug rw - debugfs debugfs rw
7 2 0:7 / /sys/kernel ro - tmpfs tmpfs ro
8 1 0:8 / /tmp rw,nosuid,nodev,noexec shared:1 master:2 - tmpfs tmpfs rw,size=65536k
9 1 0:9 /with\040space /odd\011name ro - ext4 /dev/vda ro
10 1 0:10 / /sysfoo rw - tmpfs none rw,size=1g
`
	entries, err := parseMountinfo(mountinfo)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range reachable(entries) {
		got = append(got, m.Point+" "+m.String())
	}
	want := []string{
		"/ overlay,ro", "/sys sysfs,ro,nosuid", "/sys/fs/cgroup tmpfs,ro,size=-1", "/sys/kernel tmpfs,ro,size=-1",
		"/tmp tmpfs,rw,nosuid,nodev,noexec,size=67108864", "/odd\tname ext4,ro", "/sysfoo tmpfs,rw,size=-1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("reachable mounts:\n%q, want\n%q", got, want)
	}
	for _, bad := range []string{"1 0 0:1 / / ro\n", "x 0 0:1 / / ro - a b c\n", "1 - a\n"} {
		if _, err := parseMountinfo(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestCgroupLimits(t *testing.T) {
	write := func(t *testing.T, files map[string]string) string {
		t.Helper()
		root := t.TempDir()
		for name, content := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return root
	}
	const none = "9223372036854771712"
	for name, test := range map[string]struct {
		v2    bool
		files map[string]string
		want  runtime.CgroupLimits
		kills int64
	}{
		"v2, limits on the parent": {
			v2: true,
			files: map[string]string{
				"pids.max": "max", "s/pids.max": "max", "s/c/pids.max": "64", "s/c/container/pids.max": "max",
				"s/c/memory.max": "1000", "s/c/container/memory.max": "max", "s/memory.max": "900",
				"s/c/memory.swap.max": "0", "s/c/container/memory.swap.max": "max",
				"s/c/cpu.max": "50000 100000", "s/c/container/cpu.max": "max 100000",
				"s/c/container/memory.events": "low 0\noom 3\noom_kill 2",
			},
			want: runtime.CgroupLimits{MemoryBytes: 900, SwapBytes: 0, PIDs: 64, MilliCPUs: 500}, kills: 2,
		},
		"v2, nothing delegated": {
			v2:    true,
			files: map[string]string{"s/c/container/memory.max": "max", "s/c/container/memory.swap.max": "5"},
			want:  runtime.CgroupLimits{MemoryBytes: runtime.Unlimited, SwapBytes: 5, PIDs: runtime.Unlimited, MilliCPUs: runtime.Unlimited},
		},
		"v1": {
			files: map[string]string{
				"s/c/container/pids.max": "64", "s/c/container/memory.limit_in_bytes": "1000", "memory.limit_in_bytes": none,
				"s/c/container/memory.memsw.limit_in_bytes": "1500",
				"s/c/container/cpu.cfs_quota_us":            "200000", "s/c/container/cpu.cfs_period_us": "100000",
				"s/c/container/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1",
			},
			want: runtime.CgroupLimits{MemoryBytes: 1000, SwapBytes: 500, PIDs: 64, MilliCPUs: 2000}, kills: 1,
		},
		"v1, no limits": {
			files: map[string]string{
				"s/c/container/pids.max": "max", "s/c/container/memory.limit_in_bytes": none,
				"s/c/container/memory.memsw.limit_in_bytes": "7",
				"s/c/container/cpu.cfs_quota_us":            "-1", "s/c/container/cpu.cfs_period_us": "100000",
			},
			want: runtime.CgroupLimits{MemoryBytes: runtime.Unlimited, SwapBytes: 7, PIDs: runtime.Unlimited, MilliCPUs: runtime.Unlimited},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := cgroupDir{mount: write(t, test.files), path: "/s/c/container"}
			g := Cgroup{memory: d, pids: d, cpu: d, v2: test.v2}
			got, err := g.Limits()
			if err != nil || got != test.want {
				t.Errorf("limits %+v, %v, want %+v", got, err, test.want)
			}
			if n := g.OOMKills(); n != test.kills {
				t.Errorf("%d OOM kills, want %d", n, test.kills)
			}
		})
	}
}

func TestParseCgroup(t *testing.T) {
	const v1 = `1 0 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
2 0 0:2 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
3 0 0:3 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
4 0 0:4 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
`
	const v2 = "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	const nested = "1 0 0:1 /outer /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for name, test := range map[string]struct{ cgroup, mounts, memory, cpu string }{
		"v1":      {"5:cpuset:/x\n4:memory:/a\n3:cpu,cpuacct:/b\n2:pids:/c\n0::/d\n", v1, "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/cpu,cpuacct/b"},
		"v2":      {"0::/a\n", v2, "/sys/fs/cgroup/a", "/sys/fs/cgroup/a"},
		"nested":  {"0::/outer/a\n", nested, "/sys/fs/cgroup/a", "/sys/fs/cgroup/a"},
		"outside": {"0::/other\n", nested, "", ""},
		"similar": {"0::/outermost/a\n", nested, "", ""},
		"above":   {"0::/../a\n", v2, "", ""},
		"none":    {"0::/a\n", "", "", ""},
		"garbage": {"hello\n", v2, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := parseCgroup(test.cgroup, test.mounts)
			if test.memory == "" {
				if err == nil {
					t.Errorf("group found: %+v", g)
				}
				return
			}
			if err != nil || g.memory.dir() != test.memory || g.cpu.dir() != test.cpu {
				t.Errorf("memory %s, cpu %s, %v", g.memory.dir(), g.cpu.dir(), err)
			}
		})
	}
}
