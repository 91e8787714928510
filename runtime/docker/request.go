package docker

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	containertypes "github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// Docker's own lists, for ours take their place, and what we hide on top of
// them. Most of that tells about the host; /dev/mqueue is writable, and whoever
// opens /proc/pressure can have the host's kernel watch it for them.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
		"/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",

		"/dev/mqueue",
		"/proc/config.gz", "/proc/diskstats", "/proc/interrupts", "/proc/kallsyms", "/proc/key-users", "/proc/pressure", "/proc/swaps",
		"/sys/block", "/sys/dev/block", "/sys/fs/cgroup", "/sys/kernel",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// bytesPerInode bounds the files of a tmpfs: their inodes are the kernel's memory.
const bytesPerInode = 8 << 10

// A createRequest is what becomes the body of POST /containers/create.
type createRequest struct {
	config containertypes.Config
	host   containertypes.HostConfig
}

// newCreateRequest returns the container that enforces the placement's spec
// with an image of which facts are known, on a daemon for an architecture in
// the kernel's words.
func newCreateRequest(p container.Placement, image imageFacts, architecture string) (createRequest, error) {
	l := p.Spec.Limits
	quota, period := runtime.CPUQuota(l.MilliCPUs())
	profile, err := seccompProfile(p.Spec.Seccomp, architecture)
	if err != nil {
		return createRequest{}, err
	}
	id := strconv.FormatInt(p.UID, 10)
	no, now := false, 0
	stdin := p.Transport == runtime.TransportStdio
	return createRequest{
		config: containertypes.Config{
			Hostname:     container.Hostname,
			User:         id + ":" + id,
			AttachStdin:  stdin,
			AttachStdout: true,
			AttachStderr: true,
			OpenStdin:    stdin,
			StdinOnce:    stdin,
			Env:          environment(p.Spec, image.env),
			Entrypoint:   p.Command[:1],
			Cmd:          p.Command[1:],
			Healthcheck:  &containertypes.HealthConfig{Test: []string{"NONE"}},
			Image:        image.id, // what was looked at, whatever the name means by now
			WorkingDir:   runtime.Workspace,
			// Not even the network called none: it would have the daemon set it
			// up, and describe the host's resolver in /etc.
			NetworkDisabled: true,
			Labels:          p.Labels,
			StopSignal:      "SIGKILL",
			StopTimeout:     &now,
		},
		host: containertypes.HostConfig{
			NetworkMode:    "none",
			LogConfig:      containertypes.LogConfig{Type: "none"},
			RestartPolicy:  containertypes.RestartPolicy{Name: containertypes.RestartPolicyDisabled},
			AutoRemove:     true,
			CapDrop:        []string{"ALL"},
			SecurityOpt:    []string{"no-new-privileges:true", "seccomp=" + profile},
			ReadonlyRootfs: true,
			IpcMode:        containertypes.IPCModePrivate,
			CgroupnsMode:   containertypes.CgroupnsModePrivate,
			Init:           &no,
			ShmSize:        l.ShmBytes,
			Tmpfs:          newTmpfs(l, p.UID, image.volumes),
			Mounts:         newMounts(p),
			MaskedPaths:    maskedPaths,
			ReadonlyPaths:  readonlyPaths,
			Resources: containertypes.Resources{
				Memory:     l.MemoryBytes,
				MemorySwap: l.MemoryBytes, // memory and swap together
				CPUQuota:   quota,
				CPUPeriod:  period,
				PidsLimit:  &l.PIDs,
				Ulimits:    newUlimits(p.Rlimits),
			},
		},
	}, nil
}

// seccompProfile returns the profile in one line, with the daemon's architecture
// written out if it names none: without it runc answers system calls that are
// newer than the profile with EPERM instead of ENOSYS, for daemons before 23.0
// leave out what the profile says of its default.
func seccompProfile(profile []byte, architecture string) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(profile, &fields); err != nil {
		return "", fmt.Errorf("seccomp profile: %w", err)
	}
	var named []string
	if fields["architectures"] != nil {
		if err := json.Unmarshal(fields["architectures"], &named); err != nil {
			return "", fmt.Errorf("seccomp profile: %w", err)
		}
		ours := map[string]string{"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
		if name, ok := ours[architecture]; ok && len(named) == 0 {
			fields["architectures"] = json.RawMessage("[" + strconv.Quote(name) + "]")
		}
	}
	data, err := json.Marshal(fields)
	return string(data), err
}

