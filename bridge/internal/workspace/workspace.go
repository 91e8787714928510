// Package workspace keeps the files that cells write on the host: plain regular
// files in one folder, within a quota.
//
// What comes from a sandbox is names, sizes and bytes. Names are checked, and
// the folder is entered through an [os.Root] only: no link is followed out of
// it, and nothing but files and folders is ever made in it or read from it. The
// folder is the user's, too: whatever they put there appears in sandboxes.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/filelock"
)

// Where things are below Options.Dir.
const (
	filesDir   = "files"      // what is kept
	partialDir = "partial"    // files on their way, under names of their own
	lockFile   = "lock"       // held by the process that changes something
	countFile  = "generation" // changes whenever a bridge has changed something
)

const (
	freshness    = time.Second // for so long a look at the folder is good enough, at least,
	looksApart   = 20          // or for so many times as long as it took
	stalePartial = time.Hour   // after which nobody is still writing a file, where locks are not known
	readBatch    = 256         // entries of a folder read at a time
)

// Options configure a [Store]. Zero fields take the defaults they name.
type Options struct {
	Dir    string // required; made if it is not there
	Quota  Quota
	Logger *slog.Logger
}

// A Quota bounds what is kept.
type Quota struct {
	Bytes int64 // 100 MiB
	Files int   // 10,000; folders count, too
}

// A File is one that is kept. Path is slash-separated and relative.
type File struct {
	Path     string
	Size     int64
	Modified time.Time
}

// A Change says what version a change has made of which.
type Change struct{ Version, Previous int64 }

// A Listing is what there is at a version.
type Listing struct {
	Version int64
	Files   []File // by path
	Bytes   int64
	Whole   bool // false if there are more files than the quota allows, or some cannot be looked at: then nothing is added
}

// A Store is a workspace. It is safe for concurrent use, and several processes
// may have the same one open.
type Store struct {
	dir   string
	quota Quota
	log   *slog.Logger

	mu       sync.Mutex
	root     *os.Root // of Options.Dir
	files    map[string]File
	names    map[string]string // the files by what a file system that ignores case takes them for
	folders  map[string]bool   // by path, also empty ones
	bytes    int64
	whole    bool
	version  int64
	scanned  time.Time     // when the folder was last looked at
	fresh    time.Duration // how long that look is good enough
	counted  string        // what countFile said then
	reserved int64         // bytes of files on their way
}

// Open opens the workspace in opts.Dir.
func Open(opts Options) (*Store, error) {
	if opts.Quota.Bytes == 0 {
		opts.Quota.Bytes = 100 << 20
	}
	if opts.Quota.Files == 0 {
		opts.Quota.Files = 10_000
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	s := &Store{dir: dir, quota: opts.Quota, log: opts.Logger, root: root, files: map[string]File{}, names: map[string]string{}, folders: map[string]bool{}, whole: true}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open workspace: %w", err), root.Close())
	}
	return s, nil
}

// prepare makes the folders, and removes what a crash has left behind.
func (s *Store) prepare() error {
	for _, name := range []string{filesDir, partialDir} {
		if err := s.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if info, err := s.root.Lstat(name); err != nil || !info.IsDir() {
			return errors.Join(err, fmt.Errorf("%s is not a folder: a link is not followed", filepath.Join(s.dir, name)))
		}
	}
	unlock, err := s.lock()
	if err != nil {
		s.log.Warn("workspace: unfinished files stay", "error", err) // for the next one to remove
		return nil
	}
	defer unlock()
	return s.removeStale()
}

// removeStale removes unfinished files whose process is gone: it would hold
// their locks. The lock is held, so that none is just being made or committed.
func (s *Store) removeStale() error {
	partial, err := s.root.OpenRoot(partialDir)
	if err != nil {
		return err
	}
	defer partial.Close()
	entries, err := fs.ReadDir(partial.FS(), ".")
	for _, e := range entries {
		if info, err := partial.Lstat(e.Name()); err == nil && (!isOwned(partial, info) || time.Since(info.ModTime()) > stalePartial) {
			_ = partial.Remove(e.Name())
		}
	}
	return err
}

