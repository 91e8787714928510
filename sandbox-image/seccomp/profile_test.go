package seccomp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/sandbox-image/seccomp"
)

// TestGenerated holds that the committed profile is what the generator makes,
// and that it survives being read.
func TestGenerated(t *testing.T) {
	want, err := seccomp.Build().JSON()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("seccomp.json is not what the generator makes: run `go generate ./sandbox-image/seccomp`")
	}
	var read seccomp.Profile
	if err := json.Unmarshal(got, &read); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, seccomp.Build()) {
		t.Error("the profile changes when it is written and read")
	}
}

// TestTables compares the tables with the constants of golang.org/x/sys/unix.
func TestTables(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range seccomp.Architectures() {
		source, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "zsysnum_linux_"+arch+".go"))
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		want := map[string]int{}
		lines := bufio.NewScanner(source)
		for lines.Scan() {
			var name string
			var number int
			if _, err := fmt.Sscanf(lines.Text(), "\tSYS_%s = %d", &name, &number); err == nil {
				want[strings.ToLower(name)] = number
			}
		}
		delete(want, "arch_specific_syscall") // where such calls would begin
		if got := table(t, arch); len(want) < 300 || !maps.Equal(got, want) {
			t.Errorf("table of %s has %d calls, x/sys has %d, or they differ", arch, len(got), len(want))
		}
	}
}

