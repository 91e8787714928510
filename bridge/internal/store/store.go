// Package store keeps small values in a directory of the host's user, for
// sandboxes that come and go.
//
// A value is a file, written whole and then renamed into place, so that a crash
// at any moment leaves the old value or the new one. Writers hold a lock that
// holds between processes, too. Nothing is cached: what one process writes
// others read at once.
package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Errors that callers branch on.
var (
	ErrNotFound = errors.New("not found")
	ErrFull     = errors.New("full")      // the text around it names the limit
	ErrDamaged  = errors.New("damaged")   // the file is not as it was written
	ErrBusy     = errors.New("busy")      // another process held the lock for long
	ErrKey      = errors.New("not a key") // of [Area]'s methods: see [MaxKey]
	ErrUnsafe   = errors.New("not safe")  // others could read or change what is kept
)

// MaxKey is the most bytes of a key. Any UTF-8 but the empty text is one.
const MaxKey = 512

// lockTimeout bounds the wait for other writers, which take milliseconds.
const lockTimeout = 10 * time.Second

// A Store is a directory with areas in it. Its methods and those of its areas
// may be called concurrently.
type Store struct{ dir string }

// Open opens the store in dir, and makes the directory if there is none. It is
// refused with [ErrUnsafe] if it is a symbolic link, or belongs to another user,
// or can be written by one. There is nothing to close.
func Open(dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	if err := makePrivate(dir); err != nil {
		return nil, fmt.Errorf("open the state directory: %w", err)
	}
	return &Store{dir}, nil
}

// Dir is the directory, for what is kept in another form than that of an area:
// each name in it is an area's or such a subject's.
func (s *Store) Dir() string { return s.dir }

// makePrivate makes a directory that only this user can enter, or checks that
// the one that is there is safe.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return requirePrivate(dir)
}

func requirePrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		return fmt.Errorf("%s: %w: it is a symbolic link", dir, ErrUnsafe)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: %w: it is not a directory", dir, ErrUnsafe)
	}
	return requireOwn(dir, info)
}

// Limits bound an area. All must be set.
type Limits struct {
	Entries    int
	EntryBytes int64
	TotalBytes int64 // of all files, which are a little larger than the values in them
}

// Area returns a part of the store with names and limits of its own. It is made
// on the disk by the first write. The name is ours: small letters and hyphens.
func (s *Store) Area(name string, limits Limits) *Area {
	return &Area{dir: filepath.Join(s.dir, name), limits: limits}
}
