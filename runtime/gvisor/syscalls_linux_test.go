package gvisor

import (
	goruntime "runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox-image/seccomp"
)

// TestEverySyscall makes every system call there is, with zeros and with ones,
// and compares what comes of it with what the profile says, as far as gVisor can
// say it: it refuses with ENOSYS or EPERM. A call that the profile allows may be
// one that gVisor does not have.
func TestEverySyscall(t *testing.T) {
	numbers, err := seccomp.Table(goruntime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	names := map[int]string{}
	for name, number := range numbers {
		names[number] = name
	}
	const last, ones = 600, ^uint64(0)
	var calls []runtimetest.Syscall
	for number := range last + 1 {
		calls = append(calls, runtimetest.Syscall{Number: number}, runtimetest.Syscall{Number: number, Args: [6]uint64{ones, ones, ones, ones, ones, ones}})
	}
	profile := seccomp.Build()
	var allowed, refused int
	var absent []string
	for i, got := range start(t, open(t, Options{}), spec()).Syscalls(t, calls) {
		call := calls[i]
		name := names[call.Number]
		want := profile.Decide(name, call.Args)
		errno := int(unix.EPERM)
		if want.Errno == uint(unix.ENOSYS) {
			errno = int(unix.ENOSYS)
		}
		switch {
		case want.Allowed && got.Errno == int(unix.ENOSYS):
			absent = append(absent, name)
		case want.Allowed:
			allowed++
		case got.Errno == errno && !got.Killed && !got.Died:
			refused++
		case got.Errno == int(unix.ENOSYS): // gVisor has no name for it, and no such call
			refused++
		default:
			t.Errorf("%d %s%x: %+v, want it refused with %d", call.Number, name, call.Args, got, errno)
		}
	}
	slices.Sort(absent)
	t.Logf("%d calls: %d allowed, %d refused, as declared; allowed, but not there: %v", len(calls), allowed, refused, slices.Compact(absent))
	if allowed < 250 || refused < 500 {
		t.Error("too few of either: the walk proves nothing")
	}
}
