"""preview() says what repr() says, as far as it goes, and never fails."""

import collections
import dataclasses
import random
import re
import string
import sys
import types
import unittest

import harness  # noqa: F401  (finds mcpbridge)
from mcpbridge.preview import preview
from mcpbridge.values import Record

SEED = 20240607
ENOUGH = 10_000_000


def random_value(rng, depth):
    """Nested data as JSON and Python code make it."""
    kind = rng.randrange(16 if depth else 9)
    size = rng.randrange(5)
    if kind < 9:
        return random_leaf(rng, kind)
    items = [random_value(rng, depth - 1) for _ in range(size)]
    keys = [random_leaf(rng, rng.randrange(9)) for _ in range(size)]
    return {
        9: lambda: items,
        10: lambda: tuple(items),
        11: lambda: dict(zip(keys, items)),
        12: lambda: set(keys),
        13: lambda: frozenset(keys),
        14: lambda: Record(zip(keys, items)),
        15: lambda: rng.choice([collections.deque, collections.OrderedDict.fromkeys])(keys),
    }[kind]()


def random_leaf(rng, kind):
    text = "".join(rng.choices(string.printable + "'\"\\éß漢🙂\ud800\x00\x7f\u2028", k=rng.randrange(12)))
    return [
        None, rng.random() < 0.5, rng.randrange(-(10**20), 10**20), rng.uniform(-1e9, 1e9), text,
        text.encode(errors="replace"), rng.choice([float("inf"), -0.0, 1e300, 1j]), rng.randrange(10), "",
    ][kind]  # fmt: skip


def one_line(text):
    """What was laid out, as repr() writes it: no literal has a line break."""
    return re.sub(r"\n *", " ", text)


