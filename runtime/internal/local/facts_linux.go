package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// ReadFacts reads from /proc and the cgroup file systems what the kernel
// enforces on the process pid, which must still be alive afterwards for the
// facts to be its own.
func ReadFacts(pid int) (runtime.Facts, error) {
	read := procSource(fmt.Sprintf("/proc/%d", pid))
	f, err1 := ParseFacts(read)
	f.HostUID, f.HostGID = f.UID, f.GID
	err1 = errors.Join(err1, read.idsInside(&f))
	var own runtime.Facts
	err2 := procSource("/proc/self").namespaces(&own)
	f.HostNamespaces = own.Namespaces
	group, err3 := CgroupOf(pid)
	if err3 == nil {
		f.Cgroup, err3 = group.Limits()
	}
	var err4 error
	f.Devices, err4 = devices(fmt.Sprintf("/proc/%d/root/dev", pid))
	err5 := shownFolders(pid, f.Mounts)
	return f, errors.Join(err1, err2, err3, err4, err5)
}

// devices returns the names below dir of device files, nil if they cannot be
// looked at. Mounts below it are looked at as mounts.
func devices(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := []string{}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, nil
	case errors.Is(err, fs.ErrNotExist): // nor then any device
		return names, nil
	}
	for _, e := range entries {
		if e.Type()&fs.ModeDevice != 0 {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// Existing returns those of the paths that are there, for paths that every
// mount of a kernel's own file systems has alike.
func Existing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}

// idsInside turns ids as seen from here into what they are in the process's own
// user namespace.
func (read Source) idsInside(f *runtime.Facts) error {
	uidMap, err1 := read.idMap("uid_map")
	gidMap, err2 := read.idMap("gid_map")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	f.UID, f.GID = idInside(f.UID, uidMap), idInside(f.GID, gidMap)
	for i, g := range f.Groups {
		f.Groups[i] = idInside(g, gidMap)
	}
	return nil
}

// idRange is a line of uid_map or gid_map.
type idRange struct{ inside, outside, size int64 }

func (read Source) idMap(name string) ([]idRange, error) {
	text, err := read(name)
	if err != nil {
		return nil, err
	}
	var ranges []idRange
	for line := range strings.Lines(text) {
		var r idRange
		if _, err := fmt.Sscan(line, &r.inside, &r.outside, &r.size); err != nil {
			return nil, fmt.Errorf("unexpected form of %s: %w", name, err)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

// idInside maps an id seen from here to the one in the namespace, -1 if there
// is none.
func idInside(id int64, ranges []idRange) int64 {
	for _, r := range ranges {
		if r.outside <= id && id-r.outside < r.size {
			return r.inside + id - r.outside
		}
	}
	return -1
}

// procSource is the source that a process's directory in /proc is.
func procSource(dir string) Source {
	return func(name string) (string, error) {
		name = filepath.Join(dir, name)
		if strings.HasPrefix(name, filepath.Join(dir, "ns")+"/") {
			return os.Readlink(name)
		}
		data, err := os.ReadFile(name)
		return string(data), err
	}
}

// HardLimit returns the calling process's own hard limit by its short name, the
// most an engine without CAP_SYS_RESOURCE can give.
func HardLimit(name string) (int64, error) {
	var f runtime.Facts
	if err := procSource("/proc/self").rlimits(&f); err != nil {
		return 0, err
	}
	limit, ok := f.Rlimits[name]
	if !ok {
		return 0, fmt.Errorf("no rlimit %q", name)
	}
	return limit.Hard, nil
}
