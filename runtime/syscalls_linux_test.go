package runtime_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	"github.com/mcp-bridge/mcp-bridge/sandbox-image/seccomp"
)

// x32 marks calls by the x32 convention of x86-64.
const x32 = 0x40000000

// lastNumber is beyond every call that any architecture has.
const lastNumber = 600

// marker is added to errors that the kernel might give by itself, to tell the
// filter's from the kernel's.
const marker = 3000

// TestEverySyscall makes every system call there is, in a sandbox, and compares
// what comes of it with what the profile says. It does so twice: as the profile
// is, for the errors, and with errors that only the filter gives, for the
// decision.
func TestEverySyscall(t *testing.T) {
	for name, engine := range everyEngine(t) {
		t.Run(name, func(t *testing.T) {
			w := newWalk(t)
			t.Run("decisions", func(t *testing.T) { w.compare(t, engine, marked(seccomp.Build())) })
			t.Run("errors", func(t *testing.T) { w.compare(t, engine, seccomp.Build()) })
			t.Run("other conventions", func(t *testing.T) { w.otherConventions(t, engine) })
		})
	}
}

// marked returns the profile with errors that the kernel does not know. ENOSYS
// stays: no call that the kernel has gives it.
func marked(p seccomp.Profile) seccomp.Profile {
	for i, r := range p.Syscalls {
		if r.Action == seccomp.Errno && r.ErrnoRet != uint(unix.ENOSYS) {
			p.Syscalls[i].ErrnoRet += marker
		}
	}
	return p
}

// A walk is the calls to be made.
type walk struct {
	names map[int]string
	calls []runtimetest.Syscall
}

