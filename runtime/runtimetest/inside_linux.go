package runtimetest

import (
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

//go:embed workload.py
var workload string

func testCheck(t *testing.T, s *suite) {
	if err := s.engine.Check(t.Context(), s.Image); err != nil {
		t.Errorf("check: %v", err)
	}
	err := s.engine.Check(t.Context(), missingImage)
	if !errors.Is(err, runtime.ErrImageMissing) || runtime.HintOf(err) == "" {
		t.Errorf("check of a missing image: %v (hint %q), want ErrImageMissing with a hint", err, runtime.HintOf(err))
	}
}

func testFiles(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	if got := p.text(t, `result = read_file("a/b.txt")`); got != "nested" {
		t.Errorf("file in the sandbox is %q", got)
	}
	spec := s.spec()
	spec.Files = nil
	s.start(t, spec).Eval(t, "pass")
}

func testReadOnlyFiles(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	want := "EROFS"
	if s.transport == runtime.TransportStdio {
		want = "ENOENT"
	}
	for _, mode := range []string{"w", "a", "r+"} {
		code := fmt.Sprintf("result = attempt(open, %q, %q)", runtime.FilesDir+"/a/b.txt", mode)
		if got := p.text(t, code); got != want && got != "EACCES" {
			t.Errorf("opening a file of the spec with %q: %s, want %s", mode, got, want)
		}
	}
}

func testEnvironment(t *testing.T, s *suite) {
	t.Setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:1")
	t.Setenv("https_proxy", "http://user:secret@127.0.0.1:1")
	spec := s.spec()
	spec.Env = []string{"LANG=C.UTF-8", "EMPTY=", "ODD=a=b c\n\"'$HOME"}
	p := s.start(t, spec)
	got := p.list(t, `result = open("/proc/self/environ").read().split("\0")[:-1]`)
	got = slices.DeleteFunc(got, func(kv string) bool { // what engines add unasked
		name, _, _ := strings.Cut(kv, "=")
		return name == "HOSTNAME" || name == "container" || name == "TERM"
	})
	want := append([]string{"HOME=" + runtime.Workspace, "PATH=" + runtime.Path}, spec.Env...)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("environment is %q, want %q", got, want)
	}
	if cwd := p.text(t, "import os; result = os.getcwd()"); cwd != runtime.Workspace {
		t.Errorf("working directory is %q", cwd)
	}
}

func testSocketIsGone(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	if s.transport != runtime.TransportSocket {
		if got := p.text(t, fmt.Sprintf("import os; result = str(os.path.lexists(%q))", runtime.SocketPath)); got != "False" {
			t.Error("there is a socket though none is needed")
		}
		return
	}
	if got := p.text(t, "result = attempt(connect)"); got != "ENOENT" {
		t.Errorf("third connection: %s, want ENOENT", got)
	}
	// The kernel tells a socket's path to both its ends, and ours lies in a
	// directory of the host.
	if got := p.text(t, `result = open("/proc/net/unix").read()`); strings.Contains(got, s.dir) || !strings.Contains(got, "/s\n") {
		t.Errorf("the sandbox sees these sockets:\n%s", got)
	}
}

func testIdentity(t *testing.T, s *suite) {
	p, other := s.start(t, s.spec()), s.start(t, s.spec())
	const status = `result = {}
for line in open("/proc/self/status"):
    key, _, value = line.partition(":")
    result[key] = value.split()
`
	for _, fact := range []struct{ key, want string }{
		{"CapInh", "0000000000000000"},
		{"CapPrm", "0000000000000000"},
		{"CapEff", "0000000000000000"},
		{"CapBnd", "0000000000000000"},
		{"CapAmb", "0000000000000000"},
		{"NoNewPrivs", "1"},
		{"Seccomp", "2"},
	} {
		if got := p.text(t, status+fmt.Sprintf("result = result[%q][0]", fact.key)); got != fact.want {
			t.Errorf("%s is %s, want %s", fact.key, got, fact.want)
		}
	}
	for _, key := range []string{"Uid", "Gid"} {
		code := status + fmt.Sprintf("result = sorted(set(result[%q]))", key)
		ids, others := p.list(t, code), other.list(t, code)
		if len(ids) != 1 || ids[0] == "0" || slices.Equal(ids, others) {
			t.Errorf("%s is %v, and %v in another sandbox: want one each, not 0, not the same", key, ids, others)
		}
	}
	if pid := p.number(t, "import os; result = os.getpid()"); pid != 1 {
		t.Errorf("program has pid %v, want 1", pid)
	}
	if n := p.number(t, "import os; result = sum(d.isdigit() for d in os.listdir('/proc'))"); n > 1 {
		t.Errorf("program sees %v processes", n)
	}
}

