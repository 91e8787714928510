package gvisor

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// oldestPython is the oldest minor version that sandboxes work with.
const oldestPython = 10

// A python is an interpreter of the host.
type python struct {
	Executable string // the real one, an ELF file
	Version    [3]int
	Prefix     string // what the installation is below
	Stdlib     string // the standard library in Python
	Dynload    string // and its extension modules; may be ""
}

func (p python) String() string {
	return fmt.Sprintf("Python %d.%d.%d at %s", p.Version[0], p.Version[1], p.Version[2], p.Executable)
}

// probe prints what there is to know of the interpreter that runs it.
const probe = `
import json, os, sys
dynload = [p for p in sys.path if os.path.basename(p) == "lib-dynload"]
print(json.dumps({
    "Implementation": sys.implementation.name,
    "Release": sys.version_info.releaselevel,
    "Version": sys.version_info[:3],
    "Prefix": os.path.realpath(sys.base_prefix),
    "Stdlib": os.path.realpath(os.path.dirname(os.__file__)),
    "Dynload": os.path.realpath(dynload[0]) if dynload else "",
}))`

// findPython returns the newest Python of the host, or the one at the path that
// is given.
func findPython(ctx context.Context, given string) (python, error) {
	candidates := []string{given}
	if given == "" {
		candidates = pythonCandidates()
	}
	var errs []error
	for _, executable := range candidates {
		p, err := probePython(ctx, executable)
		if err == nil {
			return p, nil
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if err == nil {
		err = errors.New("none on PATH or where they usually are")
	}
	return python{}, failures.New("find the host's Python", fmt.Errorf("%w: %w", runtime.ErrImageMissing, err),
		"install Python 3.10 or later (apt-get install python3), or name an image: --image oci-archive:FILE, docker-archive:FILE or a registry's")
}

// pythonDirs are where interpreters are looked for beside PATH.
var pythonDirs = []string{
	"/usr/local/bin", "/usr/bin", "/bin", "/opt/python*/bin",
	"~/.pyenv/versions/*/bin", "~/.local/share/uv/python/*/bin", "~/.local/bin",
}

var pythonFile = regexp.MustCompile(`^python3\.([0-9]+)$`)

// pythonCandidates are the interpreters that there are, newest first, and among
// equals in the order of PATH.
func pythonCandidates() []string {
	home, _ := os.UserHomeDir()
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range pythonDirs {
		if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
			if home == "" {
				continue
			}
			pattern = filepath.Join(home, rest)
		}
		matches, _ := filepath.Glob(pattern)
		dirs = append(dirs, matches...)
	}
	minors := map[string]int{}
	var found []string
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			continue
		}
		entries, _ := filepath.Glob(filepath.Join(dir, "python3*"))
		for _, entry := range entries {
			real, err := filepath.EvalSymlinks(entry)
			if err != nil {
				continue
			}
			m := pythonFile.FindStringSubmatch(filepath.Base(real))
			if m == nil {
				continue
			}
			minor, _ := strconv.Atoi(m[1])
			if _, seen := minors[real]; !seen && minor >= oldestPython && isELF(real) {
				minors[real] = minor
				found = append(found, real)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(minors[b], minors[a]) })
	return found
}

