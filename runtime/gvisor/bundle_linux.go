package gvisor

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// A bundle is what the OCI configuration of one sandbox is made of.
type bundle struct {
	spec      runtime.Spec // complete
	transport runtime.Transport
	uid       uint32
	empty     string // a directory with nothing in it
	rootfs    string // the EROFS image of the root
	files     string // that of the spec's files; "" if there are none
	// mountPoints is the image of the directory in which folders of the host appear,
	// and folders are theirs, in the spec's order.
	mountPoints string
	folders     []string
	rlimits     map[string]int64
}

// images are the files that the sandbox's kernel gets to read.
func (b bundle) images() []string {
	return slices.DeleteFunc(append([]string{b.rootfs, b.files, b.mountPoints}, b.folders...), func(path string) bool { return path == "" })
}

// write writes config.json into dir.
func (b bundle) write(dir string) error {
	config, err := b.config()
	if err != nil {
		return err
	}
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600)
}

func (b bundle) config() (*specs.Spec, error) {
	seccomp, err := parseSeccomp(b.spec.Seccomp)
	if err != nil {
		return nil, err
	}
	return &specs.Spec{
		Version: specs.Version,
		Process: &specs.Process{
			User:            specs.User{UID: b.uid, GID: b.uid},
			Args:            append(slices.Clip(b.spec.Command), transportArgument(b.transport)),
			Env:             b.spec.Environment(),
			Cwd:             runtime.Workspace,
			Capabilities:    &specs.LinuxCapabilities{},
			Rlimits:         posixRlimits(b.rlimits),
			NoNewPrivileges: true,
		},
		// gVisor takes the root from the annotations, and looks at the path only
		// to see that it is there.
		Root:     &specs.Root{Path: b.empty, Readonly: true},
		Hostname: container.Hostname,
		Mounts:   b.mounts(),
		Annotations: map[string]string{
			"dev.gvisor.spec.rootfs.source": b.rootfs,
			"dev.gvisor.spec.rootfs.type":   "erofs",
		},
		Linux: &specs.Linux{
			Seccomp: seccomp,
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace},
				{Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace},
				{Type: specs.MountNamespace},
				{Type: specs.NetworkNamespace},
			},
		},
	}, nil
}

// mounts are all there are, but for the root. Those that gVisor would add by
// itself are among them, with the options that it would leave out.
func (b bundle) mounts() []specs.Mount {
	l := b.spec.Limits
	scratch := func(at string, size int64) specs.Mount {
		return specs.Mount{Destination: at, Type: "tmpfs", Source: "tmpfs", Options: []string{
			"rw", "nosuid", "nodev", "noexec", "mode=1777", fmt.Sprintf("size=%d", size),
		}}
	}
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "nodev", "noexec"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"ro", "nosuid", "noexec", "mode=755"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec"}},
		scratch("/dev/shm", l.ShmBytes),
		// In place of sysfs, of which Python needs nothing.
		{Destination: "/sys", Type: "tmpfs", Source: "tmpfs", Options: []string{"ro", "nosuid", "nodev", "noexec", "mode=555", "size=4096"}},
		scratch("/tmp", l.TmpBytes),
		scratch(runtime.Workspace, l.WorkspaceBytes),
	}
	image := func(at, file string) {
		mounts = append(mounts, specs.Mount{
			Destination: at, Type: "erofs", Source: file, Options: []string{"ro", "nosuid", "nodev", "noexec"},
		})
	}
	if b.files != "" {
		image(runtime.FilesDir, b.files)
	}
	if len(b.folders) > 0 { // otherwise what the image has there, or nothing
		image(runtime.BindDir, b.mountPoints)
	}
	for i, folder := range b.folders {
		image(b.spec.Binds[i].Target, folder)
	}
	return mounts
}

// guestControl and guestCallback are the numbers of the descriptors in the sandbox.
const (
	guestControl  = 3
	guestCallback = 4
)

func transportArgument(t runtime.Transport) string {
	if t == runtime.TransportStdio {
		return string(t)
	}
	return fmt.Sprintf("fd:%d,%d", guestControl, guestCallback)
}

func posixRlimits(limits map[string]int64) []specs.POSIXRlimit {
	var list []specs.POSIXRlimit
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		n := uint64(limits[name]) //nolint:gosec // limits are not negative, see Validate
		list = append(list, specs.POSIXRlimit{Type: "RLIMIT_" + strings.ToUpper(name), Hard: n, Soft: n})
	}
	return list
}
