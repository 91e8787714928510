"""What a cell evaluates to, prints and raises."""

import sys
import unittest

from harness import KernelTest


class Values(KernelTest):
    def test_values(self):
        for code, want in {
            "1 + 1": "2",
            "x = 5": None,
            "x = 5; x": "5",
            "x": "5",
            "x;": None,
            "(x) ; # shown to nobody": None,
            "(x\n);": None,
            "'ü'; 'a;'": "'a;'",
            "x # ;": "5",
            "1; x = 5; x": "5",
            "    x\n    x": "5",
            "\n\tif x:\n\t\ty = 6\n\ty": "6",
            "None": None,
            "": None,
            "   \n\n": None,
            "# only a comment": None,
            "'text'": "'text'",
            '"""doc"""': "'doc'",
            "def f(): return 7": None,
            "f()": "7",
            "class A:\n  def __repr__(self): return 'an A'\nA()": "an A",
            "for i in range(3): i": None,
            "if True:\n  3": None,
            "1, 2": "(1, 2)",
            "(y := 4)": "4",
            "import math": None,
            "math.floor(2.5)": "2",
            "lambda: 0\n0.1 + 0.2": "0.30000000000000004",
            "'a\\ud800'": "'a\\ud800'",
            "'ü🙂\\n'": "'ü🙂\\n'",
            "__name__": "'__main__'",
            "import sys; sys.modules['__main__'].x": "5",
            "from __future__ import annotations\n8": "8",
        }.items():
            with self.subTest(code):
                self.assertEqual(self.value(code), want)

    def test_underscore_is_the_last_value_shown(self):
        self.value("[1, 2]")
        self.value("y = 3")
        self.value("None")
        self.assertEqual(self.value("_ + [3]"), "[1, 2, 3]")
        self.assertEqual(self.value("_"), "[1, 2, 3]")

    def test_state_persists(self):
        self.value("import json as j\nstate = {'a': 1}\ndef get(): return state['a']")
        self.error("state['a'] = 2\nraise ValueError")
        self.assertEqual(self.value("j.dumps(get())"), "'2'")

    def test_long_value_is_cut_and_kept(self):
        result = self.run_ok("list(range(100_000))", value_limit=50)
        self.assertEqual(result["cell"]["value"]["shape"], "list of 100,000 int")
        self.assertLessEqual(len(result["cell"]["value"]["text"]), 52)
        self.assertEqual(self.value("len(_)"), "100000")

    def test_showing_a_value_never_fails_a_cell(self):
        for code, want in {
            "class R:\n  def __repr__(self): raise OSError('no')\nR()": "<R whose repr() raised OSError>",
            "class L(list):\n  def __iter__(self): raise OSError\nL()": "[]",
            "a = []\nfor _ in range(10**5): a = [a]\na": None,
            "a = []; a.append(a); a": "[[...]]",
        }.items():
            with self.subTest(code):
                got = self.value(code)
                self.assertEqual(got, want if want is not None else got)

    def test_exit_in_repr(self):
        result = self.kernel.run("class E:\n  def __repr__(self): raise SystemExit(4)\nE()")
        self.assertEqual((result["cell"]["status"], result["cell"]["exit"]), ("exit", 4))

    def test_out(self):
        number = self.kernel.cells + 1
        self.kernel.answer, answer = lambda _, params: {"text": f"text of {params['cell']}"}, self.kernel.answer
        self.addCleanup(setattr, self.kernel, "answer", answer)
        self.value("print('hello'); 99")
        self.assertEqual(self.value(f"out[{number}]"), f"'text of {number}'")
        self.assertEqual(self.value(f"out[{number}].value"), "99")
        self.assertEqual(self.value("out[12345].value"), None)
        self.assertEqual(self.kernel.calls[-1], ("output/read", {"cell": 12345}))
        for _ in range(51):
            last = self.kernel.cells
            self.run_ok("0")
        self.assertIn(f"the value of cell {number} is no longer kept", self.error(f"out[{number}].value")["message"])
        self.assertEqual(self.value(f"out[{last}].value"), "0")
        self.assertIn("out[n] takes the number of a cell", self.error("out['a']")["message"])

    def test_out_that_is_not_there(self):
        def answer(*_):
            raise LookupError("there is no cell 7; the latest is 3")

        self.kernel.answer, before = answer, self.kernel.answer
        self.addCleanup(setattr, self.kernel, "answer", before)
        error = self.error("out[7]")
        self.assertEqual(error["traceback"].splitlines()[-1], "IndexError: there is no cell 7; the latest is 3")

    def test_kept_values_are_bounded(self):
        first = self.kernel.cells + 1
        for i in range(60):
            self.value(str(i))
        self.assertEqual(self.value(f"out._values.get({first}), len(out._values)"), "(None, 50)")


