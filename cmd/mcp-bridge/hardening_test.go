package main_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// probes is Python that tells what an attempt comes to, by the name of its errno.
const probes = `
import ctypes, errno, os, signal, socket, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def attempt(f, *args):
    try:
        f(*args)
        return "ok"
    except OSError as e:
        return errno.errorcode.get(e.errno, repr(e))
def call(name, *args):
    ctypes.set_errno(0)
    return errno.errorcode[ctypes.get_errno()] if getattr(libc, name)(*args) == -1 else "ok"
def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key + ":"): return line.split(":")[1].split()
def mount(at):
    for line in open("/proc/self/mountinfo"):
        fields = line.split()
        if fields[4] == at: return set(fields[5].split(",")), fields[-3], fields[-1]
def refused(*results):
    return [r for r in results if r not in ("EACCES", "EPERM", "ENOENT", "ENOSYS", "ESRCH")] or "refused"
def size(at):
    s = os.statvfs(at)
    return s.f_blocks * s.f_frsize >> 20
`

// TestHardening proves from inside, by effect, what DESIGN §9 promises.
func TestHardening(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	c.run(t, "tools.special.stats()") // there is a server, with its secret
	c.run(t, probes)
	for _, test := range []struct{ name, code, want string }{
		{"interfaces", `[l.split(":")[0].strip() for l in open("/proc/net/dev") if ":" in l]`, "['lo']"},
		{"routes", `open("/proc/net/route").read().count("\n") <= 1`, "True"},
		{"sockets", `{attempt(socket.socket, family, kind) for family in range(1, 46) if family != socket.AF_UNIX for kind in (1, 2, 3, 5)}`, "{'EAFNOSUPPORT'}"},
		{"INET, VSOCK, NETLINK, PACKET", `[attempt(socket.socket, f, k) for f, k in ((2, 1), (2, 3), (40, 1), (16, 3), (17, 3))]`, fmt.Sprint("[", strings.TrimSuffix(strings.Repeat("'EAFNOSUPPORT', ", 5), ", "), "]")},
		{"unix sockets work", `a, b = socket.socketpair(); a.send(b"x"); b.recv(1)`, "b'x'"},
		{"DNS", "try:\n    socket.getaddrinfo('example.com', 80); r = 'resolved'\nexcept OSError as e: r = 'fails'\nr", "'fails'"},
		{"connect", `attempt(socket.create_connection, ("127.0.0.1", 22), 1) != "ok"`, "True"},
		{"urllib", "import urllib.request, urllib.error\ntry: urllib.request.urlopen('http://1.1.1.1', timeout=2); r = 'reached'\nexcept urllib.error.URLError: r = 'fails'\nr", "'fails'"},

		{"root is read-only", `[attempt(open, f, "w") for f in ("/x", "/etc/passwd", "/usr/bin/x", "/run/x", "/var/tmp/x", "/dev/x", "/home/x", "/root/x")].count("ok")`, "0"},
		{"root is mounted read-only", `"ro" in mount("/")[0]`, "True"},
		{"remount", `[call("mount", b"none", d, None, 32 | 4096, None) for d in (b"/", b"/tmp", b"/proc")]`, "['EPERM', 'EPERM', 'EPERM']"},
		{"kernel files", `d = "/run/mcp-bridge/files"; f = d + "/mcpbridge/supervisor.py"
[attempt(open, f, "a"), attempt(os.unlink, f), attempt(open, d + "/x", "w"), attempt(os.chmod, f, 0o777), attempt(os.rename, d, "/tmp/d")].count("ok")`, "0"},
		{"kernel files cannot be executed", `attempt(os.access, "/run/mcp-bridge/files", os.X_OK), os.access("/run/mcp-bridge/files/mcpbridge/supervisor.py", os.X_OK)`, "('ok', False)"},
		{"socket is gone", `attempt(os.listdir, "/run/mcp-bridge/socket"), attempt(socket.socket(socket.AF_UNIX).connect, "/run/mcp-bridge/socket/s")`, "('EACCES', 'ENOENT')"},
		{"socket's directory", `attempt(open, "/run/mcp-bridge/socket/s", "w"), attempt(socket.socket(socket.AF_UNIX).bind, "/run/mcp-bridge/socket/s")`, "('EROFS', 'EROFS')"},

		{"uid", `0 in os.getresuid() + os.getresgid() + tuple(os.getgroups())`, "False"},
		{"one id", `len(set(status("Uid"))), len(set(status("Gid")))`, "(1, 1)"},
		{"become root", `attempt(os.setuid, 0), attempt(os.setgid, 0), attempt(os.setgroups, [0])`, "('EPERM', 'EPERM', 'EPERM')"},
		{"capabilities", `{status(k)[0] for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}`, "{'0000000000000000'}"},
		{"no new privileges", `status("NoNewPrivs")`, "['1']"},
		{"seccomp", `status("Seccomp")`, "['2']"},
		{"namespaces", `[call("unshare", n) for n in (0x10000000, 0x20000, 0x40000000, 0x4000000, 0x8000000, 0x20000000)]`, fmt.Sprint("[", strings.TrimSuffix(strings.Repeat("'EPERM', ", 6), ", "), "]")},
		{"namespaces by clone", `call("syscall", 56, 0x10000011, 0, 0, 0, 0), call("syscall", 435, 0, 0)`, "('ENOSYS', 'ENOSYS')"},
		{"devices", `attempt(os.mknod, "/workspace/d", 0o20666, os.makedev(1, 3)) != "ok", sorted(set(os.listdir("/dev")) - {"console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"})`, "(True, [])"},
		{"setuid programs", "found = []\nfor d, _, files in os.walk('/usr'):\n    for f in files:\n        p = os.path.join(d, f)\n        if not os.path.islink(p) and os.stat(p).st_mode & 0o6000: found.append(subprocess.run([p], capture_output=True, stdin=subprocess.DEVNULL, timeout=5).returncode)\nattempt(os.setuid, 0)", "'EPERM'"},

		{"/tmp", `mount("/tmp")[0] >= {"rw", "nosuid", "nodev", "noexec"}, mount("/tmp")[1], size("/tmp")`, "(True, 'tmpfs', 64)"},
		{"/workspace", `mount("/workspace")[0] >= {"rw", "nosuid", "nodev", "noexec"}, mount("/workspace")[1], size("/workspace")`, "(True, 'tmpfs', 128)"},
		{"/dev/shm", `mount("/dev/shm")[0] >= {"rw", "nosuid", "nodev", "noexec"}, mount("/dev/shm")[1], size("/dev/shm")`, "(True, 'tmpfs', 8)"},
		{"execute what was written", "import shutil\nfor d in ('/tmp', '/workspace', '/dev/shm'):\n    shutil.copy('/bin/true', d + '/t'); os.chmod(d + '/t', 0o755)\n[attempt(os.execv, d + '/t', ['t']) for d in ('/tmp', '/workspace', '/dev/shm')]", "['EACCES', 'EACCES', 'EACCES']"},

		{"PID 1's descriptors", `refused(attempt(os.listdir, "/proc/1/fd"), attempt(os.readlink, "/proc/1/fd/0"), *[attempt(open, f"/proc/1/fd/{n}", "wb") for n in range(10)])`, "'refused'"},
		{"PID 1's memory", `refused(attempt(open, "/proc/1/mem", "rb"), attempt(open, "/proc/1/mem", "r+b"), attempt(open, "/proc/1/maps"))`, "'refused'"},
		{"PID 1's files", `refused(attempt(os.listdir, "/proc/1/root"), attempt(os.readlink, "/proc/1/cwd"), attempt(os.readlink, "/proc/1/exe"))`, "'refused'"},
		{"PID 1's environment", `refused(attempt(lambda: open("/proc/1/environ").read()), attempt(lambda: open("/proc/1/oom_score_adj", "w").write("1000")))`, "'refused'"},
		{"ptrace of PID 1", `refused(*[call("ptrace", n, 1, 0, 0) for n in (16, 0x4206)])`, "'refused'"},
		{"process_vm_readv of PID 1", `refused(call("process_vm_readv", 1, None, 0, None, 0, 0))`, "'refused'"},
		{"descriptors of PID 1 through a pidfd", `fd = os.pidfd_open(1); refused(*[call("syscall", 438, fd, n, 0) for n in range(10)])`, "'refused'"},
		{"signals to PID 1", "for n in range(1, 65):\n    try: os.kill(1, n)\n    except OSError: pass\ntime.sleep(0.1); 'alive'", "'alive'"},

		{"limits", `r = __import__("resource"); [r.getrlimit(n) for n in (r.RLIMIT_NOFILE, r.RLIMIT_CORE)]`, "[(1024, 1024), (0, 0)]"},
		{"environment", `print(*sorted(os.environ.items()))`, `('HOME', '/workspace') ('HOSTNAME', 'sandbox') ('LANG', 'C.UTF-8') ('MPLBACKEND', 'agg') ('PATH', '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin')`},
		{"working directory", `os.getcwd(), os.listdir(".")`, "('/workspace', ['t'])"},
		{"host name", `socket.gethostname()`, "'sandbox'"},
		{"masked", `[p for p in ("/proc/kcore", "/proc/keys", "/proc/kallsyms", "/proc/timer_list", "/proc/sched_debug", "/sys/firmware", "/sys/kernel", "/sys/fs/cgroup") if os.path.isdir(p) and attempt(os.listdir, p) == "ok" and os.listdir(p) or os.path.isfile(p) and attempt(open, p) == "ok" and open(p).read(1)]`, "[]"},
		{"kernel settings", `attempt(open, "/proc/sys/kernel/core_pattern", "w"), attempt(open, "/proc/sysrq-trigger", "w") != "ok"`, "('EROFS', True)"},
		{"processes seen", `sorted(int(p) for p in os.listdir("/proc") if p.isdigit()) == [os.getpid()]`, "True"},
	} {
		t.Run(test.name, func(t *testing.T) { c.wants(t, test.code, test.want) })
	}
	c.wants(t, "1 + 1", "2") // PID 1 has withstood all that
	// A new REPL holds nothing but its two channels and its output.
	const held = `import os; [to.split(":")[0] for to in (os.readlink(e.path) for e in os.scandir("/proc/self/fd") if int(e.name) > 2 and os.path.lexists(e.path)) if not to.startswith("/") and to != os.readlink("/proc/self/fd/1")]`
	if got := c.runIn(t, "fresh", held); got != "['socket', 'socket']" {
		t.Errorf("a cell finds the descriptors %s", got)
	}
}