// isOwned reports whether a process has the lock of an unfinished file, or might
// have it.
func isOwned(partial *os.Root, info fs.FileInfo) bool {
	if !info.Mode().IsRegular() {
		return true
	}
	f, err := partial.OpenFile(info.Name(), os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return true
	}
	defer f.Close()
	free, err := filelock.Try(f)
	return err != nil || !free
}

// Close lets go of the folder. Uploads must have ended.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.root.Close()
}

// Dir is the folder of the files themselves.
func (s *Store) Dir() string { return filepath.Join(s.dir, filesDir) }

// Quota is what may be kept.
func (s *Store) Quota() Quota { return s.quota }

// Version numbers what is kept; it grows with each change, whoever makes it.
// Zero is an empty workspace that has not changed yet. A change from outside may
// show a second later, or more if it takes long to look at all of it.
func (s *Store) Version(ctx context.Context) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh(ctx)
	return s.version
}

// List returns what is kept.
func (s *Store) List(ctx context.Context) Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh(ctx)
	files := slices.SortedFunc(maps.Values(s.files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return Listing{Version: s.version, Files: files, Bytes: s.bytes, Whole: s.whole}
}

// Stat returns the file at path. The error is an *[Error].
func (s *Store) Stat(ctx context.Context, path string) (File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh(ctx)
	file, ok := s.files[path]
	if !ok {
		return File{}, &Error{Kind: NotFound, Text: fmt.Sprintf("there is no file %.200q in the workspace", path)}
	}
	return file, nil
}

// Read returns up to n bytes of the file at path from offset, and what the file
// is now: one that is replaced meanwhile differs between two reads. The error is
// an *[Error].
func (s *Store) Read(path string, offset int64, n int) ([]byte, File, error) {
	if err := checkPath(path); err != nil {
		return nil, File{}, err
	}
	f, err := s.open(path)
	if err != nil {
		return nil, File{}, notFound(path)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || offset < 0 || offset > info.Size() {
		return nil, File{}, notFound(path)
	}
	data := make([]byte, min(int64(n), info.Size()-offset))
	read, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, File{}, s.failed("read", path, err)
	}
	return data[:read], File{Path: path, Size: info.Size(), Modified: info.ModTime()}, nil
}

// open opens a file that is kept. What is no file is not waited for.
func (s *Store) open(path string) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkParents(path); err != nil {
		return nil, err
	}
	name := filesDir + "/" + path
	info, err := s.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// checkParents makes sure that path leads through folders only. That it stays in
// the folder is the os.Root's to see to. s.mu is held.
func (s *Store) checkParents(path string) error {
	for i, c := range path {
		if c != '/' {
			continue
		}
		info, err := s.root.Lstat(filesDir + "/" + path[:i])
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fs.ErrNotExist
		}
	}
	return nil
}

// refresh looks at the folder if that was not done just now, or if another
// process has changed something. s.mu is held.
func (s *Store) refresh(ctx context.Context) {
	if time.Since(s.scanned) < s.fresh && s.generation() == s.counted {
		return
	}
	s.scan(ctx)
}

// scan looks at the folder. s.mu is held.
func (s *Store) scan(ctx context.Context) {
	found := scan{files: map[string]File{}, folders: map[string]bool{}, most: s.quota.Files, whole: true}
	begin := time.Now()
	s.counted = s.generation()
	root, err := s.root.OpenRoot(filesDir)
	switch {
	case errors.Is(err, fs.ErrNotExist): // the user has removed it all
		if err := s.root.Mkdir(filesDir, 0o700); err != nil {
			s.log.WarnContext(ctx, "workspace not readable", "error", err)
		}
	case err != nil:
		s.log.WarnContext(ctx, "workspace not readable", "error", err)
		found.whole = false
	default:
		found.folder(root, "", 0)
		_ = root.Close()
	}
	s.scanned = time.Now()
	s.fresh = max(freshness, looksApart*s.scanned.Sub(begin))
	s.whole, s.folders = found.whole, found.folders
	if maps.EqualFunc(s.files, found.files, File.same) {
		return
	}
	s.files, s.bytes = found.files, 0
	s.names = make(map[string]string, len(s.files))
	for _, f := range s.files {
		s.bytes += f.Size
		s.names[folded(f.Path)] = f.Path
	}
	s.version++
}