class Await(KernelTest):
    def test_top_level(self):
        self.assertEqual(self.value("import asyncio\nawait asyncio.sleep(0.01, 'slept')"), "'slept'")
        self.assertEqual(self.value("x = await asyncio.sleep(0, 3)\nx"), "3")
        self.assertEqual(self.value("[await asyncio.sleep(0, i) for i in range(3)]"), "[0, 1, 2]")
        code = "async def f():\n  yield 1\n  yield 2\nasync for i in f(): print(i)\n[i async for i in f()]"
        result = self.run_ok(code)
        self.assertEqual((result["text"], result["cell"]["value"]["text"]), ("1\n2\n", "[1, 2]"))

    def test_tasks_outlive_a_cell(self):
        code = """
            import asyncio
            async def work():
                await asyncio.sleep(0.01)
                return "done"
            task = asyncio.get_event_loop().create_task(work()) if False else None
            async def make(): return asyncio.create_task(work())
            task = await make()
            """
        self.value(code)
        self.assertEqual(self.value("await task"), "'done'")

    def test_asyncio_run_in_a_sync_cell(self):
        self.assertEqual(self.value("import asyncio\nasyncio.run(asyncio.sleep(0, 5))"), "5")
        self.assertEqual(self.value("await asyncio.sleep(0, 6)"), "6")
        self.assertEqual(self.value("asyncio.run(asyncio.sleep(0, 7))"), "7")

    def test_errors(self):
        error = self.error("async def f():\n  raise KeyError('k')\nawait f()")
        self.assertEqual(error["type"], "KeyError")
        number = self.kernel.cells
        self.assertEqual(
            [line for line in error["traceback"].splitlines() if "File" in line],
            [f'  File "<cell {number}>", line 3, in <module>', f'  File "<cell {number}>", line 2, in f'],
        )


