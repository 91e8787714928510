package cli

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// binds are the folders that --mount names, looked at: what cells must not see
// is refused here, for the sandbox shows whatever it is given.
func (r *root) binds(stateDir string) ([]runtime.Bind, error) {
	var binds []runtime.Bind
	for _, text := range r.settings.mounts {
		bind, err := parseMount(text)
		if err == nil {
			err = r.checkMount(bind, stateDir)
		}
		if err == nil && slices.ContainsFunc(binds, func(other runtime.Bind) bool { return other.Target == bind.Target }) {
			err = fmt.Errorf("%s is there already: name another place with %s=/mnt/NAME", bind.Target, bind.Source)
		}
		if err != nil {
			return nil, r.settings.wrong([]string{"mount"}, "%s %q: %v", r.settings.nameOf("mount"), text, err)
		}
		binds = append(binds, bind)
	}
	return binds, nil
}

// parseMount understands FOLDER, FOLDER:ro and FOLDER=/mnt/NAME:ro.
func parseMount(text string) (runtime.Bind, error) {
	folder, readOnly := strings.CutSuffix(text, ":ro")
	if _, writable := strings.CutSuffix(text, ":rw"); writable && !readOnly {
		return runtime.Bind{}, errors.New("a folder is mounted read-only, for a cell may do anything with what it can write to: " +
			"let cells write to `workspace`, whose files are kept on the host (mcp-bridge workspace path)")
	}
	target := ""
	if at, place, named := cutLast(folder, "=/"); named {
		folder, target = at, "/"+place
	} else if at, place, named := cutLast(folder, ":/mnt/"); named && at != "" {
		return runtime.Bind{}, fmt.Errorf("write %s=/mnt/%s", at, place)
	}
	if folder == "" {
		return runtime.Bind{}, errors.New("there is no folder")
	}
	folder, err := homed(folder)
	if err == nil {
		folder, err = filepath.Abs(folder)
	}
	if err == nil && target == "" {
		target = path.Join(runtime.BindDir, safeName(filepath.Base(folder)))
	}
	if err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return runtime.Bind{}, cause(err)
	}
	if path.Dir(target) != runtime.BindDir || safeName(path.Base(target)) != path.Base(target) {
		return runtime.Bind{}, fmt.Errorf("%q is no place for it: name one such as /mnt/data", target)
	}
	return runtime.Bind{Source: folder, Target: target}, nil
}

// cutLast cuts text around the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// cause is an error of a path without the path, which the reader has written.
func cause(err error) error {
	if of, ok := errors.AsType[*os.PathError](err); ok {
		return of.Err
	}
	return err
}

// homed replaces ~ where no shell has.
func homed(folder string) (string, error) {
	if folder != "~" && !strings.HasPrefix(folder, "~/") {
		return folder, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, strings.TrimPrefix(folder, "~")), err
}

// safeName is a folder's name with what is not plain replaced.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	name = strings.TrimLeft(name, ".")
	return name[:min(len(name), 64)]
}

// checkMount refuses what is no folder, and folders with secrets in them.
func (r *root) checkMount(bind runtime.Bind, stateDir string) error {
	info, err := os.Stat(bind.Source)
	switch {
	case err != nil:
		return cause(err)
	case !info.IsDir():
		return errors.New("it is not a folder")
	case path.Base(bind.Target) == "" || bind.Target == runtime.BindDir:
		return errors.New("its name is of no use: name a place with =/mnt/NAME")
	}
	for _, secret := range r.secretDirs(stateDir) {
		if real, err := filepath.EvalSymlinks(secret.path); err == nil {
			secret.path = real
		}
		switch {
		case secret.path == "":
		case within(secret.path, bind.Source):
			return fmt.Errorf("it holds %s, which cells must not see: mount a folder below it", secret.what)
		case within(bind.Source, secret.path) && !secret.open:
			return fmt.Errorf("it is in %s, which cells must not see: copy what they need into a folder elsewhere, and mount that", secret.what)
		}
	}
	if below := mountBelow(bind.Source); below != "" {
		return fmt.Errorf("another file system is mounted in it, at %s, which would not be shown: mount a folder without one", below)
	}
	const others = 0o005
	if info.Mode().Perm()&others != others {
		fmt.Fprintf(r.io.Err, "mcp-bridge: warning: %s: only its owner and group can read %s, and cells cannot (chmod o+rx)\n", r.settings.nameOf("mount"), bind.Source)
	}
	return nil
}

// mountBelow returns where something is mounted below a folder, or "". It is for
// a clear answer: engines show no such thing, or refuse.
func mountBelow(dir string) string {
	table, err := os.ReadFile("/proc/self/mountinfo") // there is none on other systems
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(table)) {
		const point = 4
		if fields := strings.Fields(line); len(fields) > point && fields[point] != dir && within(fields[point], dir) {
			return fields[point]
		}
	}
	return ""
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	below, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(below)
}

// A secretDir is a folder that is not to be mounted, nor any above it, nor, unless
// it is open, any below.
type secretDir struct {
	path, what string
	open       bool
}

func (r *root) secretDirs(stateDir string) []secretDir {
	all := []secretDir{
		{"/proc", "the kernel's /proc", false},
		{"/sys", "the kernel's /sys", false},
		{"/dev", "the host's devices", false},
		{"/etc", "the host's configuration", false},
		{"/run", "the sockets of the host's services", false},
		{"/var/run", "the sockets of the host's services", false},
		{stateDir, "what mcp-bridge keeps", false},
		{r.settings.cacheDir, "what mcp-bridge keeps", false},
	}
	if file, err := configFile(); err == nil {
		all = append(all, secretDir{filepath.Dir(file), "mcp-bridge's configuration", false})
	}
	for _, dir := range r.settings.configDirs {
		if dir, err := homed(dir); err == nil {
			all = append(all, secretDir{dir, "definitions of servers", false})
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return all
	}
	all = append(all, secretDir{home, "your home", true})
	for _, name := range []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".local", ".cache", ".netrc", ".password-store", ".mozilla", "Library", "MCPs"} {
		all = append(all, secretDir{filepath.Join(home, name), "~/" + name, false})
	}
	return all
}
