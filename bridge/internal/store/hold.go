package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/filelock"
)

const holdSuffix = ".held"

// A Hold is the right to an entry: nobody else has one of the same key as long
// as it lives, not in another process either. It does not keep anybody from
// reading and writing the entry without one.
type Hold struct {
	file *os.File
	path string
}

// TryHold takes the hold of key, or returns [ErrBusy] if somebody has it. It
// ends with Close, or with the process.
func (a *Area) TryHold(key string) (*Hold, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	if err := makePrivate(a.dir); err != nil {
		return nil, fmt.Errorf("hold %.80q: %w", key, err)
	}
	path := a.path(strings.TrimSuffix(fileName(key), suffix) + holdSuffix)
	for range 10 { // its last holder may be removing it
		h, err := tryHold(path)
		if err != nil {
			return nil, fmt.Errorf("hold %.80q: %w", key, err)
		}
		if h != nil {
			return h, nil
		}
	}
	return nil, fmt.Errorf("hold %.80q: %w", key, ErrBusy)
}

// tryHold returns nothing if the file was removed just before it was locked.
func tryHold(path string) (*Hold, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a file", ErrUnsafe, filepath.Base(path))
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // a hash, in our own directory
	if err != nil {
		return nil, err
	}
	ok, err := filelock.Try(f)
	if err == nil && !ok {
		err = ErrBusy
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	mine, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	there, err := os.Lstat(path)
	if err != nil || !os.SameFile(mine, there) {
		return nil, f.Close()
	}
	return &Hold{f, path}, nil
}

// Close ends the hold.
func (h *Hold) Close() error {
	_ = os.Remove(h.path) // under the lock: who opens it later finds that it is gone
	return h.file.Close()
}
