package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A SandboxDir is the host's directory of one sandbox. All but Socket and Files
// is closed to the sandbox; these two are mounted into it, read-only.
type SandboxDir struct {
	Path    string
	Files   string // the spec's files; "" if there are none
	Seccomp string // the seccomp profile
	Socket  string // the directory with nothing but the socket in it
}

// NewSandboxDir creates the directory for the sandbox id. On error nothing is
// left.
func (h *Home) NewSandboxDir(id string, files fs.FS, seccomp []byte) (_ *SandboxDir, err error) {
	base := filepath.Join(h.Path, id)
	d := &SandboxDir{
		Path:    base,
		Seccomp: filepath.Join(base, "seccomp.json"),
		Socket:  filepath.Join(base, "socket"),
	}
	if err := os.Mkdir(base, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Remove())
		}
	}()
	if err := writeFile(d.Seccomp, seccomp, 0o600); err != nil {
		return nil, err
	}
	if err := makeDir(d.Socket, 0o711); err != nil {
		return nil, err
	}
	if files != nil {
		d.Files = filepath.Join(base, "files")
		if err := copyTree(d.Files, files); err != nil {
			return nil, fmt.Errorf("write the sandbox's files: %w", err)
		}
	}
	return d, nil
}

// Remove removes the directory.
func (d *SandboxDir) Remove() error { return os.RemoveAll(d.Path) }

// copyTree writes src below dst, readable by all: the sandbox's user is nobody
// the host knows.
func copyTree(dst string, src fs.FS) error {
	return walkFiles(src, func(name string, dir bool, data []byte) error {
		target := filepath.Join(dst, filepath.FromSlash(name))
		if dir {
			return makeDir(target, 0o755)
		}
		return writeFile(target, data, 0o644)
	})
}

// makeDir and writeFile set the mode whatever the umask.

func makeDir(name string, mode fs.FileMode) error {
	if err := os.Mkdir(name, mode); err != nil {
		return err
	}
	return os.Chmod(name, mode)
}

func writeFile(name string, data []byte, mode fs.FileMode) error {
	if err := os.WriteFile(name, data, mode); err != nil {
		return err
	}
	return os.Chmod(name, mode)
}
