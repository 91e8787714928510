"""What someone who lives in notebooks expects of cells."""

import sys
import unittest

from harness import KernelTest


class History(KernelTest):
    def test_underscores(self):
        self.value("1")
        self.value("2")
        self.value("3; None")
        self.value("3")
        self.assertEqual(self.value("_, __, ___"), "(3, 2, 1)")
        self.assertEqual(self.value("__"), "3")
        self.value("'quiet';")
        self.assertEqual(self.value("_"), "3")

    def test_a_function_of_that_name_stays(self):
        self.value("_ = str.upper")
        self.assertEqual(self.value("_('a')"), "'A'")
        self.assertEqual(self.value("_('b')"), "'B'")
        self.value("del _")
        self.value("int")
        self.assertEqual(self.value("_('7')"), "7")
        self.value("for _ in range(3): pass")
        self.value("'shown'")
        self.assertEqual(self.value("_"), "'shown'")

    def test_in(self):
        self.value("first = 'ü'")
        number = self.kernel.cells
        self.assertEqual(self.value(f"In[{number}]"), '"first = \'ü\'"')
        self.assertEqual(self.value("In[-1]"), "'In[-1]'")
        self.assertEqual(self.value("In[-2]"), "'In[-1]'")
        self.error("1 +")
        self.assertEqual(self.value("In[-2]"), "'1 +'")
        self.assertEqual(self.error("In[99999]")["message"], f"there is no cell 99999; the latest is {self.kernel.cells}")
        self.assertEqual(self.error("In['a']")["type"], "TypeError")
        self.assertEqual(self.value("len(list(In)) == len(In) > 3"), "True")

    def test_values_by_cell(self):
        self.value("print('text'); 1 + 1")
        number = self.kernel.cells
        self.assertEqual(self.value(f"Out[{number}]"), "2")
        self.value("x = 1")
        error = self.error(f"Out[{number + 2}]")
        self.assertEqual(error["type"], "KeyError")
        self.assertIn("ended with no value", error["message"])
        self.assertEqual(self.value(f"{number} in Out, {number + 2} in Out, Out.get({number + 2}), len(Out) == len(list(Out)) > 1"), "(True, False, None, True)")
        self.assertEqual(self.value("bool(out), len(out) + 1 == len(In)"), "(True, True)")

    def test_output_from_the_end(self):
        self.kernel.answer, before = (lambda method, params: {"text": f"of {params['cell']}"}), self.kernel.answer
        try:
            self.assertEqual(self.value("out[-1]"), f"'of {self.kernel.cells - 1}'")
            self.assertEqual(self.value("out[-3]"), f"'of {self.kernel.cells - 3}'")
        finally:
            self.kernel.answer = before

    def test_values_are_let_go_when_memory_is_short(self):
        self.value("class Big: pass\nBig()")
        self.error("raise MemoryError")
        self.assertEqual(self.value("len(out._values)"), "0")


