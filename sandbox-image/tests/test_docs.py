"""Names, documentation and arguments of tools."""

import unittest

import harness
from harness import ECHO_DOC, KernelTest
from mcpbridge.binding import bind
from mcpbridge.names import near, snake


def param(name, ident=None, required=False, **more):
    return {"name": name, "ident": ident or name, "type": "str", "required": required, **more}


DOCS = [
    ECHO_DOC,
    {
        "name": "createIssue", "ident": "createIssue", "description": "Creates.", "returns": "dict",
        "signature": "demo.createIssue(issueTitle: str, x: str = None) -> dict", "params": [param("issueTitle", required=True), param("x")],
    },
    {"name": "getHTTPUrl", "ident": "getHTTPUrl", "signature": "demo.getHTTPUrl()", "params": []},
    {"name": "fooBar", "ident": "fooBar", "signature": "demo.fooBar()", "params": []},
    {"name": "foo-Bar", "ident": "foo_Bar", "signature": "demo.foo_Bar()", "params": []},
    {"name": "class", "ident": "class_", "signature": "demo.class_()", "params": []},
    {"name": "a.b/c", "ident": "a_b_c", "signature": "demo.a_b_c()", "params": []},
    {"name": "raw", "ident": "raw", "signature": "demo.raw()", "params": []},
    {"name": "aio", "ident": "aio", "signature": "demo.aio()", "params": []},
]  # fmt: skip


class Names(KernelTest):
    def setUp(self):
        self.kernel.answer = self.answer
        self.kernel.calls.clear()

    def answer(self, method, params):
        if method == "tools/list":
            return {"tools": DOCS}
        if method == "tools/describe":
            if params["tool"] == "class" or params["detail"] != "full" and params["tool"] != "raw":
                raise harness.Refusal("unknown method", "invalid", "", -32601)
            if params["tool"] == "raw" and params["detail"] == "full":
                raise harness.Refusal("it is gone", "unknown_tool")
            if params["tool"] == "raw":
                return {"doc": f"{params['detail']}: demo.raw() -> list[int]"}
            return {"doc": f"# {params['server']}.{params['tool']}\nall of it"}
        if method == "tools/call":
            return {"content": [{"type": "text", "text": params["tool"]}], "isError": params["arguments"].get("x") == "bad"}
        return harness.demo_server(method, params)

    def test_names(self):
        for code, want in {
            "tools.demo.createIssue('t')": "createIssue",
            "tools.demo.create_issue('t')": "createIssue",
            "tools.demo['create_issue']('t')": "createIssue",
            "tools.demo.createIssue(issue_title='t')": "createIssue",
            "tools.demo.get_http_url()": "getHTTPUrl",
            "tools.demo.fooBar()": "fooBar",
            "tools.demo.foo_Bar()": "foo-Bar",
            "tools.demo.class_()": "class",
            "getattr(tools.demo, 'class')()": "class",
            "tools.demo['a.b/c']()": "a.b/c",
            "tools.demo.a_b_c()": "a.b/c",
            "tools.demo.raw()": "raw",
            "tools.demo.aio()": "aio",
            "await tools.demo.aio.aio()": "aio",
        }.items():
            with self.subTest(code):
                self.assertEqual(self.value(code), repr(want))
        error = self.error("tools.demo.foo_bar")
        self.assertEqual((error["type"], error["message"]), ("UnknownTool", "'foo_bar' may be fooBar or foo_Bar: say which"))
        self.assertIn("did you mean createIssue?", self.error("tools.demo.CreateIssues")["message"])
        self.assertEqual(
            self.value("dir(tools.demo)"),
            "['a_b_c', 'aio', 'class_', 'createIssue', 'fooBar', 'foo_Bar', 'getHTTPUrl', 'get_sum', 'raw']",
        )
        code = "import rlcompleter\nc = rlcompleter.Completer(globals())\n[c.complete('tools.demo.get', i).split('(')[0] for i in range(2)]"
        self.assertEqual(self.value(code), "['tools.demo.getHTTPUrl', 'tools.demo.get_sum']")
        self.assertEqual(self.value("'demo' in tools, 'x' in tools, 'get-sum' in tools.demo, 'get_sum' in tools.demo, 'x' in tools.demo"), "(True, False, True, True, False)")

    def test_doc(self):
        self.assertEqual(self.value("tools.demo.createIssue.doc"), self.printed("help(tools.demo.createIssue)").rstrip("\n"))
        self.assertEqual(self.value("tools.demo.createIssue.doc('brief')"), "demo.createIssue(issueTitle: str, x: str = None) -> dict   Creates.")
        self.assertEqual(self.value("tools.demo.createIssue.doc('signature')"), "demo.createIssue(issueTitle: str, x: str = None) -> dict")
        for full in ("tools.demo.createIssue.doc('full')", "tools.demo.createIssue.doc()"):
            self.assertEqual(self.value(full), "# demo.createIssue\nall of it")
        self.assertEqual(self.value("tools.demo.class_.doc('full')"), "demo.class_()", "a host that does not describe")
        self.assertEqual(self.error("tools.demo.raw.doc('full')")["type"], "UnknownTool")
        self.assertEqual(self.printed("help(tools.demo.raw)"), "help: demo.raw() -> list[int]\n", "what the host knows by now")
        self.assertEqual(self.value("tools.demo.raw.doc('signature')"), "signature: demo.raw() -> list[int]")
        self.assertEqual(self.error("tools.demo.raw.doc('all')")["message"], "the levels of documentation are brief, signature, full, not 'all'")
        self.assertEqual(self.value("isinstance(tools.demo.raw.doc, str), tools.demo.doc == repr(tools.demo.doc)"), "(True, True)")
        self.assertEqual(self.value("tools.search('add')[0].doc"), self.value("tools.demo.get_sum.doc"))
        self.assertEqual(self.value("tools.demo.doc"), self.printed("help(tools.demo)").rstrip("\n"))

    def test_help_of_methods(self):
        for name in ("search", "servers", "call", "read", "resources", "prompts", "prompt"):
            with self.subTest(name):
                text = self.printed(f"help(tools.{name})")
                self.assertTrue(text.startswith(name + "("), text)
                self.assertTrue(self.value(f"tools.{name}").startswith(name + "("))
        self.assertEqual(self.printed("help(tools.search)").split("\n")[0], "search(query, limit=8)")
        for name in ("map", "amap", "acall"):
            self.assertTrue(self.printed(f"help(tools.{name})").startswith(f"{name}("))
        code = "import inspect\nstr(inspect.signature(tools.demo.createIssue))"
        self.assertEqual(self.value(code), "\"(issueTitle: 'str', x: 'str' = None) -> 'dict'\"")

    def test_raw(self):
        self.assertEqual(self.value("tools.demo.raw.raw()"), "{'content': [{'type': 'text', 'text': 'raw'}], 'isError': False}")
        self.assertEqual(self.value("tools.demo.createIssue.raw('t', x='bad').isError"), "True")
        self.assertEqual(self.value("(await tools.demo.createIssue.raw.aio('t')).content[0].text"), "'createIssue'")
        self.assertEqual(self.value("tools.call.raw('demo.raw').content[0].text"), "'raw'")
        self.assertEqual(self.error("tools.demo.createIssue.raw()")["type"], "TypeError")
        self.assertIn("raw results of demo.raw()", self.value("tools.demo.raw.raw"))

    def test_kept_and_copied(self):
        code = """
            import pickle, copy
            kept = pickle.loads(pickle.dumps([tools, tools.demo, tools.demo.createIssue, tools.search("add")[0], tools.search]))
            kept[0] is not tools, len(kept[1]), kept[2]("t"), kept[3](1, 2), len(kept[4]("add"))
            """
        self.assertEqual(self.value(code), f"(True, {len(DOCS)}, 'createIssue', 'get-sum', 1)")
        self.assertEqual(self.value("copy.copy(tools.demo.createIssue)('t'), copy.deepcopy(tools.demo).raw()"), "('createIssue', 'raw')")

    def test_call_by_name(self):
        for code in (
            "tools.call('demo', 'raw')", "tools.call('demo.raw')", "tools.call('demo', 'raw', {})", "tools.call(tools.demo, 'raw')",
            "await tools.acall('demo', 'raw')", "await tools.call.aio('demo.raw')", "tools.call(server='demo', tool='raw', arguments={})",
        ):  # fmt: skip
            with self.subTest(code):
                self.assertEqual(self.value(code), "'raw'")
        for code in ("tools.call('demo')", "tools.call(5, 'x')", "tools.call('demo', 'raw', 5)", "tools.call('demo', 5)"):
            with self.subTest(code):
                self.assertEqual(self.error(code)["type"], "TypeError")


