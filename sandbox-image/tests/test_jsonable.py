"""JSON of values, for the modes that want it."""

import json
import unittest

from harness import KernelTest
from mcpbridge.jsonable import encode
from mcpbridge.values import Record


class Encode(unittest.TestCase):
    def test_json(self):
        for value in (1, 1.5, True, None, "é\n", [], {}, [1, [2, {"a": None}]], {"k": [1, 2]}, Record({"a": Record({"b": 1})})):
            text = encode(value, 1000)
            self.assertEqual(text, json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        self.assertEqual(encode((1, (2,)), 100), "[1,[2]]")

    def test_what_is_not(self):
        loop = []
        loop.append(loop)
        for value in ({1, 2}, b"x", object(), float("nan"), float("inf"), 1j, {(1, 2): 3}, {None: 1}, {1.5: 1}, {1: 2}, {"a": [{True: 1}]}, {1: 1, '1': 2}, 10**2000, "\ud800", loop, [1, [object()]], range(3)):
            self.assertIsNone(encode(value, 10_000), repr(value)[:50])

    def test_bounded(self):
        for value in ("x" * 101, ["x"] * 60, list(range(10_000_000)), {i: i for i in range(100)}, "\n" * 60, "x" * 10**8):
            self.assertIsNone(encode(value, 100))
        self.assertEqual(len(encode("x" * 98, 100)), 100)


class Mode(KernelTest):
    def test_asked_for(self):
        self.assertEqual(self.run_ok("{'a': (1, 2)}", mode="json")["cell"]["value"], {"text": "{'a': (1, 2)}", "json": '{"a":[1,2]}'})
        self.assertEqual(self.run_ok("{1, 2}", mode="json")["cell"]["value"], {"text": "{1, 2}"})
        self.assertEqual(self.run_ok("[1]")["cell"]["value"], {"text": "[1]"})


if __name__ == "__main__":
    unittest.main()
