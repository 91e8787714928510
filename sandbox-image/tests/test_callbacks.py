"""The callback channel as cells use it: calls from threads and tasks, large, many, crossing."""

import json
import threading
import time
import unittest

from harness import ECHO_DOC, KernelTest, demo_server


def text(value):
    return {"content": [{"type": "text", "text": value}]}


class Host:
    """A host with tools that show how calls arrive."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = self.most = 0
        self.gate = threading.Event()

    def __call__(self, method, params):
        if method == "tools/list":
            return {"tools": [ECHO_DOC, *(self.doc(name) for name in ("echo", "slow", "fail", "gate", "open", "deep"))]}
        tool = params.get("tool") if method == "tools/call" else None
        run = getattr(self, "do_" + tool, None) if tool and tool.isidentifier() else None
        return run(params["arguments"].get("x")) if run else demo_server(method, params)

    def doc(self, name):
        x = {"name": "x", "ident": "x", "type": "any", "required": False}
        return {"name": name, "ident": name, "signature": f"demo.{name}(x: any = None)", "params": [x]}

    def do_echo(self, x):
        return text(json.dumps([x]))

    def do_slow(self, x):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(0.02 * (1 + (x or 0) % 3))
        with self.lock:
            self.running -= 1
        return text(json.dumps([x]))

    def do_fail(self, x):
        return {**text(f"failed on {x}"), "isError": True}

    def do_gate(self, _):
        self.gate.wait(20)
        return text("through")

    def do_open(self, _):
        self.gate.set()
        return text("opened")

    def do_deep(self, x):
        return b'{"structuredContent":' + b"[" * x + b"]" * x + b"}"


class Callbacks(KernelTest):
    def setUp(self):
        self.host = Host()
        self.kernel.answer = self.host
        self.kernel.calls.clear()

    def called(self, tool):
        return [p["arguments"] for m, p in self.kernel.calls if m == "tools/call" and p["tool"] == tool]

    def test_call(self):
        self.assertEqual(self.value("tools.demo.echo(5)"), "[5]")
        self.assertEqual(self.value("await tools.demo.echo.aio('a')"), "['a']")

    def test_values_that_survive(self):
        code = "x = [1.5, 10**30, 'ü🙂\\x00\\n', None, True, {'k': []}, -0.0]\ntools.demo.echo(x)[0] == x"
        self.assertEqual(self.value(code), "True")

    def test_values_that_json_does_not_have(self):
        for value, error in (("float('nan')", "ValueError"), ("object()", "TypeError"), ("b'a'", "TypeError"), ("{1, 2}", "TypeError")):
            with self.subTest(value):
                self.assertEqual(self.error(f"tools.demo.echo({value})")["type"], error)
        self.assertEqual(self.error("a = []; a.append(a); tools.demo.echo(a)")["type"], "ValueError")
        self.assertEqual(self.value("tools.demo.echo((1, 2))"), "[[1, 2]]")
        self.assertEqual(self.value("tools.demo.echo({1: 2})"), "[{'1': 2}]")
        self.assert_alive()

    def test_lone_surrogates_go_out_as_escapes(self):
        self.assertEqual(self.value("tools.demo.echo('a\\ud800')"), "['a\\ud800']")

    def test_threads(self):
        code = """
            import threading
            results = {}
            def work(i): results[i] = [tools.demo.echo(i * 100 + j)[0] for j in range(20)]
            threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            for t in threads: t.start()
            work(8)
            for t in threads: t.join()
            results == {i: [i * 100 + j for j in range(20)] for i in range(9)}
            """
        self.assertEqual(self.value(code), "True")

    def test_threads_with_large_values(self):
        """One thread waits while others write more than the socket takes."""
        code = """
            import threading
            results = {}
            def work(i):
                for j in range(4):
                    x = chr(97 + i) * (1_000_000 + j)
                    results[i, j] = tools.demo.echo(x)[0] == x
            threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
            for t in threads: t.start()
            for i in range(50): assert tools.demo.echo(i) == [i]
            for t in threads: t.join()
            len(results), all(results.values())
            """
        self.assertEqual(self.value(code), "(24, True)")

    def test_a_thread_that_waits_does_not_hold_up_others(self):
        code = """
            import threading
            waiting = threading.Thread(target=lambda: tools.demo.gate())
            waiting.start()
            for i in range(20): tools.demo.echo(i)
            tools.demo.open()
            waiting.join(10)
            waiting.is_alive()
            """
        self.assertEqual(self.value(code), "False")

    def test_gather(self):
        code = """
            import asyncio
            results = await asyncio.gather(*(tools.demo.slow.aio(i) for i in range(12)))
            [r[0] for r in results] == list(range(12))
            """
        self.assertEqual(self.value(code), "True")
        self.assertGreater(self.host.most, 3)

    def test_gather_with_large_values(self):
        code = """
            import asyncio
            xs = [str(i) * 500_000 for i in range(10)]
            results = await asyncio.gather(*(tools.demo.echo.aio(x) for x in xs))
            [r[0] for r in results] == xs
            """
        self.assertEqual(self.value(code), "True")

    def test_tasks_and_threads_together(self):
        code = """
            import asyncio, threading
            async def tasks(): return [r[0] for r in await asyncio.gather(*(tools.demo.slow.aio(i) for i in range(20)))]
            def thread(): got.extend(tools.demo.slow(i)[0] for i in range(20))
            got = []
            thread = threading.Thread(target=thread)
            thread.start()
            a = await tasks()
            b = await asyncio.to_thread(lambda: asyncio.run(tasks()))
            await asyncio.to_thread(thread.join)
            a == b == got == list(range(20))
            """
        self.assertEqual(self.value(code), "True")

    def test_blocking_call_in_a_task(self):
        code = """
            import asyncio
            async def block(): return tools.demo.echo(1)
            await asyncio.gather(tools.demo.slow.aio(1), block(), tools.demo.slow.aio(2))
            """
        self.assertEqual(self.value(code), "[[1], [1], [2]]")

    def test_timeout_of_a_task_cancels_the_call(self):
        code = """
            import asyncio
            try: await asyncio.wait_for(tools.demo.gate.aio(), 0.1)
            except asyncio.TimeoutError: print("timed out")
            """
        self.assertEqual(self.printed(code), "timed out\n")
        self.assert_alive()
        self.assertEqual([m for m, _ in self.kernel.calls].count("cancel"), 1)
        self.host.gate.set()
        time.sleep(0.05)
        self.assert_alive()

    def test_task_of_a_loop_that_was_closed(self):
        code = """
            import asyncio
            loop = asyncio.new_event_loop()
            task = loop.create_task(tools.demo.gate.aio())
            loop.run_until_complete(asyncio.sleep(0.05))
            loop.close()
            tools.demo.open()
            tools.demo.echo(1), tools.demo.echo(2)
            """
        self.assertEqual(self.value(code), "([1], [2])")

    def test_task_that_is_collected_in_the_middle_of_a_call(self):
        code = """
            import asyncio, gc
            threshold = gc.get_threshold()
            gc.set_threshold(1)
            for _ in range(20):
                loop = asyncio.new_event_loop()
                tasks = [loop.create_task(tools.demo.slow.aio(i)) for i in range(10)]
                loop.run_until_complete(asyncio.sleep(0.01))
                loop.close()
                del loop, tasks
                for i in range(10): tools.demo.slow(i)
            gc.set_threshold(*threshold)
            gc.collect()
            tools.demo.echo(1)
            """
        self.assertEqual(self.value(code, timeout=20), "[1]")
        self.assert_alive()

    def test_finalizer_that_calls_a_tool_in_the_middle_of_a_call(self):
        code = """
            import gc
            class Finalized:
                def __init__(self): self.itself = self
                def __del__(self): ended.append(called())
            def called():
                try: return tools.demo.echo(2)
                except RuntimeError as error: return str(error).partition(":")[0]
            ended = []
            threshold = gc.get_threshold()
            gc.set_threshold(1)
            for i in range(200):
                Finalized()
                tools.demo.slow(0)
            gc.set_threshold(*threshold)
            gc.collect()
            len(ended), {str(e) for e in ended} <= {"[2]", "no tool can be called here"}
            """
        self.assertEqual(self.value(code, timeout=20), "(200, True)")
        self.assert_alive()

    def test_task_that_waits_over_cells(self):
        self.value("import asyncio\nasync def go(): return asyncio.create_task(tools.demo.gate.aio())\ntask = await go(); None")
        self.value("await asyncio.sleep(0)")
        self.assertEqual(self.value("tools.demo.echo(3)"), "[3]")
        self.value("tools.demo.open()")
        self.assertEqual(self.value("await task"), "'through'")

    def test_map_keeps_order_and_bound(self):
        code = "[r[0] for r in tools.map(tools.demo.slow, range(20), concurrency=4)] == list(range(20))"
        self.assertEqual(self.value(code), "True")
        self.assertEqual(self.host.most, 4)

    def test_map_of_a_function_keeps_order_and_bound(self):
        code = "tools.map(lambda i: tools.demo.slow(i)[0], range(20), concurrency=4) == list(range(20))"
        self.assertEqual(self.value(code), "True")
        self.assertLessEqual(self.host.most, 4)

    def test_map_arguments(self):
        self.assertEqual(self.value("tools.map(tools.demo.echo, [{'x': 1}, (2,), 3, [4], ()])"), "[[1], [2], [3], [[4]], [None]]")
        self.assertEqual(self.value("tools.map(lambda a, b=0: a + b, [(1, 2), {'a': 3}, 4])"), "[3, 3, 4]")
        self.assertEqual(self.value("tools.map(tools.demo.echo, []), tools.map(str, iter([]))"), "([], [])")
        self.assertEqual(self.error("tools.map(tools.demo.echo, [1], concurrency=0)")["type"], "ValueError")

    def test_map_exceptions(self):
        for function in ("tools.demo.fail", "lambda i: tools.demo.fail(i)"):
            with self.subTest(function):
                error = self.error(f"tools.map({function}, range(5))")
                self.assertEqual((error["type"], error["message"].split("\n")[0]), ("ToolError", "failed on 0"))
                self.assertIn("(item 0 of 5: 0; 0 succeeded, 5 failed: see .results", error["traceback"])
                code = f"[str(e) for e in tools.map({function}, range(3), return_exceptions=True)]"
                self.assertEqual(self.value(code), "['failed on 0', 'failed on 1', 'failed on 2']")
        self.assertEqual(self.kernel.run("def leave(_): raise SystemExit(3)\ntools.map(leave, [1])")["cell"]["exit"], 3)
        code = "[type(e).__name__ for e in tools.map(tools.demo.echo, [1, object(), {'y': 2}, 3], return_exceptions=True)]"
        self.assertEqual(self.value(code), "['list', 'TypeError', 'TypeError', 'list']")
        self.assert_alive()

    def test_many(self):
        code = "tools.map(tools.demo.echo, range(3000), concurrency=500) == [[i] for i in range(3000)]"
        self.assertEqual(self.value(code), "True")

    def test_huge_argument_and_result(self):
        self.assertEqual(self.value("x = 'ab' * 10_000_000\ntools.demo.echo(x) == [x]"), "True")

    def test_argument_over_the_bound(self):
        error = self.error("tools.demo.echo('x' * (65 << 20))")
        self.assertIn("too large", error["message"])
        self.assert_alive()

    def test_call_interrupted_sends_cancel_and_the_next_works(self):
        for call in (
            "tools.demo.gate()",
            "await tools.demo.gate.aio()",
            "tools.map(tools.demo.gate, [()] * 2)",
            "await tools.amap(tools.demo.gate, [()] * 2)",
            "[r async for r in tools.amap(tools.demo.gate, [()] * 2)]",
            "import asyncio\nawait asyncio.gather(tools.demo.gate.aio(), tools.demo.gate.aio())",
        ):
            with self.subTest(call):
                self.kernel.calls.clear()
                result = self.kernel.run(call, timeout=0.2, grace=10)
                self.assertEqual(result["cell"]["error"]["type"], "KeyboardInterrupt")
                self.assert_alive()
                started = sum(m == "tools/call" and p["tool"] == "gate" for m, p in self.kernel.calls)
                cancelled = [p["id"] for m, p in self.kernel.calls if m == "cancel"]
                self.assertEqual((len(cancelled), len(set(cancelled))), (started, started))
        self.host.gate.set()  # answers that come after all are ignored
        time.sleep(0.1)
        self.assert_alive()

    def test_call_in_an_interrupted_thread_goes_on(self):
        code = "import threading\nt = threading.Thread(target=lambda: got.append(tools.demo.gate()))\ngot = []; t.start()\nt.join()"
        self.assertEqual(self.kernel.run(code, timeout=0.2, grace=10)["cell"]["error"]["type"], "KeyboardInterrupt")
        self.assertEqual(self.value("import time\ntools.demo.open()\nfor _ in range(1000): got or time.sleep(0.01)\ngot"), "['through']")

    def test_unknown_ids_are_ignored(self):
        for id in (0, -1, 999_999, "1", None):
            self.kernel.callback.send(id=id, result={})
        self.kernel.callback.send(method="news", params={})
        self.kernel.callback.send(id=10**6, error={"code": 1, "message": "m"})
        self.assert_alive()

    def test_answer_that_cannot_be_parsed_fails_its_call_only(self):
        code = """
            import threading
            deep, other = [], []
            t = threading.Thread(target=lambda: other.append(tools.demo.gate()))
            t.start()
            try: tools.demo.deep(5000)
            except ToolError as error: print("ToolError", "cannot be read" in str(error))
            except RecursionError: print("RecursionError")
            else: print("parsed")
            tools.demo.open(); t.join(10); other
            """
        result = self.run_ok(code)
        self.assertIn(result["text"], ("ToolError True\n", "parsed\n"))
        self.assertEqual(result["cell"]["value"]["text"], "['through']")

    def test_fork_must_not_call(self):
        code = """
            import os
            tools.demo.echo(1)
            pid = os.fork()
            if pid == 0:
                try: tools.demo.echo(2)
                except RuntimeError as error: os.write(1, str(error).encode())
                os._exit(0)
            os.waitpid(pid, 0)
            tools.demo.echo(3)
            """
        result = self.run_ok(code)
        self.assertIn("from the cell's own process only", result["text"])
        self.assertEqual(self.called("echo"), [{"x": 1}, {"x": 3}])

    def test_errors_of_the_host(self):
        error = self.error("tools.call('demo', 'nope', {})")
        self.assertEqual((error["type"], error["message"]), ("ToolError", "no tool 'nope' here.\nHint: Try another."))
        code = "try: tools.call('demo', 'nope')\nexcept ToolError as e: print(e.server, e.tool, e.result, e.__cause__)"
        self.assertEqual(self.printed(code), "demo nope None None\n")


if __name__ == "__main__":
    unittest.main()