// call is Python that makes a C library call and gives its errno's name.
const call = `
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    ctypes.set_errno(0)
    if getattr(libc, name)(*args) == -1:
        return errno.errorcode[ctypes.get_errno()]
    return "ok"
`

func testPrivilege(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	for _, attempt := range []struct{ what, call, want string }{
		{"user namespace", `call("unshare", 0x10000000)`, "EPERM"},
		{"mount namespace", `call("unshare", 0x20000)`, "EPERM"},
		{"network namespace", `call("unshare", 0x40000000)`, "EPERM"},
		{"clone user namespace", `call("syscall", 56, 0x10000011, 0, 0, 0, 0)`, "ENOSYS"},
		{"mount", `call("mount", b"none", b"/tmp", b"tmpfs", 0, None)`, "EPERM"},
		{"umount", `call("umount2", b"/tmp", 2)`, "EPERM"},
		{"chroot", `call("chroot", b"/tmp")`, "EPERM"},
		{"become root", `call("setuid", 0)`, "EPERM"},
		{"become root by setresuid", `call("setresuid", 0, 0, 0)`, "EPERM"},
		{"trace", `call("ptrace", 16, 1, 0, 0)`, "EPERM"},
		{"clock", `call("clock_settime", 0, ctypes.create_string_buffer(16))`, "EPERM"},
		{"raise open files", `attempt(__import__("resource").setrlimit, 7, (1 << 20, 1 << 20))`, "EPERM"},
		{"renice", `attempt(os.setpriority, os.PRIO_PROCESS, 0, -5)`, "EACCES"},
		{"device", `attempt(os.mknod, "/workspace/null", 0o20666, os.makedev(1, 3))`, "ENOSYS"},
		{"host's processes", fmt.Sprintf("attempt(os.kill, %d, 0)", os.Getpid()), "ESRCH"},
	} {
		if goruntime.GOARCH != "amd64" && strings.Contains(attempt.call, `"syscall"`) {
			continue // numbers differ
		}
		t.Run(attempt.what, func(t *testing.T) {
			var got string
			if strings.HasPrefix(attempt.call, "attempt(__import__") {
				got = p.text(t, `
try: result = `+attempt.call+`
except ValueError as e: result = "EPERM"`)
			} else {
				got = p.text(t, call+"result = "+attempt.call)
			}
			if want := s.want(attempt.what, attempt.want); got != want {
				t.Errorf("%s: %s, want %s", attempt.call, got, want)
			}
		})
	}
	// A setuid program stays what it was.
	if got := p.text(t, "import os; result = str(os.getuid() == os.geteuid())"); got != "True" {
		t.Error("real and effective user differ")
	}
}

// testSyscalls calls around the filter: by other calling conventions, and with
// arguments whose high bits the kernel ignores but a filter may not.
func testSyscalls(t *testing.T, s *suite) {
	if goruntime.GOARCH != "amd64" {
		t.Log("only written for amd64")
		return
	}
	p := s.start(t, s.spec())
	const inChild = `
import ctypes, mmap, os
def child(f):
    if os.fork() == 0:
        f()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.wait()[1])
def int80():
    m = mmap.mmap(-1, 4096, prot=7)
    m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()
`
	const sigsys = "-31"
	for convention, function := range map[string]string{
		"32-bit system call": "int80", "x32 system call": "lambda: ctypes.CDLL(None).syscall(0x40000000 + 39)",
	} {
		if got, want := p.text(t, inChild+"result = str(child("+function+"))"), s.want(convention, sigsys); got != want {
			t.Errorf("%s: status %s, want %s", convention, got, want)
		}
	}
	for _, request := range []string{"0x5412", "0x100005412", "0x541c", "0x10000541c"} { // TIOCSTI, TIOCLINUX
		code := fmt.Sprintf(`result = call("syscall", 16, 0, ctypes.c_ulong(%s), 0)`, request)
		if got := p.text(t, call+code); got != "ENOSYS" {
			t.Errorf("ioctl %s: %s, want ENOSYS", request, got)
		}
	}
	for _, refused := range []struct {
		name string
		nr   int
		want string
	}{
		{"keyctl", 250, "EPERM"},
		{"bpf", 321, "EPERM"},
		{"userfaultfd", 323, "EPERM"},
		{"io_uring_setup", 425, "EPERM"},
		{"perf_event_open", 298, "EPERM"},
		{"process_vm_readv", 310, "EPERM"},
		{"setns", 308, "EPERM"},
		{"pivot_root", 155, "EPERM"},
		{"open_by_handle_at", 304, "EPERM"},
		{"clone3", 435, "ENOSYS"},
		{"execveat", 322, "ENOSYS"},
		{"mincore", 27, "EPERM"},
		{"cachestat", 451, "EPERM"},
		{"vmsplice", 278, "ENOSYS"},
		{"add_key", 248, "EPERM"},
		{"mbind", 237, "ENOSYS"},
		{"shmget", 29, "ENOSYS"},
		{"mq_open", 240, "ENOSYS"},
		{"unassigned", 999, "ENOSYS"},
	} {
		code := fmt.Sprintf(`result = call("syscall", %d, 0, 0, 0, 0, 0, 0)`, refused.nr)
		if got, want := p.text(t, call+code), s.want(refused.name, refused.want); got != want {
			t.Errorf("%s: %s, want %s", refused.name, got, want)
		}
	}
}

