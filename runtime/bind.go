package runtime

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// BindDir is where folders of the host appear in a sandbox, each below it under
// a name of its own.
const BindDir = "/mnt"

// maxBinds bounds the folders of one sandbox.
const maxBinds = 16

// A Bind shows a folder of the host in the sandbox: read-only, without what is
// mounted below it. What can be read there is what everybody on the host can
// read: the sandbox's user has no more rights. Symbolic links in it lead where
// they do inside the sandbox.
//
// It is shown as it is at each moment, or by an engine with a kernel of its own
// as it was when the sandbox started, if it is not too large for that. An engine
// on another machine has no such folder. Where one cannot be shown, the spec is
// refused with [ErrNoBinds].
type Bind struct {
	Source string // absolute path of a folder on the host, without symbolic links
	Target string // BindDir and one name
}

// ErrNoBinds is for an engine that cannot show the host's folders.
var ErrNoBinds = errors.New("folders of the host cannot be mounted")

func validateBinds(binds []Bind) error {
	if len(binds) > maxBinds {
		return fmt.Errorf("spec: more than %d folders to mount", maxBinds)
	}
	seen := map[string]bool{}
	for _, b := range binds {
		if !filepath.IsAbs(b.Source) || filepath.Clean(b.Source) != b.Source || strings.ContainsAny(b.Source, "\x00\n") {
			return fmt.Errorf("spec: folder %q is not an absolute path", b.Source)
		}
		if path.Dir(b.Target) != BindDir || path.Clean(b.Target) != b.Target || !isPlainName(path.Base(b.Target)) || seen[b.Target] {
			return fmt.Errorf("spec: %q is not a name below %s of its own", b.Target, BindDir)
		}
		seen[b.Target] = true
	}
	return nil
}

// isPlainName reports whether every engine takes name for nothing but a name.
func isPlainName(name string) bool {
	const others = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return len(name) <= 64 && strings.Trim(name, others) == "" && !strings.HasPrefix(name, ".") && name != ""
}

// bound returns the folder that is to be shown at point.
func (s Spec) bound(point string) (Bind, bool) {
	for _, b := range s.Binds {
		if b.Target == point {
			return b, true
		}
	}
	return Bind{}, false
}
