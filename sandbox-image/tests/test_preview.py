"""preview() says what repr() says, as far as it goes, and never fails."""

import collections
import random
import string
import sys
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


class Preview(unittest.TestCase):
    def test_as_repr(self):
        rng = random.Random(SEED)
        for i in range(3000):
            value = random_value(rng, 4)
            self.assertEqual(preview(value, ENOUGH), {"text": repr(value)}, f"seed {SEED}, value {i}")

    def test_cut(self):
        rng = random.Random(SEED)
        for i in range(3000):
            value = random_value(rng, 4)
            whole, limit = repr(value), rng.randrange(60)
            cut = preview(value, limit)
            if len(whole) <= limit:
                self.assertEqual(cut, {"text": whole}, f"seed {SEED}, value {i}")
                continue
            self.assertTrue(cut["text"].endswith(" …"), cut)
            self.assertLessEqual(len(cut["text"]), limit + 2)
            self.assertTrue(cut["shape"])
            if not any(quote in whole for quote in "'\""):  # repr of a piece may choose other quotes
                self.assertEqual(cut["text"], whole[: max(0, limit - 2)] + " …", f"seed {SEED}, value {i}")

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
            self.assertTrue(cut["text"].startswith("[[[["), cut["text"][:80])
            self.assertEqual(cut["shape"], "list of 1 list")

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
            self.assertLessEqual(len(cut["text"]), 102)

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
            (make("Odd", __repr__=lambda _: Text("odd"))(), "<Odd that cannot be shown: ZeroDivisionError>"),
            (make("L", list, __iter__=fail, __len__=fail)([1, 2]), "[1, 2]"),
            (make("D", dict, items=fail)({1: 2}), "<D that cannot be shown: ZeroDivisionError>"),
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
        self.assertEqual(preview(10**5000, 100)["text"], "<int whose repr() raised ValueError>")


if __name__ == "__main__":
    unittest.main()