class Preview(unittest.TestCase):
    def test_as_repr(self):
        rng = random.Random(SEED)
        for i in range(3000):
            value = random_value(rng, 4)
            got = preview(value, ENOUGH)
            self.assertEqual(one_line(got.pop("text")), repr(value), f"seed {SEED}, value {i}")
            self.assertEqual(got, {})

    def test_lines(self):
        """What is long has lines that are not, but where a single item is."""
        rng = random.Random(SEED)
        for i in range(3000):
            value = random_value(rng, 4)
            text = preview(value, ENOUGH)["text"]
            if len(repr(value)) <= 100:
                self.assertEqual(text, repr(value))
            for line in text.splitlines():
                self.assertLess(len(line), 170, f"seed {SEED}, value {i}: {text}")
        rows = [{"id": i, "name": "n" * 30, "tags": ["a", "b"]} for i in range(3)]
        self.assertEqual(preview(rows, ENOUGH)["text"], "[" + ",\n ".join(map(repr, rows)) + "]")
        self.assertEqual(preview(list(range(40)), ENOUGH)["text"].count("\n"), 1)

    def test_cut(self):
        rng = random.Random(SEED)
        for i in range(3000):
            value = random_value(rng, 4)
            whole, limit = repr(value), rng.randrange(200)
            cut = preview(value, limit)
            if len(whole) <= min(limit, 100):
                self.assertEqual(cut, {"text": whole}, f"seed {SEED}, value {i}")
            elif len(whole) > limit:
                self.assertLessEqual(len(cut["text"]), limit + 60)
                self.assertTrue(cut["shape"])

    def test_both_ends(self):
        rows = [{"id": i, "name": f"name {i}"} for i in range(10_000)]
        text = preview(rows, 20_000)["text"]
        self.assertTrue(text.startswith("[{'id': 0, 'name': 'name 0'},\n {'id': 1,"), text)
        self.assertTrue(text.endswith(" … 9,988 more …,\n {'id': 9998, 'name': 'name 9998'},\n {'id': 9999, 'name': 'name 9999'}]"), text)
        text = preview("a" * 50_000 + "z" * 50_000, 1000)["text"]
        self.assertRegex(text, r"^'a{626}'\n\[… 99,060 more characters …\]\n'z{314}'$")
        self.assertIn(" more bytes …]", preview(bytes(100_000), 1000)["text"])
        for value, start, end in (
            ({i: [i] * 100 for i in range(1000)}, "{0: [0, 0,", "999, 999]}"),
            ({f"k{i}": "v" * 1000 for i in range(100)}, "{'k0': 'vvvv", "(1,000 characters)}"),
            (tuple(range(100_000)), "(0, 1, 2, 3,", " 99998, 99999)"),
            (set(range(100_000)), "{0, 1, 2, 3,", " more …}"),
            (collections.deque(range(100_000), 100_000), "deque([0, 1", "99998, 99999], maxlen=100000)"),
            ({1: {2: {3: [["x" * 300] * 100] * 200}}}, "{1: {2: {3: [['xxx", "]}}}"),
            (dict.fromkeys(range(100_000)).keys(), "dict_keys([0, 1, 2", "99998, 99999])"),
            ([["x"] * 10_000], "[['x', 'x',", "'x', 'x']]"),
        ):
            shown = preview(value, 20_000)
            self.assertTrue(shown["text"].startswith(start), shown["text"])
            self.assertTrue(shown["text"].endswith(end), shown["text"][-200:])
            self.assertLess(len(shown["text"]), 3000)
            self.assertTrue(shown["shape"])

    def test_made_of_fields(self):
        @dataclasses.dataclass
        class Point:
            x: int
            y: list = dataclasses.field(default_factory=list)
            secret: int = dataclasses.field(default=1, repr=False)

        @dataclasses.dataclass
        class Own:
            x: int

            def __repr__(self):
                return "own"

        Pair = collections.namedtuple("Pair", "a b")
        counts = collections.Counter("abca")
        groups = collections.defaultdict(list, a=[1])
        odd = collections.Counter({"a": 1})
        odd["b"] = None
        for value in (
            Point(1, [2]), Own(1), Pair(1, "x"), [Pair(1, 2)], counts, collections.Counter(), groups, types.SimpleNamespace(a=1),
            collections.OrderedDict(a=1), collections.OrderedDict(), {1: 2}.values(), {1: 2}.items(), collections.deque([1], 3), odd,
        ):  # fmt: skip
            self.assertEqual(preview(value, ENOUGH)["text"], repr(value))
        many = preview([Point(i, ["x" * 50] * 10) for i in range(1000)], 20_000)
        self.assertIn("Point(x=0,", many["text"])
        self.assertEqual(many["shape"], "list of 1,000 Point")

    def test_each_repr_is_asked_once(self):
        asked = []

        class Loud:
            def __repr__(self):
                asked.append(1)
                return "x" * 300

        for value in (Loud(), [Loud()], {"a": Loud()}):
            for limit in (100, 1000):
                asked.clear()
                preview(value, limit)
                self.assertEqual(asked, [1])

    def test_text_of_all_kinds(self):
        class Text(str):
            pass

        self.assertEqual(preview(Text("x" * 10), 100), {"text": repr("x" * 10)})
        self.assertEqual(preview(Text("x" * 10**7), 1000)["shape"], "Text of 10,000,000 characters")
        for text in ("e\u0301" * 1000, "漢字🙂" * 1000, "\ud800" * 1000, "\x1b[1m\n\0" * 1000):
            shown = preview(text, 500)["text"]
            shown.encode()
            self.assertLessEqual(len(shown), 520)
        self.assertEqual(preview(type("Lone", (), {"__repr__": lambda _: "\ud800é"})(), 100)["text"], "\\ud800é")

    def test_recursive(self):
        a = [1]
        a.append(a)
        b = {"a": a}
        b["b"] = b
        c = ([],)
        c[0].append(c)
        for value in (a, b, c, [a, a], Record(b)):
            self.assertEqual(preview(value, ENOUGH)["text"], repr(value))

    def test_the_same_value_twice_is_not_recursive(self):
        a = [1]
        self.assertEqual(preview([a, a], ENOUGH)["text"], "[[1], [1]]")

    def test_nested_deeper_than_the_stack(self):
        value = []
        for _ in range(100_000):
            value = [value]
        for limit in (1000, ENOUGH):
            cut = preview(value, limit)
            self.assertEqual(cut, {"text": "[[[[[[[… 1 …]]]]]]]", "shape": "list of 1 list"})

    def test_huge_values_are_not_written_out(self):
        for value, shape in (
            ("x" * 100_000_000, "str of 100,000,000 characters"),
            (bytes(100_000_000), "bytes of 100,000,000 bytes"),
            ([0] * 10_000_000, "list of 10,000,000 int"),
            ([[0] * 1000] * 1000, "list of 1,000 list"),
            ({i: i for i in range(100_000)}, "dict of 100,000: 0, 1, 2, 3, 4, 5, 6, 7, …"),
        ):
            cut = preview(value, 100)
            self.assertEqual(cut["shape"], shape)
            self.assertLessEqual(len(cut["text"]), 130)

    def test_shapes(self):
        rows = [{"id": i, "name": "n" * 50} for i in range(1000)]
        for value, shape in (
            (rows, "list of 1,000 dict: id, name"),
            (tuple(rows), "tuple of 1,000 dict: id, name"),
            ([1, "a"] * 1000, "list of 2,000 item"),
            (set(range(1000)), "set of 1,000"),
            (Record({"k" * 100: 1, "b": "x" * 1000}), f"Record of 2: {'k' * 40}, b"),
        ):
            self.assertEqual(preview(value, 20)["shape"], shape)

    def test_hostile(self):
        def fail(*_):
            raise ZeroDivisionError

        def make(name, base=object, **methods):
            return type(name, (base,), methods)

        class Key(str):
            __str__ = fail

        class Text(str):
            __getitem__ = __len__ = fail

        shy = make("Shy", __repr__=fail)()
        cases = [
            (shy, "<Shy whose repr() raised ZeroDivisionError>"),
            ([1, shy, 2], "[1, <Shy whose repr() raised ZeroDivisionError>, 2]"),
            (make("NoText", __repr__=lambda _: 5)(), "<NoText whose repr() raised TypeError>"),
            (make("Odd", __repr__=lambda _: Text("odd"))(), "odd"),
            (make("L", list, __iter__=fail, __len__=fail)([1, 2]), "[1, 2]"),
            (make("D", dict, items=fail)({1: 2}), "{1: 2}"),
            (make("Meta", __class__=property(fail))(), None),
        ]
        for value, want in cases:
            with self.subTest(type(value).__name__):
                got = preview(value, ENOUGH)["text"]
                if want is not None:
                    self.assertEqual(got, want)
        self.assertEqual(preview({Key("k"): "x" * 100}, 10)["shape"], "dict")

    def test_changes_while_it_is_read(self):
        class Grows:
            def __repr__(self):
                data[len(data)] = 1
                return "grown"

        data = {0: Grows(), 1: 1}
        self.assertEqual(preview(data, 100)["text"], "<dict that cannot be shown: RuntimeError>")

    @unittest.skipUnless(hasattr(sys, "set_int_max_str_digits"), "newer Python refuses long integers")
    def test_integer_too_long_for_repr(self):
        self.assertEqual(preview([10**5000], 200)["text"], "[<int of 16,610 bits: more digits than Python writes before sys.set_int_max_str_digits(0)>]")


if __name__ == "__main__":
    unittest.main()
