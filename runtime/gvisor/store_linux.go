package gvisor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// layoutVersion is part of every key: images of another layout are not used.
const layoutVersion = "6"

// A store keeps root file systems, each an EROFS image and a note of what is in
// it. Several processes may use it at once: an image appears when it is
// complete, under a name that its content decides, and is never changed.
type store struct{ dir string }

// A note is what the store knows of an image; it is written after the image.
type note struct {
	Names   []string
	Bytes   int64
	Created time.Time
	Labels  map[string]string
}

// keyOf is the name of the image that is made of what the parts say.
func keyOf(parts ...string) string {
	sum := sha256.Sum256([]byte(layoutVersion + "\x00" + strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

func (s store) image(key string) string { return filepath.Join(s.dir, key+".erofs") }
func (s store) note(key string) string  { return filepath.Join(s.dir, key+".json") }

// lookup returns the path of the image with the key, if it is there.
func (s store) lookup(key string) (string, bool) {
	info, err := os.Lstat(s.image(key))
	return s.image(key), err == nil && info.Mode().IsRegular()
}

// make returns the image with the key, which build writes if it is not there.
func (s store) make(ctx context.Context, key string, about note, build func(*builder) error) (string, error) {
	if path, there := s.lookup(key); there {
		return path, s.annotate(key, about)
	}
	if err := s.ensure(); err != nil {
		return "", err
	}
	out, err := os.CreateTemp(s.dir, tempPrefix)
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name()) // unless it has got its own name
	defer out.Close()
	b := newBuilder(out, s.dir)
	if err := errors.Join(build(b), ctx.Err()); err != nil {
		return "", err
	}
	if err := errors.Join(b.mountPoints(), b.finish()); err != nil {
		return "", err
	}
	if info, err := out.Stat(); err == nil {
		about.Bytes = info.Size()
	}
	if err := s.annotate(key, about); err != nil {
		return "", err
	}
	return s.image(key), os.Rename(out.Name(), s.image(key))
}

// annotate adds names to an image.
func (s store) annotate(key string, about note) error {
	if old, err := s.read(key); err == nil {
		names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(old.Names, about.Names))))
		if slices.Equal(names, old.Names) {
			return nil
		}
		old.Names = names
		if about.Bytes != 0 {
			old.Bytes = about.Bytes
		}
		about = old
	}
	data, err := json.Marshal(about)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, tempPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	return errors.Join(err, f.Close(), os.Rename(f.Name(), s.note(key)))
}

func (s store) read(key string) (note, error) {
	var n note
	data, err := os.ReadFile(s.note(key))
	if err == nil {
		err = json.Unmarshal(data, &n)
	}
	return n, err
}

// byName returns the newest image that has the name.
func (s store) byName(name string) (string, bool) {
	images, err := s.list()
	if err != nil {
		return "", false
	}
	i := slices.IndexFunc(images, func(i runtime.Image) bool { return slices.Contains(i.Names, name) })
	if i < 0 {
		return "", false
	}
	return s.image(images[i].ID), true
}

// list returns the images, newest first.
func (s store) list() ([]runtime.Image, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var images []runtime.Image
	for _, e := range entries {
		key, ok := strings.CutSuffix(e.Name(), ".erofs")
		info, err := e.Info()
		if !ok || err != nil {
			continue
		}
		n, err := s.read(key)
		if err != nil {
			continue
		}
		images = append(images, runtime.Image{ID: key, Names: n.Names, Bytes: info.Size(), Created: n.Created, Labels: n.Labels})
	}
	slices.SortFunc(images, func(a, b runtime.Image) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return images, nil
}

// tempPrefix begins the names of files that are not complete.
const tempPrefix = "tmp-"

// sweep removes what processes that died in the middle left behind.
func (s store) sweep() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil //nolint:nilerr // no store, no leftovers
	}
	errs := []error{s.sweepSnapshots()}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), tempPrefix) && time.Since(info.ModTime()) > 2*time.Hour {
			errs = append(errs, os.RemoveAll(filepath.Join(s.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// ensure makes the store's directory, which nobody else may write to: what is
// in it is run.
func (s store) ensure() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(s.dir, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: s.dir, Err: err}
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fmt.Errorf("cache directory %s belongs to user %d with mode %#o, and must be this user's alone", s.dir, st.Uid, st.Mode&0o777)
	}
	return nil
}
