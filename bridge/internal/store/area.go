package store

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/filelock"
)

const (
	lockName        = ".lock"
	temporaryPrefix = ".new-"
	suffix          = ".entry"

	// maxHead bounds the first line of a file. A key can take six bytes for one.
	maxHead = 6*MaxKey + 128
)

// An Area is a part of a [Store].
type Area struct {
	dir    string
	limits Limits
}

// An Entry is what [Area.List] tells of a value.
type Entry struct {
	Key      string
	Size     int64  // bytes of the value
	Stamp    string // another one after each write
	Modified time.Time
	Damaged  bool // the file is not as it was written; Delete and Put mend it
}

// head is the first line of a file; the value follows.
type head struct {
	Key   string `json:"key"`
	Size  int64  `json:"size"`
	Stamp string `json:"stamp"`
}

// Limits are the area's.
func (a *Area) Limits() Limits { return a.limits }

// Get returns a value, or [ErrNotFound].
func (a *Area) Get(key string) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return a.read(key)
}

// Put sets a value. It fails with [ErrFull] if that would exceed a limit.
func (a *Area) Put(key string, data []byte) error {
	if data == nil {
		data = []byte{}
	}
	return a.Update(key, func([]byte) ([]byte, error) { return data, nil })
}

// Delete removes a value, or returns [ErrNotFound].
func (a *Area) Delete(key string) error {
	return a.change(key, func() error { return a.remove(key) })
}

// Update sets a value to what f makes of the old one, which is nil if there is
// none. It deletes the entry if f returns nil, and changes nothing if f fails.
// Nobody else writes meanwhile, not in another process either, so f must be
// quick, and must not use the area.
func (a *Area) Update(key string, f func(old []byte) ([]byte, error)) error {
	return a.change(key, func() error {
		old, err := a.read(key)
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDamaged) {
			return err
		}
		data, err := f(old)
		if err != nil {
			return err
		}
		if data == nil {
			if err := a.remove(key); !errors.Is(err, ErrNotFound) {
				return err
			}
			return nil
		}
		if err := a.requireRoom(key, int64(len(data))); err != nil {
			return err
		}
		return a.write(key, data)
	})
}

// List returns the entries, in no particular order. Its cost is a file's opening
// for each.
func (a *Area) List() ([]Entry, error) {
	files, err := a.files()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(files))
	for _, file := range files {
		entry, err := a.stat(file.Name())
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoKey) {
			continue // deleted meanwhile, or somebody else's file
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", ErrKey)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: it has %d bytes, more than %d", ErrKey, len(key), MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: it is not UTF-8", ErrKey)
	}
	return nil
}

// fileName maps keys to names that differ also where case does not count: by the
// hash. What stands before it is for people who look into the directory.
func fileName(key string) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, key)
	sum := sha256.Sum256([]byte(key))
	return readable[:min(40, len(readable))] + "." + hex.EncodeToString(sum[:]) + suffix
}

func (a *Area) path(name string) string { return filepath.Join(a.dir, name) }

// files are the entries of the directory that hold values.
func (a *Area) files() ([]fs.DirEntry, error) {
	err := requirePrivate(a.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	all, err := os.ReadDir(a.dir)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	var files []fs.DirEntry
	for _, file := range all {
		if strings.HasSuffix(file.Name(), suffix) && !strings.HasPrefix(file.Name(), temporaryPrefix) && file.Type().IsRegular() {
			files = append(files, file)
		}
	}
	return files, nil
}

// open opens a file for reading, and nothing else: no link, no pipe.
func (a *Area) open(name string) (*os.File, fs.FileInfo, error) {
	if err := requirePrivate(a.dir); err != nil {
		return nil, nil, err
	}
	path := a.path(name)
	before, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%w: not a regular file", ErrDamaged)
	}
	f, err := os.Open(path) //nolint:gosec // in the user's state directory
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: not a regular file", ErrDamaged)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func (a *Area) read(key string) ([]byte, error) {
	f, info, err := a.open(fileName(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %.80q", ErrNotFound, key)
	}
	if err != nil {
		return nil, fmt.Errorf("read %.80q: %w", key, err)
	}
	defer f.Close()
	if info.Size() > a.limits.EntryBytes+maxHead {
		return nil, fmt.Errorf("read %.80q: %w: it is larger than what can be written", key, ErrDamaged)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fmt.Errorf("read %.80q: %w: %w", key, ErrDamaged, err)
	}
	line, value, _ := bytes.Cut(data, []byte("\n"))
	var h head
	if json.Unmarshal(line, &h) != nil || h.Key != key || h.Size != int64(len(value)) {
		return nil, fmt.Errorf("read %.80q: %w", key, ErrDamaged)
	}
	return value, nil
}

var errNoKey = errors.New("no key in it")

// stat returns the entry in a file.
func (a *Area) stat(name string) (Entry, error) {
	f, info, err := a.open(name)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	data := make([]byte, min(info.Size(), maxHead))
	if _, err := io.ReadFull(f, data); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", errNoKey, err)
	}
	line, _, ok := bytes.Cut(data, []byte("\n"))
	var h head
	if !ok || json.Unmarshal(line, &h) != nil || checkKey(h.Key) != nil || fileName(h.Key) != name {
		return Entry{}, errNoKey
	}
	size := info.Size() - int64(len(line)) - 1
	return Entry{Key: h.Key, Size: size, Stamp: h.Stamp, Modified: info.ModTime(), Damaged: size != h.Size}, nil
}

