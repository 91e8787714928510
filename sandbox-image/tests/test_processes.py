"""multiprocessing in cells, with every start method."""

import unittest

from harness import KernelTest

METHODS = ("fork", "spawn", "forkserver")


class Processes(KernelTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.kernel.run("""
            import concurrent.futures as futures, dataclasses, enum, functools, math, multiprocessing as mp, os, sys
            FACTOR, TABLE = 10, {"a": [1]}
            class Colour(enum.Enum): RED = 1
            @dataclasses.dataclass
            class Point:
                x: int
                colour: Colour = Colour.RED
                def size(self): return math.sqrt(self.x * FACTOR)
            DEFAULT = Point(9)
            """)
        cls.kernel.run("""
            def square(x): return x * x * FACTOR
            def point(x, default=DEFAULT): return Point(square(x) + default.x)
            def fails(x): raise ValueError(f"bad {x}")
            def says(queue): print("from a child", flush=True); queue.put(point(1))
            @functools.lru_cache
            def cached(x): return double(x)
            double = lambda x: 2 * x
            if True:
                def conditional(x): return TABLE["a"] + [x]
            """)
        cls.kernel.run("def square(x): return x * FACTOR  # redefined")

    def test_pool(self):
        for method in METHODS:
            with self.subTest(method):
                self.run_ok(f"context = mp.get_context({method!r})")
                code = "with context.Pool(2) as pool: found = {}\nfound"
                self.assertEqual(self.value(code.format("pool.map(square, range(3))")), "[0, 10, 20]")
                self.assertEqual(self.value(code.format("pool.map(point, [1])") + " == [Point(19)]"), "True")
                self.assertEqual(self.value(code.format("pool.map(cached, [1]) + pool.map(conditional, [2])")), "[2, [1, 2]]")
                self.assertEqual(self.value(code.format("pool.apply(Point.size, (DEFAULT,))")), "9.486832980505138")
                error = self.error(code.format("pool.apply(fails, (3,))"))
                self.assertEqual((error["type"], error["message"]), ("ValueError", "bad 3"))
                self.assertIn("def fails(x)", error["traceback"])

    def test_process_and_queue(self):
        for method in METHODS:
            with self.subTest(method):
                code = f"""
                    context = mp.get_context({method!r})
                    queue = context.Queue()
                    def also(given): queue.put(given is not None); says(given)
                    child = context.Process(target=also, args=(queue,))
                    child.start()
                    got = sorted([queue.get(timeout=20), queue.get(timeout=20)], key=str)
                    child.join(20)
                    got, child.exitcode
                    """
                result = self.run_ok(code)
                self.assertEqual(result["cell"]["value"]["text"], "([Point(x=19, colour=<Colour.RED: 1>), True], 0)")
                self.assertIn("from a child\n", result["text"])

    def test_executor(self):
        for method in METHODS:
            with self.subTest(method):
                code = f"with futures.ProcessPoolExecutor(2, mp_context=mp.get_context({method!r})) as pool: found = list(pool.map(square, [4]))\nfound"
                self.assertEqual(self.value(code), "[40]")
        self.assertEqual(self.value("with futures.ProcessPoolExecutor() as pool: found = pool.submit(square, 5).result()\nfound"), "50")

    def test_what_cannot_be_sent_is_named(self):
        self.run_ok("""
            import threading
            LOCK, HUGE = threading.Lock(), bytes(70 << 20)
            def locked(x):
                with LOCK: return x
            def huge(): return HUGE[0]
            def tool(): return tools.servers()
            """)
        code = "with mp.get_context('spawn').Pool(1) as pool: pool.apply({}, {})"
        for call, words in {
            ("locked", "(1,)"): "'LOCK' of the cells is not there in another process: TypeError: cannot pickle",
            ("huge", "()"): "too large (73,400",
            ("tool", "()"): "the cell's own process only",
        }.items():
            with self.subTest(call):
                error = self.error(code.format(*call))
                self.assertEqual(error["type"], "RuntimeError")
                self.assertIn(words, error["message"])
        self.assertIn(self.error("with mp.get_context('spawn').Pool(1) as pool: pool.apply(lambda: 0)")["type"], ("PicklingError", "AttributeError"))
        self.run_ok("del LOCK, HUGE")

    def test_lock_of_multiprocessing(self):
        code = """
            context = mp.get_context("spawn")
            GUARD, TOTAL = context.Lock(), context.Value("i", 0)
            def add(n):
                for _ in range(n):
                    with GUARD: TOTAL.value += 1
            children = [context.Process(target=add, args=(50,)) for _ in range(2)]
            for child in children: child.start()
            for child in children: child.join(20)
            TOTAL.value
            """
        self.assertEqual(self.value(code), "100")

    def test_children_run_no_cell_again(self):
        code = "print('once')\nwith mp.get_context('spawn').Pool(1) as pool: _ = pool.map(square, [1])"
        self.assertEqual(self.printed(code), "once\n")

    def test_subprocess(self):
        code = "import subprocess\nsubprocess.run([sys.executable, '-c', 'import sys; print(sys.argv)', 'a'], capture_output=True, text=True).stdout"
        self.assertEqual(self.value(code), '"[\'-c\', \'a\']\\n"')


if __name__ == "__main__":
    unittest.main()