func isELF(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// probePython asks an interpreter what it is. It runs it on the host, with
// nothing of the environment.
func probePython(ctx context.Context, executable string) (python, error) {
	executable, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return python{}, err
	}
	if err := checkTrusted(executable); err != nil {
		return python{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, executable, "-I", "-S", "-c", probe)
	cmd.Env, cmd.Dir = []string{}, "/"
	out, err := cmd.Output()
	if err != nil {
		return python{}, fmt.Errorf("%s: %w", executable, err)
	}
	answer := struct {
		python
		Implementation, Release string
	}{}
	if err := json.Unmarshal(out, &answer); err != nil {
		return python{}, fmt.Errorf("%s: %w", executable, err)
	}
	p := answer.python
	p.Executable = executable
	switch {
	case answer.Implementation != "cpython" || answer.Release != "final":
		return python{}, fmt.Errorf("%s is %s %s, want a release of CPython", executable, answer.Implementation, answer.Release)
	case p.Version[0] != 3 || p.Version[1] < oldestPython:
		return python{}, fmt.Errorf("%s is Python %d.%d, want 3.%d or later", executable, p.Version[0], p.Version[1], oldestPython)
	case !within(p.Stdlib, p.Prefix) || p.Dynload != "" && !within(p.Dynload, p.Prefix) || p.Prefix == "/":
		return python{}, fmt.Errorf("%s has its library outside of its prefix %s", executable, p.Prefix)
	}
	return p, nil
}

// within reports whether path is below one of the directories.
func within(path string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") })
}

// key changes when the interpreter does: an update of the library comes with one of it.
func (p python) key() (string, error) {
	info, err := os.Stat(p.Executable)
	if err != nil {
		return "", err
	}
	return keyOf("python", p.Executable, strconv.FormatInt(info.Size(), 10), info.ModTime().UTC().Format(time.RFC3339Nano)), nil
}

// guestPrefix is where the interpreter is installed in the sandbox.
const guestPrefix = "/usr/local"

// A relocation moves an installation of Python: files below from appear below
// guestPrefix, and where its files speak of from they speak of to, which has
// the same length and means the same as guestPrefix. So the paths in compiled
// modules stay right, and the host's do not get in.
type relocation struct{ from, to string }

func relocate(prefix string) (relocation, error) {
	pad := len(prefix) - len(guestPrefix)
	switch {
	case prefix == "/usr" || prefix == guestPrefix:
		return relocation{from: prefix, to: prefix}, nil
	case pad < 0:
		return relocation{}, fmt.Errorf("the prefix %s of the host's Python is too short to be replaced", prefix)
	}
	return relocation{from: prefix, to: guestPrefix + strings.Repeat("/.", pad/2) + strings.Repeat("/", pad%2)}, nil
}

// path is where a file is in the sandbox.
func (r relocation) path(name string) string {
	if r.from == r.to || !within(name+"/", r.from) {
		return name
	}
	return guestPrefix + strings.TrimPrefix(name, r.from)
}

func (r relocation) content(data []byte) []byte {
	if r.from == r.to {
		return data
	}
	from, to := r.from, r.to
	if isELFData(data) {
		// Linkers let strings share their ends: the end of the prefix may be all
		// there is of the version's number. What it begins with is nobody else's.
		// Nothing depends on it: Python finds its library from where it is
		// itself, and the loader finds libraries where libraries puts them.
		from = strings.TrimSuffix(from, path.Base(from))
		to = strings.Repeat("/", len(from))
	}
	return bytes.ReplaceAll(data, []byte(from), []byte(to))
}

func isELFData(data []byte) bool { return bytes.HasPrefix(data, []byte(elf.ELFMAG)) }

// buildPython writes a root file system with the interpreter, its standard
// library, a shell, and what they need; and with nothing else of the host.
func buildPython(ctx context.Context, b *builder, p python) error {
	move, err := relocate(p.Prefix)
	if err != nil {
		return err
	}
	h := hostFiles{builder: b, move: move, python: p.Executable}
	executable := move.path(filepath.Join(p.Prefix, "bin", filepath.Base(p.Executable)))
	if err := h.copy(p.Executable, executable); err != nil {
		return err
	}
	for _, alias := range []string{"/usr/local/bin/python3", "/usr/local/bin/python"} {
		if alias != executable {
			if err := b.symlink(executable, alias); err != nil {
				return err
			}
		}
	}
	if err := h.tree(p.Stdlib); err != nil {
		return err
	}
	if p.Dynload != "" && !within(p.Dynload, p.Stdlib) {
		if err := h.tree(p.Dynload); err != nil {
			return err
		}
	}
	if err := h.programs(); err != nil {
		return err
	}
	if err := h.libraries(ctx); err != nil {
		return err
	}
	return errors.Join(h.data(), h.etc())
}

// hostFiles copies files of the host.
type hostFiles struct {
	*builder
	move   relocation
	python string   // the interpreter
	elf    []string // those that were copied and have libraries to be found
}

// excluded are parts of the standard library that have no use in a sandbox.
var excluded = regexp.MustCompile(`^(test|tests|idle_test|idlelib|tkinter|turtledemo|ensurepip|lib2to3|site-packages|dist-packages|config-.*|` +
	`.*\.opt-[12]\.pyc|.*\.a|.*\.orig|_tkinter\..*|_test.*\.so|_ctypes_test.*\.so|_xxtestfuzz.*\.so|xx.*\.so|nis\..*|sitecustomize\.py|EXTERNALLY-MANAGED)$`)

// tree copies a directory. Symbolic links are followed as far as they stay
// within it.
func (h *hostFiles) tree(root string) error {
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != root && excluded.MatchString(entry.Name()) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return h.mkdir(h.move.path(name), 0o755)
		}
		real, err := filepath.EvalSymlinks(name)
		if err != nil || !within(real, root) {
			return nil //nolint:nilerr // a link to nowhere, or to what is not ours to show
		}
		if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
			return err
		}
		return h.copyAs(real, h.move.path(name))
	})
}

