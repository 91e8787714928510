package runtime_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const uid = 23456

// profile is a seccomp profile with one of everything.
const profile = `{"defaultAction": "SCMP_ACT_ERRNO", "architectures": [], "syscalls": [
	{"comment": "why", "names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
	{"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 97, "args": [{"index": 0, "value": 1, "valueTwo": 0, "op": "SCMP_CMP_NE"}]}]}`

func expectation() runtime.Expectation {
	return runtime.Expectation{
		Spec: runtime.Spec{
			Env: []string{"LANG=C.UTF-8"}, Files: fstest.MapFS{}, Seccomp: []byte(profile),
			Binds: []runtime.Bind{{Source: "/home/user/data", Target: "/mnt/data"}},
		},
		Folders:  map[string]runtime.Folder{"/mnt/data": {Device: 2049, Inode: 77}},
		Covered:  []string{"/proc/sys", "/proc/keys", "/sys"},
		Settings: true,
		UID:      uid, GID: uid, FirstHostID: 100000,
		EngineEnv: []string{"HOSTNAME=sandbox", "container=*"},
	}
}

// facts returns what a sandbox with all its hardening in force shows.
func facts() runtime.Facts {
	inside, host := map[string]string{}, map[string]string{}
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		inside[kind], host[kind] = kind+":[2]", kind+":[1]"
	}
	scratch := func(point string, size int64) runtime.Mount {
		return runtime.Mount{Point: point, Root: "/", Type: "tmpfs", NoSUID: true, NoDev: true, NoExec: true, SizeBytes: size}
	}
	bind := func(point string) runtime.Mount {
		return runtime.Mount{Point: point, Root: "/x", Type: "ext4", ReadOnly: true, NoSUID: true, NoDev: true, NoExec: true}
	}
	data := bind("/mnt/data")
	data.Folder = runtime.Folder{Device: 2049, Inode: 77}
	return runtime.Facts{
		UID: uid, GID: uid, Groups: []int64{uid}, HostUID: 100000 + uid, HostGID: 100000 + uid,
		NoNewPrivs: true, Seccomp: 2,
		Namespaces: inside, HostNamespaces: host,
		Interfaces: []string{"lo"},
		Mounts: []runtime.Mount{
			{Point: "/", Root: "/", Type: "overlay", ReadOnly: true},
			scratch("/tmp", 64<<20), scratch(runtime.Workspace, 128<<20), scratch("/dev/shm", 8<<20),
			bind(runtime.FilesDir), bind("/run/mcp-bridge/socket"), bind("/etc/passwd"), data,
			{Point: "/proc", Root: "/", Type: "proc"},
			{Point: "/proc/sys", Root: "/sys", Type: "proc", ReadOnly: true},
			{Point: "/proc/keys", Root: "/null", Type: "devtmpfs"},
			{Point: "/sys", Root: "/", Type: "sysfs", ReadOnly: true},
			{Point: "/dev", Root: "/", Type: "tmpfs", NoSUID: true, NoExec: true, Mode: 0o755, SizeBytes: 65536 << 10},
			{Point: "/dev/pts", Root: "/", Type: "devpts", NoSUID: true, NoExec: true},
			{Point: "/dev/mqueue", Root: "/", Type: "tmpfs", ReadOnly: true},
			{Point: "/dev/null", Root: "/null", Type: "devtmpfs"},
		},
		Rlimits: map[string]runtime.Rlimit{
			"core": {}, "memlock": {}, "fsize": {Soft: 128 << 20, Hard: 128 << 20},
			"nofile": {Soft: 1024, Hard: 1024}, "nproc": {Soft: 128, Hard: 128},
		},
		Cgroup: runtime.CgroupLimits{MemoryBytes: 512 << 20, PIDs: 128, MilliCPUs: 1000},
		Env:    []string{"HOME=/workspace", "PATH=" + runtime.Path, "LANG=C.UTF-8", "HOSTNAME=sandbox", "container=podman"},

		Devices:  []string{"null", "zero"},
		Settings: &runtime.Settings{LogDriver: "none", AutoRemove: true, Seccomp: []byte(profile)},
	}
}

