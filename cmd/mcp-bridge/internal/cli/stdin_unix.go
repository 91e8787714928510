//go:build unix

package cli

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// pollable returns in as a file that Go's runtime waits for without a thread
// and whose reads can be cut short, if it is a pipe or socket: a client's
// requests are then some tens of microseconds sooner at their handlers.
// Terminals and files are left alone, for they are shared with others.
func pollable(in io.Reader) (_ io.Reader, restore func()) {
	restore = func() {}
	file, ok := in.(*os.File)
	if !ok {
		return in, restore
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return in, restore
	}
	fd := int(file.Fd())
	if err := syscall.SetNonblock(fd, true); err != nil {
		return in, restore
	}
	return os.NewFile(uintptr(fd), file.Name()), func() { _ = syscall.SetNonblock(fd, false) }
}
