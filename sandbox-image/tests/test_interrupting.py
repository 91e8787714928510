"""A cell that takes too long, or is cancelled: interrupted if it can be, killed if not."""

import time
import unittest

from harness import Kernel, KernelTest

# Code that runs until it is interrupted. "on" is printed before, or by itself.
ENDLESS = {
    "loop": "while True: pass",
    "sleep": "import time\ntime.sleep(60)",
    "await": "import asyncio\nawait asyncio.sleep(60)",
    "gather": "import asyncio\nawait asyncio.gather(*(asyncio.sleep(60) for _ in range(3)))",
    "asyncio.run": "import asyncio\nasyncio.run(asyncio.sleep(60))",
    "lock": "import threading\nthreading.Lock().acquire() and (l := threading.Lock()).acquire() and l.acquire()",
    "child": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])",
    "join": "import threading\nt = threading.Thread(target=__import__('time').sleep, args=(600,), daemon=True); t.start(); t.join()",
    "queue": "import queue\nqueue.Queue().get()",
    "executor": "import concurrent.futures as f, threading\nf.Future().result()",
    "asyncio.run beside await": "import asyncio\nawait asyncio.sleep(0)\nasyncio.run(asyncio.sleep(60))\nNone",
    "task without await": "import asyncio, time\ntask = asyncio.create_task(asyncio.sleep(60)); time.sleep(60)",
    # Its worker says "on": one that is interrupted before it waits can keep a lock, and the pool then never ends.
    "pool": "import multiprocessing, time\ndef work(s): print('on', flush=True); time.sleep(s)\n"
    "with multiprocessing.get_context('fork').Pool(1) as pool: pool.map(work, [60])",
    "pipe": "import os\nos.read(os.pipe()[0], 1)",
    "replaced builtins": "import builtins, time\nbuiltins.len = None\ntry: time.sleep(60)\nfinally: del builtins.len",
    "C code": "sum(1 for _ in iter(int, 1))",
    "call": "tools.demo.wait()",
    "async call": "await tools.demo.wait.aio()",
    "gathered calls": "import asyncio\nawait asyncio.gather(tools.demo.wait.aio(), tools.demo.wait.aio())",
    "map": "tools.map(tools.demo.wait, [()] * 3)",
    "map of a function": "import time\ntools.map(lambda _: time.sleep(60), range(3))",
    "calls in threads": "tools.map(lambda _: tools.demo.wait(), range(3))",
    "output": "while True: print('x' * 100)",
}


def endless(name):
    """The code of that name; it keeps the name, too."""
    code = ENDLESS[name]
    return f"kept = {name!r}\n" + ("" if "'on'" in code else "print('on')\n") + code