func TestAttestAccepts(t *testing.T) {
	for name, change := range map[string]func(*runtime.Facts){
		"as wanted":                func(*runtime.Facts) {},
		"lower limits":             func(f *runtime.Facts) { f.Cgroup.MemoryBytes--; f.Cgroup.PIDs--; f.Cgroup.MilliCPUs-- },
		"lower rlimits":            func(f *runtime.Facts) { f.Rlimits["nofile"] = runtime.Rlimit{Soft: 20, Hard: 20} },
		"no groups":                func(f *runtime.Facts) { f.Groups = nil },
		"engine adds no variables": func(f *runtime.Facts) { f.Env = f.Env[:3] },
		"host cannot be seen":      func(f *runtime.Facts) { f.HostUID, f.HostGID = runtime.Unlimited, runtime.Unlimited },
		"devices cannot be seen":   func(f *runtime.Facts) { f.Devices = nil },
		"no restart, in words":     func(f *runtime.Facts) { f.Settings.Restart = "no" },
		"profile as engines pass it on": func(f *runtime.Facts) {
			f.Settings.Seccomp = []byte(`{"defaultAction":"SCMP_ACT_ERRNO","architectures":["SCMP_ARCH_X86_64"],"syscalls":[
				{"names":["read","write"],"action":"SCMP_ACT_ALLOW","args":[]},
				{"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":97,"args":[{"index":0,"value":1,"op":"SCMP_CMP_NE"}]}]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			change(&f)
			if found := runtime.Attest(expectation(), f); len(found) > 0 {
				t.Errorf("differences: %v", found)
			}
		})
	}
}

// falsifications are all that can be wrong with the facts, but for mounts, by
// the name of the fact that must be said to differ.
func falsifications() map[string]func(*runtime.Facts) {
	type F = *runtime.Facts
	tests := map[string]func(F){
		"uid":                             func(f F) { f.UID++ },
		"gid":                             func(f F) { f.GID = 0 },
		"uid on the host":                 func(f F) { f.HostUID = uid },
		"gid on the host":                 func(f F) { f.HostGID = 0 },
		"supplementary group":             func(f F) { f.Groups = append(f.Groups, 0) },
		"inheritable capabilities":        func(f F) { f.Caps.Inheritable = 1 },
		"permitted capabilities":          func(f F) { f.Caps.Permitted = 1 },
		"effective capabilities":          func(f F) { f.Caps.Effective = 1 << 40 },
		"bounding capabilities":           func(f F) { f.Caps.Bounding = 1 },
		"ambient capabilities":            func(f F) { f.Caps.Ambient = 1 },
		"no_new_privs":                    func(f F) { f.NoNewPrivs = false },
		"seccomp mode":                    func(f F) { f.Seccomp = 1 },
		"network interfaces":              func(f F) { f.Interfaces = []string{"lo", "eth0"} },
		"memory limit":                    func(f F) { f.Cgroup.MemoryBytes = runtime.Unlimited },
		"swap limit":                      func(f F) { f.Cgroup.SwapBytes = 1 },
		"process limit":                   func(f F) { f.Cgroup.PIDs = 129 },
		"cpu limit":                       func(f F) { f.Cgroup.MilliCPUs = 1001 },
		"rlimit nofile":                   func(f F) { f.Rlimits["nofile"] = runtime.Rlimit{Soft: 1025, Hard: 1024} },
		"hard rlimit nproc":               func(f F) { f.Rlimits["nproc"] = runtime.Rlimit{Soft: 1, Hard: runtime.Unlimited} },
		"hard rlimit core":                func(f F) { f.Rlimits["core"] = runtime.Rlimit{Soft: 0, Hard: 1} },
		"rlimit memlock":                  func(f F) { delete(f.Rlimits, "memlock") },
		"rlimit fsize":                    func(f F) { f.Rlimits["fsize"] = runtime.Rlimit{Soft: runtime.Unlimited, Hard: runtime.Unlimited} },
		"device /dev/sda":                 func(f F) { f.Devices = append(f.Devices, "sda") },
		"device /dev/fuse":                func(f F) { f.Devices[0] = "fuse" },
		"settings":                        func(f F) { f.Settings = nil },
		"privileged":                      func(f F) { f.Settings.Privileged = true },
		"log driver":                      func(f F) { f.Settings.LogDriver = "k8s-file" },
		"log driver (default)":            func(f F) { f.Settings.LogDriver = "" },
		"restart policy":                  func(f F) { f.Settings.Restart = "always" },
		"automatic removal":               func(f F) { f.Settings.AutoRemove = false },
		"health check":                    func(f F) { f.Settings.Healthcheck = true },
		"devices":                         func(f F) { f.Settings.Devices = 1 },
		"seccomp profile (none)":          func(f F) { f.Settings.Seccomp = []byte{} },
		"seccomp profile (unknown)":       func(f F) { f.Settings.Seccomp = nil },
		"seccomp profile (path)":          func(f F) { f.Settings.Seccomp = []byte("unconfined") },
		"seccomp profile (default)":       func(f F) { f.Settings.Seccomp = change(profile, "SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW") },
		"seccomp profile (call)":          func(f F) { f.Settings.Seccomp = change(profile, "write", "mount") },
		"seccomp profile (action)":        func(f F) { f.Settings.Seccomp = change(profile, `SCMP_ACT_ERRNO", "errnoRet": 97`, `SCMP_ACT_ALLOW"`) },
		"seccomp profile (error)":         func(f F) { f.Settings.Seccomp = change(profile, "97", "1") },
		"seccomp profile (index)":         func(f F) { f.Settings.Seccomp = change(profile, `"index": 0`, `"index": 1`) },
		"seccomp profile (value)":         func(f F) { f.Settings.Seccomp = change(profile, `"value": 1`, `"value": 2`) },
		"seccomp profile (second value)":  func(f F) { f.Settings.Seccomp = change(profile, `"valueTwo": 0`, `"valueTwo": 2`) },
		"seccomp profile (operator)":      func(f F) { f.Settings.Seccomp = change(profile, "SCMP_CMP_NE", "SCMP_CMP_EQ") },
		"environment variable LANG":       func(f F) { f.Env[2] = "LANG=C" },
		"environment variable HTTP_PROXY": func(f F) { f.Env = append(f.Env, "HTTP_PROXY=http://user:secret@proxy") },
		"environment variable HOSTNAME":   func(f F) { f.Env[3] = "HOSTNAME=other" },
		"environment variable HOME":       func(f F) { f.Env = append(f.Env, f.Env[0]) },
	}
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
		tests[kind+" namespace"] = func(f F) { f.Namespaces[kind] = f.HostNamespaces[kind] }
		tests[kind+" namespace (unknown)"] = func(f F) { delete(f.HostNamespaces, kind) }
	}
	return tests
}

// TestAttestRefuses falsifies every fact once, and expects it to be named.
func TestAttestRefuses(t *testing.T) {
	tests := falsifications()
	for name, falsify := range tests {
		t.Run(name, func(t *testing.T) {
			name, _, _ := strings.Cut(name, " (")
			f := facts()
			falsify(&f)
			found := runtime.Attest(expectation(), f)
			if len(found) == 0 {
				t.Fatal("not noticed")
			}
			for _, d := range found {
				if d.Fact != name && d.Fact != "hard "+name {
					t.Errorf("difference %q, want one of %q only", d, name)
				}
				if strings.Contains(d.String(), "secret") {
					t.Errorf("difference %q tells the value", d)
				}
			}
		})
	}
}

// change returns a profile with a part replaced.
func change(profile, from, to string) []byte {
	return []byte(strings.ReplaceAll(profile, from, to))
}

// mountFalsifications are all that can be wrong with a mount, by its place.
func mountFalsifications() map[string]map[string]func(*runtime.Mount) {
	type M = *runtime.Mount
	change := map[string]map[string]func(M){
		"/":                      {"writable": func(m M) { m.ReadOnly = false }},
		runtime.FilesDir:         {"writable": func(m M) { m.ReadOnly = false }, "suid": func(m M) { m.NoSUID = false }, "dev": func(m M) { m.NoDev = false }, "exec": func(m M) { m.NoExec = false }},
		"/run/mcp-bridge/socket": {"writable": func(m M) { m.ReadOnly = false }},
		"/mnt/data": {
			"writable": func(m M) { m.ReadOnly = false }, "suid": func(m M) { m.NoSUID = false }, "dev": func(m M) { m.NoDev = false }, "exec": func(m M) { m.NoExec = false },
			"other": func(m M) { m.Folder.Inode++ }, "other disk": func(m M) { m.Folder.Device++ }, "unknown": func(m M) { m.Folder = runtime.Folder{} },
		},
		"/etc/passwd": {"writable": func(m M) { m.ReadOnly = false }},
		"/proc":       {"other": func(m M) { m.Type = "ext4" }},
		"/proc/sys":   {"writable": func(m M) { m.ReadOnly = false }},
		"/proc/keys":  {"other device": func(m M) { m.Root = "/mem" }},
		"/sys":        {"writable": func(m M) { m.ReadOnly = false }},
		"/dev":        {"exec": func(m M) { m.NoExec = false }, "for all": func(m M) { m.Mode = 0o1777 }, "host's": func(m M) { m.Type = "devtmpfs" }},
		"/dev/pts":    {"exec": func(m M) { m.NoExec = false }},
		"/dev/mqueue": {"writable": func(m M) { m.ReadOnly = false }},
		"/dev/null":   {"other device": func(m M) { m.Root = "/vda" }, "renamed device": func(m M) { m.Root = "/zero" }},
	}
	for _, scratch := range []string{"/tmp", runtime.Workspace, "/dev/shm"} {
		change[scratch] = map[string]func(M){
			"exec": func(m M) { m.NoExec = false }, "suid": func(m M) { m.NoSUID = false }, "dev": func(m M) { m.NoDev = false },
			"larger": func(m M) { m.SizeBytes++ }, "endless": func(m M) { m.SizeBytes = runtime.Unlimited },
			"disk": func(m M) { m.Type = "ext4" }, "read-only": func(m M) { m.ReadOnly = true },
		}
	}
	return change
}

func TestAttestRefusesMounts(t *testing.T) {
	for point, changes := range mountFalsifications() {
		for name, falsify := range changes {
			t.Run(point+"/"+name, func(t *testing.T) {
				f := facts()
				i := slices.IndexFunc(f.Mounts, func(m runtime.Mount) bool { return m.Point == point })
				falsify(&f.Mounts[i])
				requireMountNamed(t, f, point)
			})
		}
	}
	for _, point := range []string{
		"/", "/tmp", runtime.Workspace, "/dev/shm", "/proc", runtime.FilesDir, "/run/mcp-bridge/socket",
		"/mnt/data",                       // a folder of the host
		"/proc/sys", "/proc/keys", "/sys", // covered
	} {
		t.Run(point+"/missing", func(t *testing.T) {
			f := facts()
			f.Mounts = slices.DeleteFunc(f.Mounts, func(m runtime.Mount) bool { return m.Point == point })
			requireMountNamed(t, f, point)
		})
	}
	for _, m := range []runtime.Mount{
		{Point: "/host", Type: "ext4", ReadOnly: true},
		{Point: "/mnt/other", Type: "ext4", ReadOnly: true, NoSUID: true, NoDev: true, NoExec: true},
		{Point: "/mnt/data/mounted", Type: "ext4", ReadOnly: true, NoSUID: true, NoDev: true, NoExec: true},
		{Point: "/run/secrets", Type: "tmpfs", ReadOnly: true},
		{Point: "/dev/vda", Root: "/vda", Type: "devtmpfs"},
		{Point: "/data", Type: "ext4", NoSUID: true, NoDev: true, NoExec: true},
		{Point: "/etc/shadow", Type: "ext4", ReadOnly: true},
	} {
		t.Run(m.Point+"/added", func(t *testing.T) {
			f := facts()
			f.Mounts = append(f.Mounts, m)
			requireMountNamed(t, f, m.Point)
		})
	}
}

func requireMountNamed(t *testing.T, f runtime.Facts, point string) {
	t.Helper()
	found := runtime.Attest(expectation(), f)
	if len(found) != 1 || found[0].Fact != "mount "+point {
		t.Errorf("differences %v, want mount %s", found, point)
	}
}

// TestAttestTransport expects the mounts of each transport, and no others.
func TestAttestTransport(t *testing.T) {
	socket := "/run/mcp-bridge/socket"
	for _, test := range []struct {
		transport runtime.Transport
		files     bool
		extra     []string
	}{
		{runtime.TransportSocket, true, nil},
		{runtime.TransportSocket, false, []string{runtime.FilesDir}},
		{runtime.TransportFD, true, []string{socket}},
		{runtime.TransportStdio, true, []string{runtime.FilesDir, socket}},
	} {
		want, f := expectation(), facts()
		want.Transport = test.transport
		if !test.files {
			want.Spec.Files = nil
		}
		var named []string
		for _, d := range runtime.Attest(want, f) {
			named = append(named, strings.TrimPrefix(d.Fact, "mount "))
		}
		if !slices.Equal(named, test.extra) {
			t.Errorf("%s: differences in %q, want %q", test.transport, named, test.extra)
		}
		f.Mounts = slices.DeleteFunc(f.Mounts, func(m runtime.Mount) bool { return slices.Contains(test.extra, m.Point) })
		if found := runtime.Attest(want, f); len(found) > 0 {
			t.Errorf("%s: differences %v", test.transport, found)
		}
	}
}

// TestAttestUnlimited lets the control group's limits go where that is allowed,
// and nothing else.
func TestAttestUnlimited(t *testing.T) {
	want, f := expectation(), facts()
	f.Cgroup = runtime.CgroupLimits{MemoryBytes: runtime.Unlimited, SwapBytes: runtime.Unlimited, PIDs: runtime.Unlimited, MilliCPUs: runtime.Unlimited}
	if found := runtime.Attest(want, f); len(found) != 4 {
		t.Errorf("without leave: differences %v, want four", found)
	}
	want.Spec.AllowUnlimited = true
	if found := runtime.Attest(want, f); len(found) > 0 {
		t.Errorf("with leave: differences %v", found)
	}
	if found := runtime.AttestLimits(want.Spec, f.Cgroup); len(found) != 4 {
		t.Errorf("limits that are not in force: %v, want four", found)
	}
	want.Rlimits = map[string]int64{"data": 1 << 29}
	f.Rlimits["nofile"] = runtime.Rlimit{Soft: runtime.Unlimited, Hard: runtime.Unlimited}
	var named []string
	for _, d := range runtime.Attest(want, f) {
		named = append(named, d.Fact)
	}
	slices.Sort(named)
	if want := []string{"hard rlimit data", "hard rlimit nofile", "rlimit data", "rlimit nofile"}; !slices.Equal(named, want) {
		t.Errorf("differences in %q, want %q", named, want)
	}
}

func TestAttestSpecLimits(t *testing.T) {
	want := expectation()
	want.Spec.Limits = runtime.Limits{MemoryBytes: 1 << 20, PIDs: 1, CPUs: 0.5, OpenFiles: 1, TmpBytes: 1, WorkspaceBytes: 1, ShmBytes: 1}
	var named []string
	for _, d := range runtime.Attest(want, facts()) {
		named = append(named, d.Fact)
	}
	for _, fact := range []string{
		"memory limit", "process limit", "cpu limit", "hard rlimit nofile", "rlimit nproc", "rlimit fsize",
		"mount /tmp", "mount /workspace", "mount /dev/shm",
	} {
		if !slices.Contains(named, fact) {
			t.Errorf("%s is not noticed", fact)
		}
	}
}

func TestLimitsWithDefaults(t *testing.T) {
	l := runtime.Limits{}.WithDefaults()
	if l.MemoryBytes == 0 || l.PIDs == 0 || l.CPUs == 0 || l.OpenFiles == 0 || l.TmpBytes == 0 || l.WorkspaceBytes == 0 || l.ShmBytes == 0 {
		t.Errorf("a default is missing: %+v", l)
	}
	set := runtime.Limits{MemoryBytes: 1, PIDs: 2, CPUs: 3, OpenFiles: 4, TmpBytes: 5, WorkspaceBytes: 6, ShmBytes: 7}
	if set.WithDefaults() != set {
		t.Errorf("%+v became %+v", set, set.WithDefaults())
	}
	if got, want := set.Rlimits(), map[string]int64{"core": 0, "memlock": 0, "fsize": 7, "nofile": 4, "nproc": 2}; !maps.Equal(got, want) {
		t.Errorf("rlimits %v, want %v", got, want)
	}
}

// TestAttestExcuses checks that each excuse covers what it names, and that
// nothing is excused without it.
func TestAttestExcuses(t *testing.T) {
	mount := func(f *runtime.Facts, point string) *runtime.Mount {
		return &f.Mounts[slices.IndexFunc(f.Mounts, func(m runtime.Mount) bool { return m.Point == point })]
	}
	plain := func(point string) func(*runtime.Facts) {
		return func(f *runtime.Facts) {
			m := mount(f, point)
			m.NoSUID, m.NoDev, m.NoExec = false, false, false
		}
	}
	add := func(m runtime.Mount) func(*runtime.Facts) {
		return func(f *runtime.Facts) { f.Mounts = append(f.Mounts, m) }
	}
	hidden := runtime.Mount{Point: "/data", Root: "/", Type: "tmpfs", ReadOnly: true, NoSUID: true, NoDev: true, NoExec: true}
	writable, disk := hidden, hidden
	writable.ReadOnly, disk.Type = false, "ext4"
	for name, test := range map[string]struct {
		excuse          func(*runtime.Expectation)
		covers, exceeds func(*runtime.Facts)
	}{
		"user namespace": {
			func(e *runtime.Expectation) { e.SharedUserNS = true },
			func(f *runtime.Facts) { f.Namespaces["user"] = f.HostNamespaces["user"] },
			func(f *runtime.Facts) { f.Namespaces["pid"] = f.HostNamespaces["pid"] },
		},
		"files": {
			func(e *runtime.Expectation) { e.PlainBinds = true },
			plain(runtime.FilesDir),
			func(f *runtime.Facts) { mount(f, runtime.FilesDir).ReadOnly = false },
		},
		"socket": {
			func(e *runtime.Expectation) { e.PlainBinds = true },
			plain("/run/mcp-bridge/socket"),
			func(f *runtime.Facts) { mount(f, "/run/mcp-bridge/socket").ReadOnly = false },
		},
		"devices": {
			func(e *runtime.Expectation) { e.ExecutableDev = true },
			func(f *runtime.Facts) { mount(f, "/dev").NoExec = false },
			func(f *runtime.Facts) { mount(f, "/dev").Mode = 0o1777 },
		},
		"profile": {
			func(e *runtime.Expectation) { e.UnknownProfile = true },
			func(f *runtime.Facts) { f.Settings.Seccomp = nil },
			func(f *runtime.Facts) { f.Settings.Seccomp = []byte{} },
		},
		"writable volume":   {func(e *runtime.Expectation) { e.HiddenVolumes = true }, add(hidden), add(writable)},
		"volume on disk":    {func(e *runtime.Expectation) { e.HiddenVolumes = true }, add(hidden), add(disk)},
		"scratch read-only": {func(e *runtime.Expectation) { e.HiddenVolumes = true }, add(hidden), func(f *runtime.Facts) { mount(f, "/tmp").ReadOnly = true }},
	} {
		t.Run(name, func(t *testing.T) {
			excused := expectation()
			test.excuse(&excused)
			covered, exceeding := facts(), facts()
			test.covers(&covered)
			test.exceeds(&exceeding)
			if found := runtime.Attest(excused, covered); len(found) > 0 {
				t.Errorf("not excused: %v", found)
			}
			if len(runtime.Attest(expectation(), covered)) == 0 {
				t.Error("excused without an excuse")
			}
			if len(runtime.Attest(excused, exceeding)) == 0 {
				t.Error("excused beyond what is named")
			}
		})
	}
}
