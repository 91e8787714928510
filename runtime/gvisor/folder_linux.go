package gvisor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds on the snapshot of a folder.
const (
	maxFolderEntries = 100_000
	maxFolderBytes   = 1 << 30
	maxFolderDepth   = 100 // each level holds two descriptors
)

// errTooLarge is for a folder beyond the bounds.
var errTooLarge = errors.New("too large for a snapshot")

// A walk goes through a folder of the host that others may be changing. It opens
// one name at a time, in a directory that it holds, and follows no link and no
// mount: nothing leads it out. What a name means is decided by what was opened.
// Devices, pipes and sockets are not even opened, and neither is what users of
// the host in general cannot reach: a cell has no more rights than they.
type walk struct {
	maxEntries int
	maxBytes   int64
	visit      func(found) error

	entries int
	bytes   int64
	leftOut int       // devices, pipes, sockets
	newest  time.Time // the latest change of an entry's status
}

// found is an entry of a folder.
type found struct {
	name string // from the folder, which itself is "/"
	fd   int    // an O_PATH descriptor of it, until visit returns; -1 where something is mounted
	stat unix.Stat_t
}

func (f found) kind() uint32      { return f.stat.Mode & unix.S_IFMT }
func (f found) readable() bool    { return f.stat.Mode&0o004 != 0 }
func (f found) enterable() bool   { return f.stat.Mode&0o001 != 0 }
func (f found) mode() os.FileMode { return os.FileMode(f.stat.Mode & 0o777) }

func timeOf(t unix.Timespec) time.Time { return time.Unix(t.Unix()) }

// reopen opens what an O_PATH descriptor stands for.
func reopen(fd, flags int) (*os.File, error) {
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	opened, err := unix.Open(path, flags|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(opened), path), nil
}