// change calls f while nobody else writes.
func (a *Area) change(key string, f func() error) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if err := makePrivate(a.dir); err != nil {
		return fmt.Errorf("write %.80q: %w", key, err)
	}
	lock, err := a.lock()
	if err != nil {
		return fmt.Errorf("write %.80q: %w", key, err)
	}
	defer lock.Close()
	a.sweep()
	return f()
}

// lock waits until nobody else writes. Closing the file ends the lock.
func (a *Area) lock() (*os.File, error) {
	path := a.path(lockName)
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: the lock is not a file", ErrUnsafe)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // in the user's state directory
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(lockTimeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		ok, err := filelock.Try(f)
		if ok {
			return f, nil
		}
		if err == nil && time.Now().After(deadline) {
			err = ErrBusy
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		time.Sleep(pause)
	}
}

// sweep removes what writers left that died. It needs the lock: no living one
// has such files then.
func (a *Area) sweep() {
	files, err := os.ReadDir(a.dir)
	if err != nil {
		return // the write that follows says so
	}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), temporaryPrefix) {
			_ = os.Remove(a.path(file.Name()))
		}
	}
}

// A tooLargeError is the [ErrFull] of a value that is more than one entry takes,
// however much room there is.
type tooLargeError struct{ size, most int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("too large: %d bytes, and one entry may have no more than %d", e.size, e.most)
}

func (e *tooLargeError) Is(target error) bool { return target == ErrFull }

// requireRoom checks the limits for a value of so many bytes. It needs the lock.
func (a *Area) requireRoom(key string, size int64) error {
	if size > a.limits.EntryBytes {
		return &tooLargeError{size, a.limits.EntryBytes}
	}
	files, err := a.files()
	if err != nil {
		return err
	}
	name := fileName(key)
	count, total := 1, size+int64(len(headLine(key, size)))
	for _, file := range files {
		if file.Name() == name {
			continue
		}
		info, err := file.Info()
		if err != nil {
			continue // removed by hand meanwhile
		}
		count++
		total += info.Size()
	}
	if count > a.limits.Entries {
		return fmt.Errorf("%w: there are %d entries, and no more than %d are kept", ErrFull, count-1, a.limits.Entries)
	}
	if total > a.limits.TotalBytes {
		return fmt.Errorf("%w: %d bytes would be kept, and no more than %d are", ErrFull, total, a.limits.TotalBytes)
	}
	return nil
}

func headLine(key string, size int64) []byte {
	line, err := json.Marshal(head{Key: key, Size: size, Stamp: rand.Text()})
	if err != nil {
		panic(err) // strings and a number
	}
	return append(line, '\n')
}

// write replaces a file in one step. It needs the lock.
func (a *Area) write(key string, data []byte) (err error) {
	temporary := a.path(temporaryPrefix + rand.Text())
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // in the user's state directory
	if err != nil {
		return fmt.Errorf("write %.80q: %w", key, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %.80q: %w", key, errors.Join(err, os.Remove(temporary)))
		}
	}()
	_, err = f.Write(append(headLine(key, int64(len(data))), data...))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, a.path(fileName(key))); err != nil {
		return err
	}
	_ = syncDir(a.dir) // the value is there; at worst a power failure takes it back
	return nil
}

// remove deletes an entry. It needs the lock.
func (a *Area) remove(key string) error {
	err := os.Remove(a.path(fileName(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %.80q", ErrNotFound, key)
	}
	if err != nil {
		return fmt.Errorf("delete %.80q: %w", key, err)
	}
	_ = syncDir(a.dir)
	return nil
}
