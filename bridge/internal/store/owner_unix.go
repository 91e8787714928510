//go:build unix

package store

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// requireOwn refuses what another user owns or can write.
func requireOwn(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return fmt.Errorf("%s: %w: its owner is not known", path, ErrUnsafe)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s: %w: it belongs to another user (uid %d)", path, ErrUnsafe, st.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s: %w: other users can write to it (mode %04o); run `chmod go-w`", path, ErrUnsafe, info.Mode().Perm())
	}
	return nil
}