class Plain(KernelTest):
    """Hints for what is not Python."""

    def test_hints(self):
        self.value("tool = tools.demo.get_sum")
        for code, hint in {
            "!ls -l": "write `import subprocess; subprocess.run('ls -l', shell=True)`",
            "x = 1\nfiles = !ls": "files = subprocess.run('ls', shell=True, capture_output=True, text=True).stdout.splitlines()",
            "!pip install x": "packages cannot be installed",
            "pip install x": "packages cannot be installed",
            "%pip install x": "packages cannot be installed",
            "%time f(1)": "without IPython's `%time`: write `import time; began = time.perf_counter(); f(1);",
            "%%timeit\nf()": "timeit.timeit('f()', globals=globals(), number=1000)",
            "%timeit -n 10 -r3 f(1)": "timeit.timeit('f(1)', globals=globals(), number=10)",
            "%%time\nx=1": "without IPython's `%%time`: write `import time; began = time.perf_counter()` before the code, and `print(",
            "%%bash\nls -l\npwd": "subprocess.run('ls -l\\npwd', shell=True)",
            "%%writefile a.txt\nb": "open('a.txt', 'w').write('b')",
            "%env A=1": "os.environ['A'] = '1'`",
            "%env A": "os.environ['A']`",
            "%env": "os.environ`",
            "%%x\n1": "without IPython's `%%x`.",
            ">>> 1+1": "leave out the prompts",
            "??tool": "write `help(tool)`",
            "??len": "inspect.getsource(len)",
            "import urllib.error\nraise urllib.error.URLError('[Errno -3] Temporary failure in name resolution')": "the sandbox has no network",
            "raise OSError(97, 'Address family not supported by protocol')": "the sandbox has no network",
            "raise OSError(27, 'File too large')": "no file may be larger",
            "raise MemoryError": "work in pieces",
            "%cd /tmp": "os.chdir('/tmp')",
            "%unheard of": "without IPython's `%unheard`.",
            "?len": "write `help(len)`",
            "len?": "write `help(len)`",
            "tools.demo??": "write `help(tools.demo)`; this is plain Python, without IPython's `??`",
            "```python\n1\n```": "leave out the ``` fence",
            "import numpyy": "numpyy is not in the sandbox's image",
            "import tools": "`tools` is already there",
            "from workspace import x": "`workspace` is already there",
            "from memory import load": "`memory` is already there",
            "import sys; sys.modules['IPython'] = None\nfrom IPython.display import display, Markdown": "`display(x)` is there without an import",
            "get_ipython()": "without IPython's `get_ipython`",
            "clear_output()": "what is printed stays",
            "_4": "`Out[4]`",
            "_i4": "`In[4]`",
            "import asyncio\nf = lambda: asyncio.get_running_loop()\nf()": "await main()",
        }.items():
            with self.subTest(code):
                lines = self.error(code)["traceback"].splitlines()
                self.assertTrue(lines[-1].startswith("Hint: "), lines)
                self.assertIn(hint, lines[-1])

    def test_a_file_system_for_data(self):
        self.value("import os, sys; real = os.statvfs; os.statvfs = lambda path: type('', (), {'f_flag': os.ST_NOEXEC})")
        try:
            error = self.error("import subprocess\nopen('run.sh', 'w').write('ls')\nsubprocess.run('./run.sh')")
        finally:
            self.value("os.statvfs = real")
        self.assertIn("""`subprocess.run(["bash", './run.sh'])`""", error["traceback"])

    def test_debugger(self):
        for code in ("breakpoint()", "import pdb; pdb.set_trace()"):
            self.assertIn("nobody can type commands", self.error(code)["message"])

    def test_no_hint(self):
        for code in ("1 +", "raise ValueError('!')", "compile('!ls', 'f', 'exec')", "x = = 1", "import json.nothing", "raise SyntaxError", "raise ToolError('Network is unreachable')"):
            with self.subTest(code):
                self.assertNotIn("Hint", self.error(code)["traceback"])


class Importing(KernelTest):
    """Modules in the workspace."""

    def test_import(self):
        self.value("import pathlib; pathlib.Path('mod.py').write_text('def f(): return __name__')")
        self.assertEqual(self.value("import mod; mod.f()"), "'mod'")
        code = """
            import concurrent.futures as cf, multiprocessing as mp
            with cf.ProcessPoolExecutor(1, mp.get_context("spawn")) as pool: r = pool.submit(mod.f).result()
            r
            """
        self.assertEqual(self.value(code), "'mod'")

    def test_nothing_is_shadowed(self):
        names = "skills/data mcp/data tools.py colorsys.py mcpbridge.py traceback.py pydoc.py".split()
        self.value(f"import os, pathlib\nfor name in {names}:\n  os.makedirs(os.path.dirname(name) or '.', exist_ok=True); open(name, 'w').write('1/0')")
        self.value("os.makedirs('mcp/servers', exist_ok=True)")
        self.assertEqual(self.value("import colorsys, skills, mcp, mcp.runtime; colorsys.__file__.startswith(os.getcwd())"), "False")
        self.assertEqual(self.error("1/0")["type"], "ZeroDivisionError")
        self.assertEqual(self.value("hasattr(skills, 'save'), mcp.__spec__.origin"), "(True, 'mcp-bridge')")

    def test_arguments(self):
        self.assertEqual(self.value("import sys; sys.argv"), "['']")
        self.assertEqual(self.value("import argparse; argparse.ArgumentParser().parse_args()"), "Namespace()")


