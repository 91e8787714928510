"""What a cell catches when a call fails."""

import unittest

from harness import ECHO_DOC, KernelTest, demo_server
from mcpbridge import errors
from mcpbridge.callback import RemoteError
from mcpbridge.errors import PolicyError, ServerUnavailable, ToolError, ToolTimeout, UnknownTool


class Kinds(unittest.TestCase):
    def test_of_the_host(self):
        for kind, want, also in (
            ("timeout", ToolTimeout, TimeoutError),
            ("server_failed", ServerUnavailable, ConnectionError),
            ("policy", PolicyError, PermissionError),
            ("unknown_server", UnknownTool, AttributeError),
            ("unknown_tool", UnknownTool, TypeError),
            ("refused", ToolError, Exception),
            ("unsupported", ToolError, Exception),
            ("not_found", ToolError, Exception),
            ("busy", ToolError, Exception),
            ("closed", ToolError, Exception),
            ("internal", ToolError, Exception),
            ("what comes next", ToolError, Exception),
            ("", ToolError, Exception),
        ):
            with self.subTest(kind):
                error = errors.of_host(RemoteError("it failed", kind, "do this"), "s", "t")
                self.assertIs(type(error), want)
                self.assertIsInstance(error, also)
                self.assertIsInstance(error, ToolError)
                self.assertEqual(str(error), "it failed\nHint: do this")
                self.assertEqual((error.server, error.tool, error.result, error.content, error.data), ("s", "t", None, [], None))
        self.assertEqual(str(errors.of_host(RemoteError("it failed"), None, None)), "it failed")

    def test_arguments_the_host_refuses_are_type_errors(self):
        error = errors.of_host(RemoteError("x is not a number", "invalid", "s.t(x: float)"), "s", "t")
        self.assertIs(type(error), TypeError)
        self.assertEqual(str(error), "x is not a number\nHint: s.t(x: float)")

    def test_what_the_server_sent(self):
        for result, data in (
            ({"content": [{"type": "text", "text": "no"}], "structuredContent": {"code": 7}}, {"code": 7}),
            ({"content": [{"type": "text", "text": '{"code": 8}'}]}, {"code": 8}),
            ({"content": [{"type": "image"}, {"type": "text", "text": "[1]"}]}, [1]),
            ({"content": [{"type": "text", "text": "no"}]}, None),
            ({"content": [5]}, None),
            ({"content": 5}, None),
            (None, None),
            ([], None),
        ):
            with self.subTest(str(result)):
                error = ToolError("no", "s", "t", result)
                self.assertEqual(error.data, data)
                self.assertEqual(error.content, result["content"] if isinstance(result, dict) and result["content"] != 5 else [])

    def test_repr(self):
        self.assertEqual(repr(ToolError("boom", "github", "create-issue")), "ToolError('boom', github.create-issue)")
        self.assertEqual(repr(ToolTimeout("late")), "ToolTimeout('late')")


class InCells(KernelTest):
    def setUp(self):
        self.result = {}
        self.kernel.answer = lambda m, p: self.result if m == "tools/call" and p["tool"] == "fail" else self.others(m, p)

    def others(self, method, params):
        if method == "tools/list":
            return {"tools": [ECHO_DOC, {"name": "fail", "ident": "fail", "signature": "demo.fail()", "params": []}]}
        return demo_server(method, params)

    def test_caught_by_name(self):
        self.result = {"isError": True, "content": [{"type": "text", "text": "no luck"}], "structuredContent": {"code": 7}}
        code = "try: tools.demo.fail()\nexcept ToolError as e: got = (str(e), e.server, e.tool, e.content[0].text, e.data.code, e.result.isError, e.__cause__, e.__context__)\ngot"
        self.assertEqual(self.value(code), "('no luck', 'demo', 'fail', 'no luck', 7, True, None, None)")
        for name in ("ToolTimeout", "ServerUnavailable", "PolicyError"):
            self.assertEqual(self.value(f"issubclass({name}, ToolError), {name}.__name__"), f"(True, {name!r})")

    def test_pickled(self):
        self.result = {"isError": True, "content": [{"type": "text", "text": "no luck"}]}
        code = "import pickle, copy\ntry: tools.demo.fail()\nexcept ToolError as e: same = pickle.loads(pickle.dumps(e))\n"
        self.assertEqual(self.value(code + "type(same) is ToolError, str(same), same.tool, same.content[0].text"), "(True, 'no luck', 'fail', 'no luck')")
        for kind in ("ToolTimeout", "ServerUnavailable", "PolicyError"):
            code = f"e = pickle.loads(pickle.dumps({kind}('m', 's', 't', {{'a': 1}})))\ntype(e) is {kind}, str(e), e.server, e.tool, e.result"
            self.assertEqual(self.value(code), "(True, 'm', 's', 't', {'a': 1})")

    def test_tracebacks_show_the_cells_lines_only(self):
        self.result = {"isError": True, "content": [{"type": "text", "text": "no luck"}]}
        for call in (
            "tools.demo.fail()",
            "await tools.demo.fail.aio()",
            "tools.map(tools.demo.fail, [()])",
            "await tools.amap(tools.demo.fail, [()])",
            "tools.call('demo', 'fail')",
            "tools.demo.get_sum(1)",
            "tools.demo.nothing",
        ):
            with self.subTest(call):
                error = self.error(f"def f(): pass\n{call}")
                self.assertNotIn("mcpbridge", error["traceback"])
                self.assertNotIn("RemoteError", error["traceback"])
                self.assertIn(call, error["traceback"])

    def test_remote_errors_do_not_leak(self):
        self.kernel = self.new_kernel()
        self.kernel.answer = lambda m, p: (_ for _ in ()).throw(LookupError("gone")) if m != "servers/list" else demo_server(m, p)
        for call in (
            "tools.search('x')", "list(tools.demo)", "tools.call('demo.x')", "await tools.acall('demo.x')", "await tools.call.aio('demo.x')",
            "tools.read('a:b')", "await tools.read.aio('a:b')", "tools.prompt('demo.x')", "tools.resources('demo')", "tools.prompts('demo')",
            "tools.map(tools.call, ['demo.x'])", "await tools.amap(tools.call, ['demo.x'])", "tools.call.raw('demo.x')",
        ):
            with self.subTest(call):
                error = self.error(call)
                self.assertEqual((error["type"], error["message"].split("\n")[:2]), ("ToolError", ["gone", "Hint: Try another."]))


if __name__ == "__main__":
    unittest.main()
