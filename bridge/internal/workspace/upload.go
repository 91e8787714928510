package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/filelock"
)

// An Upload is a file on its way into the workspace. It is not safe for
// concurrent use. It must be committed or aborted.
type Upload struct {
	store    *Store
	file     File
	partial  string // its name below the store's folder
	out      *os.File
	written  int64
	reserved int64
	done     bool
}

// Begin begins to replace the file at file.Path, or to make it: it becomes
// visible as a whole, when it is committed. Errors are *[Error]s.
func (s *Store) Begin(ctx context.Context, file File) (*Upload, error) {
	if err := checkPath(file.Path); err != nil {
		return nil, err
	}
	if file.Size < 0 || file.Modified.Before(time.Unix(0, 0)) {
		return nil, &Error{Kind: Refused, Text: "a file has no negative size or time"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh(ctx)
	if err := s.fits(file, s.reserved); err != nil {
		return nil, err
	}
	unlock, err := s.lock()
	if err != nil {
		return nil, s.failed("write", file.Path, err)
	}
	defer unlock()
	if err := s.hasHeadroom(file); err != nil {
		return nil, err
	}
	u := &Upload{
		store: s, file: file, partial: partialDir + "/" + strings.ToLower(rand.Text()),
		reserved: max(0, file.Size-s.files[file.Path].Size),
	}
	if u.out, err = s.root.OpenFile(u.partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		return nil, s.failed("write", file.Path, err)
	}
	_, _ = filelock.Try(u.out)                        // shows that it has an owner, where locks are known
	if err := u.out.Truncate(file.Size); err != nil { // shows other processes what is reserved
		_ = u.out.Close()
		_ = s.root.Remove(u.partial)
		return nil, s.failed("write", file.Path, err)
	}
	s.reserved += u.reserved
	return u, nil
}

// fits returns an error if the quota has no room for file while so many bytes
// are on their way. s.mu is held.
func (s *Store) fits(file File, reserved int64) error {
	old, there := s.files[file.Path]
	added := 0 // entries: a file costs the host as much for each folder that is made for it
	if !there {
		added = 1 + s.missing(file.Path)
	}
	switch other, taken := s.names[folded(file.Path)]; {
	case taken && other != file.Path:
		return &Error{Kind: BadName, Text: fmt.Sprintf("the host cannot tell its name from that of %.200q", other)}
	case !s.whole: // what was not seen was not counted
		return &Error{Kind: OverFull, Text: fmt.Sprintf("the workspace has more than its %d files, or some that cannot be looked at", s.quota.Files)}
	case added > 0 && added > s.quota.Files-len(s.files)-len(s.folders):
		return &Error{Kind: OverFull, Text: fmt.Sprintf("the workspace keeps at most %d files and folders", s.quota.Files)}
	case file.Size > s.quota.Bytes-reserved-(s.bytes-old.Size) && file.Size > old.Size: // no sum that could overflow
		return &Error{Kind: OverFull, Text: fmt.Sprintf("the workspace's quota of %s is exceeded", Size(s.quota.Bytes))}
	}
	return nil
}

// hasHeadroom returns an error if files on their way, of all processes, would
// take more of the disk than the quota once more, beside what is kept: what they
// are to replace is there until they are committed. s.mu and the lock are held.
func (s *Store) hasHeadroom(file File) error {
	others, err := s.onTheWay()
	if err != nil {
		return s.failed("write", file.Path, err)
	}
	if others > 0 && file.Size > s.quota.Bytes-others {
		return &Error{Kind: OverFull, Text: fmt.Sprintf("too much is being written at once for the workspace's quota of %s", Size(s.quota.Bytes))}
	}
	return nil
}

// onTheWay is how many bytes are reserved by unfinished files. s.mu is held.
func (s *Store) onTheWay() (int64, error) {
	partial, err := s.root.OpenRoot(partialDir)
	if err != nil {
		return 0, err
	}
	defer partial.Close()
	entries, err := fs.ReadDir(partial.FS(), ".")
	total := int64(0)
	for _, e := range entries {
		if info, err := partial.Lstat(e.Name()); err == nil && info.Mode().IsRegular() {
			total += min(info.Size(), math.MaxInt64-total)
		}
	}
	return total, err
}

// missing counts the folders that are to be made for the file at path. s.mu is
// held.
func (s *Store) missing(path string) int {
	count := 0
	for dir, nested := parent(path); nested && !s.folders[dir]; dir, nested = parent(dir) {
		count++
	}
	return count
}

// Written is how many bytes there are so far.
func (u *Upload) Written() int64 { return u.written }

// File is what the file is to become.
func (u *Upload) File() File { return u.file }

// Write appends to the file. No more than was announced is taken.
func (u *Upload) Write(data []byte) error {
	if int64(len(data)) > u.file.Size-u.written {
		return &Error{Kind: Refused, Text: "the file is longer than was said"}
	}
	n, err := u.out.Write(data)
	u.written += int64(n)
	if err != nil {
		return u.store.failed("write", u.file.Path, err)
	}
	return nil
}

// Commit makes the file visible, and returns it as it is kept. The upload is
// over, whatever becomes of it.
func (u *Upload) Commit(ctx context.Context) (File, Change, error) {
	defer u.Abort()
	s := u.store
	if u.written != u.file.Size {
		return File{}, Change{}, &Error{Kind: Refused, Text: "the file is shorter than was said"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	unlock, err := s.lock()
	if err != nil {
		return File{}, Change{}, s.failed("write", u.file.Path, err)
	}
	defer unlock()
	if err := u.out.Close(); err != nil { // only now: without an owner it could be removed
		return File{}, Change{}, s.failed("write", u.file.Path, err)
	}
	s.refresh(ctx)
	if err := s.fits(u.file, s.reserved-u.reserved); err != nil {
		return File{}, Change{}, err
	}
	kept, err := s.place(u.partial, u.file)
	if err != nil {
		return File{}, Change{}, s.failed("write", u.file.Path, err)
	}
	s.forget(kept.Path)
	for dir, nested := parent(kept.Path); nested; dir, nested = parent(dir) {
		s.folders[dir] = true
	}
	s.files[kept.Path], s.names[folded(kept.Path)] = kept, kept.Path
	s.bytes += kept.Size
	return kept, s.changed(Change{Version: s.version + 1, Previous: s.version}), nil
}

// place gives a file that is complete its name. s.mu and the lock are held.
//
// What a crash of the host leaves may be an older file or a newer one, as with
// any program that writes a file; one of this process leaves either.
func (s *Store) place(partial string, file File) (File, error) {
	if err := s.root.Chtimes(partial, file.Modified, file.Modified); err != nil {
		return File{}, err
	}
	if dir, nested := parent(file.Path); nested {
		if err := s.root.MkdirAll(filesDir+"/"+dir, 0o700); err != nil {
			return File{}, err
		}
	}
	if err := s.checkParents(file.Path); err != nil {
		return File{}, errors.Join(os.ErrExist, err) // a link, or a file, is in the way
	}
	name := filesDir + "/" + file.Path
	if err := s.root.Rename(partial, name); err != nil {
		return File{}, err
	}
	info, err := s.root.Lstat(name)
	if err != nil {
		return File{}, err
	}
	return File{Path: file.Path, Size: info.Size(), Modified: info.ModTime()}, nil
}

// parent is the folder of path, if it is in one.
func parent(path string) (dir string, nested bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", false
	}
	return path[:i], true
}

// Abort forgets the upload unless it was committed. It is idempotent.
func (u *Upload) Abort() {
	if u.done {
		return
	}
	u.done = true
	_ = u.out.Close()
	s := u.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved -= u.reserved
	_ = s.root.Remove(u.partial) // which is not there any more after a commit
}