class Errors(KernelTest):
    def lines(self, code):
        """The traceback's lines, without those that underline, the cell's number as N."""
        text = self.error(code)["traceback"].replace(f"<cell {self.kernel.cells}>", "<cell N>")
        return [line for line in text.splitlines() if set(line.strip(" |")) - set("^~")]

    def test_traceback(self):
        self.assertEqual(
            self.lines("def f(x):\n    return 1 / x\n\nf(0)"),
            [
                "Traceback (most recent call last):",
                '  File "<cell N>", line 4, in <module>',
                "    f(0)",
                '  File "<cell N>", line 2, in f',
                "    return 1 / x",
                "ZeroDivisionError: division by zero",
            ],
        )

    def test_lines_of_an_earlier_cell(self):
        self.value("def boom():\n    raise OSError('old')")
        self.assertIn("    raise OSError('old')", self.lines("boom()"))

    def test_an_error_that_a_library_raises_again_is_told_once(self):
        library = '''
import os, sys, tempfile
folder = tempfile.mkdtemp() + "/site-packages"
os.mkdir(folder)
with open(folder + "/again.py", "w") as file:
    file.write("def inner(key): raise KeyError(key)\\ndef get(key, other=None):\\n  try: inner(key)\\n  except KeyError as e: raise KeyError(other or key) from e\\n")
sys.path.insert(0, folder)
import again
'''
        self.run_ok(library)
        text = self.error("again.get('zz')")["traceback"]
        self.assertEqual((text.count("KeyError: 'zz'"), text.count("direct cause")), (1, 0), text)
        text = self.error("again.get('zz', 'yy')")["traceback"]
        self.assertEqual((text.count("KeyError: "), text.count("direct cause")), (2, 1), text)
        text = self.error("def f(): raise KeyError(1)\ntry: f()\nexcept KeyError as e: raise KeyError(1) from e")["traceback"]
        self.assertEqual((text.count("KeyError: "), text.count("direct cause")), (2, 1), text)

    def test_frames_of_others_are_left_out(self):
        lines = self.lines("import json\njson.loads('{')")
        self.assertEqual([line for line in lines if "File" in line], ['  File "<cell N>", line 2, in <module>'])
        lines = self.lines("tools.demo.get_sum(1)")
        self.assertEqual([line for line in lines if "File" in line], ['  File "<cell N>", line 1, in <module>'])

    def test_frames_of_text_and_scripts(self):
        lines = self.lines("exec(compile('x=1\\ny=2\\n1/0', 'script.py', 'exec'))")
        self.assertIn('  File "script.py", line 3, in <module>', lines)
        self.assertIn('  File "<string>", line 2, in <module>', self.lines("exec('\\n1/0')"))
        self.assertIn('  File "/srv/a.py", line 1, in <module>', self.lines("exec(compile('1/0', '/srv/a.py', 'exec'))"))
        lines = self.lines("import runpy\nopen('s.py', 'w').write('\\n1/0')\nrunpy.run_path('s.py')")
        self.assertIn('  File "s.py", line 2, in <module>', lines)
        self.assertEqual(len([line for line in lines if "File" in line]), 2, lines)

    def test_frames_of_an_error_that_has_no_message(self):
        error = self.error("class E(Exception):\n  def __str__(self): 1/0\nraise E")
        self.assertIn("line 3, in <module>", error["traceback"])
        self.assertEqual(error["message"], "(its message cannot be shown: ZeroDivisionError)")

    def test_chained(self):
        lines = self.lines("try:\n  1 / 0\nexcept ZeroDivisionError as e:\n  raise ValueError('v') from e")
        self.assertIn("The above exception was the direct cause of the following exception:", lines)
        self.assertEqual(lines[-1], "ValueError: v")
        lines = self.lines("try:\n  {}['k']\nexcept KeyError:\n  json.loads('{')")
        self.assertIn("During handling of the above exception, another exception occurred:", lines)
        self.assertFalse([line for line in lines if "/" in line], lines)
        lines = self.lines("try:\n  1 / 0\nexcept ZeroDivisionError:\n  raise ValueError('v') from None")
        self.assertNotIn("ZeroDivisionError: division by zero", lines)

    @unittest.skipIf(sys.version_info < (3, 11), "no exception groups")
    def test_groups(self):
        code = """
            import json
            def fails(f, *args):
                try: f(*args)
                except Exception as e: return e
            raise ExceptionGroup("some", [fails(json.loads, "{"), ExceptionGroup("in", [fails(int, "a")])])
            """
        lines = self.lines(code)
        text = "\n".join(lines)
        self.assertIn("ExceptionGroup: some (2 sub-exceptions)", text)
        self.assertIn("ValueError: invalid literal", text)
        self.assertIn("JSONDecodeError", text)
        self.assertFalse([line for line in lines if ".py" in line], lines)

    def test_groups_of_tasks(self):
        if sys.version_info < (3, 11):
            return
        code = """
            import asyncio
            async def bad(): raise OSError("one")
            async with asyncio.TaskGroup() as group: group.create_task(bad())
            """
        self.assertIn("OSError: one", "\n".join(self.lines(code)))

    def test_syntax_error(self):
        error = self.error("x = 1\ny = (2 +\n")
        self.assertEqual(error["type"], "SyntaxError")
        self.assertIn(f'File "<cell {self.kernel.cells}>", line 2', error["traceback"])
        self.assertNotIn("Traceback", error["traceback"])
        caret = [line for line in error["traceback"].splitlines() if line.strip(" ") in ("^", "^^^^^^")]
        self.assertTrue(caret, error["traceback"])
        self.assertEqual(self.error("x = 1\n  y = 2")["type"], "IndentationError")
        self.assertEqual(self.error("return 5")["type"], "SyntaxError")
        self.assertIn("    return 5", self.lines("return 5"))
        self.assertEqual(self.error("x =\x00 5")["type"] in ("SyntaxError", "ValueError"), True)
        self.assertIn(self.error("(" * 1000)["type"], ("SyntaxError", "MemoryError", "RecursionError"))
        self.assertIn(self.error("x" + ".x" * 100_000)["type"], ("RecursionError", "MemoryError", "NameError"))

    def test_nothing_of_a_cell_that_does_not_parse_runs(self):
        result = self.kernel.run("print('ran')\nx = = 1")
        self.assertEqual((result["text"], result["cell"]["status"]), ("", "error"))

    def test_messages_that_cannot_be_had(self):
        for code, want in {
            "class E(Exception):\n  def __str__(self): raise OSError\nraise E": "E",
            "class E(Exception):\n  def __str__(self): return 5\nraise E": "E",
            "class E(Exception):\n  def __repr__(self): raise OSError\nraise E('x', 1)": "E",
            "class E(BaseException): pass\nraise E('x')": "E",
            "raise GeneratorExit": "GeneratorExit",
            "raise KeyboardInterrupt": "KeyboardInterrupt",
            "raise ValueError('a\\ud800b\\x00')": "ValueError",
            "e = ValueError('v'); e.__cause__ = e; raise e": "ValueError",
            "raise 5": "TypeError",
            "raise type('N' * 100_000, (Exception,), {})": "N" * 100_000,
        }.items():
            with self.subTest(code):
                error = self.error(code)
                self.assertEqual(error["type"], want)
                self.assertTrue(error["traceback"])
                self.assertLess(len(error["traceback"]), 15_000)

    def test_recursion(self):
        error = self.error("def f(): f()\nf()")
        self.assertEqual(error["type"], "RecursionError")
        self.assertIn("Previous line repeated", error["traceback"])
        self.assert_alive()

    def test_long_messages_are_cut(self):
        error = self.error("raise ValueError('x' * 10_000_000)")
        self.assertLess(len(error["message"]), 3000)
        self.assertLess(len(error["traceback"]), 15_000)
        self.assertIn("characters cut", error["traceback"])

    def test_long_chains(self):
        code = """
            e = None
            for i in range(5000):
                n = ValueError(i)
                n.__context__ = e
                e = n
            raise e
            """
        error = self.error(code)
        self.assertEqual(error["message"], "4999")
        self.assertLess(len(error["traceback"]), 15_000)
        self.assert_alive()

    def test_warnings_go_to_stderr(self):
        self.assertIn("SyntaxWarning", self.printed("1 is 1"))


