"""memory: what is kept across sessions."""

import json
import unittest

import harness
import keeping


class MemoryTest(harness.KernelTest):
    @classmethod
    def setUpClass(cls):
        cls.keeper = keeping.Keeper()
        cls.kernel = harness.Kernel(cls.keeper)

    def setUp(self):
        for area in self.keeper.areas.values():
            area.clear()

    def kept(self, key):
        return json.loads(self.keeper.areas["memory"][key])

    def test_a_dict(self):
        self.run_ok("memory['a'] = {'n': [1, 2.5, None, True, 'ü']}; memory['b'] = 2")
        self.assertEqual(self.value("memory['a'], memory['a'].n[0], 'a' in memory, 'c' in memory, 7 in memory"), "({'n': [1, 2.5, None, True, 'ü']}, 1, True, False, False)")
        self.assertEqual(self.value("len(memory), list(memory), sorted(memory.items(), key=str)[1], list(memory.values())[1]"), "(2, ['a', 'b'], ('b', 2), 2)")
        self.assertEqual(self.value("memory.get('c'), memory.get('c', 3), memory.get('b')"), "(None, 3, 2)")
        self.assertEqual(self.value("memory.setdefault('b', 9), memory.setdefault('d', 9), memory['d']"), "(2, 9, 9)")
        self.assertEqual(self.value("memory.pop('d'), memory.pop('d', None), 'd' in memory"), "(9, None, False)")
        self.run_ok("memory.update({'x': 1, 'y': (1, 2)}, z=3)")
        self.assertEqual(self.value("memory['x'], memory['y'], memory['z']"), "(1, [1, 2], 3)")
        self.run_ok("del memory['x']")
        for code in ("memory['x']", "del memory['x']", "memory.pop('x')", "memory.info('x')"):
            self.assertEqual(self.error(code)["message"], "'x'", code)
        self.run_ok("memory.clear()")
        self.assertEqual(self.value("len(memory), list(memory)"), "(0, [])")

    def test_keys_that_are_alike(self):
        self.run_ok("for n, k in enumerate(['a/b', 'a_b', 'A_B', 'a-b', ' ', '../x', 'ключ', 'x' * 512]): memory[k] = n")
        self.assertEqual(self.value("[memory[k] for k in ['a/b', 'a_b', 'A_B', 'a-b', ' ', '../x', 'ключ', 'x' * 512]]"), "[0, 1, 2, 3, 4, 5, 6, 7]")
        for key, problem in (("1", "a key is a str, not int"), ("''", "not empty"), ("'x' * 513", "at most 512 bytes in UTF-8, not 513"), (r"'\ud800'", "valid Unicode")):
            self.assertIn(problem, self.error(f"memory[{key}] = 1")["message"])

    def test_what_is_not_json(self):
        for value, problem in (
            ("{'rows': [{'when': dt.date(2020, 1, 1)}]}", "memory['k']['rows'][0]['when'] is of type date: only JSON is kept"),
            ("{1, 2}", "memory['k'] is of type set"),
            ("[0, b'']", "memory['k'][1] is of type bytes"),
            ("{'a': {1: 2}}", "memory['k']['a'] has the key 1 of type int"),
            ("[float('nan')]", "memory['k'][0] is nan: JSON has no such number"),
            ("loop", "memory['k'][0] contains itself"),
            ("deep", "nested more than 100 deep"),
        ):
            error = self.error(f"import datetime as dt\nloop = []; loop.append(loop)\ndeep = []\nfor _ in range(5000): deep = [deep]\nmemory['k'] = {value}")
            self.assertEqual(error["type"], "TypeError", value)
            self.assertIn(problem, error["message"])
        self.assertEqual(self.keeper.areas["memory"], {})

    def test_odd_json(self):
        self.run_ok(r"memory['k'] = ['\ud800', 10**30, -0.0, 1e308, '\x00\u2028', {'': 0}]")
        self.assertEqual(self.value("memory['k']"), r"['\ud800', 1000000000000000000000000000000, -0.0, 1e+308, '\x00\u2028', {'': 0}]")

    def test_bounds(self):
        error = self.error("memory['k'] = 'x' * (2 << 20)")
        self.assertEqual(error["type"], "StateError")
        self.value("try: memory['k'] = 'x' * (2 << 20)\nexcept StateError as e: print(e.kind)")
        self.assertIn("full: it is too large\nHint: keep less", error["message"])

    def test_metadata(self):
        self.run_ok("memory.set('k', 1, tags=['a'], about='numbers')")
        created = self.kept("k")["created_at"]
        self.run_ok("memory['k'] = 2; memory.set('k', 3, about='more'); memory.change('k', lambda n: n + 1)")
        kept = self.kept("k")
        self.assertEqual((kept["value"], kept["metadata"], kept["created_at"]), (4, {"tags": ["a"], "about": "more"}, created))
        self.assertGreater(kept["updated_at"], created)
        self.assertEqual(self.value("i = memory.info('k'); i.metadata.tags, i.session, i.key, i.created_at < i.updated_at"), "(['a'], 's1', 'k', True)")
        self.assertIn("metadata['when'] is of type object", self.error("memory.set('k', 1, when=object())")["message"])

    def test_changes_of_others_are_not_lost(self):
        self.run_ok("memory['n'] = 1")

        def add_ten(area):
            area["n"] = json.dumps({**json.loads(area["n"]), "value": json.loads(area["n"])["value"] + 10})

        self.keeper.before_change = add_ten
        self.assertEqual(self.value("memory.change('n', lambda n: n + 1), memory['n']"), "(12, 12)")
        self.keeper.before_change = add_ten
        self.assertEqual(self.value("memory.pop('n')"), "22")
        self.assertEqual(self.value("memory.update_key('list', lambda l: [*l, 1], default=[])"), "[1]")
        self.assertIn("ZeroDivisionError", self.error("memory.change('list', lambda l: 1 / 0)")["type"])
        self.assertEqual(self.kept("list")["value"], [1])

    def test_damage(self):
        self.keeper.damaged.add("k")
        self.assertIn("damaged", self.error("memory['k']")["message"])
        self.run_ok("memory['k'] = 1")
        self.assertEqual(self.value("memory['k']"), "1")

    def test_how_it_looks(self):
        self.assertIn("nothing kept yet", self.value("memory"))
        self.run_ok("for n in range(60): memory[f'key{n:02}'] = n")
        self.assertRegex(self.value("memory", value_limit=20000), r"(?s)memory: 60 keys kept.*\n  'key00'  \d+ bytes\n.*'key49'.*… and 10 more")
        self.assertIn("in one step", self.printed("help(memory)"))

    def test_the_user_s_own_name(self):
        kernel = self.new_kernel(keeping.Keeper())
        self.assertEqual(kernel.run("memory = 5\nmemory")["cell"]["value"]["text"], "5")
        self.assertEqual(kernel.run("memory + 1")["cell"]["value"]["text"], "6")

    def test_code_that_was_not_looked_through(self):
        kernel = self.new_kernel(keeping.Keeper())
        result = kernel.run("m = globals()['mem' + 'ory']; m['k'] = 1; m.get('k'), m['k']")
        self.assertEqual(result["cell"]["value"]["text"], "(1, 1)")
        self.assertIn("'memory'", kernel.run("sorted(n for n in dir() if n[0] != '_')")["cell"]["value"]["text"])


if __name__ == "__main__":
    unittest.main()
