package local

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A Source gives what /proc says of a process: the contents of a file by its
// name below the process's directory, and for "ns/net" and the like what the
// symbolic link says.
type Source func(name string) (string, error)

// ParseFacts reads what the kernel enforces on a process, but for its
// control group, and leaves out whose namespaces it must not share. A nil Env
// means that the environment cannot be read from here, which is so for another
// user's process. Ids are those that the source's reader sees.
func ParseFacts(read Source) (runtime.Facts, error) {
	var f runtime.Facts
	err := errors.Join(
		read.status(&f),
		read.namespaces(&f),
		read.interfaces(&f),
		read.mounts(&f),
		read.rlimits(&f),
		read.environment(&f),
	)
	return f, err
}

func (read Source) status(f *runtime.Facts) error {
	text, err := read("status")
	if err != nil {
		return err
	}
	fields := map[string][]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.Fields(value)
	}
	s := statusFields{fields: fields}
	f.UID, f.GID = s.id("Uid"), s.id("Gid")
	for _, g := range fields["Groups"] {
		f.Groups = append(f.Groups, s.number(g, 10))
	}
	f.Caps = runtime.Caps{
		Inheritable: s.hex("CapInh"), Permitted: s.hex("CapPrm"), Effective: s.hex("CapEff"),
		Bounding: s.hex("CapBnd"), Ambient: s.hex("CapAmb"),
	}
	f.NoNewPrivs = s.first("NoNewPrivs") == "1"
	f.Seccomp = int(s.number(s.first("Seccomp"), 10))
	return s.err
}

// statusFields reads /proc/pid/status, and remembers the first thing it could
// not make sense of.
type statusFields struct {
	fields map[string][]string
	err    error
}

func (s *statusFields) fail(what string) {
	if s.err == nil {
		s.err = fmt.Errorf("unexpected form of /proc/pid/status: %s", what)
	}
}

func (s *statusFields) first(key string) string {
	if v := s.fields[key]; len(v) > 0 {
		return v[0]
	}
	s.fail(key)
	return ""
}

func (s *statusFields) number(text string, base int) int64 {
	n, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		s.fail(text)
	}
	return n
}

func (s *statusFields) hex(key string) uint64 {
	n, err := strconv.ParseUint(s.first(key), 16, 64)
	if err != nil {
		s.fail(key)
	}
	return n
}

// id returns the one id that all of real, effective, saved and file system ids
// are; 0, which no sandbox may have, if they differ.
func (s *statusFields) id(key string) int64 {
	ids := s.fields[key]
	if len(ids) != 4 || len(slices.Compact(slices.Clone(ids))) != 1 {
		s.fail(key)
		return 0
	}
	return s.number(ids[0], 10)
}

// namespaceKinds are the namespaces that a sandbox has of its own.
var namespaceKinds = []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}

func (read Source) namespaces(f *runtime.Facts) error {
	f.Namespaces = map[string]string{}
	var errs []error
	for _, kind := range namespaceKinds {
		id, err := read("ns/" + kind)
		f.Namespaces[kind], errs = id, append(errs, err)
	}
	return errors.Join(errs...)
}

func (read Source) interfaces(f *runtime.Facts) error {
	text, err := read("net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			f.Interfaces = append(f.Interfaces, strings.TrimSpace(name))
		}
	}
	return nil
}

// rlimitNames are the lines of /proc/pid/limits by the engines' names.
var rlimitNames = map[string]string{
	"Max core file size": "core", "Max file size": "fsize", "Max locked memory": "memlock",
	"Max data size": "data", "Max open files": "nofile", "Max processes": "nproc",
}

func (read Source) rlimits(f *runtime.Facts) error {
	text, err := read("limits")
	if err != nil {
		return err
	}
	f.Rlimits = map[string]runtime.Rlimit{}
	for line := range strings.Lines(text) {
		const nameWidth = 26
		if len(line) <= nameWidth {
			continue
		}
		values := strings.Fields(line[nameWidth:])
		name, ok := rlimitNames[strings.TrimSpace(line[:nameWidth])]
		if !ok || len(values) < 2 {
			continue
		}
		soft, err1 := parseLimit(values[0])
		hard, err2 := parseLimit(values[1])
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("unexpected form of /proc/pid/limits: %w", err)
		}
		f.Rlimits[name] = runtime.Rlimit{Soft: soft, Hard: hard}
	}
	return nil
}

// parseLimit understands the words that stand for no limit in /proc and in
// cgroup files.
func parseLimit(text string) (int64, error) {
	switch text = strings.TrimSpace(text); text {
	case "unlimited", "max", "-1":
		return runtime.Unlimited, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, err
	}
	if n > 1<<62 { // cgroup v1 writes the largest multiple of the page size
		return runtime.Unlimited, nil
	}
	return int64(n), nil
}

func (read Source) environment(f *runtime.Facts) error {
	text, err := read("environ")
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	f.Env = []string{}
	for kv := range strings.SplitSeq(strings.TrimRight(text, "\x00"), "\x00") {
		if kv != "" {
			f.Env = append(f.Env, kv)
		}
	}
	return nil
}