func testNetwork(t *testing.T, s *suite) {
	// A listener of the host that a sandbox in its network namespace could reach.
	name := "@mcpb-test-" + rand.Text()
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if c, err := net.Dial("unix", name); err != nil {
		t.Fatalf("positive control: %v", err)
	} else {
		c.Close()
	}
	p := s.start(t, s.spec())
	if got := p.list(t, `result = [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line]`); !slices.Equal(got, []string{"lo"}) {
		t.Errorf("interfaces: %v", got)
	}
	families := map[string]int{
		"INET": 2, "AX25": 3, "IPX": 4, "INET6": 10, "NETLINK": 16, "PACKET": 17, "RDS": 21, "CAN": 29,
		"TIPC": 30, "BLUETOOTH": 31, "ALG": 38, "VSOCK": 40, "XDP": 44,
	}
	for family, number := range families {
		for _, kind := range []int{1, 2, 3} {
			code := fmt.Sprintf("import socket; result = attempt(socket.socket, %d, %d)", number, kind)
			if got, want := p.text(t, code), s.want("socket", "EAFNOSUPPORT"); got != want {
				t.Errorf("socket of family %s, type %d: %s, want %s", family, kind, got, want)
			}
		}
	}
	code := fmt.Sprintf(`import socket; result = attempt(socket.socket(socket.AF_UNIX).connect, "\0" + %q)`, name[1:])
	if got := p.text(t, code); got != "ECONNREFUSED" {
		t.Errorf("host's abstract socket: %s, want ECONNREFUSED", got)
	}
	const control = `import socket
a, b = socket.socketpair()
a.send(b"x")
result = b.recv(1).decode()`
	if got := p.text(t, control); got != "x" {
		t.Errorf("positive control: %q", got)
	}
}

// testReadOnly tries every directory there is.
func testReadOnly(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	const walk = `
import os
result = []
for root, dirs, _ in os.walk("/"):
    if root.startswith("/proc/") and root.split("/")[2].isdigit():
        dirs.clear()
        continue
    try:
        os.close(os.open(root + "/mcpb-probe", os.O_CREAT | os.O_WRONLY | os.O_EXCL))
        os.unlink(root + "/mcpb-probe")
        result.append(root)
    except OSError:
        pass
`
	want := []string{"/dev/shm", "/tmp", runtime.Workspace}
	if got := p.list(t, walk); !slices.Equal(got, want) {
		t.Errorf("writable directories: %v, want %v", got, want)
	}
	const files = `
import os, stat
result = []
for root, dirs, files in os.walk("/"):
    if root.startswith("/proc"):
        dirs.clear()
        continue
    for name in files:
        path = os.path.join(root, name)
        try:
            if stat.S_ISREG(os.lstat(path).st_mode):
                os.close(os.open(path, os.O_WRONLY))
                result.append(path)
        except OSError:
            pass
`
	if got := p.list(t, files); len(got) > 0 {
		t.Errorf("writable files: %v", got)
	}
}

