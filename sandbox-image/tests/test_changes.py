"""Servers and tools that change while a session lives."""

import unittest

import harness
from harness import KernelTest


def info(name):
    return dict(name=name, ident=name, description="", tools=1, state="idle", error="")


def doc(name):
    return {"name": name, "ident": name, "signature": f"{name}()", "params": []}


class Changes(KernelTest):
    def setUp(self):
        self.names = {"demo": ["one"]}
        self.kernel.answer = self.answer
        self.kernel.calls.clear()
        self.changed()

    def answer(self, method, params):
        if method == "servers/list":
            return {"servers": [info(name) for name in self.names]}
        if method == "tools/list":
            if params["server"] not in self.names:
                raise harness.Refusal("there is no such server", "unknown_server")
            return {"tools": [doc(name) for name in self.names[params["server"]]]}
        if params.get("tool") == "change":
            self.change(more=["two"])
        return {"content": [{"type": "text", "text": "ok"}]}

    def change(self, **names):
        self.names.update(names)
        self.changed()

    def changed(self):
        self.kernel.callback.send(method="changed")

    def asked(self, method):
        return sum(m == method for m, _ in self.kernel.calls)

    def test_nothing_changes(self):
        self.run_ok("tools.demo.one(); tools.demo.one(); dir(tools.demo)")
        self.run_ok("tools.demo.one()")
        self.assertEqual((self.asked("servers/list"), self.asked("tools/list")), (1, 1))

    def test_next_cell_sees_it(self):
        self.run_ok("tools.demo.one(); kept = tools.demo")
        self.change(demo=["one", "two"], more=["x"])
        self.assertEqual(self.value("tools.demo.two(), kept.two(), tools.more.x()"), "('ok', 'ok', 'ok')")
        self.assertEqual(self.value("dir(tools.demo), 'more' in dir(tools)"), "(['one', 'two'], True)")
        del self.names["demo"]
        self.changed()
        self.assertEqual(self.error("tools.demo")["type"], "UnknownTool")
        self.assertEqual(self.error("kept.one()")["type"], "UnknownTool")

    def test_within_a_cell(self):
        code = "dir(tools.demo)\ntools.call('demo', 'change')\ntools.more.two()"
        self.assertEqual(self.value(code), "'ok'")

    def test_an_unread_one_harms_nothing(self):
        for _ in range(3):
            self.changed()
        self.run_ok("import os\npid = os.fork()\nif not pid:\n    try: tools.demo\n    except BaseException: pass\n    os._exit(0)\nos.waitpid(pid, 0)")
        self.assertEqual(self.value("tools.demo.one()"), "'ok'")
        self.assertEqual(self.value("await tools.demo.one.aio()"), "'ok'")


if __name__ == "__main__":
    unittest.main()
