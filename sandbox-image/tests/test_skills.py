"""skills: functions that are kept across sessions."""

import json
import unittest

import harness
import keeping


class SkillsTest(harness.KernelTest):
    @classmethod
    def setUpClass(cls):
        cls.keeper = keeping.Keeper()
        cls.kernel = harness.Kernel(cls.keeper)
        cls.other = harness.Kernel(cls.keeper)  # another session

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        trouble = cls.other.close()
        assert not trouble, trouble

    def setUp(self):
        for area in self.keeper.areas.values():
            area.clear()

    def in_other(self, code):
        """The value, or the error, of a cell in the other session."""
        cell = self.other.run(code)["cell"]
        return cell["error"]["type"] + ": " + cell["error"]["message"] if "error" in cell else cell.get("value", {}).get("text")

    def record(self, name):
        return json.loads(self.keeper.areas["skills"][name])

    def refused(self, code):
        error = self.error(code)
        self.assertEqual(self.keeper.areas["skills"], {}, code)
        return f"{error['type']}: {error['message']}"

    def test_a_function(self):
        shown = self.value('def double(n: int, *, by=2) -> int:\n    """Multiply.\n\n    Really."""\n    return n * by\nskills.save(double, tags=["math"])')
        self.assertRegex(shown, r"^skills\.double\(n: int, \*, by=2\) -> int   Multiply\. \[math\] \(v1, 20\d\d-\d\d-\d\d, session s1\)$")
        self.assertEqual(self.in_other("skills.double(4), skills.double(4, by=3)"), "(8, 12)")
        self.assertEqual(self.in_other("from skills import double\nimport skills\nskills.double is double, double(1)"), "(True, 2)")
        self.assertEqual(self.in_other("'double' in skills, list(skills), len(skills), skills['double'](2)"), "(True, ['double'], 1, 4)")
        self.assertIn("Multiply.", self.other.run("help(skills.double)")["text"])
        self.assertIn("return n * by", self.in_other("skills.source('double')"))
        self.assertIn("save", self.in_other("dir(skills)"))
        info = self.in_other("i = skills.info('double'); i.cell, i.session, i.version, i.tags, i.problem")
        self.assertRegex(info, r"^\(\d+, 's1', 1, \['math'\], ''\)$")

    def test_what_it_uses(self):
        self.run_ok(
            """
            import json, os.path as path, collections as c
            from math import sqrt as root, pi
            import re
            RATE, NAMES, WORD = 1.5, {"a": [1, (2,), {3}], None: b"x"}, re.compile(r"\\w+", re.I)
            EMPTY = set(), frozenset(), (), float("inf")
            def helper(n):
                return deeper(n) + RATE
            def deeper(n):
                return root(n) if n else outer(1)
            class Pair(c.namedtuple("Pair", "a b")):
                kind = "pair"
                def sum(self): return self.a + helper(self.b)
            scale = lambda n: n * 10
            def outer(n):
                if n > 1e9: return helper(n)
                words = WORD.findall("a b")
                return scale(Pair(n, 4).sum()), json.dumps(words), path.join("a", NAMES["a"][1] and "b"), len(EMPTY), pi > 3
            skills.save(outer)
            """
        )
        self.assertEqual(self.in_other("skills.outer(1)"), """(45.0, '["a", "b"]', 'a/b', 4, True)""")
        self.assertIn("NameError", self.in_other("helper"))

    def test_closures(self):
        self.run_ok("def make(k):\n    step = 3\n    def add(n):\n        return n + k + step\n    return add\nadd5 = make(5)\nskills.save(add5, name='add_five')")
        self.assertEqual(self.in_other("skills.add_five(1)"), "9")

    def test_decorators(self):
        self.run_ok(
            """
            import functools
            def twice(f):
                @functools.wraps(f)
                def inner(*args): return f(*args) * 2
                return inner
            @twice
            def one(n): return n
            @functools.lru_cache
            def two(n): return n + 1
            skills.save(one); skills.save(two)
            """
        )
        self.assertEqual(self.in_other("skills.one(4), skills.two(4)"), "(8, 5)")

    def test_classes(self):
        self.run_ok(
            """
            import dataclasses, enum
            class Base: greeting = "hi"
            class Colour(enum.Enum): RED = 1
            @dataclasses.dataclass
            class Person(Base):
                name: str = "x"
                colour: Colour = Colour.RED
                def greet(self): return f"{self.greeting} {self.name} {self.colour.name}"
            class Later(Person):
                def __init__(self, a, *, b=1): super().__init__(a)
            skills.save(Later); skills.save(Colour)
            """
        )
        self.assertEqual(self.in_other("skills.Later('y').greet(), skills.Colour(1)"), "('hi y RED', <Colour.RED: 1>)")
        self.assertIn("skills.Later(a, *, b=1)", self.in_other("skills"))

    def test_async(self):
        self.run_ok("import asyncio\nasync def later(x): return await asyncio.sleep(0, x)\nskills.save(later)")
        self.assertEqual(self.in_other("await skills.later(3)"), "3")

    def test_tools_and_memory(self):
        self.run_ok("sum_of = tools.demo.get_sum\ndef add(a):\n    memory['last'] = a\n    return tools.demo.get_sum(a, 1).sum + sum_of(0, 1).sum\nskills.save(add)")
        self.assertEqual(self.in_other("skills.add(5), memory['last']"), "(7, 5)")

    def test_skills_that_use_skills(self):
        self.run_ok("def base(n): return n + 1\nskills.save(base)")
        self.run_ok("from skills import base\ndef above(n): return base(n) * 10 + skills.base(0)\nskills.save(above)")
        self.assertIn("from skills import base", self.in_other("skills.source('above')"))
        self.run_ok("def base(n): return n + 2\nskills.save(base)")
        self.assertEqual(self.in_other("skills.above(1)"), "32")

    def test_a_skill_again_under_another_name(self):
        self.run_ok("import math\ndef helper(n): return math.floor(n)\ndef first(n):\n    'Doc.'\n    return helper(n)\nskills.save(first)")
        self.assertRegex(self.in_other("skills.save(skills.first, name='second')"), r"^skills\.second\(n\)   Doc\. ")
        self.run_ok("skills.delete('first')")
        self.assertEqual(self.in_other("skills.second(2.5)"), "2")

    def test_a_traceback_shows_the_skill_s_lines(self):
        self.run_ok("def inner(n):\n    return 1 / n\ndef outer(n):\n    return inner(n)\nskills.save(outer)")
        traceback = self.other.run("skills.outer(0)")["cell"]["error"]["traceback"]
        self.assertRegex(traceback, r'(?s)File "<cell \d+>", line 1.*File "<skill outer>", line \d+, in outer\n    return inner\(n\).*return 1 / n')
        self.assertNotIn("mcpbridge", traceback)

    def test_what_cannot_be_kept(self):
        for code, problem in (
            ("import threading\nlock = threading.Lock()\ndef f():\n    with lock: pass\nskills.save(f)", "f uses 'lock', an object of type lock, which cannot be kept"),
            ("def g(): return f2()\ndef f2(): return handle\nhandle = open('/dev/null')\nskills.save(g)", "f2 uses 'handle', an object of type TextIOWrapper"),
            ("def f(): return undefined_thing\nskills.save(f)", "f uses 'undefined_thing', which is not defined"),
            ("big = 'x' * 100_000\ndef f(): return big\nskills.save(f)", "uses 'big', which is too large"),
            ("loop = []; loop.append(loop)\ndef f(): return loop\nskills.save(f)", "contains itself"),
            ("skills.save(5)", "a skill is a function or a class, not an object of type int"),
            ("skills.save(len)", "not an object of type builtin_function_or_method"),
            ("skills.save([].append)", "not an object of type builtin"),
            ("skills.save(lambda: 0)", "a lambda has no name"),
            ("exec('def f(): pass')\nskills.save(f)", "its source is not known"),
            ("def n():\n    x = 0\n    def count():\n        nonlocal x\n        x += 1\n    return count\nskills.save(n())", "count cannot be kept by itself"),
            ("def f(): pass\nskills.save(f, name='a b')", "no name for a skill"),
            ("def f(): pass\nskills.save(f, name='list')", "skills.list is a method"),
            ("def f(): pass\nskills.save(f, name='import')", "no name for a skill"),
            ("def f(): pass\nskills.save(f, name='../x')", "no name for a skill"),
            ("def f(): pass\nskills.save(f, name='_x')", "no name for a skill"),
            ("skills.save('def f(:', name='f')", "is no Python"),
            ("skills.save('x = 1')", "a skill's name is a str, not NoneType"),
            ("def f():\n    '''" + "x" * 110_000 + "'''\nskills.save(f)", "characters, more than 100,000"),
        ):
            self.assertIn(problem, self.refused(code), code[:200])

    def test_history(self):
        for n in (1, 2, 3):
            self.run_ok(f"def f():\n    'Version {n}.'\n    return {n}\nskills.save(f, tags='t')")
        self.run_ok("skills.save(f)")  # nothing new
        self.assertEqual(self.in_other("skills.f(), skills.info('f').version, skills.info('f').tags"), "(3, 3, ['t'])")
        self.assertRegex(self.in_other("skills.history('f')"), r"^v3  \S+, session s1, cell \d+  \(\)  Version 3\.\nv2  \S+, session s1, cell \d+  \(\)  Version 2\.\nv1 ")
        self.assertIn("return 1", self.in_other("skills.source('f', 1)"))
        self.run_ok("skills.restore('f', 1)")
        self.assertEqual(self.in_other("skills.f(), skills.info('f').version"), "(1, 4)")
        self.assertIn("no version 9: there are 4, 3, 2, 1", self.error("skills.restore('f', 9)")["message"])
        for n in range(30):
            self.run_ok(f"skills.save('def f(): return {n}', name='f')")
        self.assertEqual(len(self.record("f")["history"]), 19)
        self.run_ok("skills.delete('f')")
        self.assertIn("LookupError: no skill 'f'", self.in_other("skills.delete('f')"))
        self.assertIn("no skill 'f'", self.in_other("skills.f"))

    def test_history_is_bounded(self):
        for n in range(8):
            self.run_ok(f"skills.save('# ' + 'x' * 90_000 + '\\ndef f(): return {n}', name='f')")
        self.assertLess(len(self.keeper.areas["skills"]["f"]), 400_000)
        self.assertEqual(self.in_other("skills.f(), len(skills.history('f'))"), "(7, 4)")

    def test_broken_ones(self):
        def put(name, source):
            self.run_ok(f"skills.save({source!r}, name={name!r})")

        put("missing", "import not_there\ndef missing(): pass")
        put("raising", "def raising(): pass\nraise ValueError('at import')")
        put("endless", "def endless(): pass\nwhile True: pass")
        put("fine", "def fine(): return 1")
        record = self.record("fine")
        self.keeper.areas["skills"]["syntax"] = json.dumps({**record, "source": "def syntax(:"})
        self.keeper.areas["skills"]["no_json"] = "{"
        self.keeper.areas["skills"]["no_record"] = "[]"
        self.keeper.damaged.add("torn")
        self.keeper.areas["skills"]["torn"] = ""
        self.addCleanup(self.keeper.damaged.clear)
        kernel = self.new_kernel(self.keeper)
        self.assertEqual(kernel.run("1 + 1")["cell"]["value"]["text"], "2")
        listed = kernel.run("skills", value_limit=20_000)["cell"]["value"]["text"]
        for name, why in {"missing": "module 'not_there' is not installed here", "syntax": "SyntaxError", "no_json": "is damaged", "no_record": "is damaged", "torn": "it is damaged"}.items():
            self.assertRegex(listed, rf"skills\.{name}\(.*BROKEN: .*{why}")
        self.assertRegex(listed, r"skills\.fine\(\) .*\d\d, session s1\)\n")
        self.assertEqual(kernel.run("skills.fine()")["cell"]["value"]["text"], "1")
        for name, why in {"missing": "ModuleNotFoundError: No module named 'not_there'", "raising": "ValueError: at import", "syntax": "SyntaxError", "no_json": "is damaged"}.items():
            error = kernel.run(f"skills.{name}()")["cell"]["error"]
            self.assertEqual(error["type"], "SkillError")
            self.assertIn(why, error["message"])
        self.assertIn("skill 'raising' (version 1, saved by session 's1')", kernel.run("from skills import raising")["cell"]["error"]["message"])
        self.assertRegex(kernel.run("skills", value_limit=20_000)["cell"]["value"]["text"], r"skills\.raising.*BROKEN: ValueError: at import")
        result = kernel.run("skills.endless()", timeout=0.5)
        self.assertEqual((result["interrupted"], result["cell"]["error"]["type"]), ("timeout", "KeyboardInterrupt"))
        self.assertEqual(kernel.run("skills.fine()")["cell"]["value"]["text"], "1")
        self.assertEqual(kernel.run("try: skills.missing\nexcept SkillError as e: print(type(e).__mro__[1].__name__)")["text"], "ImportError\n")

    def test_names_that_are_near(self):
        self.run_ok("def fetch_all(): pass\nskills.save(fetch_all)")
        self.assertIn("AttributeError: no skill 'fetch_al' (did you mean fetch_all?)", self.in_other("skills.fetch_al"))
        self.assertIn("ImportError: cannot import name 'fetch_al'", self.in_other("from skills import fetch_al"))
        self.assertIn("LookupError", self.in_other("skills['fetch_al']"))

    def test_code_under_a_name(self):
        self.run_ok("skills.save('kit', code='\"\"\"Tools.\"\"\"\\nA = 1\\ndef b(): return A')")
        self.assertEqual(self.in_other("skills.kit.b(), skills.info('kit').description"), "(1, 'Tools.')")

    def test_how_it_looks(self):
        self.assertIn("no skills yet", self.value("skills"))
        self.assertIn("skills.restore(name, 2)", self.printed("help(skills)"))

    def test_pickling(self):
        self.run_ok("class Point:\n    def __init__(self, x): self.x = x\nskills.save(Point)")
        self.assertEqual(self.in_other("import pickle\npickle.loads(pickle.dumps(skills.Point(3))).x"), "3")


if __name__ == "__main__":
    unittest.main()
