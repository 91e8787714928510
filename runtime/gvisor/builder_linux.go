package gvisor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/erofs/go-erofs"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Bounds on an image.
const (
	maxEntries    = 500_000
	maxImageBytes = 16 << 30
	maxSpecFiles  = 4096
	maxSpecBytes  = 64 << 20
	maxNameBytes  = 255
	maxLinkBytes  = 4096
	maxLinkDepth  = 32
)

// A builder writes an EROFS image. All names are of paths in the image and
// begin with a slash: nothing of the host is ever opened by a name that an
// archive gives, so such names need to be sound, but cannot be dangerous.
//
// Whatever is no file, directory or symbolic link has no place in it, and so
// have set-user-id bits and extended attributes. Everything belongs to root.
type builder struct {
	out         *os.File
	w           *erofs.Writer
	kinds       map[string]fs.FileMode // of every path so far
	links       map[string]string      // of symbolic links
	bytes       int64
	maxEntries  int
	maxBytes    int64
	defaultTime time.Time
}

// newBuilder writes to out, and what is in between to files without names in dir.
func newBuilder(out *os.File, dir string) *builder {
	return &builder{
		out: out, w: erofs.Create(out, erofs.WithTempDir(dir), erofs.WithBuildTime(0, 0)),
		kinds: map[string]fs.FileMode{"/": fs.ModeDir}, links: map[string]string{},
		maxEntries: maxEntries, maxBytes: maxImageBytes, defaultTime: time.Unix(0, 0),
	}
}

// add makes sure that name may be made, and returns where it really is: below
// the directories that symbolic links on its way lead to.
func (b *builder) add(name string, kind fs.FileMode) (string, error) {
	name = path.Clean("/" + name)
	dir, err := b.directory(path.Dir(name), 0)
	if err != nil {
		return "", err
	}
	name = path.Join(dir, path.Base(name))
	switch {
	case len(path.Base(name)) > maxNameBytes || strings.ContainsRune(name, 0):
		return "", fmt.Errorf("name %.40q… is too long, or no name", path.Base(name))
	case len(b.kinds) >= b.maxEntries:
		return "", fmt.Errorf("more than %d files", b.maxEntries)
	}
	if _, there := b.kinds[name]; there {
		return "", &fs.PathError{Op: "add", Path: name, Err: fs.ErrExist}
	}
	b.kinds[name] = kind
	return name, nil
}

// directory makes dir and its parents where they are missing.
func (b *builder) directory(dir string, depth int) (string, error) {
	if depth > maxLinkDepth {
		return "", fmt.Errorf("too many symbolic links on the way to %.200q", dir)
	}
	if b.kinds[dir] == fs.ModeDir { // it is no link, and neither is anything above
		return dir, nil
	}
	parent, err := b.directory(path.Dir(dir), depth+1)
	if err != nil {
		return "", err
	}
	dir = path.Join(parent, path.Base(dir))
	kind, there := b.kinds[dir]
	switch {
	case !there:
		if _, err := b.add(dir, fs.ModeDir); err != nil {
			return "", err
		}
		return dir, b.w.Mkdir(dir, 0o755)
	case kind == fs.ModeSymlink:
		return b.directory(b.target(dir), depth+1)
	case kind != fs.ModeDir:
		return "", fmt.Errorf("%.200q is a file, and a directory too", dir)
	}
	return dir, nil
}

// target is where the symbolic link at name leads.
func (b *builder) target(name string) string {
	if link := b.links[name]; path.IsAbs(link) {
		return path.Clean(link)
	}
	return path.Join(path.Dir(name), b.links[name])
}

