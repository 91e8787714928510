package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Space below which starting sandboxes, and anything at all, fails.
const (
	littleSpace = 256 << 20
	noSpace     = 8 << 20
)

func kernelFinding() runtime.Finding {
	f := runtime.Finding{Name: "kernel", Level: runtime.LevelOK, Detail: platform()}
	var name unix.Utsname
	if err := unix.Uname(&name); err == nil {
		f.Detail = fmt.Sprintf("Linux %s, %s", unix.ByteSliceToString(name.Release[:]), platform())
	}
	return f
}

// memoryFindings compares what is free with what one sandbox may use.
func (r *root) memoryFindings() []runtime.Finding {
	available, ok := availableMemory()
	if !ok {
		return nil
	}
	f := runtime.Finding{Name: "memory", Level: runtime.LevelOK, Detail: fmt.Sprintf("%s available, %s for a sandbox", bridge.Size(available), bridge.Size(int64(r.settings.memory)))}
	if available < int64(r.settings.memory) {
		f.Level, f.Fix = runtime.LevelWarn, "give sandboxes less with --memory, or end other programs"
	}
	return []runtime.Finding{f}
}

func availableMemory() (int64, bool) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

// diskFindings looks at the folders that are written to.
func (r *root) diskFindings() []runtime.Finding {
	cache, err := r.catalogDir()
	if err != nil {
		return []runtime.Finding{{Name: "cache", Level: runtime.LevelFail, Detail: err.Error(), Fix: hintOf(err)}}
	}
	return []runtime.Finding{diskFinding("runtime", runtimeDir()), diskFinding("cache", cache)}
}

// runtimeDir is where engines keep the sandboxes' sockets.
func runtimeDir() string {
	switch dir := os.Getenv("XDG_RUNTIME_DIR"); {
	case filepath.IsAbs(dir):
		return dir
	case os.Geteuid() == 0:
		return "/run"
	}
	return os.TempDir()
}

// diskFinding looks at a folder, or, while it does not exist, at where it will
// be made.
func diskFinding(name, dir string) runtime.Finding {
	f := runtime.Finding{Name: name + " folder", Level: runtime.LevelOK}
	var disk unix.Statfs_t
	err := unix.Statfs(dir, &disk)
	for parent := filepath.Dir(dir); err == unix.ENOENT && parent != dir; parent = filepath.Dir(parent) {
		err = unix.Statfs(parent, &disk)
	}
	if err != nil {
		f.Level, f.Detail, f.Fix = runtime.LevelFail, dir+": "+err.Error(), "make it a folder that you own"
		return f
	}
	free := int64(min(disk.Bavail, 1<<40)) * int64(disk.Bsize) //nolint:unconvert // bounded; its type differs by architecture
	f.Detail = fmt.Sprintf("%s free in %s", bridge.Size(free), dir)
	switch {
	case disk.Flags&unix.ST_RDONLY != 0:
		f.Level, f.Detail, f.Fix = runtime.LevelFail, dir+" is read-only", "mount it read-write, or name another folder"
	case free < noSpace || disk.Files > 0 && disk.Ffree < 100:
		f.Level, f.Fix = runtime.LevelFail, "df -h "+dir+"; df -i "+dir+"; then remove what is not needed"
	case free < littleSpace:
		f.Level, f.Fix = runtime.LevelWarn, "df -h "+dir+"; then remove what is not needed"
	}
	return f
}