// same reports whether two looks saw the same file.
func (f File) same(other File) bool {
	return f.Size == other.Size && f.Modified.Equal(other.Modified)
}

// A scan is a bounded look at a folder: what has no place in a workspace, such
// as links, or names that sandboxes could not have either, is left out.
type scan struct {
	files   map[string]File
	folders map[string]bool
	most    int
	visited int
	whole   bool
}

func (s *scan) folder(dir *os.Root, prefix string, depth int) {
	f, err := dir.Open(".")
	if err != nil {
		s.whole = false
		return
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(readBatch)
		for _, e := range entries {
			if s.visited++; s.visited > 4*s.most {
				s.whole = false
				return
			}
			s.entry(dir, prefix+e.Name(), e, depth)
		}
		if err != nil {
			s.whole = s.whole && errors.Is(err, io.EOF)
			return
		}
	}
}

func (s *scan) entry(dir *os.Root, path string, e fs.DirEntry, depth int) {
	if checkPath(path) != nil {
		return
	}
	switch {
	case e.IsDir():
		if depth+1 >= maxDepth {
			return
		}
		s.folders[path] = true
		sub, err := dir.OpenRoot(e.Name())
		if err != nil {
			s.whole = s.whole && errors.Is(err, fs.ErrNotExist) // gone meanwhile
			return
		}
		s.folder(sub, path+"/", depth+1)
		_ = sub.Close()
	case e.Type().IsRegular():
		info, err := dir.Lstat(e.Name())
		if err != nil || !info.Mode().IsRegular() {
			return // gone meanwhile
		}
		if len(s.files) >= s.most {
			s.whole = false
			return
		}
		s.files[path] = File{Path: path, Size: info.Size(), Modified: info.ModTime()}
	}
}

// Delete removes files. One that is no longer as it is said to be here was
// changed by somebody else, and stays.
func (s *Store) Delete(ctx context.Context, files []File) (Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unlock, err := s.lock()
	if err != nil {
		return Change{}, s.failed("delete", "", err)
	}
	defer unlock()
	s.refresh(ctx)
	change := Change{Version: s.version, Previous: s.version}
	for _, f := range files {
		now, ok := s.files[f.Path]
		if !ok || !now.same(f) || s.checkParents(f.Path) != nil {
			continue
		}
		if err := s.root.Remove(filesDir + "/" + f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s.changed(change), s.failed("delete", f.Path, err)
		}
		s.prune(f.Path)
		s.forget(f.Path)
		change.Version = change.Previous + 1
	}
	return s.changed(change), nil
}

// prune removes the folders that path was the last file of. s.mu is held.
func (s *Store) prune(path string) {
	for {
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return
		}
		path = path[:i]
		if s.root.Remove(filesDir+"/"+path) != nil { // it is not empty
			return
		}
		delete(s.folders, path)
	}
}

// forget takes a file out of the index. s.mu is held.
func (s *Store) forget(path string) {
	if f, ok := s.files[path]; ok {
		s.bytes -= f.Size
		delete(s.files, path)
		delete(s.names, folded(path))
	}
}

// changed tells other processes of a change. s.mu and the lock are held.
func (s *Store) changed(change Change) Change {
	if change.Version == change.Previous {
		return change
	}
	s.version = change.Version
	n, _ := strconv.ParseUint(s.generation(), 10, 64) // zero if a crash has spoilt it
	s.counted = fmt.Sprintf("%020d", n+1)
	if err := s.count(); err != nil {
		s.counted = "" // the next look is a whole one
	}
	return change
}

// count writes s.counted, which always has the same length: to cut a file first
// would have file systems write it to the disk. s.mu and the lock are held.
func (s *Store) count() error {
	f, err := s.root.OpenFile(countFile, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(s.counted), 0)
	return errors.Join(err, f.Close())
}

// generation is what countFile says. s.mu is held.
func (s *Store) generation() string {
	f, err := s.root.Open(countFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	data := make([]byte, 32)
	n, _ := io.ReadFull(f, data)
	return string(data[:n])
}
