package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// snapshotPrefix begins the names of images of folders. Their owner holds a lock
// on them, which goes with the process: those without are nobody's.
const snapshotPrefix = "snapshot-"

// settled is how long ago the last change of a folder must be for it to be told
// from the next: file systems count time in steps of up to two seconds.
const settled = 3 * time.Second

// snapshots are the images of folders that an engine keeps: each for as long as
// the folder stays as it was, so that not every sandbox copies it.
type snapshots struct {
	mu     sync.Mutex           // also of what the snapshots count
	kept   map[string]*snapshot // by the folder
	warned map[string]bool
	closed bool
}

// A snapshot is an image of a folder as it was.
type snapshot struct {
	path    string
	file    *os.File // the same, locked
	imprint imprint  // zero if it is not certain what is shown
	users   int      // starts of sandboxes, and snapshots.kept
}

// snapshot returns an image of the folder as it is now. The caller must release it.
func (e *Engine) snapshot(ctx context.Context, source string) (*snapshot, error) {
	before := time.Now()
	now, newest, err := look(ctx, source)
	if err != nil {
		return nil, err
	}
	if s := e.snapshots.take(source, now); s != nil {
		return s, nil
	}
	s, err := e.copySnapshot(ctx, source)
	if err != nil {
		return nil, err
	}
	// It is kept if it is certain what it shows: nothing has changed meanwhile, nor
	// so shortly before that the next change could look the same.
	after, _, err := look(ctx, source)
	if err == nil && after == now && newest.Before(before.Add(-settled)) {
		s.imprint = now
		e.snapshots.keep(source, s)
	}
	return s, nil
}

// copySnapshot makes an image of a folder.
func (e *Engine) copySnapshot(ctx context.Context, source string) (*snapshot, error) {
	if err := e.store.ensure(); err != nil {
		return nil, err
	}
	begin := time.Now()
	out, err := os.CreateTemp(e.store.dir, tempPrefix)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*snapshot, error) {
		return nil, errors.Join(err, out.Close(), os.Remove(out.Name()))
	}
	b := newBuilder(out, e.store.dir)
	leftOut, err := copyFolder(ctx, b, source)
	if err != nil {
		return fail(err)
	}
	if err := b.finish(); err != nil {
		return fail(err)
	}
	if err := unix.Flock(int(out.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fail(fmt.Errorf("lock the snapshot: %w", err))
	}
	name := filepath.Join(e.store.dir, snapshotPrefix+strings.TrimPrefix(filepath.Base(out.Name()), tempPrefix))
	if err := os.Rename(out.Name(), name); err != nil {
		return fail(err)
	}
	e.log.InfoContext(ctx, "folder copied", "folder", source, "files", len(b.kinds)-1, "bytes", b.bytes, "left_out", leftOut, "duration_ms", time.Since(begin).Milliseconds())
	return &snapshot{path: name, file: out, users: 1}, nil
}

// folders returns snapshots of the folders that a spec shows, in their order.
func (e *Engine) folders(ctx context.Context, binds []runtime.Bind) ([]*snapshot, error) {
	var all []*snapshot
	for _, b := range binds {
		s, err := e.snapshot(ctx, b.Source)
		if err != nil {
			e.snapshots.release(all...)
			return nil, noSnapshot(ctx, b.Source, err)
		}
		all = append(all, s)
		if e.snapshots.firstTime(b.Source) {
			e.log.WarnContext(ctx, "with gVisor a mounted folder is a snapshot: a sandbox sees it as it was when that sandbox started", "folder", b.Source, "at", b.Target)
		}
	}
	return all, nil
}

func noSnapshot(ctx context.Context, source string, err error) error {
	const op = "mount folders"
	switch {
	case ctx.Err() != nil:
		return failures.Wrap(op, context.Cause(ctx))
	case errors.Is(err, errTooLarge):
		return failures.New(op, fmt.Errorf("%w: %s is %w", runtime.ErrNoBinds, source, err),
			"mount a smaller folder, or one below it; podman and docker show folders of any size")
	}
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	}
	return failures.New(op, fmt.Errorf("%w: %s: %w", runtime.ErrNoBinds, source, err), "is it a folder that you can read, on a disk with room in the cache directory?")
}

// take returns the snapshot of a folder in the state of now, nil if there is none.
func (s *snapshots) take(source string, now imprint) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.kept[source]
	if kept == nil || kept.imprint != now {
		return nil
	}
	if _, err := os.Lstat(kept.path); err != nil { // the cache was emptied
		return nil
	}
	kept.users++
	return kept
}

// keep holds on to a snapshot, for the next sandbox.
func (s *snapshots) keep(source string, of *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if old := s.kept[source]; old != nil {
		old.drop()
	}
	if s.kept == nil {
		s.kept = map[string]*snapshot{}
	}
	of.users++
	s.kept[source] = of
}

// release says that the snapshots are not needed any more by one that has
// taken or made them. Whoever has an image open goes on with it.
func (s *snapshots) release(all ...*snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range all {
		of.drop()
	}
}

// drop counts one user less.
func (of *snapshot) drop() {
	if of.users--; of.users == 0 {
		// The lock last: whoever finds the file without one removes it as well.
		_ = os.Remove(of.path)
		_ = of.file.Close()
	}
}

// firstTime reports whether the folder has not been asked about before.
func (s *snapshots) firstTime(source string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warned[source] {
		return false
	}
	if s.warned == nil {
		s.warned = map[string]bool{}
	}
	s.warned[source] = true
	return true
}

// close lets go of everything that is kept.
func (s *snapshots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for source, of := range s.kept {
		of.drop()
		delete(s.kept, source)
	}
}

// sweepSnapshots removes images whose owners are dead.
func (s store) sweepSnapshots() error {
	paths, err := filepath.Glob(filepath.Join(s.dir, snapshotPrefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		f, err := os.Open(path) //nolint:gosec // in the cache, which is ours alone
		if err != nil {
			continue // it is gone
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			errs = append(errs, os.Remove(path))
		}
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

var _ runtime.Snapshot = (*sandbox)(nil)

// Outdated implements [runtime.Snapshot].
func (s *sandbox) Outdated(ctx context.Context) bool {
	for i, b := range s.spec.Binds {
		if now, _, err := look(ctx, b.Source); err != nil || now != s.shown[i] {
			return true
		}
	}
	return false
}
