package local

import (
	"errors"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// mountEntry is a line of mountinfo.
type mountEntry struct {
	runtime.Mount
	id, parent int
}

func (read Source) mounts(f *runtime.Facts) error {
	text, err := read("mountinfo")
	if err != nil {
		return err
	}
	entries, err := parseMountinfo(text)
	if err != nil {
		return err
	}
	f.Mounts = reachable(entries)
	return nil
}

func parseMountinfo(text string) ([]mountEntry, error) {
	var entries []mountEntry
	for line := range strings.Lines(text) {
		// id parent major:minor root point options [optional…] - type source super-options
		head, tail, ok := strings.Cut(line, " - ")
		fields, rest := strings.Fields(head), strings.Fields(tail)
		if !ok || len(fields) < 6 || len(rest) < 1 {
			return nil, errors.New("unexpected form of /proc/pid/mountinfo")
		}
		id, err1 := strconv.Atoi(fields[0])
		parent, err2 := strconv.Atoi(fields[1])
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		m := mountEntry{id: id, parent: parent, Mount: runtime.Mount{
			Root: unescape(fields[3]), Point: unescape(fields[4]), Type: rest[0], SizeBytes: runtime.Unlimited,
		}}
		m.options(fields[5])
		if super := rest[len(rest)-1]; len(rest) > 1 {
			m.superOptions(super)
		}
		entries = append(entries, m)
	}
	return entries, nil
}

func (m *mountEntry) options(list string) {
	for o := range strings.SplitSeq(list, ",") {
		switch o {
		case "ro":
			m.ReadOnly = true
		case "nosuid":
			m.NoSUID = true
		case "nodev":
			m.NoDev = true
		case "noexec":
			m.NoExec = true
		}
	}
}

func (m *mountEntry) superOptions(list string) {
	if m.Type == "tmpfs" {
		m.Mode = 0o1777 // the default, which is not shown
	}
	for o := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(o, "=")
		switch {
		case key == "ro":
			m.ReadOnly = true
		case key == "size" && m.Type == "tmpfs":
			m.SizeBytes = parseSize(value)
		case key == "mode":
			mode, err := strconv.ParseUint(value, 8, 32)
			if err == nil {
				m.Mode = uint32(mode)
			}
		}
	}
}

// parseSize reads a size as tmpfs shows it, in KiB.
func parseSize(text string) int64 {
	digits, kib := strings.CutSuffix(text, "k")
	n, err := strconv.ParseInt(digits, 10, 53)
	switch {
	case err != nil:
		return runtime.Unlimited
	case kib:
		return n << 10
	}
	return n
}

// unescape undoes the octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// reachable drops the mounts that lie hidden under others.
func reachable(entries []mountEntry) []runtime.Mount {
	byID := map[int]mountEntry{}
	for _, e := range entries {
		byID[e.id] = e
	}
	// shadowed: something is mounted over all of e, or over a directory above
	// it on the same file system.
	shadowed := func(e mountEntry) bool {
		for _, o := range entries {
			over := o.parent == e.id && o.Point == e.Point
			above := o.parent == e.parent && o.id != e.id && strings.HasPrefix(e.Point, strings.TrimSuffix(o.Point, "/")+"/")
			if over || above {
				return true
			}
		}
		return false
	}
	var hidden func(e mountEntry, depth int) bool
	hidden = func(e mountEntry, depth int) bool {
		parent, ok := byID[e.parent]
		if !ok || parent.id == e.id || depth > len(entries) {
			return false
		}
		if parent.Point == e.Point { // e is what shadows parent
			return hidden(parent, depth+1)
		}
		return shadowed(parent) || hidden(parent, depth+1)
	}
	var visible []runtime.Mount
	for _, e := range entries {
		if !shadowed(e) && !hidden(e, 0) {
			visible = append(visible, e.Mount)
		}
	}
	return visible
}