func testScratch(t *testing.T, s *suite) {
	const mib = 1 << 20
	spec := s.spec()
	spec.Limits = runtime.Limits{TmpBytes: 8 * mib, WorkspaceBytes: 16 * mib, ShmBytes: 4 * mib}
	p := s.start(t, spec)
	for dir, size := range map[string]int{"/tmp": 8 * mib, runtime.Workspace: 16 * mib, "/dev/shm": 4 * mib} {
		t.Run(dir[1:], func(t *testing.T) {
			fill := fmt.Sprintf(`
import os
size, result = 0, "no limit"
fd = os.open(%[1]q + "/fill", os.O_CREAT | os.O_WRONLY)
block = b"x" * 65536
try:
    while size < 64 << 20:
        size += os.write(fd, block)
except OSError as e:
    result = __import__("errno").errorcode[e.errno]
os.close(fd)
os.unlink(%[1]q + "/fill")
result += " " + str(size)
`, dir)
			var reason string
			var written int
			fmt.Sscan(p.text(t, fill), &reason, &written)
			// The largest of them is also the largest file there may be.
			if reason != "ENOSPC" && reason != "EFBIG" || written > size || written < size-65536 {
				t.Errorf("wrote %d bytes until %s, want %d until ENOSPC", written, reason, size)
			}
			run := fmt.Sprintf(`
import os, shutil, subprocess
path = %q + "/run"
shutil.copyfile("/bin/true", path)
os.chmod(path, 0o755)
result = attempt(subprocess.run, [path])
os.unlink(path)
`, dir)
			if got := p.text(t, run); got != "EACCES" {
				t.Errorf("executing a file: %s, want EACCES", got)
			}
		})
	}
}

func testHiddenPaths(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	const code = `
import os
result = []
for path in ["/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/interrupts", "/proc/diskstats", "/proc/swaps",
             "/proc/key-users", "/proc/config.gz", "/proc/sysrq-trigger", "/sys/firmware", "/sys/kernel", "/sys/block", "/sys/fs/cgroup",
             "/proc/pressure", "/run/secrets", "/.dockerenv"]:
    try:
        content = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
        if content:
            result.append(path)
    except OSError:
        pass
`
	if got := p.list(t, code); len(got) > 0 {
		t.Errorf("readable: %v", got)
	}
}

func testProcesses(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Limits.PIDs = 32
	p := s.start(t, spec)
	const bomb = `
import os, signal
children, result = [], "no limit"
try:
    while len(children) < 500:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except OSError as e:
    result = __import__("errno").errorcode[e.errno]
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
result += " " + str(len(children) + len(os.listdir("/proc/self/task")))
`
	for range 2 { // and it recovers
		if got := p.text(t, bomb); got != "EAGAIN 32" && got != "EAGAIN 31" {
			t.Errorf("fork bomb: %q, want EAGAIN at 32 processes", got)
		}
	}
}

func testOpenFiles(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Limits.OpenFiles = 64
	p := s.start(t, spec)
	const code = `
import os
fds, result = [], "no limit"
try:
    while len(fds) < 500:
        fds.append(os.open("/dev/null", os.O_RDONLY))
except OSError as e:
    result = __import__("errno").errorcode[e.errno] + " " + str(max(fds) + 1)
for fd in fds:
    os.close(fd)
`
	if got := p.text(t, code); got != "EMFILE 64" {
		t.Errorf("opening files: %q, want EMFILE at 64", got)
	}
}

func testMemory(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Limits.MemoryBytes = 64 << 20
	const allocate = `b"x" * (256 << 20)`
	if s.Unlimited {
		testProcessMemory(t, s.start(t, spec), allocate)
		return
	}
	t.Run("child", func(t *testing.T) {
		p := s.start(t, spec)
		code := "import os\npid = os.fork()\nif pid == 0:\n    " + allocate + "\n    os._exit(0)\nresult = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
		result, _, err := p.Try(code)
		if s.want("memory of a child", "the child") != "the child" {
			requireOutOfMemory(t, p)
			return
		}
		if err != nil || result != float64(-9) {
			t.Errorf("child that allocates too much: status %v, %v, want death by SIGKILL", result, err)
		}
		p.Eval(t, "pass") // it does not end the sandbox
	})
	t.Run("program", func(t *testing.T) {
		p := s.start(t, spec)
		if result, raised, err := p.Try("x = " + allocate); err == nil {
			t.Errorf("allocating too much: %v %s", result, raised)
		}
		requireOutOfMemory(t, p)
	})
}

func requireOutOfMemory(t *testing.T, p *Peer) {
	t.Helper()
	exit, err := p.Wait(within(t, 10*time.Second))
	if want := (runtime.Exit{Code: 137, OOMKilled: true}); err != nil || exit != want {
		t.Errorf("exit is %+v, %v, want %+v", exit, err, want)
	}
}