class Pieces(unittest.TestCase):
    def test_snake(self):
        for name, want in {
            "createIssue": "create_issue", "getHTTPUrl": "get_http_url", "URL": "url", "v2Api": "v2_api", "a_b": "a_b",
            "Foo_Bar": "foo_bar", "": "", "x1Y2": "x1_y2",
        }.items():  # fmt: skip
            self.assertEqual(snake(name), want)

    def test_near(self):
        self.assertEqual(near("titel", ["title", "body"]), " (did you mean title?)")
        self.assertEqual(near("issueTitle", ["issue_title", "body"]), " (did you mean issue_title?)")
        self.assertEqual(near("zzz", ["title"]), "")
        self.assertEqual(near("x", []), "")

    def test_bind(self):
        doc = {"params": [param("itemId", required=True), param("itemID2"), param("item_id2"), param("self")], "signature": "s.t(…)"}
        self.assertEqual(bind(doc, "t", (1,), {"item_id2": 2, "self": 3}), {"itemId": 1, "item_id2": 2, "self": 3})
        self.assertEqual(bind(doc, "t", (), {"item_id": 1}), {"itemId": 1})
        both = {"params": [param("fooBar"), param("foo_Bar")], "signature": "s.t(…)"}
        open_ = {"params": [], "signature": "s.t(**arguments)", "open": True}
        for args, kwargs, of, words in (
            ((), {"foo_bar": 1}, both, "has no parameter 'foo_bar'; it may be fooBar or foo_Bar"),
            ((1,), {"itemId": 1}, doc, "got 'itemId' twice"),
            ((1,), {"item_id": 1}, doc, "got 'item_id' twice"),
            ((), {}, doc, "misses 'itemId'"),
            ((1, 2, 3, 4, 5), {}, doc, "takes 4 arguments, got 5"),
            ((1,), {}, open_, "takes its arguments by name"),
            ((), {"item_idd": 1}, doc, "has no parameter 'item_idd' (did you mean item_id2 or itemId"),
        ):
            with self.subTest(words), self.assertRaises(TypeError) as caught:
                bind(of, "t", args, kwargs)
            self.assertIn("t " + words, str(caught.exception))
            self.assertIn("Signature: " + of["signature"], str(caught.exception))
        self.assertEqual(bind(open_, "t", (), {"any": 1}), {"any": 1})


if __name__ == "__main__":
    unittest.main()