class Exit(KernelTest):
    def test_status(self):
        for code, status, text in (
            ("import sys; sys.exit()", 0, ""),
            ("sys.exit(0)", 0, ""),
            ("sys.exit(3)", 3, ""),
            ("sys.exit(True)", 1, ""),
            ("sys.exit(-1)", 255, ""),
            ("sys.exit(256)", 0, ""),
            ("sys.exit(10**30)", 0, ""),
            ("sys.exit('no such file')", 1, "no such file\n"),
            ("exit(2)", 2, ""),
            ("quit()", 0, ""),
            ("input() if False else exit('bye')", 1, "bye\n"),
            ("await __import__('asyncio').sleep(0); sys.exit(4)", 4, ""),
            ("class B:\n  def __str__(self): raise OSError\nsys.exit(B())", 1, ""),
        ):
            with self.subTest(code):
                result = self.kernel.run(code)
                self.assertEqual((result["cell"]["status"], result["cell"]["exit"]), ("exit", status), result)
                self.assertEqual(result["text"], text)
        self.assertEqual(self.value("'alive'"), "'alive'")

    def test_variables_are_kept(self):
        self.value("kept = 1")
        self.kernel.run("kept = 2; sys.exit(1)")
        self.assertEqual(self.value("kept"), "2")


if __name__ == "__main__":
    unittest.main()
