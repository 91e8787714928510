package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DefaultRoot is where runtime directories go when nothing is configured.
func DefaultRoot() string {
	switch dir := os.Getenv("XDG_RUNTIME_DIR"); {
	case filepath.IsAbs(dir):
		return filepath.Join(dir, "mcp-bridge")
	case os.Geteuid() == 0:
		return "/run/mcp-bridge"
	}
	return filepath.Join(os.TempDir(), "mcp-bridge-"+strconv.Itoa(os.Geteuid()))
}

// A Home is the directory of one engine of one process, below a root that only
// its user can enter. Its name tells its owner, so that another process can
// remove it when the owner is dead.
type Home struct{ Path string }

// NewHome creates a home for owner below root.
func NewHome(root string, owner Owner) (*Home, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if err := ensurePrivate(root); err != nil {
		return nil, err
	}
	// Removing homes of the dead and making new ones never meet: a home carries
	// a living owner's name from its first moment.
	path := filepath.Join(root, homeName(owner)+"."+rand.Text()[:6])
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, err
	}
	return &Home{Path: path}, nil
}

// Remove removes the home and everything in it.
func (h *Home) Remove() error { return os.RemoveAll(h.Path) }

// Gone reports whether somebody else has removed the home.
func (h *Home) Gone() bool {
	_, err := os.Lstat(h.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// SweepHomes removes the homes below root whose owners are dead.
func SweepHomes(root string, self Owner) error {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := ensurePrivate(root); err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if owner, ok := ownerOfHome(e.Name(), self); ok && e.IsDir() && self.Outlived(owner) {
			errs = append(errs, os.RemoveAll(filepath.Join(root, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// ensurePrivate creates dir if need be and makes sure that it is a real
// directory which nobody but this user can enter.
func ensurePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("runtime directory %s is not a directory", dir)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("runtime directory %s belongs to user %d", dir, st.Uid)
	case st.Mode&0o077 != 0:
		return fmt.Errorf("runtime directory %s is open to others (mode %#o)", dir, st.Mode&0o777)
	}
	return nil
}

// homeName is short, for the path of a socket below it has at most 107 bytes.
// The user need not be named: the root is the user's own.
func homeName(o Owner) string {
	u := func(n uint64) string { return strconv.FormatUint(n, 36) }
	return strings.Join([]string{strconv.FormatInt(int64(o.PID), 36), u(o.Start), u(o.PIDNS), shortBoot(o.Boot)}, ".")
}

// ownerOfHome is the inverse of homeName as far as self can judge: the boot id
// is self's or another one.
func ownerOfHome(name string, self Owner) (Owner, bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 5 {
		return Owner{}, false
	}
	pid, err1 := strconv.ParseUint(parts[0], 36, 31)
	start, err2 := strconv.ParseUint(parts[1], 36, 64)
	ns, err3 := strconv.ParseUint(parts[2], 36, 64)
	o := Owner{UID: self.UID, Boot: parts[3], PID: int(pid), PIDNS: ns, Start: start}
	if o.Boot == shortBoot(self.Boot) {
		o.Boot = self.Boot
	}
	return o, errors.Join(err1, err2, err3) == nil
}

func shortBoot(boot string) string { return boot[:min(8, len(boot))] }
