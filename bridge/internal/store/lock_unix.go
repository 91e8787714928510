//go:build unix

package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock of an open file, unless somebody else has it. Closing
// the file, or the end of the process, frees it.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// syncDir makes what was renamed in a directory outlast a power failure.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the user's state directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