class Persist(KernelTest):
    def test_future(self):
        self.value("from __future__ import annotations\ndef f(x: Nothing): pass")
        self.assertEqual(self.value("def g(x: Nothing) -> 5: pass\ng.__annotations__"), "{'x': 'Nothing', 'return': '5'}")
        self.assertEqual(self.error("from __future__ import braces")["type"], "SyntaxError")
        self.assertEqual(self.error("x = 1\nfrom __future__ import division")["type"], "SyntaxError")

    def test_names_of_ours_come_back(self):
        self.value("tools = print = open = 5; help = None")
        self.assertEqual(self.value("tools, print"), "(5, 5)")
        self.value("del tools, print, open, help, out, In, ToolError, __name__, __builtins__")
        self.assertEqual(self.value("tools.demo.get_sum(1, 2).sum, __name__"), "(3, '__main__')")
        self.value("import sys; sys.modules['__main__'] = None; __builtins__ = {}; x = globals().clear()")
        self.assertEqual(self.value("import sys; sys.modules['__main__'].tools is tools"), "True")

    def test_broken_builtins(self):
        names = "print len str repr open isinstance type list dict getattr range sorted min max bytes BaseException Exception KeyError".split()
        self.value("import builtins\nkept = 'kept'\n" + "\n".join(f"builtins.{name} = None" for name in names))
        self.assertEqual(self.value("kept"), "'kept'")
        self.assertEqual(self.error("print(1)")["type"], "TypeError")
        self.value("for name in ('len', 'id', 'iter'):\n  builtins.__dict__.pop(name)")
        self.assertEqual(self.value("id(1) == id(1)"), "True")
        self.kernel.run("builtins.__dict__.clear()")
        self.assertEqual(self.value("kept, len('abc')"), "('kept', 3)")

    def test_a_replaced_builtin_stays(self):
        self.value("import builtins; original = print\nbuiltins.print = lambda *args: original('mine', *args)")
        self.assertEqual(self.printed("print(1)"), "mine 1\n")
        self.error("1 / 0")
        self.assertEqual(self.printed("print(2)"), "mine 2\n")
        self.value("builtins.print = original")
        self.assertEqual(self.printed("print(3)"), "3\n")

    def test_a_low_recursion_limit(self):
        self.kernel.run("import sys; sys.setrecursionlimit(60)")
        self.assertEqual(self.value("[[[1]]]"), "[[[1]]]")

    def test_classes(self):
        self.value("""
            import abc, dataclasses, enum, pickle, typing
            @dataclasses.dataclass(order=True)
            class P:
                x: int
                y: typing.ClassVar[int] = 3
            class E(enum.Enum): A = 1
            class N(typing.NamedTuple): a: int = 1
            class D(typing.TypedDict): a: int
            """)
        self.assertEqual(self.value("pickle.loads(pickle.dumps([P(1), E.A, N(), P])) == [P(1), E.A, N(), P]"), "True")
        self.assertEqual(self.value("typing.get_type_hints(P)['x']"), "<class 'int'>")

    def test_getsource(self):
        self.value("import dataclasses, functools, inspect\ndef f(x):\n    return x  # ü\n")
        self.value("class C:\n    '''Doc.'''\n    def m(self):\n        return 1\n    class Inner: pass\n@dataclasses.dataclass\nclass F:\n    x: int = 0")
        self.value("x = 1\nwrapped = functools.lru_cache(f)")
        for what, want in {
            "f": "def f(x):\n    return x  # ü\n",
            "wrapped": "def f(x):\n    return x  # ü\n",
            "C.m": "    def m(self):\n        return 1\n",
            "F": "@dataclasses.dataclass\nclass F:\n    x: int = 0\n",
            "C": "class C:\n    '''Doc.'''\n    def m(self):\n        return 1\n    class Inner: pass\n",
        }.items():
            with self.subTest(what):
                self.assertEqual(self.value(f"inspect.getsource({what})"), repr(want))
        self.value("class C: again = 1")
        self.assertEqual(self.value("inspect.getsource(C)"), "'class C: again = 1\\n'")
        self.assertIn(self.error("inspect.getsource(type('Dynamic', (), {}))")["type"], ("OSError", "TypeError"))
        self.assertEqual(self.error("exec('def g(): pass'); inspect.getsource(g)")["type"], "OSError")
        self.assertEqual(self.value("inspect.getsource(dataclasses).startswith('import')"), "True")

    def test_lines_survive_clearcache(self):
        self.value("def boom():\n    raise OSError('old')")
        self.assertIn("    raise OSError('old')", self.error("import linecache; linecache.clearcache(); boom()")["traceback"])