class Interrupts(KernelTest):
    def setUp(self):
        self.kernel = Kernel(answer)
        self.addCleanup(self.kernel.close)

    def check_interrupted(self, result, why):
        self.assertEqual((result["interrupted"], result["lost"]), (why, None))
        self.assertEqual(result["cell"]["status"], "error", result["cell"])
        self.assertEqual(result["cell"]["error"]["type"], "KeyboardInterrupt")
        self.assertNotRegex(result["cell"]["error"]["traceback"], r"File .*\.py\b")  # only the user's lines

    def test_timeout_keeps_variables(self):
        for name in ENDLESS:
            with self.subTest(name):
                result = self.kernel.run(endless(name), timeout=3 if name == "pool" else 0.3, grace=10)
                self.check_interrupted(result, "timeout")
                self.assertEqual(self.value("kept"), repr(name))
                self.assert_alive()

    def test_cancel_keeps_variables(self):
        for name in ENDLESS:
            with self.subTest(name):
                self.kernel.start(endless(name), grace=10)
                self.kernel.output_until("on\n")
                self.kernel.cancel()
                self.check_interrupted(self.kernel.finish(), "cancel")
                self.assertEqual(self.value("kept"), repr(name))
                self.assert_alive()

    def test_interrupt_as_the_cell_ends(self):
        """The loop has yet to be told that the cell has ended, and is left."""
        code = "import asyncio\ndef late(): raise KeyboardInterrupt\nasyncio.get_running_loop().call_soon(late)"
        self.assertEqual(self.error(code + "\nawait asyncio.sleep(0)")["type"], "KeyboardInterrupt")
        self.assertEqual(self.error("async def f(): pass\nawait f()\n" + code)["type"], "KeyboardInterrupt")
        self.assertEqual(self.value("await asyncio.sleep(0.01, 7)"), "7")

    def test_cancel_at_any_moment(self):
        """The interrupt comes at any place of a call, and the channel survives it."""
        code = "print('on')\nwhile True: tools.demo.get_sum(1, 2)"
        for i in range(60):
            self.kernel.start(code, grace=10)
            self.kernel.output_until("on\n")
            time.sleep(i * 0.0007)
            self.kernel.cancel()
            self.check_interrupted(self.kernel.finish(), "cancel")
        self.assert_alive()

    def test_interrupt_that_python_has_noticed_is_not_repeated(self):
        code = "import time\ntry:\n  time.sleep(60)\nfinally:\n  time.sleep(1)\n  print('cleaned')"
        result = self.kernel.run(code, timeout=0.2, grace=10)
        self.assertEqual((result["text"], result["lost"]), ("cleaned\n", None))

    def test_interrupt_that_python_has_not_noticed_is_repeated(self):
        code = "import signal, time\ncame = []\nsignal.signal(signal.SIGINT, lambda *_: came.append(1))\nwhile len(came) < 3: time.sleep(0.01)\nlen(came)"
        result = self.kernel.run(code, timeout=0.2, grace=10)
        self.assertEqual((result["cell"]["value"]["text"], result["interrupted"]), ("3", "timeout"))

    def test_interrupt_in_a_finalizer(self):
        code = """
            import time
            class Slow:
                def __del__(self): time.sleep(60)
            Slow()
            while True: time.sleep(0.1)
            """
        result = self.kernel.run(code, timeout=0.2, grace=10)
        self.check_interrupted(result, "timeout")
        self.assertEqual(result["text"], "")

    def test_interrupted_import_can_be_done_again(self):
        self.kernel.run("""
            import os, pathlib, sys, tempfile
            sys.path.insert(0, tempfile.mkdtemp())
            package = pathlib.Path(sys.path[0], "whole")
            package.mkdir()
            (package / "part.py").write_text("one = 1")
            (package / "__init__.py").write_text("from .part import *; import __main__; __main__.wait(); two = part.one + 1")
            wait = lambda: (print("on"), __import__("time").sleep(60))
            """)
        self.kernel.start("import whole", grace=10)
        self.kernel.output_until("on\n")
        self.kernel.cancel()
        self.assertEqual(self.kernel.finish()["cell"]["error"]["type"], "KeyboardInterrupt")
        self.kernel.run("wait = int")
        self.assertEqual(self.value("__import__('whole').two"), "2")

    def test_cancel_at_any_moment_of_a_large_call(self):
        code = "print('on')\nwhile True: tools.demo.echo('x' * 3_000_000)"
        for i in range(20):
            self.kernel.start(code, grace=10)
            self.kernel.output_until("on\n")
            time.sleep(i * 0.003)
            self.kernel.cancel()
            self.check_interrupted(self.kernel.finish(), "cancel")
        self.assert_alive()

    def test_cancel_at_any_moment_of_many_threads(self):
        code = """
            print('on')
            tools.map(lambda i: tools.demo.get_sum(i, i), range(100_000))
            """
        for i in range(10):
            self.kernel.start(code.replace("            ", ""), grace=10)
            self.kernel.output_until("on\n")
            time.sleep(0.05 + i * 0.003)
            self.kernel.cancel()
            self.check_interrupted(self.kernel.finish(), "cancel")
            self.assert_alive()

    def test_finally_runs(self):
        self.kernel.run("import asyncio, time")
        code = "try:\n  __import__('time').sleep(60)\nfinally:\n  print('cleaned')"
        self.assertEqual(self.kernel.run(code, timeout=0.2, grace=10)["text"], "cleaned\n")
        code = "import asyncio\ntry:\n  await asyncio.sleep(60)\nfinally:\n  await asyncio.sleep(0)\n  print('cleaned')"
        self.assertEqual(self.kernel.run(code, timeout=0.2, grace=10)["text"], "cleaned\n")

    def test_caught(self):
        code = "try:\n  __import__('time').sleep(60)\nexcept KeyboardInterrupt:\n  caught = True\ncaught"
        result = self.kernel.run(code, timeout=0.2, grace=10)
        self.assertEqual((result["interrupted"], result["cell"]["value"]["text"]), ("timeout", "True"))

    def test_in_repr_of_the_value(self):
        code = "class E:\n  def __repr__(self):\n    while True: pass\nE()"
        self.check_interrupted(self.kernel.run(code, timeout=0.2, grace=10), "timeout")
        self.assert_alive()

    def test_ignored_is_killed(self):
        for code in (
            "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
            "while True:\n  try:\n    __import__('time').sleep(60)\n  except KeyboardInterrupt: pass",
            "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True: pass",
        ):
            with self.subTest(code):
                begin = time.monotonic()
                result = self.kernel.run(code, timeout=0.2, grace=0.3)
                self.assertLess(time.monotonic() - begin, 5)
                self.assertEqual(result["interrupted"], "timeout")
                self.assertEqual(result["lost"], "it ignored the interrupt")
                self.assertIsNone(result["cell"])
                self.kernel.restart()
                self.assert_alive()

    def test_handler_of_a_cell_lasts_as_long_as_it(self):
        self.value("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nNone")
        self.check_interrupted(self.kernel.run("while True: pass", timeout=0.2, grace=5), "timeout")

    def test_late_interrupts_are_harmless(self):
        for i in range(30):
            self.kernel.start(f"x = {i}")
            self.kernel.cancel()
            self.kernel.control.send(method="interrupt", params={"cell": self.kernel.cells - 1})
            result = self.kernel.finish()
            self.assertIsNone(result["lost"])
            self.kernel.cancel()  # after its end
        self.value("import os, signal; os.kill(os.getpid(), signal.SIGINT) if False else None")
        self.assert_alive()

    def test_interrupts_between_cells_are_ignored(self):
        pid = int(self.value("import os; os.getpid()"))
        self.value(
            "import threading, signal\n"
            "threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()"
        )
        time.sleep(0.3)
        self.assertEqual(self.value("os.getpid()"), str(pid))

    def test_timeout_during_output_flood_while_the_host_is_slow(self):
        self.kernel.start("while True: print('x' * 10_000)", timeout=0.3, grace=5)
        time.sleep(1)  # the host reads nothing meanwhile
        result = self.kernel.finish()
        self.check_interrupted(result, "timeout")
        self.assertLess(len(result["text"]), 16 << 20)

    def test_unread_output_does_not_grow_the_supervisor(self):
        self.kernel.start("import sys\nwhile True:\n  print('x' * 60_000)\n  print('y' * 60_000, file=sys.stderr)", timeout=2)
        time.sleep(1.5)
        with open(f"/proc/{self.kernel.process.pid}/statm") as statm:
            resident = int(statm.read().split()[1]) * 4096
        self.assertLess(resident, 100 << 20)
        self.check_interrupted(self.kernel.finish(), "timeout")

    def test_call_that_is_interrupted_is_cancelled(self):
        self.kernel.run("tools.demo.wait()", timeout=0.3, grace=10)
        self.assert_alive()
        methods = [method for method, _ in self.kernel.calls]
        self.assertEqual(methods.count("cancel"), 1, methods)


def answer(method, params):
    """demo_server with tools that take their time."""
    from harness import ECHO_DOC, demo_server

    if method == "tools/list":
        wait = {"name": "wait", "ident": "wait", "signature": "demo.wait()", "params": []}
        text = {"name": "text", "ident": "text", "type": "str", "required": True}
        echo = {"name": "echo", "ident": "echo", "signature": "demo.echo(text: str)", "params": [text]}
        return {"tools": [ECHO_DOC, wait, echo]}
    if method == "tools/call" and params["tool"] == "wait":
        time.sleep(60)
    if method == "tools/call" and params["tool"] == "echo":
        return {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
    return demo_server(method, params)


if __name__ == "__main__":
    unittest.main()
