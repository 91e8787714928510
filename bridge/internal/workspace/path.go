package workspace

import (
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on names, in bytes.
const (
	maxPath  = 1024
	maxName  = 255
	maxDepth = 32
)

// checkPath returns an *[Error] unless path can be a file's in the workspace, on
// every host alike but for what Windows cannot have.
func checkPath(path string) error {
	bad := func(why string) error {
		return &Error{Kind: BadName, Text: "its name " + why}
	}
	switch {
	case path == "":
		return bad("is empty")
	case len(path) > maxPath:
		return bad(fmt.Sprintf("is longer than %d bytes", maxPath))
	case !utf8.ValidString(path):
		return bad("is not UTF-8")
	case strings.Count(path, "/") >= maxDepth:
		return bad(fmt.Sprintf("is more than %d folders deep", maxDepth))
	case strings.ContainsFunc(path, dangerous):
		return bad("has control characters")
	case !filepath.IsLocal(filepath.FromSlash(path)), goruntime.GOOS == "windows" && strings.ContainsAny(path, `<>:"|?*\`):
		return bad("leads elsewhere, or has a meaning of its own")
	}
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "" || name == "." || name == "..":
			return bad("is not a plain path")
		case len(name) > maxName:
			return bad(fmt.Sprintf("has a part that is longer than %d bytes", maxName))
		}
	}
	return nil
}

// dangerous characters are those that would let a name look like something else
// in a list: control characters, line separators, and those that turn the
// direction of what follows.
func dangerous(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == '\ufeff'
}

// ignoresCase says that the host's file systems usually take names that differ
// in case only for the same.
const ignoresCase = goruntime.GOOS == "darwin" || goruntime.GOOS == "windows"

// folded is what a path is the same as where case is ignored.
func folded(path string) string {
	if ignoresCase {
		return strings.ToLower(path)
	}
	return path
}