// copy copies a file, unless it is there already.
func (h *hostFiles) copy(from, to string) error {
	if err := h.copyAs(from, to); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (h *hostFiles) copyAs(from, to string) error {
	f, err := os.Open(from) //nolint:gosec // of the host's Python, which is the user's
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > maxSpecBytes<<3 {
		return fmt.Errorf("%s has %d bytes", from, info.Size())
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if isELFData(data) {
		h.elf = append(h.elf, from)
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	return h.file(to, mode, info.ModTime(), bytes.NewReader(h.move.content(data)))
}

// programs are those that scripts expect there to be.
var programs = strings.Fields(`sh true false cat ls cp mv rm mkdir rmdir ln touch head tail sort uniq wc tr cut paste tee seq
	grep sed awk find xargs diff cmp env date sleep basename dirname printf expr test od md5sum sha256sum stat du tar gzip`)

// programs copies programs. One that is another's by a link stays so.
func (h *hostFiles) programs() error {
	copied := map[string]string{}
	for _, program := range programs {
		file := h.program(program)
		if file == "" && program == "sh" {
			return errors.New("the host has no /bin/sh")
		}
		if file == "" {
			continue
		}
		to := "/bin/" + program
		if first, there := copied[file]; there {
			if err := h.symlink(first, to); err != nil {
				return err
			}
			continue
		}
		copied[file] = to
		if err := h.copy(file, to); err != nil {
			return err
		}
	}
	return nil
}

// program returns the file of a program of the system's.
func (h *hostFiles) program(name string) string {
	for _, dir := range []string{"/bin", "/usr/bin"} {
		file, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err == nil && isELF(file) && within(filepath.Dir(file)+"/", "/bin", "/usr/bin", "/usr/sbin", "/sbin") {
			return file
		}
	}
	return ""
}

// data copies what is the same everywhere: the locale C.UTF-8, time zones, and
// descriptions of the most common terminals.
func (h *hostFiles) data() error {
	const locale = "/usr/lib/locale/C.utf8"
	if _, err := os.Stat(locale); err == nil { // newer C libraries need no files for it
		if err := h.tree(locale); err != nil {
			return err
		}
	}
	const zones = "/usr/share/zoneinfo"
	err := filepath.WalkDir(zones, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // not every host has them
		}
		switch rel, _ := filepath.Rel(zones, name); {
		case rel == "posix" || rel == "right":
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		real, err := filepath.EvalSymlinks(name)
		if err != nil || !within(real, zones) {
			return nil //nolint:nilerr // such as localtime, which tells where the host is
		}
		return h.copy(real, name)
	})
	if err != nil {
		return err
	}
	for _, terminal := range []string{"d/dumb", "l/linux", "s/screen", "v/vt100", "x/xterm", "x/xterm-256color"} {
		for _, dir := range []string{"/usr/share/terminfo", "/lib/terminfo"} {
			real, err := filepath.EvalSymlinks(filepath.Join(dir, terminal))
			if err != nil {
				continue
			}
			if err := h.copy(real, filepath.Join("/usr/share/terminfo", terminal)); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// etc writes the little of /etc that programs ask for. None of it is the host's.
func (h *hostFiles) etc() error {
	for name, content := range map[string]string{ //nolint:gosec // nobody's password
		"passwd":        "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"group":         "root:x:0:\nnogroup:x:65534:\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
		"hosts":         "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
	} {
		if err := h.text("/etc/"+name, content); err != nil {
			return err
		}
	}
	return nil
}
