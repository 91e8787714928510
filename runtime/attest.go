package runtime

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Facts are what the kernel says it enforces on a sandbox's first process.
// An engine reads them from outside the sandbox, after the program has
// connected and before it is given anything to do, and hands them to [Attest].
type Facts struct {
	UID, GID   int64   // inside the user namespace; all of real, effective, saved and file system
	Groups     []int64 // supplementary, inside the user namespace
	HostUID    int64   // as seen from outside the user namespace; Unlimited where that cannot be known
	HostGID    int64
	Caps       Caps
	NoNewPrivs bool
	Seccomp    int // 2 is a filter

	Namespaces     map[string]string // kind ("net", "pid", …) to identity
	HostNamespaces map[string]string // the same of the process that asks
	Interfaces     []string          // network interfaces

	Mounts  []Mount           // those that can be reached by a path
	Devices []string          // names below /dev of device files; nil where they cannot be seen from here
	Rlimits map[string]Rlimit // by the short name: "nofile", "nproc", …
	Cgroup  CgroupLimits
	Env     []string

	Settings *Settings // nil for none
}

// Caps are the five capability sets of a process.
type Caps struct{ Inheritable, Permitted, Effective, Bounding, Ambient uint64 }

// Rlimit is a resource limit. [Unlimited] stands for no limit.
type Rlimit struct{ Soft, Hard int64 }

// CgroupLimits are the limits in force, the tightest from the sandbox's control
// group up. [Unlimited] stands for no limit.
type CgroupLimits struct {
	MemoryBytes int64
	SwapBytes   int64 // on top of MemoryBytes
	PIDs        int64
	MilliCPUs   int64 // CPU time per wall time, in thousandths
}

// Unlimited is the value of a limit that is not there.
const Unlimited = int64(-1)

// Mount is one mounted file system as the sandbox sees it.
type Mount struct {
	Point     string // where it is mounted
	Root      string // the part of the file system that is mounted
	Type      string // "tmpfs", "proc", …
	ReadOnly  bool
	NoSUID    bool
	NoDev     bool
	NoExec    bool
	SizeBytes int64 // of a tmpfs; Unlimited if it does not say
	Mode      uint32
	Folder    Folder // that is mounted, of mounts in BindDir; zero where it cannot be told from here
}

// A Folder tells a folder of the host from all others.
type Folder struct{ Device, Inode uint64 }

// A Difference is one fact that is not as the spec wants it.
type Difference struct{ Fact, Got, Want string }

func (d Difference) String() string {
	return fmt.Sprintf("%s is %s, want %s", d.Fact, d.Got, d.Want)
}

// Expectation is what [Attest] holds the facts against.
type Expectation struct {
	Spec     Spec
	UID, GID int64 // the ids the engine chose
	// FirstHostID is the least that an id may be outside the user namespace:
	// below it are those of the host's own users. 0 is no bound.
	FirstHostID int64
	// Transport decides which mounts there are. "" is TransportSocket.
	Transport Transport
	// Rlimits are wanted beside those of the spec's limits.
	Rlimits map[string]int64
	// EngineEnv are the variables the engine itself adds, KEY=VALUE, or KEY= followed by * for any value.
	EngineEnv []string
	// Folders are those of the host that must be shown, by their place. The kernel
	// tells which one a mount is; a kernel of its own has none of them.
	Folders map[string]Folder
	// Covered are the paths over which something read-only, or with nothing to
	// read, must be mounted.
	Covered []string
	// Settings is whether the engine says how it has made the container. Then
	// it must have been made as wanted.
	Settings bool

	// What an engine cannot do is excused here, and nowhere else.

	// UnknownProfile: the engine does not say which seccomp profile it has put in force.
	UnknownProfile bool
	// SharedUserNS: the engine has no user namespace to give, and UID is the host's.
	SharedUserNS bool
	// PlainBinds: the engine can mount the files and the socket's directory
	// read-only, but not nosuid, nodev and noexec. There is nothing in them to which
	// these would make a difference.
	PlainBinds bool
	// ExecutableDev: the engine's /dev, in which only root can write, lacks noexec.
	ExecutableDev bool
	// HiddenVolumes: the engine hides the volumes that an image declares under
	// empty tmpfs, read-only, nosuid, nodev and noexec, wherever they are.
	HiddenVolumes bool
	// OwnKernel: the sandbox has a kernel of its own, which is a process here,
	// and the facts are that kernel's word. It has no cgroup namespace, its
	// namespaces are not this kernel's, and it neither knows nor shows nodev: there
	// are no devices but the few that it makes up itself, in a /dev of its own
	// kind. The engine must attest from outside what confines that process.
	OwnKernel bool
	// ExtraTasks are what a kernel of its own may have in tasks of this one, on
	// top of the processes inside; those are bounded by the rlimit nproc.
	ExtraTasks int64
}

