package gvisor

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// helperName is what builds and packages of ours call runsc.
const helperName = "mcp-bridge-runsc"

// findHelper returns the path of the runsc to use.
func findHelper(opts Options) (string, error) {
	if opts.Runsc != "" {
		return opts.Runsc, checkHelper(opts.Runsc)
	}
	var found error
	for _, path := range helperCandidates() {
		err := checkHelper(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			found = errors.Join(found, err)
		}
	}
	if found == nil {
		found = fmt.Errorf("%w: runsc is not installed", runtime.ErrUnavailable)
	}
	return "", found
}

// helperCandidates are the places to look, best first.
func helperCandidates() []string {
	var paths []string
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			paths = append(paths, filepath.Join(filepath.Dir(self), helperName))
		}
	}
	for _, command := range []string{helperName, "runsc"} {
		if path, err := exec.LookPath(command); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// checkHelper makes sure that path is the runsc that this package was written
// for, and nobody else's to change.
func checkHelper(path string) error {
	if err := checkTrusted(path); err != nil {
		return fmt.Errorf("%w: %w", runtime.ErrUnavailable, err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: %s does not say what it was built from: %w", runtime.ErrUnavailable, path, err)
	}
	if m := info.Main; m.Path != "gvisor.dev/gvisor" || m.Version != Version || m.Sum != Sum {
		return fmt.Errorf("%w: %s is %s %s, want gvisor.dev/gvisor %s", runtime.ErrUnavailable, path, m.Path, m.Version, Version)
	}
	return nil
}

// checkTrusted refuses a program that somebody else could exchange, where that
// would make them root: its file and its directory must be root's alone.
func checkTrusted(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	for _, p := range []string{real, filepath.Dir(real)} {
		var st unix.Stat_t
		if err := unix.Stat(p, &st); err != nil {
			return &fs.PathError{Op: "stat", Path: p, Err: err}
		}
		open := st.Mode&0o022 != 0
		if p != real && st.Mode&unix.S_ISVTX != 0 { // there, others can change only what is theirs
			open = false
		}
		if st.Uid != 0 || open {
			return fmt.Errorf("%s can be changed by others than root (owner %d, mode %#o), so root does not run it", p, st.Uid, st.Mode&0o7777)
		}
	}
	return nil
}