func table(t *testing.T, arch string) map[string]int {
	t.Helper()
	numbers, err := seccomp.Table(arch)
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

// TestEveryCallIsDecided holds that each call of each architecture has rules,
// that no rule is for a call that does not exist, and that the rules of a call
// agree: whatever the order an engine takes them in, the outcome is the same.
func TestEveryCallIsDecided(t *testing.T) {
	p := seccomp.Build()
	known := map[string]bool{}
	for _, arch := range seccomp.Architectures() {
		for name, number := range table(t, arch) {
			known[name] = true
			if p.Decide(name, [6]uint64{}).Default && name != "ioctl" { // of which only the listed requests have rules
				t.Errorf("%s %d %s is left to the default", arch, number, name)
			}
		}
	}
	decided := map[string][]seccomp.Rule{}
	for _, r := range p.Syscalls {
		for _, name := range r.Names {
			if !known[name] {
				t.Errorf("there is no call %q", name)
			}
			decided[name] = append(decided[name], r)
		}
	}
	for name, rules := range decided {
		for i, r := range rules {
			if len(r.Args) == 0 && len(rules) > 1 {
				t.Errorf("%s has a rule for all arguments and others", name)
			}
			for _, other := range rules[:i] {
				if overlap(r, other) && (r.Action != other.Action || r.ErrnoRet != other.ErrnoRet) {
					t.Errorf("%s: %+v and %+v can both apply", name, r.Args, other.Args)
				}
			}
		}
	}
}

// overlap reports whether two rules may apply to one call. It looks at rules
// that have an argument in common, and is careful: it says yes if in doubt.
func overlap(a, b seccomp.Rule) bool {
	for _, x := range a.Args {
		for _, y := range b.Args {
			if x.Index != y.Index {
				continue
			}
			switch {
			case x.Op == "SCMP_CMP_MASKED_EQ" && y.Op == "SCMP_CMP_MASKED_EQ":
				if common := x.Value & y.Value; x.ValueTwo&common != y.ValueTwo&common {
					return false
				}
			case x.Op != y.Op && x.Value == y.Value: // equal and not equal
				return false
			}
		}
	}
	return true
}

// TestDecide looks at the calls whose arguments matter, on both sides of every
// border, and with the high bits that the kernel does not look at.
func TestDecide(t *testing.T) {
	p := seccomp.Build()
	const high = 1 << 32
	const ok, eperm, einval, enosys, eafnosupport = 0, 1, 22, 38, 97
	type args = [6]uint64
	for _, test := range []struct {
		name string
		args args
		want uint
	}{
		{"read", args{}, ok},
		{"read", args{^uint64(0), ^uint64(0)}, ok},
		{"clone", args{17}, ok},
		{"clone", args{0x3d0f00}, ok}, // what pthread_create passes
		{"clone", args{0x10000011}, enosys},
		{"clone", args{0x7e020000}, enosys},
		{"clone", args{high | 0x40000000}, enosys},
		{"clone3", args{}, enosys},
		{"unshare", args{0x10000000}, eperm},
		{"setns", args{}, eperm},
		{"socket", args{1, 1}, ok},
		{"socket", args{0, 1}, eafnosupport},
		{"socket", args{2, 1}, eafnosupport},
		{"socket", args{40, 1}, eafnosupport},
		{"socket", args{high | 1, 1}, eafnosupport},
		{"socketpair", args{1}, ok},
		{"socketpair", args{30}, eafnosupport},
		{"prlimit64", args{0, 7}, ok},
		{"prlimit64", args{1, 7}, eperm},
		{"prlimit64", args{high, 7}, eperm},
		{"sched_setaffinity", args{0}, ok},
		{"sched_setaffinity", args{1}, eperm},
		{"setpriority", args{0, 0, 19}, ok},
		{"setpriority", args{0, 1, 19}, eperm},
		{"setpriority", args{2, 0, 19}, eperm},
		{"setpriority", args{1, 1, 19}, eperm},
		{"personality", args{0xffffffff}, ok},
		{"personality", args{0x0040000}, enosys},
		{"personality", args{^uint64(0)}, enosys},
		{"madvise", args{0, 0, 4}, ok},
		{"madvise", args{0, 0, 13}, ok},
		{"madvise", args{0, 0, 12}, einval},
		{"madvise", args{0, 0, high | 12}, einval},
		{"prctl", args{4}, ok},
		{"prctl", args{0x53564d41}, ok},
		{"prctl", args{67, 1}, einval},
		{"prctl", args{high | 67, 1}, einval},
		{"mknod", args{0, 0o010644}, ok},
		{"mknod", args{0, 0o020644}, enosys},
		{"mknod", args{0, high | 0o060644}, enosys},
		{"mknodat", args{0, 0, 0o010644}, ok},
		{"mknodat", args{0, 0, 0o100644}, enosys},
		{"ioctl", args{0, 0x5401}, ok},
		{"ioctl", args{0, high | 0x5401}, ok},
		{"ioctl", args{0, 0x5412}, enosys},
		{"ioctl", args{0, high | 0x5412}, enosys},
		{"ioctl", args{0, 0xffffffff_0000_541c}, enosys},
		{"ioctl", args{0, 0x89a0}, enosys},
		{"cachestat", args{}, eperm},
		{"mincore", args{}, eperm},
		{"setxattr", args{}, 95},
		{"", args{}, enosys},
	} {
		got := p.Decide(test.name, test.args)
		if got.Allowed != (test.want == ok) || got.Errno != test.want {
			t.Errorf("%s%x: %+v, want errno %d", test.name, test.args, got, test.want)
		}
	}
	for family := range uint64(64) {
		if got := p.Decide("socket", args{family, 1}); got.Allowed != (family == 1) {
			t.Errorf("socket of family %d: %+v", family, got)
		}
	}
	for bit := range 64 {
		namespace := slices.Contains([]int{17, 25, 26, 27, 28, 29, 30}, bit)
		if got := p.Decide("clone", args{1 << bit}); got.Allowed == namespace {
			t.Errorf("clone with flag %#x: %+v", uint64(1)<<bit, got)
		}
	}
}

// TestArchitecturesAgree holds that a call of both architectures is not left out
// of one by being named otherwise: whatever amd64 has and arm64 has not, or the
// other way round, is one of the known differences.
func TestArchitecturesAgree(t *testing.T) {
	amd64, arm64 := table(t, "amd64"), table(t, "arm64")
	for name := range arm64 {
		if _, ok := amd64[name]; !ok {
			t.Errorf("only arm64 has %s", name)
		}
	}
	for name, number := range arm64 {
		// From 424 on, numbers are the same everywhere.
		if number >= 424 && amd64[name] != number {
			t.Errorf("%s is %d on arm64 and %d on amd64", name, number, amd64[name])
		}
	}
	p := seccomp.Build()
	var only []string
	for name := range amd64 {
		if _, ok := arm64[name]; !ok && p.Decide(name, [6]uint64{}).Allowed {
			only = append(only, name)
		}
	}
	slices.Sort(only)
	// What arm64 never had, for there is a younger call that does the same.
	want := strings.Fields(`access alarm arch_prctl chmod creat dup2 epoll_create epoll_wait eventfd fork futimesat getdents
		getpgrp inotify_init link lstat mkdir open pause pipe poll readlink rename rmdir select signalfd stat symlink time
		unlink utime utimes vfork`)
	if !slices.Equal(only, want) {
		t.Errorf("allowed on amd64 alone: %v\nwant %v", only, want)
	}
}
