"""tools.map, tools.amap and gather: how many calls run at once, and what becomes of failures."""

import threading
import unittest

import harness
from harness import KernelTest

PATIENCE = 60  # seconds until a test of what should happen at once has failed
DOCS = [
    {"name": n, "ident": n, "signature": f"demo.{n}(i: int)", "params": [{"name": "i", "ident": "i", "type": "int", "required": True}]}
    for n in ("meet", "odd", "count")
]


class Host:
    """A host with tools that see how many calls there are at once."""

    def __init__(self):
        self.expect(1)

    def expect(self, calls):
        """The tool meet answers when so many calls are there at once."""
        self.barrier = threading.Barrier(calls)
        self.lock = threading.Lock()
        self.running = self.most = 0

    def __call__(self, method, params):
        if method == "tools/list":
            return {"tools": [*DOCS, harness.ECHO_DOC]}
        if method != "tools/call" or params["tool"] == "get-sum":
            return harness.demo_server(method, params)
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            return getattr(self, "do_" + params["tool"])(params["arguments"]["i"])
        finally:
            with self.lock:
                self.running -= 1

    def do_meet(self, i):
        self.barrier.wait(PATIENCE)
        return {"content": [], "structuredContent": {"i": i}}

    def do_odd(self, i):
        return {"content": [{"type": "text", "text": f"{i} is odd" if i % 2 else "[]"}], "isError": bool(i % 2)}

    def do_count(self, i):
        return {"content": [], "structuredContent": {"i": i}}


