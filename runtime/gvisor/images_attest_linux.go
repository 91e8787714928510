package gvisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A fileID tells a file of the host from all others.
type fileID struct{ device, inode uint64 }

func idOf(path string) (fileID, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fileID{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return fileID{uint64(st.Dev), st.Ino}, nil //nolint:unconvert // 32 bits on some architectures
}

// openFiles returns the files with a name that a process has open, with that name.
func openFiles(pid int) (map[fileID]string, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[fileID]string{}
	for _, e := range entries {
		fd := filepath.Join(dir, e.Name())
		name, err := os.Readlink(fd)
		if errors.Is(err, fs.ErrNotExist) { // closed by now
			continue
		}
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(name, "/") || strings.HasPrefix(name, "/memfd:") || name == os.DevNull {
			continue
		}
		id, err := idOf(fd)
		if err != nil {
			return nil, err
		}
		files[id] = name
	}
	return files, nil
}

// imageDifferences holds what the Sentry has open against the images that it was
// given: they are all of the host's files that it can ever read.
func imageDifferences(got, want map[fileID]string) []runtime.Difference {
	var found []runtime.Difference
	for id, name := range got {
		if _, ok := want[id]; !ok {
			found = append(found, runtime.Difference{Fact: "Sentry's file " + name, Got: "open", Want: "absent"})
		}
	}
	for id, name := range want {
		if _, ok := got[id]; !ok {
			found = append(found, runtime.Difference{Fact: "Sentry's file " + name, Got: "absent", Want: "open"})
		}
	}
	return found
}

// attestImages compares the files that the Sentry has open with the sandbox's images.
func (s *sandbox) attestImages() ([]runtime.Difference, error) {
	want := map[fileID]string{}
	for _, path := range s.images {
		id, err := idOf(path)
		if err != nil {
			return nil, err
		}
		want[id] = path
	}
	got, err := openFiles(s.sentry.PID)
	if err != nil {
		return nil, err
	}
	return imageDifferences(got, want), nil
}
