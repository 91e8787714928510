package discovery

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks bounds the symbolic links on the way to one file or folder.
const maxLinks = 40

// watchPaths are the folders to look at, and what in them is of interest.
type watchPaths struct {
	dirs  []string        // in which something can happen
	whole map[string]bool // of these, those whose configuration files count
	names map[string]bool // paths whose making, changing and removing counts
}

func pathsToWatch(opts LoadOptions) *watchPaths {
	w := &watchPaths{whole: map[string]bool{}, names: map[string]bool{}}
	l := newLoader(opts)
	for _, dir := range l.dirs {
		real, ok := w.walk(dir)
		if !ok {
			continue
		}
		w.look(real)
		w.whole[real] = true
		names, err := configFiles(real)
		if err != nil && len(names) == 0 {
			continue
		}
		for _, name := range names[:min(len(names), maxFiles)] {
			path := filepath.Join(real, name)
			if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
				w.walk(path)
			}
		}
	}
	for _, file := range opts.Files {
		if path, err := l.expand.tilde(file); err == nil {
			w.walk(path)
		}
	}
	for _, file := range opts.InputFiles {
		w.walk(file)
	}
	if opts.Project != "" {
		w.walk(filepath.Join(opts.Project, projectFile))
	}
	return w
}

// concerns reports whether what happened to a path may matter.
func (w *watchPaths) concerns(path string) bool {
	return w.names[path] || w.whole[filepath.Dir(path)] && IsConfigFile(filepath.Base(path)) || w.whole[path]
}

func (w *watchPaths) look(dir string) {
	if !slices.Contains(w.dirs, dir) {
		w.dirs = append(w.dirs, dir)
	}
}

// name notes a path, which is looked at by its folder.
func (w *watchPaths) name(path string) {
	w.names[path] = true
	w.look(filepath.Dir(path))
}

// walk notes every symbolic link on the way to path, and where it ends: what is
// there, or the first part of the way that is missing. It returns the former.
func (w *watchPaths) walk(path string) (real string, ok bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	links := 0
	at := filepath.VolumeName(path) + string(filepath.Separator)
	rest := parts(path[len(filepath.VolumeName(path)):])
	for len(rest) > 0 {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			w.name(next)
			return "", false
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		w.name(next)
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", false
		}
		if filepath.IsAbs(target) {
			at = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(filepath.VolumeName(target)):]
		}
		rest = append(parts(target), rest...)
	}
	w.name(at)
	return at, true
}

// parts are the elements of a path.
func parts(path string) []string {
	return strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == filepath.Separator })
}