// testMemoryError has the program bound its own data, as the kernel does: then
// Python says MemoryError before the OOM killer acts, and goes on.
func testMemoryError(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Limits.MemoryBytes = 128 << 20
	p := s.start(t, spec)
	p.Eval(t, `
import resource
resource.setrlimit(resource.RLIMIT_DATA, (96 << 20, 96 << 20))
if "gvisor" in open("/proc/version").read(): # which holds that against brk alone
    size = (96 << 20) + int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size, size))`)
	for _, code := range []string{`x = b"x" * (256 << 20)`, "x = bytearray(120 << 20)", "x = [0] * (1 << 30)"} {
		if _, raised, err := p.Try(code); err != nil || !strings.HasPrefix(raised, "MemoryError") {
			t.Errorf("%s: raised %q, %v, want MemoryError", code, raised, err)
		}
	}
	p.Eval(t, "x = bytearray(32 << 20)")
}

// testProcessMemory is for engines that can limit each process, but not all
// together.
func testProcessMemory(t *testing.T, p *Peer, allocate string) {
	if _, raised, err := p.Try("x = " + allocate); err != nil || !strings.HasPrefix(raised, "MemoryError") {
		t.Errorf("allocating too much: raised %q, %v, want MemoryError", raised, err)
	}
	const several = `
import os, signal
read, write = os.pipe()
children, result = [], 0
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        x = b"x" * (32 << 20)
        os.write(write, b".")
        signal.pause()
    children.append(pid)
while result < len(children):
    result += len(os.read(read, 9))
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
`
	if got := p.number(t, several); got != 4 {
		t.Errorf("%v of 4 children had their memory", got)
	}
}

func testCPU(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Limits.CPUs = 0.25
	p := s.start(t, spec)
	const code = `
import time
wall, cpu = time.monotonic(), time.process_time()
while time.monotonic() < wall + 1:
    pass
result = (time.process_time() - cpu) / (time.monotonic() - wall)
`
	if s.Unlimited {
		for range 20 { // the machine has other things to do, too
			own := make(chan float64)
			go func() { own <- spin(time.Second) }()
			got, host := p.number(t, code), <-own
			if got > 0.35 || got > 0.6*host {
				return
			}
		}
		t.Error("never used more than 0.35 CPUs, nor as much as a process of the host beside it: is it limited after all?")
		return
	}
	if s.CPUTime == nil {
		if got := p.number(t, code); got > 0.5 {
			t.Errorf("used %.2f CPUs, want 0.25", got)
		}
		return
	}
	begin, before := time.Now(), s.CPUTime(t, p.ID())
	p.Eval(t, code)
	if got := float64(s.CPUTime(t, p.ID())-before) / float64(time.Since(begin)); got > 0.5 || got == 0 {
		t.Errorf("used %.2f CPUs, want 0.25", got)
	}
}

// spin works for so long, and returns how many CPUs it was given.
func spin(d time.Duration) float64 {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	used := func() time.Duration {
		var usage unix.Rusage
		unix.Getrusage(unix.RUSAGE_THREAD, &usage)
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	begin, before := time.Now(), used()
	for time.Since(begin) < d {
	}
	return float64(used()-before) / float64(time.Since(begin))
}

// testUnlimited demands that an engine without limits does not pretend.
func testUnlimited(t *testing.T, s *suite) {
	spec := s.spec()
	spec.AllowUnlimited = !s.Unlimited
	if !s.Unlimited {
		s.start(t, spec).Eval(t, "pass") // it may, but need not
		return
	}
	err := s.fail(t, spec)
	requireError(t, err, runtime.ErrUnsupported)
	for _, text := range []string{err.Error(), runtime.HintOf(err)} {
		t.Log(text)
	}
	if !strings.Contains(err.Error(), "memory limit") || !strings.Contains(runtime.HintOf(err), "--allow-unlimited") {
		t.Errorf("it does not say what is missing, and what to do")
	}
}

// testWorkload runs what of Python must work under the profile.
func testWorkload(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Env = []string{"LANG=C.UTF-8"}
	p := s.start(t, spec)
	code := fmt.Sprintf("import subprocess, sys\nresult = subprocess.run([sys.executable, '-I', '-W', 'ignore', '-'], input=%q, capture_output=True, text=True, timeout=50)\nresult = result.stdout + result.stderr", workload)
	if got := strings.TrimSpace(p.text(t, code)); got != "all passed" {
		t.Errorf("workload:\n%s", got)
	}
}