// TestHarmToTheSupervisor does to PID 1 what the kernel lets the same user do. A
// cell can end its sandbox by that, which is told, and nothing else.
func TestHarmToTheSupervisor(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	for name, code := range map[string]string{
		"descriptors": `import resource; resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))`,
		"processes":   `import resource; resource.prlimit(1, resource.RLIMIT_NPROC, (0, 0))`,
		"data":        `import resource; resource.prlimit(1, resource.RLIMIT_DATA, (0, 0))`,
		"cpu":         `import resource; resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))`,
		"priority":    `import os; os.setpriority(os.PRIO_PROCESS, 1, 19)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, after := range []string{code, "print('x' * 100_000)", "import os; os._exit(1)", "1"} {
				r := c.call(t, arguments{"code": after, "session": name})
				t.Logf("%s: %.200s", after, r.text)
				if r.isError && !strings.Contains(r.text, "PermissionError") {
					contains(t, r.text, "gone")
				}
			}
			if got := c.runIn(t, name, "tools.special.same(value=1)['value']"); got != "1" {
				t.Errorf("after it: %s", got)
			}
		})
	}
}

// TestNothingOfTheHostIsVisible looks for the host's paths and an upstream's
// secret in everything a cell can read.
func TestNothingOfTheHostIsVisible(t *testing.T) {
	t.Parallel()
	s := special(t)
	s.env = []string{"E2E_HOST_SECRET=e2e-host-secret-4712", "HTTP_PROXY=http://u:e2e-host-secret-4712@127.0.0.1:1"}
	s.command(t) // makes its folder
	c := connect(t, s)
	c.wants(t, "tools.special.stats().secret", "True")
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// The needles come in pieces, for the cell's own code to be no find.
	needles := []string{secret, "e2e-host-secret-4712", s.dir, cwd, binary}
	var pieces []string
	for _, needle := range needles {
		pieces = append(pieces, fmt.Sprintf("%q + %q", needle[:5], needle[5:]))
	}
	c.run(t, "import os, gc, stat\nneedles = [n.encode() for n in ("+strings.Join(pieces, ", ")+")]")
	c.wants(t, `
found = []
def look(path):
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or os.path.getsize(path) > 50_000_000: return
        with open(path, "rb") as f: data = f.read(50_000_000)
        found.extend((path, n) for n in needles if n in data)
    except OSError: pass
skipped = ("/usr/lib", "/usr/share", "/sys/devices", "/sys/module", "/sys/bus", "/sys/class")
for root, dirs, files in os.walk("/"):
    if root.startswith(skipped) or root.startswith("/proc/") and root.count("/") > 3: dirs.clear(); continue
    for name in files: look(os.path.join(root, name))
for name in os.listdir("/proc/self"): look("/proc/self/" + name)
found`, "[]")
	c.wants(t, "[str(needle) for needle in needles if needle.decode() in str(tools.servers()) + repr(list(tools)) + tools.special.stats.__repr__()]", "[]")
	lacks(t, c.stderr.String(), secret, "e2e-host-secret-4712")
}

// TestLimitsAreThoseAskedFor shows --memory, --pids and --cpus in force.
func TestLimitsAreThoseAskedFor(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--memory", "128m", "--pids", "24", "--cpus", "0.5"}})
	c.run(t, probes)
	c.wants(t, `
pids = []
try:
    while len(pids) < 100:
        pid = os.fork()
        if not pid:
            signal.pause()
        pids.append(pid)
except OSError as e: why = errno.errorcode[e.errno]
for pid in pids:
    os.kill(pid, 9); os.waitpid(pid, 0)
why, 15 < len(pids) < 24`, "('EAGAIN', True)")
	contains(t, c.fails(t, "b'x' * (128 << 20)"), "MemoryError")
	c.wants(t, `
wall, cpu = time.monotonic(), time.process_time()
while time.monotonic() < wall + 1: pass
(time.process_time() - cpu) / (time.monotonic() - wall) < 0.8`, "True")
}