func newWalk(t *testing.T) *walk {
	numbers, err := seccomp.Table(goruntime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	w := &walk{names: map[int]string{}}
	for name, number := range numbers {
		w.names[number] = name
	}
	const ones = ^uint64(0)
	for number := range lastNumber + 1 {
		w.add(number)
		w.add(number, ones, ones, ones, ones, ones, ones)
	}
	number := func(name string) int {
		n, ok := numbers[name]
		if !ok {
			n = lastNumber // of no meaning
		}
		return n
	}
	for family := range uint64(64) {
		w.add(number("socket"), family, 1)
		w.add(number("socketpair"), family, 1, 0, ones)
		w.add(number("socket"), family|1<<32, 1)
	}
	for bit := range 64 {
		const sighand, user = 0x800, 0x10000000 // the first is invalid without CLONE_VM, so that nothing is made
		w.add(number("clone"), 1<<bit|sighand)
		w.add(number("clone"), 1<<bit|sighand|user)
	}
	for request := uint64(0x5400); request < 0x5480; request++ {
		w.add(number("ioctl"), ones, request)
		w.add(number("ioctl"), ones, request|1<<32)
	}
	for _, request := range []uint64{0x802c542a, 0x402c542b, 0x80045430, 0x40045431, 0x8912, 0x89a0, 0x4b33, 0xae01, 0xffff5412, 0xffffffff00005412} {
		w.add(number("ioctl"), ones, request)
	}
	for _, first := range []uint64{0, 1, 2, ones, 1 << 32} {
		w.add(number("prlimit64"), first, 99)
		w.add(number("sched_setaffinity"), first, 0, 0)
		for _, second := range []uint64{0, 1, ones, 1 << 32} {
			w.add(number("setpriority"), first, second, 19)
		}
	}
	for kind := range uint64(16) {
		w.add(number("mknod"), ones, kind<<12|0o600)
		w.add(number("mknodat"), ones, ones, kind<<12|0o600)
	}
	for _, domain := range []uint64{0xffffffff, 0x0040000, 0x0400000, 8} {
		w.add(number("personality"), domain)
	}
	return w
}

func (w *walk) add(number int, args ...uint64) {
	c := runtimetest.Syscall{Number: number}
	copy(c.Args[:], args)
	w.calls = append(w.calls, c)
}

// start starts a sandbox under the profile.
func (w *walk) start(t *testing.T, engine runtime.Engine, p seccomp.Profile) *runtimetest.Peer {
	t.Helper()
	profile, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	sandbox, err := engine.Start(t.Context(), runtimetest.Spec(testImage(), profile))
	if err != nil {
		t.Fatalf("start: %v (hint: %s)", err, runtime.HintOf(err))
	}
	t.Cleanup(func() { sandbox.Close() })
	return runtimetest.NewPeer(sandbox)
}

func (w *walk) compare(t *testing.T, engine runtime.Engine, p seccomp.Profile) {
	var allowed, refused int
	absent := map[string]bool{}
	for i, got := range w.start(t, engine, p).Syscalls(t, w.calls) {
		call := w.calls[i]
		name := w.names[call.Number]
		want := p.Decide(name, call.Args)
		unknown := want.Default || call.Number > knownNumber // then it is the engine's default that decides
		switch {
		case slices.Contains(unfiltered, name):
			w.requireInert(t, name, got)
		case got.Killed:
			t.Errorf("%d %s%x: killed", call.Number, name, call.Args)
		case want.Allowed && got.Errno == int(unix.ENOSYS) && (unknown || hostLacks(call.Number)):
			absent[name] = true
		case want.Allowed && (got.Errno == int(unix.ENOSYS) || got.Errno > marker):
			t.Errorf("%d %s%x: refused with %d, want it allowed", call.Number, name, call.Args, got.Errno)
		case want.Allowed:
			allowed++
		case got.Errno == int(want.Errno) || unknown && (got.Errno == int(unix.ENOSYS) || got.Errno == int(unix.EPERM)):
			refused++
		default:
			t.Errorf("%d %s%x: errno %d, want it refused with %d", call.Number, name, call.Args, got.Errno, want.Errno)
		}
	}
	t.Logf("%d calls of %d numbers: %d allowed, %d refused, as declared; allowed, but unknown to the kernel or the engine with these arguments: %v",
		len(w.calls), lastNumber+1, allowed, refused, slices.Sorted(maps.Keys(absent)))
	if allowed < 400 || refused < 1000 || len(absent) > 5 {
		t.Error("too few of either: the walk proves nothing")
	}
}

// unfiltered are the calls that the kernel, from 6.14 on, lets pass by every
// filter: it puts them into traced programs itself. From elsewhere they have no
// effect but an error or the caller's death.
var unfiltered = []string{"uprobe", "uretprobe"}

func (w *walk) requireInert(t *testing.T, name string, got runtimetest.SyscallOutcome) {
	t.Helper()
	if !slices.Contains([]int{int(unix.ENOSYS), int(unix.ENXIO)}, got.Errno) && !got.Died {
		t.Errorf("%s: errno %d, want it to do nothing", name, got.Errno)
	}
}

// knownNumber is the last call that every libseccomp an engine may use knows.
const knownNumber = 448

// hostLacks reports whether this kernel does not have a call. Only calls that
// the profile allows are asked about.
func hostLacks(number int) bool {
	const bad = ^uintptr(0)
	_, _, errno := unix.RawSyscall6(uintptr(number), bad, bad, bad, bad, bad, bad)
	return errno == unix.ENOSYS
}

func (w *walk) otherConventions(t *testing.T, engine runtime.Engine) {
	if goruntime.GOARCH != "amd64" {
		t.Log("this architecture's processors have one convention, or the kernel is built without the others")
		return
	}
	var calls []runtimetest.Syscall
	for number := range lastNumber + 1 {
		calls = append(calls, runtimetest.Syscall{Number: x32 | number}, runtimetest.Syscall{Number: number, Int80: true})
	}
	for i, got := range w.start(t, engine, seccomp.Build()).Syscalls(t, calls) {
		if !got.Killed {
			t.Errorf("%#x (int 0x80: %v): errno %d, want death by SIGSYS", calls[i].Number, calls[i].Int80, got.Errno)
		}
	}
	t.Logf("%d calls by x32 and int 0x80, each caller killed", len(calls))
}

func testImage() string {
	return cmp.Or(os.Getenv("MCP_BRIDGE_TEST_IMAGE"), "localhost/mcp-bridge-sandbox:dev")
}

// everyEngine returns the engines that put the profile itself in force.
func everyEngine(t *testing.T) map[string]runtime.Engine {
	dir, err := os.MkdirTemp("", "mcpb")
	if err != nil {
		t.Fatal(err)
	}
	onPodman, err := podman.New(podman.Options{RuntimeDir: dir + "/podman"})
	if err != nil {
		t.Fatal(err)
	}
	onDocker, err := docker.New(docker.Options{RuntimeDir: dir + "/docker"})
	if err != nil {
		t.Fatal(err)
	}
	engines := map[string]runtime.Engine{"podman": onPodman, "docker": onDocker}
	t.Cleanup(func() {
		for _, engine := range engines {
			engine.Close()
		}
		os.RemoveAll(dir)
	})
	// The race detector's run names neither: it looks for other things.
	named := strings.Split(cmp.Or(os.Getenv("MCP_BRIDGE_TEST_RUNTIMES"), "podman,docker"), ",")
	maps.DeleteFunc(engines, func(name string, engine runtime.Engine) bool {
		if slices.Contains(named, name) {
			return false
		}
		engine.Close()
		return true
	})
	return engines
}
