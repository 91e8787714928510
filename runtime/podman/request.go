package podman

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

// A sandbox's ids 0 to 65535 are, under a rootful engine, the host's from
// rootfulBase on: a range that no distribution, systemd-nspawn or subordinate id
// allocation gives away (see systemd's UIDS-GIDS). Under a rootless one they are
// the user's subordinate ids, which Podman counts from 1: its 0, the user, stays
// out of the sandbox. The mapping is the same for all sandboxes, so that an
// engine which cannot map mounts copies the image once, not every time.
const (
	rootfulBase  = 0x71000000
	rootlessBase = 1
	idCount      = 65536
)

// Sandboxes get ids from this range of their user namespace.
const (
	firstUID = 1000
	lastUID  = 59999
)

// maskedPaths are hidden on top of what the engine hides itself. Most tell
// about the host; /dev/mqueue and cgroup v1's /sys/fs/cgroup are writable, and
// whoever opens /proc/pressure can have the host's kernel watch it for them.
var maskedPaths = []string{
	"/dev/mqueue",
	"/proc/config.gz", "/proc/diskstats", "/proc/interrupts", "/proc/kallsyms", "/proc/key-users", "/proc/pressure", "/proc/swaps",
	"/sys/block", "/sys/fs/cgroup", "/sys/kernel",
}

// engineCovers are the paths that Podman itself hides, or makes read-only.
var engineCovers = []string{
	"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/sys/firmware",
	"/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger",
}

// createRequest is the body of POST /libpod/containers/create, as far as we
// use it. Values that are Podman's defaults are written out where a default in
// containers.conf could replace them.
type createRequest struct {
	Name          string            `json:"name"`
	Image         string            `json:"image"`
	Entrypoint    []string          `json:"entrypoint"`
	Command       []string          `json:"command"`
	Env           map[string]string `json:"env"`
	EnvHost       bool              `json:"env_host"`
	UnsetEnvAll   bool              `json:"unsetenvall"`
	HTTPProxy     bool              `json:"httpproxy"`
	Stdin         bool              `json:"stdin"`
	WorkDir       string            `json:"work_dir"`
	Labels        map[string]string `json:"labels"`
	Hostname      string            `json:"hostname"`
	Remove        bool              `json:"remove"`
	StopSignal    int               `json:"stop_signal"`
	StopTimeout   int               `json:"stop_timeout"`
	Systemd       string            `json:"systemd"`
	Log           logConfig         `json:"log_configuration"`
	Healthcheck   healthConfig      `json:"healthconfig"`
	OCIRuntime    string            `json:"oci_runtime,omitempty"`
	Privileged    bool              `json:"privileged"`
	User          string            `json:"user"`
	CapDrop       []string          `json:"cap_drop"`
	NoNewPrivs    bool              `json:"no_new_privileges"`
	SeccompPath   string            `json:"seccomp_profile_path"`
	SeccompPolicy string            `json:"seccomp_policy,omitempty"`
	Mask          []string          `json:"mask"`
	ProcOptions   []string          `json:"procfs_opts"`
	ReadOnlyRoot  bool              `json:"read_only_filesystem"`
	RWTmpfs       bool              `json:"read_write_tmpfs"` // Podman 4.6 and later; older ones have it in the client
	ImageVolumes  string            `json:"image_volume_mode"`
	Mounts        []mount           `json:"mounts"`
	ShmSize       int64             `json:"shm_size"`
	NoHostsFile   bool              `json:"use_image_hosts"`
	NoResolvConf  bool              `json:"use_image_resolve_conf"`
	UserNS        namespace         `json:"userns"`
	IDMappings    idMappings        `json:"idmappings"`
	PIDNS         namespace         `json:"pidns"`
	IPCNS         namespace         `json:"ipcns"`
	UTSNS         namespace         `json:"utsns"`
	CgroupNS      namespace         `json:"cgroupns"`
	NetNS         namespace         `json:"netns"`
	CgroupsMode   string            `json:"cgroups_mode"`
	Resources     resources         `json:"resource_limits"`
	Rlimits       []rlimit          `json:"r_limits"`
}

type (
	logConfig struct {
		Driver string `json:"driver"`
	}
	healthConfig struct {
		Test []string `json:"Test"`
	}
	namespace struct {
		Mode string `json:"nsmode"`
	}
	mount struct {
		Destination string   `json:"destination"`
		Type        string   `json:"type"`
		Source      string   `json:"source"`
		Options     []string `json:"options"`
	}
	idMappings struct {
		UIDMap []idMap `json:"UIDMap"`
		GIDMap []idMap `json:"GIDMap"`
	}
	idMap struct {
		ContainerID int `json:"container_id"`
		HostID      int `json:"host_id"`
		Size        int `json:"size"`
	}
	resources struct {
		Memory *memoryLimit `json:"memory,omitempty"`
		CPU    *cpuLimit    `json:"cpu,omitempty"`
		PIDs   *pidsLimit   `json:"pids,omitempty"`
	}
	memoryLimit struct {
		Limit int64 `json:"limit"`
		Swap  int64 `json:"swap"` // memory and swap together
	}
	cpuLimit struct {
		Quota  int64 `json:"quota"`
		Period int64 `json:"period"`
	}
	pidsLimit struct {
		Limit int64 `json:"limit"`
	}
	rlimit struct {
		Type string `json:"type"`
		Soft int64  `json:"soft"`
		Hard int64  `json:"hard"`
	}
)

