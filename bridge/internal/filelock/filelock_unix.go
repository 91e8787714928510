//go:build unix

// Package filelock locks files against other processes.
package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Try takes the lock of an open file, unless somebody else has it: another
// process, or another opening of the file. Closing the file, or the end of the
// process, frees it.
func Try(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}