class Parallel(KernelTest):
    def setUp(self):
        self.host = Host()
        self.kernel.answer = self.host
        self.kernel.calls.clear()

    def test_at_once(self):
        """N calls that answer only when all N are there: one by one they would never."""
        order = "[r.i for r in rs] == list(range(20))"
        for code in (
            "rs = tools.map(tools.demo.meet, range(20))",
            "rs = tools.map(lambda i: tools.demo.meet(i), range(20))",
            "rs = await tools.amap(tools.demo.meet, range(20))",
            "rs = await tools.amap(lambda i: tools.demo.meet(i), range(20))",
            "async def one(i): return await tools.demo.meet.aio(i)\nrs = await tools.amap(one, range(20))",
            "rs = [r async for r in tools.amap(tools.demo.meet, range(20))]",
            "import asyncio\nrs = await asyncio.gather(*(tools.demo.meet.aio(i) for i in range(20)))",
            "async def go(): return await asyncio.gather(*(tools.demo.meet.aio(i) for i in range(20)))\nrs = asyncio.run(go())",
            "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(20) as pool: rs = list(pool.map(tools.demo.meet, range(20)))",
            "rs = await asyncio.gather(*(tools.acall('demo', 'meet', {'i': i}) for i in range(20)))",
            "rs = tools.map(tools.call, [('demo', 'meet', {'i': i}) for i in range(20)])",
            "rs = [r.structuredContent for r in tools.map(tools.demo.meet.raw, range(20))]",
        ):
            with self.subTest(code):
                self.host.expect(20)
                self.assertEqual(self.value(f"{code}\n{order}", timeout=PATIENCE), "True")
                self.assertEqual(self.host.most, 20)

    def test_bounds(self):
        for call, most in (
            ("tools.map(tools.demo.count, range(200), concurrency=3)", 3),
            ("tools.map(tools.demo.count, range(200))", 32),
            ("tools.map(tools.demo.count, range(500), concurrency=1000)", 64),
            ("tools.map(lambda i: tools.demo.count(i), range(200), 3)", 3),
            ("await tools.amap(tools.demo.count, range(200), concurrency=3)", 3),
            ("await tools.amap(lambda i: tools.demo.count(i), range(200), concurrency=3)", 3),
        ):
            with self.subTest(call):
                self.host.expect(1)
                self.assertEqual(self.value(f"[r.i for r in {call}] == list(range(len(_r := {call})))"), "True")
                self.assertLessEqual(self.host.most, most)
        for wrong in ("0", "-1", "'8'", "1.5", "None"):
            for name in ("map", "amap"):
                self.assertEqual(self.error(f"tools.{name}(tools.demo.count, [1], concurrency={wrong})")["type"], "ValueError")

    def test_nothing_to_do(self):
        self.assertEqual(self.value("tools.map(tools.demo.count, []), await tools.amap(tools.demo.count, [])"), "([], [])")
        self.assertEqual(self.value("[x async for x in tools.amap(str, [])]"), "[]")
        self.assertIn("3 calls that have not begun", self.value("repr(tools.amap(str, 'abc'))"))

    def test_one_failure_does_not_lose_the_others(self):
        for call in (
            "tools.map(tools.demo.odd, range(4))",
            "tools.map(lambda i: tools.demo.odd(i), range(4))",
            "await tools.amap(tools.demo.odd, range(4))",
        ):
            with self.subTest(call):
                caught = f"try: {call}\nexcept ToolError as error: e = error\n"
                shown = "str(e).split(chr(10))[0], e.index, e.item, [type(r).__name__ for r in e.results], e.server, e.tool"
                want = "('1 is odd', 1, 1, ['list', 'ToolError', 'list', 'ToolError'], 'demo', 'odd')"
                self.assertEqual(self.value(caught + shown), want)
                text = self.error(call)["traceback"]
                self.assertIn("(item 1 of 4: 1; 2 succeeded, 2 failed: see .results of this error, or return_exceptions=True)", text)
                going = call[:-1] + ", return_exceptions=True)"
                self.assertEqual(self.value(f"[str(r) for r in {going}]"), "['[]', '1 is odd', '[]', '3 is odd']")

    def test_failures_of_an_iteration(self):
        code = """
            got = []
            try:
                async for r in tools.amap(tools.demo.odd, [0, 2, 1, 4]): got.append(r)
            except ToolError as e: got.append((e.index, e.item))
            got.append(len([r async for r in tools.amap(tools.demo.odd, [0, 1, 2], return_exceptions=True)]))
            got
            """
        self.assertEqual(self.value(code), "[[], [], (2, 1), 3]")

    def test_errors_that_are_no_tool_errors(self):
        code = "try: tools.map(lambda i: 1 // i, [2, 0])\nexcept ZeroDivisionError as e: got = (e.item, [type(r).__name__ for r in e.results])\ngot"
        self.assertEqual(self.value(code), "(0, ['int', 'ZeroDivisionError'])")
        code = "[type(r).__name__ for r in tools.map(lambda i: [ValueError(), i][i], [0, 1], return_exceptions=True)]"
        self.assertEqual(self.value(code), "['ValueError', 'int']")
        self.assertEqual(self.value("tools.map(lambda i: ValueError(i), [0])"), "[ValueError(0)]", "a result, not a failure")
        code = "import asyncio\nasync def f(i):\n  if i: raise asyncio.CancelledError\n  return i\n"
        self.assertEqual(self.value(code + "[type(r).__name__ for r in await tools.amap(f, [1, 0, 1], 1, return_exceptions=True)]"), "['CancelledError', 'int', 'CancelledError']")

    def test_an_iteration_that_is_left_cancels(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.host.do_meet = lambda i: gate.wait(PATIENCE) if i else {"content": []}
        code = """
            from contextlib import aclosing
            async with aclosing(aiter(tools.amap(tools.demo.meet, range(5)))) as results:
                async for r in results: break
            """
        self.run_ok(code)
        self.assert_alive()
        self.assertEqual(sum(m == "cancel" for m, _ in self.kernel.calls), 4)

    def test_threads_share_what_they_find(self):
        code = """
            import threading
            got = []
            def work(i): got.append((getattr(tools, "demo").count(i).i, tools.search("x")[0].tool, len(list(tools.demo))))
            threads = [threading.Thread(target=work, args=(i,)) for i in range(30)]
            for t in threads: t.start()
            for t in threads: t.join()
            sorted(got) == [(i, "get-sum", 4) for i in range(30)]
            """
        self.assertEqual(self.value(code), "True")


if __name__ == "__main__":
    unittest.main()