// environment is the sandbox's environment, and after it the bare names of the
// image's other variables: Docker adds what an image brings, unless it is told
// a value or, by a name alone, to leave it out.
func environment(spec runtime.Spec, image []string) []string {
	env := spec.Environment()
	named := map[string]bool{}
	for _, kv := range env {
		named[envName(kv)] = true
	}
	if !named["HOSTNAME"] { // Docker's, unless an image has one
		named["HOSTNAME"] = true
		env = append(env, "HOSTNAME="+container.Hostname)
	}
	for _, kv := range image {
		if key := envName(kv); key != "" && !named[key] {
			named[key] = true
			env = append(env, key)
		}
	}
	return env
}

func envName(kv string) string {
	key, _, _ := strings.Cut(kv, "=")
	return key
}

// newTmpfs returns the sandbox's own file systems by their mount points, and
// for each volume that the image declares one that is empty and read-only:
// otherwise Docker would make a writable directory on the host's disk.
func newTmpfs(l runtime.Limits, uid int64, volumes []string) map[string]string {
	options := func(size int64, more ...string) string {
		return strings.Join(append([]string{
			"rw", "noexec", "nosuid", "nodev", "size=" + strconv.FormatInt(size, 10),
			"nr_inodes=" + strconv.FormatInt(max(size/bytesPerInode, 64), 10),
		}, more...), ",")
	}
	tmpfs := map[string]string{}
	for _, point := range volumes {
		tmpfs[point] = "ro,noexec,nosuid,nodev,size=65536,nr_inodes=64,mode=0555" // room for our own mount points
	}
	id := strconv.FormatInt(uid, 10)
	tmpfs["/tmp"] = options(l.TmpBytes, "mode=1777")
	tmpfs["/dev/shm"] = options(l.ShmBytes, "mode=1777")
	tmpfs[runtime.Workspace] = options(l.WorkspaceBytes, "mode=0700", "uid="+id, "gid="+id)
	return tmpfs
}

func newMounts(p container.Placement) []mount.Mount {
	bind := func(at, from string) mount.Mount {
		return mount.Mount{
			Type: mount.TypeBind, Source: from, Target: at, ReadOnly: true,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		}
	}
	var mounts []mount.Mount
	for _, b := range p.Spec.Binds {
		mounts = append(mounts, folderMount(b, p.Labels))
	}
	if p.Transport != runtime.TransportSocket {
		return mounts
	}
	mounts = append(mounts, bind(path.Dir(runtime.SocketPath), p.Dir.Socket))
	if p.Dir.Files != "" {
		mounts = append(mounts, bind(runtime.FilesDir, p.Dir.Files))
	}
	return mounts
}

// folderMount shows a folder of the host by way of a volume without a name, for
// a bind mount cannot be had nosuid, nodev and noexec: the daemon mounts the
// folder so, without what is mounted below it, and the container gets that mount
// as it is. Asking for read-only here, too, would have the OCI runtime mount it
// anew, without the rest. The volume goes with the container.
func folderMount(b runtime.Bind, labels map[string]string) mount.Mount {
	return mount.Mount{
		Type: mount.TypeVolume, Target: b.Target,
		VolumeOptions: &mount.VolumeOptions{
			NoCopy: true, // what the image has there
			Labels: labels,
			DriverConfig: &mount.Driver{Name: "local", Options: map[string]string{
				"type": "none", "device": b.Source, "o": "bind,ro,nosuid,nodev,noexec",
			}},
		},
	}
}

func newUlimits(limits map[string]int64) []*containertypes.Ulimit {
	var ulimits []*containertypes.Ulimit
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		ulimits = append(ulimits, &containertypes.Ulimit{Name: name, Soft: limits[name], Hard: limits[name]})
	}
	return ulimits
}