// Attest compares facts with what spec demands of every sandbox, and returns
// every difference. A sandbox with a difference must not run anything.
func Attest(want Expectation, got Facts) []Difference {
	a := attestation{Expectation: want, spec: want.Spec}
	a.spec.Limits = a.spec.Limits.WithDefaults()
	a.identity(want, got)
	if !want.OwnKernel {
		a.namespaces(got)
	}
	a.interfaces(got)
	a.mounts(got.Mounts)
	a.devices(got.Devices)
	a.settings(got.Settings)
	a.rlimits(want.Spec.Limits.WithDefaults().Rlimits(), got.Rlimits)
	a.rlimits(want.Rlimits, got.Rlimits)
	if !want.Spec.AllowUnlimited {
		group := got.Cgroup
		if group.PIDs != Unlimited {
			group.PIDs = max(0, group.PIDs-want.ExtraTasks)
		}
		a.found = append(a.found, AttestLimits(want.Spec, group)...)
	}
	a.environment(want, got.Env)
	return a.found
}

// AttestLimits compares the limits of the control group with the spec's. It is
// the part of Attest that [Spec.AllowUnlimited] leaves out.
func AttestLimits(want Spec, got CgroupLimits) []Difference {
	var a attestation
	l := want.Limits.WithDefaults()
	a.atMost("memory limit", got.MemoryBytes, l.MemoryBytes)
	a.atMost("swap limit", got.SwapBytes, 0)
	a.atMost("process limit", got.PIDs, l.PIDs)
	a.atMost("cpu limit", got.MilliCPUs, l.MilliCPUs())
	return a.found
}

// attestation collects differences.
type attestation struct {
	Expectation
	spec  Spec
	found []Difference
}

func (a *attestation) differ(fact string, got, want any) {
	a.found = append(a.found, Difference{fact, fmt.Sprint(got), fmt.Sprint(want)})
}

func (a *attestation) equal(fact string, got, want any) {
	if got != want {
		a.differ(fact, got, want)
	}
}

// atMost demands a limit between 0 and want: engines may round down, and an
// engine without the right to raise a limit leaves it lower than asked.
func (a *attestation) atMost(fact string, got, want int64) {
	switch {
	case got == Unlimited:
		a.differ(fact, "unlimited", want)
	case got < 0 || got > want:
		a.differ(fact, got, want)
	}
}

func (a *attestation) identity(want Expectation, got Facts) {
	if got.UID == 0 {
		a.differ("uid", 0, "not 0")
	}
	a.equal("uid", got.UID, want.UID)
	a.equal("gid", got.GID, want.GID)
	for name, id := range map[string]int64{"uid": got.HostUID, "gid": got.HostGID} {
		if id != Unlimited && id < want.FirstHostID {
			a.differ(name+" on the host", id, fmt.Sprintf("at least %d", want.FirstHostID))
		}
	}
	for _, g := range got.Groups {
		a.equal("supplementary group", g, want.GID)
	}
	a.equal("inheritable capabilities", got.Caps.Inheritable, uint64(0))
	a.equal("permitted capabilities", got.Caps.Permitted, uint64(0))
	a.equal("effective capabilities", got.Caps.Effective, uint64(0))
	a.equal("bounding capabilities", got.Caps.Bounding, uint64(0))
	a.equal("ambient capabilities", got.Caps.Ambient, uint64(0))
	a.equal("no_new_privs", got.NoNewPrivs, true)
	a.equal("seccomp mode", got.Seccomp, 2)
}

