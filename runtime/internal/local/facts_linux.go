package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// ReadFacts reads from /proc and the cgroup file systems what the kernel
// enforces on the process pid, which must still be alive afterwards for the
// facts to be its own.
func ReadFacts(pid int) (runtime.Facts, error) {
	f, err1 := ParseFacts(procSource(fmt.Sprintf("/proc/%d", pid)))
	var own runtime.Facts
	err2 := procSource("/proc/self").namespaces(&own)
	f.HostNamespaces = own.Namespaces
	group, err3 := CgroupOf(pid)
	if err3 == nil {
		f.Cgroup, err3 = group.Limits()
	}
	return f, errors.Join(err1, err2, err3)
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
