package main_test

import (
	"strings"
	"testing"
)

func TestStatePersists(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	c.wants(t, "import math as m\nx = 20\ndef double(n):\n    return 2 * n\nclass C:\n    y = 2", "(no output)")
	c.wants(t, "double(x) + C.y", "42")
	c.wants(t, "_", "42")
	c.wants(t, "m.floor(2.5)", "2")
	c.wants(t, "open('/workspace/note', 'w').write('kept')", "4")
	c.wants(t, "open('note').read()", "'kept'")
	contains(t, c.fails(t, "x += 1\nraise ValueError('after the change')"), "ValueError: after the change")
	c.wants(t, "x", "21")
}

func TestWhatIsShown(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	for _, test := range []struct{ name, code, want string }{
		{"expression", "1 + 1", "2"},
		{"text as a literal", "'a' 'b'", "'ab'"},
		{"nothing", "None", "(no output)"},
		{"statement", "x = 5", "(no output)"},
		{"print and expression", "print('p')\n7", "p\n7"},
		{"print without newline", "print('p', end='')\n7", "p\n7"},
		{"semicolon", "x = 6; x", "6"},
		{"comment only", "# nothing", "(no output)"},
		{"main guard", "if __name__ == '__main__':\n    print('main')", "main"},
		{"asyncio.run", "import asyncio\nasync def main():\n    return 3\nasyncio.run(main())", "3"},
		{"await", "await asyncio.sleep(0, 'done')", "'done'"},
		{"async for", "async def g():\n    yield 1\n    yield 2\n[x async for x in g()]", "[1, 2]"},
		{"task of an earlier cell", "t = asyncio.get_event_loop().create_task(asyncio.sleep(0, 9))", "(no output)"},
		{"awaited later", "await t", "9"},
		{"pickle of a cell's class", "import pickle\nclass P: pass\ntype(pickle.loads(pickle.dumps(P()))) is P", "True"},
		{"source of a cell's function", "import inspect\ndef f(): return 1\ninspect.getsource(f)", `'def f(): return 1\n'`},
		{"value that has no repr", "class B:\n    def __repr__(self): raise KeyError\nB()", "<B whose repr() raised KeyError>"},
		{"dataclass", "import dataclasses\n@dataclasses.dataclass\nclass D:\n    a: int\nD(1)", "D(a=1)"},
		{"unicode", "'żółw 🐢'", "'żółw 🐢'"},
	} {
		t.Run(test.name, func(t *testing.T) { c.wants(t, test.code, test.want) })
	}
	for _, name := range []string{"tools", "out", "ToolError", "help", "tools.search", "tools.map", "tools.call"} {
		if got := c.run(t, name); got == "" {
			t.Errorf("%s shows nothing", name)
		}
	}
	contains(t, c.run(t, "help(tools)"), "tools.search", "ToolError", "out[n]")
	contains(t, c.run(t, "help(len)"), "len(obj, /)")
}

// kernelTraces are what a traceback must not show: our files and the event loop's.
var kernelTraces = []string{"mcpbridge", "/run/", "cells.py", "toolbox.py", "callback.py", "asyncio/", `File "/usr`, "run_until_complete", "KeyError: 'special'"}

func TestTracebackShowsTheUsersLinesOnly(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	got := c.fails(t, "def f(n):\n    return 1 / n\n\nf(0)")
	want := `Traceback (most recent call last):
  File "<cell 1>", line 4, in <module>
    f(0)
    ~^^^
  File "<cell 1>", line 2, in f
    return 1 / n
           ~~^~~
ZeroDivisionError: division by zero`
	if got != want {
		t.Errorf("traceback is\n%s\nwant\n%s", got, want)
	}
	for _, test := range []struct {
		name, code string
		want       []string
	}{
		{"function of an earlier cell", "f(0)", []string{`<cell 1>", line 2, in f`, "return 1 / n"}},
		{"name", "undefined_name", []string{"line 1", "NameError: name 'undefined_name' is not defined"}},
		{"syntax", "x = (1,\ny = 2", []string{"SyntaxError", "line 1"}},
		{"indentation", "if True:\npass", []string{"IndentationError", "line 2"}},
		{"library", "import json\njson.loads('{')", []string{"line 2", "json.decoder.JSONDecodeError"}},
		{"await", "async def g():\n    raise ValueError('inside')\nawait g()", []string{"line 3", "line 2, in g", "ValueError: inside"}},
		{"gather", "import asyncio\nawait asyncio.gather(g(), g())", []string{"line 2, in <module>", "ValueError: inside"}},
		{"task group", "async with asyncio.TaskGroup() as tg:\n    tg.create_task(g())", []string{"ExceptionGroup", "ValueError: inside"}},
		{"asyncio.run", "asyncio.run(g())", []string{"in g", "ValueError: inside"}},
		{"chained", "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e", []string{"ZeroDivisionError", "direct cause", "KeyError: 'k'"}},
		{"tool", "tools.special.fail(why='x')", []string{"line 1", "ToolError: it failed"}},
		{"async tool", "await tools.special.fail.aio(why='x')", []string{"line 1", "ToolError: it failed"}},
		{"mapped tool", "tools.map(tools.special.fail, ['x'])", []string{"line 1", "ToolError: it failed"}},
		{"tool arguments", "tools.special.same(valu=1)", []string{"TypeError", "'valu'", "did you mean value", "Signature: special.same(value"}},
		{"no such tool", "tools.special.sam", []string{"UnknownTool", "did you mean same"}},
		{"no such server", "tools.specail.same", []string{"UnknownTool", "did you mean special"}},
		{"system exit with text", "import sys\nsys.exit('gave up')", []string{"gave up", "sys.exit(1)", "kept"}},
		{"keyboard interrupt of its own", "raise KeyboardInterrupt", []string{"KeyboardInterrupt"}},
		{"exception without a message that prints", "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E", []string{"E"}},
		{"assert", "assert 1 == 2, 'no'", []string{"AssertionError: no"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := c.fails(t, test.code)
			contains(t, text, test.want...)
			lacks(t, text, kernelTraces...)
		})
	}
}

// TestInput shows that there is nobody to ask.
func TestInput(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	contains(t, c.fails(t, "input('name? ')"), "name?", "EOFError")
	c.wants(t, "import sys, subprocess\nsys.stdin.read(), sys.stdin.buffer.read()", "('', b'')")
	c.wants(t, "subprocess.run(['cat'], capture_output=True).stdout", "b''")
}

func TestDeepRecursion(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	c.run(t, "kept = 1\ndef f(): return f()")
	text := c.fails(t, "f()")
	contains(t, text, "RecursionError")
	if lines := strings.Count(text, "\n"); lines > 100 {
		t.Errorf("the traceback has %d lines", lines)
	}
	// Without Python's own limit the C stack is the limit. Losing the process is
	// allowed if it is said.
	r := c.call(t, arguments{"code": "import sys\nsys.setrecursionlimit(10**9)\nf()", "timeout": 20})
	if !r.isError {
		t.Errorf("endless recursion succeeded: %s", r.text)
	}
	if strings.Contains(r.text, "variables are gone") {
		contains(t, c.fails(t, "kept"), "NameError")
	} else {
		c.wants(t, "kept", "1")
	}
	c.wants(t, "1 + 1", "2")
}
