package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// FolderOf returns what tells the folder at an absolute path without symbolic
// links from all others.
func FolderOf(dir string) (runtime.Folder, error) {
	return folderAt(unix.AT_FDCWD, dir, unix.RESOLVE_NO_SYMLINKS)
}

func folderAt(root int, dir string, resolve uint64) (runtime.Folder, error) {
	fail := func(err error) (runtime.Folder, error) {
		return runtime.Folder{}, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	fd, err := unix.Openat2(root, dir, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: resolve})
	if err != nil {
		return fail(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fail(err)
	}
	return runtime.Folder{Device: uint64(st.Dev), Inode: st.Ino}, nil //nolint:unconvert // 32 bits on some architectures
}

// shownFolders adds to the mounts in [runtime.BindDir] which folders they are,
// where the process's root can be entered.
func shownFolders(pid int, mounts []runtime.Mount) error {
	root := -1
	for i, m := range mounts {
		if path.Dir(m.Point) != runtime.BindDir {
			continue
		}
		if root < 0 {
			var err error
			root, err = unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if errors.Is(err, fs.ErrPermission) {
				return nil
			}
			if err != nil {
				return &fs.PathError{Op: "open", Path: "/proc/PID/root", Err: err}
			}
			defer unix.Close(root) //nolint:gocritic // once
		}
		var err error
		if mounts[i].Folder, err = folderAt(root, m.Point, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_SYMLINKS); err != nil {
			return err
		}
	}
	return nil
}
