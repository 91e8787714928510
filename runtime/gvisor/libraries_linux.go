package gvisor

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// libraries copies the loader and every shared library that the loader says the
// copied files need.
func (h *hostFiles) libraries(ctx context.Context) error {
	byLoader := map[string][]string{}
	var modules []string
	for _, file := range slices.Clone(h.elf) {
		switch loader, err := interpreter(file); {
		case err != nil:
			return err
		case loader == "":
			modules = append(modules, file)
		default:
			byLoader[loader] = append(byLoader[loader], file)
		}
	}
	for loader, programs := range byLoader {
		if err := h.copyLibrary(loader, filepath.Dir(loader)); err != nil {
			return err
		}
		for _, program := range programs {
			preload := modules
			if program != h.python {
				preload = nil
			}
			found, err := loaded(ctx, loader, program, preload)
			if err != nil {
				return err
			}
			if err := h.copyLibraries(found); err != nil {
				return err
			}
		}
	}
	return nil
}

// interpreter returns the loader that a program asks for, "" for a library.
func interpreter(file string) (string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		path := make([]byte, p.Filesz)
		if _, err := p.ReadAt(path, 0); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		// A shared library may name a loader, too, to be run by itself.
		if entries, err := f.DynValue(elf.DT_SONAME); err == nil && len(entries) > 0 {
			return "", nil
		}
		return string(bytes.TrimRight(path, "\x00")), nil
	}
	return "", nil
}

// A library is what the loader found for the name that a program asks for.
type library struct{ name, path string }

// resolved is a line of the loader's list: "name => path (address)", or "path (address)".
var resolved = regexp.MustCompile(`^\s*(?:(\S+) => )?(/\S+) \(0x[0-9a-f]+\)$`)

// loaded lists the libraries that the loader would load for a program, and for
// modules that the program would load later. One of which a library is missing
// is left out by the loader, as it would be by the program.
func loaded(ctx context.Context, loader, program string, modules []string) ([]library, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	args := []string{"--list", program}
	if len(modules) > 0 {
		args = append([]string{"--preload", strings.Join(modules, ":")}, args...)
	}
	cmd := exec.CommandContext(ctx, loader, args...) //nolint:gosec // the host's loader lists, it does not run
	cmd.Env, cmd.Dir = []string{}, "/"
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s --list %s: %w", loader, program, err)
	}
	var found []library
	for line := range strings.Lines(string(out)) {
		m := resolved.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || slices.Contains(modules, m[2]) {
			continue
		}
		name := m[1]
		if !strings.Contains(name, "/") {
			found = append(found, library{name: name, path: m[2]})
		}
	}
	return found, nil
}

// copyLibraries puts libraries where the loader in the sandbox will look: where
// the host's has found them, or, for those outside of the system's directories,
// beside the C library.
func (h *hostFiles) copyLibraries(found []library) error {
	system := "/usr/lib"
	for _, lib := range found {
		if strings.HasPrefix(lib.name, "libc.") {
			system = filepath.Dir(lib.path)
		}
	}
	for _, lib := range found {
		if lib.name == "" { // by its path: the loader itself, or what was preloaded
			continue
		}
		dir := filepath.Dir(lib.path)
		if !systemDir(dir) {
			dir = system
		}
		if err := h.copyLibrary(lib.path, dir); err != nil {
			return err
		}
	}
	return nil
}

func systemDir(dir string) bool {
	return within(dir+"/", "/lib", "/lib64", "/usr/lib", "/usr/lib64")
}

// copyLibrary copies a library into dir under the name it was found by.
func (h *hostFiles) copyLibrary(path, dir string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return h.copy(real, filepath.Join(dir, filepath.Base(path)))
}