class Bounded(KernelTest):
    def test_sources(self):
        self.value("def kept():\n    raise OSError('kept')")
        number = self.kernel.cells
        code = """
            import linecache
            from mcpbridge import sources
            texts = sources.Sources(globals())
            for cell in range(10_000, 15_000): texts.add(cell, f"x = {cell}")
            own = [name for name in linecache.cache if name.startswith("<cell 1")]
            len(texts) <= sources.KEPT, len(own) <= sources.KEPT + 10, texts[14_999], texts[14_800]
            """
        self.assertEqual(self.value(code), "(True, True, 'x = 14999', 'x = 14800')")
        self.assertEqual(self.error("texts[10_000]")["message"], "the code of cell 10000 is no longer kept")
        for _ in range(1100):
            self.kernel.run("pass")
        self.assertIn("raise OSError('kept')", self.error("kept()")["traceback"])
        self.assertIn("def kept", self.value(f"In[{number}]"))
        self.assertEqual(self.value("len(In) <= sources.KEPT"), "True")

    def test_long_texts(self):
        code = """
            texts = sources.Sources(globals())
            for cell in range(20_000, 20_050): texts.add(cell, "#" * (1 << 20))
            len(texts) <= 16, texts[20_049][:1]
            """
        self.value("from mcpbridge import sources")
        self.assertEqual(self.value(code), "(True, '#')")

    def test_deep_tracebacks(self):
        error = self.error("def f(n): g(n)\ndef g(n): f(n + 1)\nf(0)")
        self.assertIn("frames left out", error["traceback"])
        self.assertLess(len(error["traceback"].splitlines()), 120)
        self.assertTrue(error["traceback"].splitlines()[-1].startswith("RecursionError"))


class Warn(KernelTest):
    def test_once_a_place_and_cell(self):
        self.value("import warnings\ndef f(): warnings.warn('inside')")
        number = self.kernel.cells
        self.assertEqual(self.printed("for _ in range(3): f()"), f"<cell {number}>:2: UserWarning: inside\n  def f(): warnings.warn('inside')\n")
        code = "warnings.warn('here')\nwarnings.warn('old', DeprecationWarning)"
        for _ in range(2):
            text = self.printed(code)
            self.assertEqual(text.count(f"<cell {self.kernel.cells}>:1: UserWarning: here\n"), 1, text)
            self.assertEqual(text.count(f"<cell {self.kernel.cells}>:2: DeprecationWarning: old\n"), 1, text)

    def test_blames_none_of_our_files(self):
        self.assertEqual(self.printed("import warnings; warnings.warn('up', stacklevel=2)"), "<cell>:1: UserWarning: up\n")

    def test_of_the_compiler_once(self):
        self.assertEqual(self.printed("1 is 1").count("SyntaxWarning"), 1)
        self.assertLessEqual(self.printed("x = '\\d'\nx").count("invalid escape"), 1)


