package main_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWarm follows the spare sandbox from the client's arrival to the bridge's
// end.
func TestWarm(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	pid := c.cmd.Process.Pid
	count := func(n int) func() bool { return func() bool { return len(containersOf(t, pid)) == n } }
	eventually(t, patience, "a spare is started for the client", count(1))
	spare := containersOf(t, pid)[0]
	time.Sleep(200 * time.Millisecond) // its container is there before it is of use
	c.wants(t, "1 + 1", "2")
	eventually(t, patience, "another spare is started", count(2))
	if !slices.Contains(containersOf(t, pid), spare) {
		t.Error("the session has not taken the spare")
	}

	// A spare that is killed is replaced, and a call in between has what it needs.
	fresh := slices.DeleteFunc(containersOf(t, pid), func(name string) bool { return name == spare })[0]
	podman(t, nil, "rm", "--force", "--time=0", fresh)
	if text := c.runIn(t, "second", "'here'"); text != "'here'" {
		t.Errorf("got %s", text)
	}
	eventually(t, patience, "the spare is replaced", count(3))
	if text := c.runIn(t, "third", "'here'"); text != "'here'" {
		t.Errorf("got %s", text)
	}
}

// TestSpareIsNotPoisoned has a cell do what it can to the world around it while
// a spare stands beside it, and looks at what the next session finds in that.
func TestSpareIsNotPoisoned(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t, "--workspace-quota=0"))
	pid := c.cmd.Process.Pid
	c.run(t, "1")
	eventually(t, patience, "the next spare is started", func() bool { return len(containersOf(t, pid)) == 2 })
	const poison = `
import builtins, os, signal, socket, sys
def tried(f, *args):
    try: return f(*args)
    except BaseException: return None
for directory in ("/tmp", "/workspace", "/dev/shm", "/run", "/var/tmp", "/run/mcp-bridge", "/run/mcp-bridge/socket", "/run/mcp-bridge/files"):
    tried(lambda: open(directory + "/poison", "w").write("poison"))
for name in ("/tmp/sitecustomize.py", "/workspace/json.py", "/run/mcp-bridge/files/mcpbridge/repl.py"):
    tried(lambda: open(name, "w").write("import builtins; builtins.poison = 1"))
builtins.poison = sys.modules["poison"] = 1
os.environ["PYTHONSTARTUP"] = "/tmp/sitecustomize.py"
kept = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for s, name in zip(kept, ("\0poison", "\0mcp-bridge")):
    s.bind(name); s.listen()
type(tools).poison = type(tools.special.stats).poison = 1
tried(os.kill, -1, signal.SIGCONT)
[line.split()[-1] for line in open("/proc/net/unix") if "poison" in line], os.path.exists("/tmp/poison")`
	c.wants(t, poison, "(['@poison'], True)") // it has an effect where it may
	const look = `
import builtins, os, sys
found = [d + "/poison" for d in ("/tmp", "/workspace", "/dev/shm", "/run", "/var/tmp") if os.path.exists(d + "/poison")]
found += [n for n in ("/tmp/sitecustomize.py", "/workspace/json.py") if os.path.exists(n)]
found += ["builtins"] * hasattr(builtins, "poison") + ["modules"] * ("poison" in sys.modules)
found += ["environ"] * ("PYTHONSTARTUP" in os.environ) + ["tools"] * hasattr(type(tools), "poison")
found += [line for line in open("/proc/net/unix") if "poison" in line or "@" in line]
found += os.listdir("/workspace") + os.listdir("/tmp") + os.listdir("/dev/shm")
found += [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]
found`
	if text := c.runIn(t, "victim", look); text != "[]" {
		t.Errorf("the next session found %s", text)
	}
}

// TestIdle has sandboxes stopped and says so to the next call.
func TestIdle(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t, "--warm=0", "--runtime-idle-timeout=2", "--hibernate=false"))
	pid := c.cmd.Process.Pid
	c.run(t, "kept = 'kept'; n = open('/workspace/file', 'w').write('kept')")
	begin := time.Now()
	// A cell that runs is not idle, and a thread that prints is.
	c.runIn(t, "busy", "import threading, time\ndef chatter():\n    while True:\n        print('still here'); time.sleep(0.2)\n"+
		"threading.Thread(target=chatter, daemon=True).start()\ntools.special.sleep(ms=3000)\nlater = 1")
	if took := time.Since(begin); took < 3*time.Second {
		t.Errorf("the cell took %v", took)
	}
	eventually(t, patience, "both sandboxes are stopped", func() bool { return len(containersOf(t, pid)) == 0 })
	text := c.runIn(t, "", "import os\nprint('kept' in globals(), os.listdir('/workspace'))")
	if want := "Note: the sandbox was stopped after 2s without a cell. All variables are gone; files are those that were kept after the last cell that was not cut short.\nFalse ['file']"; text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	contains(t, c.runIn(t, "busy", "'later' in globals()"), "stopped after 2s without a cell", "False", "still here")
}

// TestIdleLeavesNothing looks at the host after an idle stop.
func TestIdleLeavesNothing(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--warm=0"}, env: []string{"MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT=1"}})
	pid := c.cmd.Process.Pid
	c.run(t, "1")
	name := containersOf(t, pid)
	if len(name) != 1 {
		t.Fatalf("containers: %v", name)
	}
	eventually(t, patience, "the sandbox is stopped", func() bool { return len(containersOf(t, pid)) == 0 })
	for _, p := range descendants(pid) {
		if out, _ := exec.Command("ps", "-o", "args=", "-p", fmt.Sprint(p.pid)).Output(); strings.Contains(string(out), name[0]) {
			t.Errorf("process left: %s", out)
		}
	}
	eventually(t, patience, "its directory is gone", func() bool {
		left, err := filepath.Glob("/run/mcp-bridge/*/" + name[0])
		return err == nil && len(left) == 0
	})
}

// TestLifeSettings refuses what makes no sense.
func TestLifeSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		env  []string
		told string
	}{
		{args: []string{"--warm=-1"}, told: "--warm"},
		{args: []string{"--warm=3", "--max-sandboxes=2"}, told: "--warm"},
		{args: []string{"--max-sandboxes=0"}, told: "--max-sandboxes"},
		{args: []string{"--runtime-idle-timeout=-1"}, told: "runtime-idle-timeout"},
		{env: []string{"MCP_BRIDGE_WARM=many"}, told: "MCP_BRIDGE_WARM"},
	} {
		s := setup{args: test.args, env: test.env}
		got := shell(t, &s, "run")
		if got.code == 0 || got.stdout != "" {
			t.Errorf("%v %v: exit code %d, stdout %q", test.args, test.env, got.code, got.stdout)
		}
		contains(t, got.stderr, "mcp-bridge: error: ", test.told)
	}
}