// newCreateRequest returns the container that p describes.
func (c *client) newCreateRequest(p container.Placement) createRequest {
	l := p.Spec.Limits
	id := strconv.FormatInt(p.UID, 10)
	private := namespace{Mode: "private"}
	return createRequest{
		Name:         p.ID,
		Image:        p.Spec.Image,
		Entrypoint:   p.Command[:1],
		Command:      p.Command[1:],
		Env:          environment(p.Spec),
		UnsetEnvAll:  true,
		Stdin:        p.Transport == runtime.TransportStdio,
		WorkDir:      runtime.Workspace,
		Labels:       p.Labels,
		Hostname:     container.Hostname,
		Remove:       true,
		StopSignal:   9,
		Systemd:      "false",
		Log:          logConfig{Driver: "none"},
		Healthcheck:  healthConfig{Test: []string{"NONE"}},
		OCIRuntime:   c.ociRuntime,
		User:         id + ":" + id,
		CapDrop:      []string{"all"},
		NoNewPrivs:   true,
		SeccompPath:  seccompPath(p.Dir),
		Mask:         maskedPaths,
		ProcOptions:  []string{"nosuid", "nodev", "noexec", "hidepid=2"},
		ReadOnlyRoot: true,
		ImageVolumes: "ignore",
		Mounts:       newMounts(p),
		ShmSize:      l.ShmBytes,
		NoHostsFile:  true,
		NoResolvConf: true,
		UserNS:       private,
		IDMappings:   newIDMappings(c.rootless),
		PIDNS:        private,
		IPCNS:        private,
		UTSNS:        private,
		CgroupNS:     private,
		NetNS:        namespace{Mode: "none"},
		CgroupsMode:  "enabled",
		Resources:    c.newResources(p.Spec),
		Rlimits:      newRlimits(p.Rlimits),
	}
}

// seccompPath is where the profile is, or "" on another machine.
func seccompPath(dir *local.SandboxDir) string {
	if dir == nil {
		return ""
	}
	return dir.Seccomp
}

// newResources asks for every limit, but for one that cannot be had where that
// is allowed: a rootless engine on cgroup v2 would fail.
func (c *client) newResources(spec runtime.Spec) resources {
	l := spec.Limits
	without := func(fact string) bool {
		return spec.AllowUnlimited && slices.ContainsFunc(c.missing, func(d runtime.Difference) bool { return d.Fact == fact })
	}
	var r resources
	if !without("memory limit") {
		r.Memory = &memoryLimit{Limit: l.MemoryBytes, Swap: l.MemoryBytes}
	}
	if !without("cpu limit") {
		quota, period := runtime.CPUQuota(l.MilliCPUs())
		r.CPU = &cpuLimit{Quota: quota, Period: period}
	}
	if !without("process limit") {
		r.PIDs = &pidsLimit{Limit: l.PIDs}
	}
	return r
}

// newIDMappings gives the sandbox a user namespace. Podman's own mode for this,
// "no-map", is for rootless engines only, and adds group 0 in version 4.3.
func newIDMappings(rootless bool) idMappings {
	base := rootfulBase
	if rootless {
		base = rootlessBase
	}
	m := []idMap{{ContainerID: 0, HostID: base, Size: idCount}}
	return idMappings{UIDMap: m, GIDMap: m}
}

func newMounts(p container.Placement) []mount {
	l := p.Spec.Limits
	tmpfs := func(at string, size int64) mount {
		return mount{Destination: at, Type: "tmpfs", Source: "tmpfs", Options: []string{
			"rw", "noexec", "nosuid", "nodev", "notmpcopyup", "mode=1777", "size=" + strconv.FormatInt(size, 10),
		}}
	}
	bind := func(at, from string) mount {
		return mount{Destination: at, Type: "bind", Source: from, Options: []string{
			"bind", "ro", "noexec", "nosuid", "nodev", "private",
		}}
	}
	mounts := []mount{
		tmpfs("/tmp", l.TmpBytes),
		tmpfs(runtime.Workspace, l.WorkspaceBytes),
	}
	for _, b := range p.Spec.Binds {
		mounts = append(mounts, bind(b.Target, b.Source))
	}
	if p.Transport == runtime.TransportStdio {
		return mounts
	}
	mounts = append(mounts, bind(path.Dir(runtime.SocketPath), p.Dir.Socket))
	if p.Dir.Files != "" {
		mounts = append(mounts, bind(runtime.FilesDir, p.Dir.Files))
	}
	return mounts
}

func newRlimits(limits map[string]int64) []rlimit {
	var rlimits []rlimit
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		rlimits = append(rlimits, rlimit{Type: name, Soft: limits[name], Hard: limits[name]})
	}
	return rlimits
}

func environment(spec runtime.Spec) map[string]string {
	env := map[string]string{}
	for _, kv := range spec.Environment() {
		k, v, _ := strings.Cut(kv, "=")
		env[k] = v
	}
	return env
}
