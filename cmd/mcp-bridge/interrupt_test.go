package main_test

import (
	"strings"
	"testing"
	"time"
)

// TestTimeoutKeepsVariables interrupts every way there is to take long.
func TestTimeoutKeepsVariables(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	for name, code := range map[string]string{
		"loop":         "while True: pass",
		"sleep":        "time.sleep(100)",
		"tool":         "tools.special.sleep(ms=100_000)",
		"await-tool":   "await tools.special.sleep.aio(ms=100_000)",
		"await":        "await asyncio.sleep(100)",
		"map":          "tools.map(tools.special.sleep, [100_000] * 4)",
		"map-function": "tools.map(lambda n: tools.special.sleep(ms=n), [100_000] * 4)",
		"child":        "subprocess.run(['sleep', '100'])",
		"event":        "threading.Event().wait()",
		"prints":       "while True: print('x')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.runIn(t, name, "import asyncio, subprocess, threading, time\nkept = 'kept'")
			begin := time.Now()
			r := c.call(t, arguments{"code": code, "timeout": 2, "session": name})
			if took := time.Since(begin); took < 2*time.Second || took > 30*time.Second {
				t.Errorf("took %v, want 2 s and little more", took)
			}
			if !r.isError {
				t.Error("not an error")
			}
			contains(t, r.text, "Timed out", "Variables are kept")
			lacks(t, r.text, kernelTraces...)
			if got := c.runIn(t, name, "kept"); got != "'kept'" && !strings.HasSuffix(got, "[end]\n'kept'") {
				t.Errorf("after it the variable is %.2000s", got)
			}
			if strings.Contains(code, "tools") {
				if got := c.runIn(t, name, "tools.special.same(value=1)['value']"); got != "1" {
					t.Errorf("after it a tool gives %s", got)
				}
			}
		})
	}
}

// TestTimeoutCancelsUpstream shows that an abandoned call ends upstream too.
func TestTimeoutCancelsUpstream(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	c.run(t, "tools.special.stats()") // the server is up
	c.runIn(t, "sleeper", "1")
	for code, running := range map[string]string{
		"tools.special.sleep(ms=100_000)":               "1",
		"await tools.special.sleep.aio(ms=100_000)":     "1",
		"tools.map(tools.special.sleep, [100_000] * 3)": "3",
	} {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = c.try(t.Context(), arguments{"session": "sleeper", "code": code, "timeout": 10})
		}()
		for _, want := range []string{running, "0"} {
			eventually(t, patience, want+" upstream calls of "+code, func() bool {
				return c.run(t, "tools.special.stats().running") == want
			})
		}
		<-ended
	}
	c.wants(t, "tools.special.stats().cancelled", "5")
}

// TestIgnoredInterrupt kills what does not listen, and says what was lost.
func TestIgnoredInterrupt(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	for name, code := range map[string]string{
		"catches": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
		"ignores": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
		"in-c":    "sum(range(10**13))",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.runIn(t, name, "kept = 1\nopen('/workspace/file', 'w').write('on disk')")
			r := c.call(t, arguments{"code": "print('before')\n" + code, "timeout": 1, "session": name})
			if !r.isError {
				t.Error("not an error")
			}
			contains(t, r.text, "before", "ignored the interrupt", "variables are gone", "files in the workspace are kept", "Timed out")
			lacks(t, r.text, "Variables are kept")
			if got := c.runIn(t, name, "'kept' in globals(), open('/workspace/file').read()"); got != "(False, 'on disk')" {
				t.Errorf("after it: %s", got)
			}
			if got := c.runIn(t, name, "tools.special.same(value=2)['value']"); got != "2" {
				t.Errorf("after it a tool gives %s", got)
			}
		})
	}
}

