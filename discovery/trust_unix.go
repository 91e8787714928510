//go:build unix

package discovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// groupFile says who is in which group.
const groupFile = "/etc/group"

// requireTrusted refuses a file or folder that somebody else can write, or has
// written: what it defines is run as this user. info is of path, followed.
func requireTrusted(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("its owner is not known")
	}
	return trust{self: os.Geteuid(), groupFile: groupFile}.require(path, info.Mode(), int(st.Uid), int(st.Gid))
}

// trust is in one user, and in root.
type trust struct {
	self      int
	groupFile string
}

func (t trust) require(path string, mode fs.FileMode, uid, gid int) error {
	others := mode.Perm() & 0o022
	if others == 0o020 && t.private(gid) {
		others = 0
	}
	sudo := "sudo "
	if t.self == 0 {
		sudo = ""
	}
	switch {
	case uid != t.self && uid != 0:
		return fmt.Errorf("not read: it belongs to another user (uid %d), and what it says would run as you; if it is yours, run `%schown %d %s`",
			uid, sudo, t.self, quote(path))
	case others != 0:
		return fmt.Errorf("not read: other users can change it (mode %04o), and what it says runs as you; run `chmod go-w %s`",
			mode.Perm(), quote(path))
	}
	return nil
}

// private reports whether the group is the user's own and nobody else's, as
// many distributions give to every user: with their umask of 002, everything
// that the user makes can be written by that group.
func (t trust) private(gid int) bool {
	if gid != t.self {
		return false
	}
	data, err := os.ReadFile(t.groupFile)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		// name:password:gid:members
		if fields := strings.Split(strings.TrimRight(line, "\n"), ":"); len(fields) == 4 && fields[2] == strconv.Itoa(gid) {
			return fields[3] == "" || fields[3] == fields[0]
		}
	}
	return false
}

// requireTrustedTarget looks at where a symbolic link leads: whoever can write
// in that folder can put another file there. In a sticky one, only its owner can.
func requireTrustedTarget(path string) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return withoutPath(err)
	}
	dir := filepath.Dir(target)
	if dir == filepath.Dir(path) {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return withoutPath(err)
	}
	if info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	if err := requireTrusted(dir, info); err != nil {
		return fmt.Errorf("leads to a file in %s: %w", quote(dir), err)
	}
	return nil
}

// quote makes one word of a path for a shell, unless it is one.
func quote(path string) string {
	path = cleanLine(path, maxPathShown)
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-+,@%", r)
	}
	if path != "" && strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
