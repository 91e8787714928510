package gvisor

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	sandboximage "github.com/mcp-bridge/mcp-bridge/sandbox-image"
)

//go:embed testdata/probe.py
var probeProgram string

// TestMain also is the bridge that TestKilledOwner kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("MCPB_TEST_VICTIM"); dir != "" {
		victim(dir)
	}
	os.Exit(m.Run())
}

// helperPath is the runsc that `make build` has made.
func helperPath(t testing.TB) string {
	t.Helper()
	path := os.Getenv("MCP_BRIDGE_TEST_RUNSC")
	if path == "" {
		path = "../../bin/" + helperName
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: run make build", err)
	}
	return path
}

// cacheDir is one for all tests, for a root file system takes a second to make.
func cacheDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("mcpb-gvisor-test-%d-%s", os.Geteuid(), layoutVersion))
}

func open(t testing.TB, opts Options) *Engine {
	t.Helper()
	opts.Runsc = helperPath(t)
	if opts.CacheDir == "" {
		opts.CacheDir = cacheDir()
	}
	if opts.RuntimeDir == "" {
		opts.RuntimeDir = privateDir(t)
	}
	opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	e, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// privateDir is a directory that nobody else can enter, with a short name.
// privateDir is a directory with as long a path as an ordinary user's.
func privateDir(t testing.TB) string {
	t.Helper()
	const longest = len("/run/user/4294967294/mcp-bridge")
	dir, err := os.MkdirTemp("", "mcpb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	dir = filepath.Join(dir, strings.Repeat("d", max(1, longest-len(dir)-1)))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func spec() runtime.Spec {
	return runtime.Spec{
		Command:        []string{"python3", "-I", "-c", probeProgram},
		Seccomp:        sandboximage.Seccomp(),
		AllowUnlimited: os.Geteuid() != 0, // there is no cgroup v2 to delegate on every machine
	}
}

func start(t *testing.T, e *Engine, spec runtime.Spec) *runtimetest.Peer {
	t.Helper()
	s, err := e.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("start: %v (hint: %s)", err, runtime.HintOf(err))
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return runtimetest.NewPeer(s)
}

// allowed are the only paths that may be seen where the host's Python is the
// root file system, besides what is in /proc and /dev, which gVisor makes up.
var allowed = []string{
	"/bin/", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/etc/passwd",
	"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/bin/python3", "/usr/local/bin/python", "/usr/local/bin/python3", "/usr/local/lib/",
	"/usr/share/zoneinfo/", "/usr/share/terminfo/",
}

// TestNothingOfTheHost walks all there is to see from the inside.
func TestNothingOfTheHost(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	canary := filepath.Join(home, ".mcpb-canary-"+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(canary, []byte("canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(canary)
	e := open(t, Options{})
	p := start(t, e, spec())
	const walk = `
import os
result = []
for root, dirs, files in os.walk("/"):
    if root == "/":
        dirs[:] = [d for d in dirs if d not in ("proc", "dev")]
    result += [os.path.join(root, f) for f in files]
`
	files := p.Eval(t, walk).([]any)
	for _, f := range files {
		ok := false
		for _, prefix := range allowed {
			ok = ok || strings.HasPrefix(f.(string), prefix)
		}
		if !ok {
			t.Errorf("%s can be seen", f)
		}
	}
	if len(files) < 500 {
		t.Errorf("only %d files: the walk has seen nothing", len(files))
	}
	for _, path := range []string{canary, home, "/home", "/root", "/etc/shadow", "/etc/hostname", "/etc/machine-id", "/etc/ssl", "/var", "/opt", "/tmp/" + filepath.Base(e.opts.RuntimeDir)} {
		if got := p.Eval(t, fmt.Sprintf("import os; result = os.path.lexists(%q)", path)); got != false {
			t.Errorf("%s is there", path)
		}
	}
	if got := p.Eval(t, `import os; result = len(os.listdir("/mnt"))`); got != 0.0 {
		t.Errorf("%v folders are mounted", got)
	}
	rootfs, err := e.rootfs(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(rootfs)
	if err != nil {
		t.Fatal(err)
	}
	if at := bytes.Index(data, []byte(home+"/")); at >= 0 {
		t.Errorf("the image speaks of the host: %q", data[max(0, at-100):at+100])
	}
	for _, kept := range []string{"site-packages", "dist-packages"} {
		if got := p.Eval(t, fmt.Sprintf("import sys; result = any(%q in p for p in sys.path)", kept)); got != false {
			t.Errorf("%s is on sys.path", kept)
		}
	}
}

// TestHostPythonWorks uses modules that need libraries of the host's.
func TestHostPythonWorks(t *testing.T) {
	p := start(t, open(t, Options{}), spec())
	const code = `
import sys, ssl, sqlite3, ctypes, zlib, hashlib, decimal, subprocess, sysconfig, zoneinfo, threading, multiprocessing
seen = []
t = threading.Thread(target=seen.append, args=(1,)); t.start(); t.join()
result = [
    "%d.%d" % sys.version_info[:2] == sys.version[:4], sqlite3.connect(":memory:").execute("select 6*7").fetchone()[0],
    subprocess.run("echo $0; true", shell=True, capture_output=True, text=True).stdout, seen, sysconfig.get_config_var("prefix") is not None,
    hashlib.sha256(b"").hexdigest()[:8], str(zoneinfo.ZoneInfo("Europe/Berlin")),
]`
	got, _ := json.Marshal(p.Eval(t, code))
	want := `[true,42,"/bin/sh\n",[1],true,"e3b0c442","Europe/Berlin"]`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAsOrdinaryUser starts and attests sandboxes without root's rights, and
// refuses to where limits are demanded that such a user cannot set.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() == 0 {
		runtimetest.RunAs(t, ordinaryUser, "MCP_BRIDGE_TEST_RUNSC="+publicHelper(t))
		return
	}
	e := open(t, Options{AllowUnlimited: true})
	t.Run("unlimited", func(t *testing.T) {
		p := start(t, e, spec())
		if got := p.Eval(t, "import os; result = os.uname().release"); got != "4.19.0-gvisor" {
			t.Errorf("kernel is %v", got)
		}
	})
	t.Run("limited", func(t *testing.T) {
		e := open(t, Options{})
		demanding := spec()
		demanding.AllowUnlimited = false
		s, err := e.Start(t.Context(), demanding)
		if err == nil { // with control groups v2 that are delegated to the user
			s.Close()
			if f := e.diagnoseLimits(t.Context()); f.Level != runtime.LevelOK {
				t.Errorf("started, but the diagnosis says %+v", f)
			}
			return
		}
		if !errors.Is(err, runtime.ErrUnsupported) || !strings.Contains(err.Error(), "memory limit") || !strings.Contains(runtime.HintOf(err), "allow-unlimited") {
			t.Errorf("start: %v (hint %q)", err, runtime.HintOf(err))
		}
		if f := e.diagnoseLimits(t.Context()); f.Level != runtime.LevelFail || !strings.Contains(f.Fix, "allow-unlimited") {
			t.Errorf("refused, but the diagnosis says %+v", f)
		}
	})
	t.Run("killed owner", TestKilledOwner)
	t.Run("diagnosis", func(t *testing.T) {
		for _, f := range e.Diagnose(t.Context(), "") {
			if f.Level == runtime.LevelFail {
				t.Errorf("%+v", f)
			}
		}
	})
}

// ordinaryUser is made by .ci/provision rootless.
const ordinaryUser = "mcp-bridge-test"

// publicHelper is a runsc that everybody may run.
func publicHelper(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcpb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, helperName)
	data, err := os.ReadFile(helperPath(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSmallFilesCanBeMapped holds what programs do with files of less than a page.
func TestSmallFilesCanBeMapped(t *testing.T) {
	p := start(t, open(t, Options{}), spec())
	const code = `
import mmap
with open("/etc/passwd", "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
    result = m[:5].decode() + str(len(m) == len(f.read()))
`
	if got := p.Eval(t, code); got != "root:True" {
		t.Errorf("got %v", got)
	}
}

// TestSignalsToInit holds that PID 1 lives on whatever its children send it.
func TestSignalsToInit(t *testing.T) {
	p := start(t, open(t, Options{}), spec())
	const code = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
pid = os.fork()
if pid == 0:
    calls = []
    for signal in (9, 19, 15, 11):
        calls += [(62, 1, signal), (62, (1 << 32) + 1, signal), (200, 1, signal), (234, 1, 1, signal), (62, -1, signal)]
    calls.append((434, 1, 0))
    for nr, *args in calls:
        libc.syscall(nr, *(ctypes.c_long(a) for a in args))
    os._exit(0)
os.waitpid(pid, 0)
result = "alive"
`
	if got := p.Eval(t, code); got != "alive" {
		t.Errorf("got %v", got)
	}
}

// TestMemoryIsLimited holds that the limit is the host's, on the whole sandbox.
func TestMemoryIsLimited(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root, for a control group")
	}
	s := spec()
	s.Limits.MemoryBytes = 128 << 20
	p := start(t, open(t, Options{}), s)
	if _, _, err := p.Try(`x = b"x" * (512 << 20)`); err == nil {
		t.Error("512 MiB fit into 128")
	}
	exit, err := p.Wait(t.Context())
	if err != nil || exit != (runtime.Exit{Code: killedCode, OOMKilled: true}) {
		t.Errorf("exit is %+v, %v", exit, err)
	}
}

// TestForkBomb holds that it fails inside, and finds the tasks of the host that
// the sandbox needs for as many processes as it may have.
func TestForkBomb(t *testing.T) {
	s := spec()
	s.Limits.PIDs, s.Limits.MemoryBytes = 100, 2<<30
	p := start(t, open(t, Options{}), s)
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
    result = e.strerror
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
result += " " + str(len(children) + 1)
`
	for range 2 {
		if got := p.Eval(t, bomb); got != "Resource temporarily unavailable 100" {
			t.Errorf("fork bomb: %v", got)
		}
	}
}

func TestMissingHelper(t *testing.T) {
	e, err := New(Options{Runsc: "/nonexistent/runsc", RuntimeDir: privateDir(t), CacheDir: cacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Check(t.Context(), ""); !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(runtime.HintOf(err), "go install gvisor.dev/gvisor/runsc@"+Version) ||
		!strings.Contains(runtime.HintOf(err), "`make build` leaves mcp-bridge-runsc beside mcp-bridge") {
		t.Errorf("check: %v (hint %q)", err, runtime.HintOf(err))
	}
	for _, f := range e.Diagnose(t.Context(), "") {
		if f.Name == "seccomp" || f.Name == "cgroup limits" || (f.Name == "runsc") != (f.Level == runtime.LevelFail) {
			t.Errorf("diagnosis without runsc: %+v", f)
		}
	}
	other, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	if err := checkHelper(other); err == nil || !strings.Contains(err.Error(), "want gvisor.dev/gvisor") {
		t.Errorf("another program: %v", err)
	}
}

func TestHelperOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("needs root")
	}
	dir := privateDir(t)
	path := filepath.Join(dir, "runsc")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := checkTrusted(path); err != nil {
		t.Fatalf("positive control: %v", err)
	}
	for name, spoil := range map[string]func() error{
		"writable":  func() error { return os.Chmod(path, 0o777) },
		"foreign":   func() error { return os.Chown(path, 1, 1) },
		"directory": func() error { return os.Chmod(dir, 0o777) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if err := checkTrusted(path); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if err := errors.Join(os.Chown(path, 0, 0), os.Chmod(path, 0o755), os.Chmod(dir, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
}

// victim starts a sandbox and waits to be killed.
func victim(dir string) {
	e, err := New(Options{Runsc: os.Getenv("MCP_BRIDGE_TEST_RUNSC"), RuntimeDir: dir, CacheDir: cacheDir()})
	if err == nil {
		var s runtime.Sandbox
		if s, err = e.Start(context.Background(), spec()); err == nil {
			box := s.(*sandbox)
			fmt.Println(box.process.cmd.Process.Pid, box.sentry.PID)
			// Something that the end of the streams does not end.
			fmt.Fprintf(s.Control(), "%q\n", "import os, time\nif os.fork() == 0: time.sleep(600)\ntime.sleep(600)")
			select {}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKilledOwner holds that nothing outlives an owner that is killed, and
// that what it leaves on the disk goes at the next start.
func TestKilledOwner(t *testing.T) {
	dir := privateDir(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "MCPB_TEST_VICTIM="+dir, "MCP_BRIDGE_TEST_RUNSC="+helperPath(t))
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	var runsc, sentry int
	if _, scanErr := fmt.Sscan(line, &runsc, &sentry); err != nil || scanErr != nil {
		t.Fatalf("victim: %v %v", err, scanErr)
	}
	time.Sleep(200 * time.Millisecond) // its cell begins
	family := append(descendants(runsc), runsc)
	if len(family) < 3 {
		t.Fatalf("only %v live", family)
	}
	began := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	for _, pid := range family {
		for alive(pid) && time.Since(began) < 5*time.Second {
			time.Sleep(5 * time.Millisecond)
		}
	}
	t.Logf("%d processes gone after %v", len(family), time.Since(began))
	if time.Since(began) > 2*time.Second {
		t.Errorf("processes %v lived on for %v", family, time.Since(began))
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Fatalf("leftovers: %v %v, want one directory", left, err)
	}
	e := open(t, Options{RuntimeDir: dir})
	removed, err := e.Sweep(t.Context())
	want := 1
	if os.Geteuid() != 0 {
		want = 0 // it had no control group
	}
	if err != nil || removed != want {
		t.Errorf("sweep removed %d, %v, want %d", removed, err, want)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("sweep left %v %v", left, err)
	}
	if again, err := e.Sweep(t.Context()); again != 0 || err != nil {
		t.Errorf("second sweep: %d, %v", again, err)
	}
}

// alive tells a process from one that is gone, and only not yet waited for.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func descendants(pid int) []int {
	var all []int
	for _, child := range childrenOf(pid) {
		all = append(append(all, child), descendants(child)...)
	}
	return all
}