// mkdir makes a directory, which may be there already.
func (b *builder) mkdir(name string, mode fs.FileMode) error {
	name = path.Clean("/" + name)
	if name == "/" {
		return nil
	}
	if kind, there := b.kinds[name]; there && kind == fs.ModeDir {
		return b.w.Chmod(name, mode.Perm())
	} else if there {
		_, err := b.directory(name, 0)
		return err
	}
	made, err := b.add(name, fs.ModeDir)
	if errors.Is(err, fs.ErrExist) { // by way of a link
		return nil
	}
	if err != nil {
		return err
	}
	return b.w.Mkdir(made, mode.Perm())
}

// file writes a regular file.
func (b *builder) file(name string, mode fs.FileMode, modified time.Time, content io.Reader) error {
	name, err := b.add(name, 0)
	if err != nil {
		return err
	}
	f, err := b.w.Create(name)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, b.maxBytes-b.bytes+1))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if b.bytes += n; b.bytes > b.maxBytes {
		return fmt.Errorf("more than %d bytes", b.maxBytes)
	}
	if err := errors.Join(f.Close(), b.w.Chmod(name, mode.Perm())); err != nil {
		return err
	}
	return b.w.Chtimes(name, modified, modified)
}

func (b *builder) text(name, content string) error {
	return b.file(name, 0o644, b.defaultTime, strings.NewReader(content))
}

func (b *builder) symlink(target, name string) error {
	if target == "" || len(target) > maxLinkBytes || strings.ContainsRune(target, 0) {
		return fmt.Errorf("symbolic link %.200q leads nowhere", name)
	}
	name, err := b.add(name, fs.ModeSymlink)
	if err != nil {
		return err
	}
	b.links[name] = target
	return b.w.Symlink(target, name)
}

// copyOf makes a second file of one that is there, for hard links.
func (b *builder) copyOf(target, name string, mode fs.FileMode, modified time.Time) error {
	dir, err := b.directory(path.Dir(path.Clean("/"+target)), 0)
	if err != nil {
		return err
	}
	target = path.Join(dir, path.Base(target))
	switch kind, there := b.kinds[target]; {
	case !there:
		return fmt.Errorf("hard link %.200q to what is not there", name)
	case kind == fs.ModeSymlink:
		return b.symlink(b.links[target], name)
	case kind != 0:
		return fmt.Errorf("hard link %.200q to a directory", name)
	}
	src, err := b.w.Open(target)
	if err != nil {
		return err
	}
	defer src.Close()
	return b.file(name, mode, modified, src)
}

// mountPoints are the directories that the engine mounts something on.
func (b *builder) mountPoints() error {
	for _, dir := range []string{"/proc", "/sys", "/dev", "/tmp", runtime.BindDir, runtime.Workspace, runtime.FilesDir} {
		if err := b.mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// finish completes the image.
func (b *builder) finish() error {
	if err := b.w.Close(); err != nil {
		return err
	}
	return errors.Join(makePlain(b.out), b.out.Sync())
}

// writeImage makes an image in the sandbox's own directory.
func writeImage(name string, fill func(*builder) error) error {
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) //nolint:gosec // it is ours alone
	if err != nil {
		return err
	}
	defer out.Close()
	b := newBuilder(out, path.Dir(name))
	if err := fill(b); err != nil {
		return err
	}
	return b.w.Close()
}

// writeMountPoints makes the image of the directory in which folders appear.
func writeMountPoints(name string, binds []runtime.Bind) error {
	return writeImage(name, func(b *builder) error {
		for _, bind := range binds {
			if err := b.mkdir(path.Base(bind.Target), 0o755); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeFiles makes the image of a spec's files.
func writeFiles(name string, files fs.FS) error {
	err := writeImage(name, func(b *builder) error { return fillFiles(b, files) })
	if err != nil {
		return fmt.Errorf("write the sandbox's files: %w", err)
	}
	return nil
}

func fillFiles(b *builder, files fs.FS) error {
	b.maxEntries, b.maxBytes = maxSpecFiles, maxSpecBytes
	return fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return b.mkdir(name, 0o755)
		case !entry.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file", name)
		}
		f, err := files.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		return b.file(name, 0o644, b.defaultTime, f)
	})
}