// privateNamespaces are the namespaces a sandbox must not share with the host.
var privateNamespaces = []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}

func (a *attestation) namespaces(got Facts) {
	for _, kind := range privateNamespaces {
		id, host := got.Namespaces[kind], got.HostNamespaces[kind]
		switch {
		case id == "" || host == "":
			a.differ(kind+" namespace", "unknown", "private")
		case id == host && (kind != "user" || !a.SharedUserNS):
			a.differ(kind+" namespace", "the host's", "private")
		}
	}
}

func (a *attestation) interfaces(got Facts) {
	if !slices.Equal(got.Interfaces, []string{"lo"}) {
		a.differ("network interfaces", strings.Join(got.Interfaces, " "), "lo")
	}
}

func (a *attestation) rlimits(wanted map[string]int64, got map[string]Rlimit) {
	for name, want := range wanted {
		limit, ok := got[name]
		if !ok {
			limit = Rlimit{Unlimited, Unlimited}
		}
		a.atMost("rlimit "+name, limit.Soft, want)
		a.atMost("hard rlimit "+name, limit.Hard, want)
	}
}

func (a *attestation) environment(want Expectation, env []string) {
	expected := want.Spec.Environment()
	for _, kv := range expected {
		if !slices.Contains(env, kv) {
			a.differ("environment variable "+envName(kv), "missing or changed", "as given")
		}
	}
	seen := map[string]bool{}
	for _, kv := range env {
		name := envName(kv)
		if seen[name] || !slices.Contains(expected, kv) && !engineAdds(want.EngineEnv, kv) {
			a.differ("environment variable "+name, "set", "absent")
		}
		seen[name] = true
	}
}

func engineAdds(allowed []string, kv string) bool {
	return slices.ContainsFunc(allowed, func(rule string) bool {
		prefix, any := strings.CutSuffix(rule, "*")
		return any && strings.HasPrefix(kv, prefix) || rule == kv
	})
}

func envName(kv string) string {
	name, _, _ := strings.Cut(kv, "=")
	return name
}

// mounts demands that every mount is one we know, with the options it must
// have, and that none of those we count on is missing.
func (a *attestation) mounts(mounts []Mount) {
	required := map[string]bool{"/": true, "/tmp": true, Workspace: true, "/dev/shm": true, "/proc": true}
	for point, wanted := range map[string]bool{FilesDir: a.hasFiles(), path.Dir(SocketPath): a.hasSocket()} {
		if wanted {
			required[point] = true
		}
	}
	for _, point := range a.Covered {
		required[point] = true
	}
	for _, b := range a.spec.Binds {
		required[b.Target] = true
	}
	for _, m := range mounts {
		delete(required, m.Point)
		m.NoDev = m.NoDev || a.OwnKernel
		if problem := a.mountProblem(m); problem != "" {
			a.differ("mount "+m.Point, m.String(), problem)
		}
	}
	for point := range required {
		a.differ("mount "+point, "missing", "mounted")
	}
}

func (a *attestation) hasFiles() bool {
	return a.spec.Files != nil && a.Transport != TransportStdio
}

func (a *attestation) hasSocket() bool {
	return a.Transport == TransportSocket || a.Transport == ""
}