class Asyncio(KernelTest):
    @unittest.skipIf(sys.version_info < (3, 11), "tasks cannot be given a context")
    def test_context_variables_last(self):
        self.value("import asyncio, contextvars; v = contextvars.ContextVar('v', default=0)\nasync def get(): return v.get()")
        for code, want in {
            "_ = v.set(1); v.get()": "1", "await asyncio.sleep(0, v.get())": "1", "_ = v.set(2); await get()": "2",
            "v.get()": "2", "asyncio.run(get())": "2", "await asyncio.sleep(0); asyncio.run(get())": "2",
        }.items():  # fmt: skip
            self.assertEqual(self.value(code), want, code)

    def test_run_inside_a_running_loop(self):
        self.value("""
            import asyncio, contextvars
            name = contextvars.ContextVar("name")
            async def inner(x):
                await asyncio.sleep(0)
                return x, name.get("none")
            def sync(x): return asyncio.run(inner(x))
            async def outer(): return sync(2)
            """)
        self.assertEqual(self.value("await asyncio.sleep(0); _ = name.set('set'); sync(1)")[:3], "(1,")
        self.assertEqual(self.value("await outer()")[:3], "(2,")
        self.assertEqual(self.value("async def deep(): return asyncio.run(outer())\nasyncio.run(deep())[0]"), "2")
        self.assertEqual(self.value("await asyncio.gather(asyncio.sleep(0, 1), asyncio.to_thread(sync, 3))")[:4], "[1, ")
        error = self.error("async def bad(): raise KeyError('k')\nawait asyncio.sleep(0)\nasyncio.run(bad())")
        self.assertEqual([line for line in error["traceback"].splitlines() if ".py" in line], [])
        self.assertEqual(error["type"], "KeyError")
        self.assertIn(self.error("await asyncio.sleep(0)\nasyncio.run(5)")["type"], ("TypeError", "ValueError"))
        self.assertEqual(self.value("import inspect; list(inspect.signature(asyncio.run).parameters)[:2]"), "['main', 'debug']")

    def test_imported_by_name(self):
        self.value("from asyncio import run, sleep")
        self.assertEqual(self.value("await sleep(0); run(sleep(0, 5))"), "5")

    def test_exit_and_interrupt_inside(self):
        self.value("import asyncio, sys, time\nasync def leave(): sys.exit(3)")
        result = self.kernel.run("await asyncio.sleep(0); asyncio.run(leave())")
        self.assertEqual((result["cell"]["status"], result["cell"]["exit"], result["text"]), ("exit", 3, ""))
        code = """
            async def wait():
                try:
                    print("on")
                    await asyncio.sleep(60)
                finally: print("cleaned")
            await asyncio.sleep(0)
            asyncio.run(wait())
            None
            """
        self.kernel.start(__import__("textwrap").dedent(code), grace=10)
        self.kernel.output_until("on\n")
        self.kernel.cancel()
        result = self.kernel.finish()
        self.assertEqual((result["lost"], result["cell"]["error"]["type"], result["text"]), (None, "KeyboardInterrupt", "cleaned\n"))
        self.assertEqual(self.value("await asyncio.sleep(0, 7)"), "7")

    def test_tasks_of_a_cell_without_await(self):
        self.value("import asyncio\nticks = []\nasync def tick():\n  while True: ticks.append(1); await asyncio.sleep(0.001)")
        self.value("task = asyncio.create_task(tick())")
        self.value("await asyncio.sleep(0.05)")
        self.assertEqual(self.value("len(ticks) > 3 and not task.done()"), "True")
        self.value("_ = task.cancel(); await asyncio.wait([task])")
        self.assertEqual(self.value("task.cancelled()"), "True")
        self.assertEqual(self.value("loop = asyncio.new_event_loop()\nloop.run_until_complete(loop.create_task(asyncio.sleep(0, 'own')))"), "'own'")
        self.assertEqual(self.value("type(asyncio.get_running_loop()) is not None"), "True")
        self.assertEqual(self.error("asyncio.ensure_future(tick()); 1 / 0")["type"], "ZeroDivisionError")


if __name__ == "__main__":
    unittest.main()