// run walks the folder at source, an absolute path without links.
func (w *walk) run(ctx context.Context, source string) error {
	fd, err := openAt(unix.AT_FDCWD, source, unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return w.entry(ctx, fd, "/", 0)
}

// openAt opens name for nothing but to look at it. Links are not followed: a
// last one is opened itself, unless a directory is asked for.
func openAt(dir int, name string, flags, resolve uint64) (int, error) {
	fd, err := unix.Openat2(dir, name, &unix.OpenHow{
		Flags: flags | unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: resolve | unix.RESOLVE_NO_SYMLINKS,
	})
	if errors.Is(err, unix.ENOSYS) {
		return -1, fmt.Errorf("%w: Linux 5.6 or later is needed", err)
	}
	return fd, err
}

// entry visits what fd stands for, and everything below.
func (w *walk) entry(ctx context.Context, fd int, name string, depth int) error {
	f := found{name: name, fd: fd}
	if err := unix.Fstat(fd, &f.stat); err != nil {
		return err
	}
	if t := timeOf(f.stat.Ctim); t.After(w.newest) {
		w.newest = t
	}
	switch f.kind() {
	case unix.S_IFREG:
		if w.bytes += f.stat.Size; w.bytes > w.maxBytes || f.stat.Size > w.maxBytes {
			return fmt.Errorf("%w: it has more than %d MiB", errTooLarge, w.maxBytes>>20)
		}
	case unix.S_IFDIR:
	case unix.S_IFLNK:
	default:
		w.leftOut++
		return nil
	}
	if err := w.visit(f); err != nil {
		return err
	}
	if f.kind() != unix.S_IFDIR || !f.enterable() {
		return nil
	}
	if depth == maxFolderDepth {
		return fmt.Errorf("%w: its folders are more than %d deep", errTooLarge, maxFolderDepth)
	}
	return w.directory(ctx, f, depth)
}

func (w *walk) directory(ctx context.Context, f found, depth int) error {
	dir, err := reopen(f.fd, unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrPermission) { // of other users than us
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(w.maxEntries - w.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if w.entries += len(names); w.entries > w.maxEntries {
		return fmt.Errorf("%w: it has more than %d files", errTooLarge, w.maxEntries)
	}
	slices.Sort(names)
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.child(ctx, f, name, depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) child(ctx context.Context, dir found, base string, depth int) error {
	name := path.Join(dir.name, base)
	fd, err := openAt(dir.fd, base, 0, unix.RESOLVE_NO_XDEV)
	switch {
	case errors.Is(err, fs.ErrNotExist): // by now
		return nil
	case errors.Is(err, unix.EXDEV):
		return w.mounted(dir, base, name)
	case errors.Is(err, fs.ErrPermission): // for us in particular
		w.leftOut++
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	defer unix.Close(fd)
	return w.entry(ctx, fd, name, depth+1)
}

// mounted visits a directory on which something is mounted as one that is empty.
func (w *walk) mounted(dir found, base, name string) error {
	f := found{name: name, fd: -1}
	err := unix.Fstatat(dir.fd, base, &f.stat, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	if err != nil || f.kind() != unix.S_IFDIR {
		w.leftOut++
		return nil //nolint:nilerr // what is mounted is not ours to show
	}
	return w.visit(found{name: name, fd: -1, stat: unix.Stat_t{Mode: unix.S_IFDIR | 0o755, Mtim: f.stat.Mtim}})
}

// An imprint is what tells one state of a folder from another, as far as that can
// be told without reading what is in the files.
type imprint [sha256.Size]byte

// look returns a folder's imprint, and when something in it last changed. Its
// bounds are checked.
func look(ctx context.Context, source string) (imprint, time.Time, error) {
	sum := sha256.New()
	w := newWalk(func(f found) error {
		s := f.stat
		_, err := fmt.Fprintf(sum, "%d:%s %d %d %o %d %d %d %d %d\n", len(f.name), f.name, s.Dev, s.Ino, s.Mode, s.Size, s.Mtim.Sec, s.Mtim.Nsec, s.Ctim.Sec, s.Ctim.Nsec)
		return err
	})
	err := w.run(ctx, source)
	return imprint(sum.Sum(nil)), w.newest, err
}

func newWalk(visit func(found) error) *walk {
	return &walk{maxEntries: maxFolderEntries, maxBytes: maxFolderBytes, visit: visit}
}

// copyFolder writes the folder at source into an image. It returns how many
// entries have no place in one.
func copyFolder(ctx context.Context, b *builder, source string) (leftOut int, err error) {
	w := newWalk(func(f found) error {
		if err := copyEntry(ctx, b, f); err != nil {
			return fmt.Errorf("%.200q: %w", f.name, err)
		}
		return nil
	})
	b.maxEntries, b.maxBytes = w.maxEntries+1, w.maxBytes
	err = w.run(ctx, source)
	return w.leftOut, err
}

func copyEntry(ctx context.Context, b *builder, f found) error {
	modified := timeOf(f.stat.Mtim)
	if modified.Before(b.defaultTime) { // there is no place for it
		modified = b.defaultTime
	}
	switch f.kind() {
	case unix.S_IFDIR:
		if err := b.mkdir(f.name, f.mode()); err != nil {
			return err
		}
		return b.w.Chtimes(f.name, modified, modified)
	case unix.S_IFLNK:
		target, err := readlink(f.fd)
		if err != nil {
			return err
		}
		return b.symlink(target, f.name)
	}
	if !f.readable() {
		return b.file(f.name, f.mode(), modified, strings.NewReader(""))
	}
	file, err := reopen(f.fd, unix.O_NONBLOCK)
	if errors.Is(err, fs.ErrPermission) { // for us in particular
		return b.file(f.name, 0, modified, strings.NewReader(""))
	}
	if err != nil {
		return err
	}
	defer file.Close()
	// As long as it was: it may be growing.
	return b.file(f.name, f.mode(), modified, io.LimitReader(until(ctx, file), f.stat.Size))
}

// readlink returns the target of a link that was opened itself.
func readlink(fd int) (string, error) {
	buf := make([]byte, maxLinkBytes+1)
	n, err := unix.Readlinkat(fd, "", buf)
	return string(buf[:max(n, 0)]), err
}

// until reads until a context has ended.
func until(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return r.Read(p)
	})
}

type readerFunc func([]byte) (int, error)

// Read implements [io.Reader].
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