// mountProblem returns what m should be but is not, or "".
func (a *attestation) mountProblem(m Mount) string {
	l := a.spec.Limits
	switch m.Point {
	case "/":
		return unless(m.ReadOnly, "read-only")
	case "/tmp":
		return scratchProblem(m, l.TmpBytes)
	case Workspace:
		return scratchProblem(m, l.WorkspaceBytes)
	case "/dev/shm":
		return scratchProblem(m, l.ShmBytes)
	case FilesDir, path.Dir(SocketPath):
		if m.Point == FilesDir && !a.hasFiles() || m.Point != FilesDir && !a.hasSocket() {
			return "absent"
		}
		return unless(m.ReadOnly && (a.PlainBinds || m.NoSUID && m.NoDev && m.NoExec), "ro,nosuid,nodev,noexec")
	case "/etc/hostname", "/etc/passwd", "/etc/group", "/run/.containerenv":
		return unless(m.ReadOnly, "read-only")
	case "/dev":
		if a.OwnKernel {
			return unless(m.Type == "dev" && m.ReadOnly && m.NoSUID && m.NoExec, "dev,ro,nosuid,noexec")
		}
		return unless(m.Type == "tmpfs" && m.NoSUID && (a.ExecutableDev || m.NoExec) && m.Mode&0o022 == 0, "tmpfs,nosuid,noexec, writable by root only")
	case "/dev/pts":
		return unless(m.Type == "devpts" && m.NoSUID && m.NoExec, "devpts,nosuid,noexec")
	case "/proc":
		return unless(m.Type == "proc", "proc")
	}
	if _, wanted := a.spec.bound(m.Point); wanted {
		if !m.ReadOnly || !m.NoSUID || !m.NoDev || !m.NoExec {
			return "ro,nosuid,nodev,noexec"
		}
		return unless(a.OwnKernel || m.Folder != Folder{} && m.Folder == a.Folders[m.Point], "the folder that was asked for")
	}
	switch dir := topDir(m.Point); {
	case dir == "/dev" && m.isDevice(harmlessDevices...):
		return ""
	case dir == "/dev" && m.Point == "/dev/mqueue", dir == "/proc", dir == "/sys":
		return unless(m.ReadOnly || m.isDevice("null"), "read-only")
	}
	if a.OwnKernel && m.Point == BindDir && len(a.spec.Binds) > 0 { // the places of folders, and nothing else
		return unless(m.Type == "erofs" && m.ReadOnly && m.NoSUID && m.NoDev && m.NoExec, "erofs,ro,nosuid,nodev,noexec")
	}
	hidden := m.Type == "tmpfs" && m.Root == "/" && m.ReadOnly && m.NoSUID && m.NoDev && m.NoExec
	return unless(a.HiddenVolumes && hidden, "absent")
}

// harmlessDevices are those that every program may expect. What can be done
// with them is done to nobody else.
var harmlessDevices = []string{"full", "null", "random", "tty", "urandom", "zero"}

// devices demands that there are no others in /dev, but for the terminals of
// its own devpts.
func (a *attestation) devices(got []string) {
	for _, name := range got {
		if !slices.Contains(harmlessDevices, name) {
			a.differ("device /dev/"+name, "there", "absent")
		}
	}
}

// scratchProblem checks a tmpfs that the program may write to.
func scratchProblem(m Mount, limit int64) string {
	ok := m.Type == "tmpfs" && !m.ReadOnly && m.NoSUID && m.NoDev && m.NoExec && 0 < m.SizeBytes && m.SizeBytes <= limit
	return unless(ok, fmt.Sprintf("tmpfs,rw,nosuid,nodev,noexec,size=%d", limit))
}

// isDevice reports whether m is the bind mount of one of the named device
// files, which is how engines give devices to a user namespace and hide files
// behind /dev/null.
func (m Mount) isDevice(names ...string) bool {
	name := path.Base(m.Root)
	under := topDir(m.Point) != "/dev" || path.Base(m.Point) == name
	return (m.Type == "devtmpfs" || m.Type == "tmpfs") && under && slices.Contains(names, name)
}

// String describes m the way mount(8) prints options.
func (m Mount) String() string {
	s := m.Type
	for _, o := range []struct {
		on       bool
		yes, not string
	}{{m.ReadOnly, ",ro", ",rw"}, {m.NoSUID, ",nosuid", ""}, {m.NoDev, ",nodev", ""}, {m.NoExec, ",noexec", ""}} {
		if o.on {
			s += o.yes
		} else {
			s += o.not
		}
	}
	if m.Type == "tmpfs" {
		s += fmt.Sprintf(",size=%d", m.SizeBytes)
	}
	return s
}

func unless(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}

// topDir returns the first component of an absolute path.
func topDir(p string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	return "/" + first
}
