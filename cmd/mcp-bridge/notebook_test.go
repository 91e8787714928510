package main_test

import (
	"strings"
	"testing"
)

// TestNotebook runs cells as someone writes them who lives in notebooks.
func TestNotebook(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	for _, test := range []struct{ name, code, want string }{
		{"semicolon", "1 + 1;", "(no output)"},
		{"history", "21\n_ + _ if '_' in globals() else 42", "42"},
		{"last values", "_, In[-2].startswith('21'), Out[2] == 42", "(42, True, True)"},
		{"indented", "    x = 5\n    x", "5"},
		{"asyncio.run beside await", "import asyncio\nasync def f(): return 'ran'\nasync def g(): return asyncio.run(f())\nawait g()", "'ran'"},
		{"a task of a cell without await", "task = asyncio.create_task(asyncio.sleep(0.01, 'done'))", "(no output)"},
		{"goes on in the next", "await task", "'done'"},
		{"future", "from __future__ import annotations\ndef f(x: Nothing): pass", "(no output)"},
		{"lasts", "def g(x: Nothing): pass\ng.__annotations__", "{'x': 'Nothing'}"},
		{"source", "import inspect\nclass C:\n    y = 1\nprint(inspect.getsource(C), end='')", "class C:\n    y = 1"},
		{"warning", "import warnings\nfor _ in range(2): warnings.warn('w')", "<cell 11>:2: UserWarning: w\n  for _ in range(2): warnings.warn('w')"},
		{"exit", "exit()", "(no output)"},
		{"deleted", "del tools, out", "(no output)"},
		{"is back", "tools is not out", "True"},
	} {
		c.wants(t, test.code, test.want)
	}
	contains(t, c.fails(t, "!ls /"), "SyntaxError", "subprocess.run('ls /', shell=True)")
	contains(t, c.fails(t, "x = 1\nx = = 2"), `File "<cell 16>", line 2`, "    x = = 2\n        ^")
	contains(t, c.fails(t, "input('name? ')"), "EOFError", "nobody can answer input()")
	contains(t, c.fails(t, "def f(n): g(n)\ndef g(n): f(n)\nf(1)"), "frames left out", "RecursionError")
	contains(t, c.fails(t, "import sys\nsys.exit(3)"), "sys.exit(3)", "Variables are kept")
	c.wants(t, "x", "5")
}

// TestProcesses has children of every kind know what the cells define, within
// the limits of a sandbox.
func TestProcesses(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	c.run(t, `
import concurrent.futures, dataclasses, multiprocessing, subprocess, sys
FACTOR = 10
@dataclasses.dataclass
class Point:
    x: int
def scaled(x): return Point(x * FACTOR)
def put(queue): queue.put(scaled(3))`)
	for _, method := range []string{"fork", "spawn", "forkserver"} {
		c.run(t, "context = multiprocessing.get_context('"+method+"')")
		c.wants(t, "with context.Pool(2) as pool: points = pool.map(scaled, [1, 2])\npoints == [Point(10), Point(20)]", "True")
		c.wants(t, "queue = context.Queue(); child = context.Process(target=put, args=(queue,)); child.start()\nqueue.get(), child.join(), child.exitcode", "(Point(x=30), None, 0)")
	}
	c.wants(t, "with concurrent.futures.ProcessPoolExecutor(2) as pool: points = list(pool.map(scaled, [4]))\npoints", "[Point(x=40)]")
	c.wants(t, "subprocess.run([sys.executable, '-c', 'print(1 + 1)'], capture_output=True, text=True).stdout", `'2\n'`)
	text := c.fails(t, "def use(x): return tools.servers()\nwith context.Pool(1) as pool: pool.map(use, [1])")
	contains(t, text, "the cell's own process only")
}

// TestLateOutputIsOfItsCell prints from threads and children of cells that have
// ended, while none runs and while another does.
func TestLateOutputIsOfItsCell(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	c.run(t, `
import subprocess, threading
go, done = threading.Event(), threading.Event()
def work():
    go.wait()
    print("of the thread")
    done.set()
threading.Thread(target=work).start()`)
	got := c.run(t, "print('before')\ngo.set()\n_ = done.wait()\nprint('after')")
	if want := "[printed by a thread of cell 1 after cell 1 had ended:]\nof the thread\n[end]\nbefore\nafter"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.wants(t, "'of the thread' in out[1], 'of the thread' in out[2]", "(True, False)")
	c.run(t, "child = subprocess.Popen(['sh', '-c', 'read line; echo child $line'], stdin=subprocess.PIPE)")
	c.run(t, "threading.Timer(0.3, lambda: (child.stdin.write(b'!\\n'), child.stdin.close())).start()")
	var seen strings.Builder
	eventually(t, patience, "the child has printed", func() bool {
		seen.WriteString(c.run(t, "None"))
		return strings.Contains(seen.String(), "child !")
	})
}
