"""`context`: data that comes along with a cell."""

import unittest

from harness import KernelTest


class Context(KernelTest):
    def test_is_empty_at_first(self):
        self.assertEqual(self.new_kernel().run("type(context).__name__, context")["cell"]["value"]["text"], "('Record', {})")

    def test_is_bound(self):
        report = self.kernel.run("context.a.b, context['list'][0].x, context.n", context={"a": {"b": 1}, "list": [{"x": None}], "n": 2**70})
        self.assertEqual(report["cell"]["value"]["text"], f"(1, None, {2**70})")

    def test_is_of_one_cell(self):
        run = self.kernel.run
        self.assertEqual(run("context", context="text")["cell"]["value"]["text"], "'text'")
        self.assertEqual(run("context")["cell"]["value"]["text"], "{}")
        self.assertEqual(run("context", context=[1])["cell"]["value"]["text"], "[1]")
        self.assertEqual(run("context is None", context=None)["cell"]["value"]["text"], "True")
        self.assertEqual(run("del context")["cell"]["status"], "ok")
        self.assertEqual(run("context")["cell"]["value"]["text"], "{}")

    def test_a_variable_of_that_name_is_let_be(self):
        run = self.new_kernel().run
        run("context = ['mine']", context=[1])
        self.assertEqual(run("context")["cell"]["value"]["text"], "['mine']")
        self.assertEqual(run("context", context=[2])["cell"]["value"]["text"], "[2]")
        self.assertEqual(run("context")["cell"]["value"]["text"], "{}")


class Interrupt(KernelTest):
    def test_is_the_hosts(self):
        self.assertIn("as the whole code of a call", self.error("1\nsession.interrupt()")["message"])
        self.assertIn("session.interrupt() as the whole code", self.printed("print(session)"))
        self.assertIn("session.interrupt()  stop the cell that runs", self.printed("help(session)"))


if __name__ == "__main__":
    unittest.main()