// TestEndOfTheProcess ends it in every way. What happened is told, and the
// session goes on.
func TestEndOfTheProcess(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t, "--memory", "256m"))
	const gone, kept = "variables are gone", "Variables are kept"
	for _, test := range []struct {
		name, code string
		isError    bool
		told       []string
		lost       bool
	}{
		{"exit 0", "import sys; sys.exit(0)", false, nil, false},
		{"exit 3", "import sys; sys.exit(3)", true, []string{"sys.exit(3)", kept}, false},
		{"quit", "quit()", false, nil, false},
		{"_exit", "import os; os._exit(7)", true, []string{"status 7", gone}, true},
		{"_exit 0", "import os; os._exit(0)", true, []string{"status 0", gone}, true},
		{"SIGKILL", "import os; os.kill(os.getpid(), 9)", true, []string{"SIGKILL", gone}, true},
		{"SIGTERM", "import os; os.kill(os.getpid(), 15)", true, []string{"signal 15", gone}, true},
		{"abort", "import os; os.abort()", true, []string{"signal 6", gone}, true},
		{"segfault", "import ctypes; ctypes.string_at(0)", true, []string{"signal 11", gone}, true},
		{"exec", "import os; os.execv('/bin/true', ['true'])", true, []string{"status 0", gone}, true},
		{"after a tool", "tools.special.same(value=1)\nimport os; os._exit(1)", true, []string{"status 1", gone}, true},
		{"amid tools", "import threading, time, os\nfor _ in range(8): threading.Thread(target=lambda: [tools.special.big(size=1_000_000) for _ in range(99)]).start()\ntime.sleep(0.3); os._exit(1)", true, []string{"status 1", gone}, true},
		{"interrupt of its own", "import os, time; os.kill(os.getpid(), 2); time.sleep(1)", true, []string{"KeyboardInterrupt"}, false},
		{"memory", "b'x' * (1 << 30)", true, []string{"MemoryError"}, false},
		{"memory bit by bit", "def take():\n    hog = []\n    while True: hog.append(bytearray(1 << 20))\ntake()", true, []string{"MemoryError"}, false},
		{"full workspace", "with open('/workspace/full', 'wb') as f:\n    while True: f.write(b'x' * (1 << 20))", true, []string{"OSError"}, false},
		{"signals to all", "import os; os.kill(-1, 9)", true, []string{"ProcessLookupError"}, false},
		{"signals to PID 1", "import os, signal\nfor n in range(1, 65):\n    try: os.kill(1, n)\n    except OSError: pass", false, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.run(t, "kept = 1; open('/workspace/file', 'w').write('on disk')")
			r := c.call(t, arguments{"code": "print('before')\n" + test.code})
			if r.isError != test.isError {
				t.Errorf("isError is %v: %.1000s", r.isError, r.text)
			}
			contains(t, r.text, append(test.told, "before")...)
			lacks(t, r.text, kernelTraces...)
			want := "(True, 'on disk')"
			if test.lost {
				lacks(t, r.text, kept)
				want = "(False, 'on disk')"
			}
			c.wants(t, "'kept' in globals(), open('/workspace/file').read()", want)
			c.wants(t, "tools.special.same(value=3)['value']", "3")
		})
	}
}

// TestOutOfMemory lets children take what the limit of a process does not.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--memory", "128m"}})
	r := c.call(t, arguments{"timeout": 30, "code": `
import os, time
pids = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        hog = bytearray(60 << 20)
        time.sleep(2)
        os._exit(0)
    pids.append(pid)
[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]`})
	if !r.isError {
		contains(t, r.text, "-9") // the children paid
	} else {
		contains(t, r.text, "gone")
	}
	c.wants(t, "1 + 1", "2")
}

// TestForkWithoutExit runs the end of a cell in two processes. The child must
// not answer for the session.
func TestForkWithoutExit(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	c.run(t, "import os\nme = os.getpid()")
	for range 10 {
		r := c.call(t, arguments{"code": "pid = os.fork()\nif pid: os.waitpid(pid, 0)"})
		if r.isError {
			t.Fatalf("fork: %s", r.text)
		}
		c.wants(t, "os.getpid() == me, pid > 0, tools.special.same(value=1)['value']", "(True, True, 1)")
	}
	text := c.run(t, "if os.fork() == 0: raise ValueError('of the child')\nos.waitstatus_to_exitcode(os.wait()[1])")
	contains(t, text, "ValueError: of the child")
	if !strings.HasSuffix(text, "\n1") {
		t.Errorf("the child's exit status is not 1: %s", text)
	}
	c.wants(t, "os.getpid() == me", "True")
}

func TestForkBomb(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--pids", "32"}})
	text := c.fails(t, "import os, time\nkept = 1\nwhile True:\n    if os.fork() == 0:\n        time.sleep(1000)")
	contains(t, text, "BlockingIOError")
	c.wants(t, "kept", "1")
	text = c.fails(t, "import threading\nwhile True: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()")
	contains(t, text, "RuntimeError: can't start new thread")
	c.wants(t, "kept", "1")
}
