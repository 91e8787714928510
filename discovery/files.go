package discovery

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// readRegular returns the content of a regular file of at most limit bytes,
// following symbolic links, which nobody but the user and root can have written.
// It neither blocks on nor has a side effect on anything that is not a regular
// file. Errors do not repeat the path, but for a command that mends them.
func readRegular(path string, limit int64) ([]byte, error) {
	// Before opening, because opening a device can act on it; after opening,
	// because the name may mean something else by then.
	info, err := os.Stat(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	if err := requireRegular(info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:gosec // reading the user's own files is the task
	if err != nil {
		return nil, withoutPath(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	if info, err = f.Stat(); err != nil {
		return nil, withoutPath(err)
	}
	if err := requireRegular(info); err != nil {
		return nil, err
	}
	if err := requireTrusted(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %d KiB", limit>>10)
	}
	return data, nil
}

func requireRegular(info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return errors.New("is " + kindOf(info.Mode()) + ", want a regular file")
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "not a file"
}

// withoutPath keeps the operation and the cause: the path is in the Problem.
func withoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", pe.Op, pe.Err)
	}
	return err
}
