"""`tools` as a model uses it."""

import copy
import pickle
import unittest

import harness
from harness import KernelTest
from mcpbridge import values
from mcpbridge.values import Audio, Image, Record, ToolError, unwrap

DOCS = [
    harness.ECHO_DOC,
    {
        "name": "self-test",
        "ident": "self_test",
        "description": "",
        "signature": "demo.self_test(self: str, class_: str = 'a')",
        "params": [
            {"name": "self", "ident": "self", "type": "str", "required": True, "description": "Who."},
            {"name": "class", "ident": "class_", "type": "str", "required": False, "default": "'a'"},
        ],
    },
    {"name": "any", "ident": "any", "signature": "demo.any(**arguments)", "params": [], "open": True},
]


class Tools(KernelTest):
    def setUp(self):
        self.kernel.answer = self.answer
        self.kernel.calls.clear()
        self.result = {"content": [{"type": "text", "text": "ok"}]}

    def answer(self, method, params):
        if method == "tools/list":
            return {"tools": DOCS}
        if method == "tools/call":
            return self.result
        if method == "servers/list":
            demo = dict(name="demo", ident="demo", description="A demo", tools=3, state="ready", error="")
            odd = dict(name="odd-name", ident="odd_name", description="", tools=None, state="failed", error="exit 1")
            return {"servers": [demo, odd]}
        return harness.demo_server(method, params)

    def arguments(self, call):
        """What the host is asked when a cell makes the call."""
        self.value(call + "; None")
        method, params = self.kernel.calls[-1]
        self.assertEqual(method, "tools/call")
        return params["arguments"]

    def test_binding(self):
        for call, want in {
            "tools.demo.get_sum(1, 2)": {"a": 1, "b": 2},
            "tools.demo.get_sum(1, b=2)": {"a": 1, "b": 2},
            "tools.demo.get_sum(b=1, a=2)": {"a": 2, "b": 1},
            "tools.demo.get_sum(1, 2, 'x')": {"a": 1, "b": 2, "from": "x"},
            "tools.demo.get_sum(1, 2, from_='x')": {"a": 1, "b": 2, "from": "x"},
            "tools.demo.get_sum(1, 2, **{'from': 'x'})": {"a": 1, "b": 2, "from": "x"},
            "tools.demo.get_sum(a=1, b=None)": {"a": 1, "b": None},
            "tools.demo.self_test('me')": {"self": "me"},
            "tools.demo.self_test(self='me', class_='b')": {"self": "me", "class": "b"},
            "await tools.demo.self_test.aio(self='me')": {"self": "me"},
            "tools.demo['self-test']('me')": {"self": "me"},
            "tools['demo']['get-sum'](1, 2)": {"a": 1, "b": 2},
            "tools.demo.any(what=1, ever=2)": {"what": 1, "ever": 2},
            "tools.call('demo', 'any')": {},
            "tools.call('demo', 'any', {'x': [1]})": {"x": [1]},
            "tools.call('demo.any', {'x': [1]})": {"x": [1]},
            "tools.call('demo.any')": {},
            "tools.search('add')[0](1, 2)": {"a": 1, "b": 2},
        }.items():
            with self.subTest(call):
                self.assertEqual(self.arguments(call), want)

    def test_binding_errors(self):
        for call, kind, words in (
            ("tools.demo.get_sum(1)", "TypeError", ["misses 'b'", "Signature: demo.get_sum(a: float"]),
            ("tools.demo.get_sum()", "TypeError", ["misses 'a', 'b'"]),
            ("tools.demo.get_sum(1, 2, 3, 4)", "TypeError", ["takes 3 arguments, got 4"]),
            ("tools.demo.get_sum(1, 2, form='x')", "TypeError", ["no parameter 'form'", "did you mean from"]),
            ("tools.demo.get_sum(1, a=1)", "TypeError", ["got 'a' twice"]),
            ("tools.demo.get_sum(1, 2, 3, **{'from': 1})", "TypeError", ["got 'from' twice"]),
            ("tools.demo.get_smu(1, 2)", "UnknownTool", ["no tool 'get_smu'", "did you mean get_sum"]),
            ("tools.dmeo", "UnknownTool", ["no server 'dmeo'", "did you mean demo"]),
            ("tools['zzz']", "UnknownTool", ["no server 'zzz'"]),
            ("tools.call('demo', 'any', [1])", "TypeError", ["arguments is a dict", "list"]),
        ):
            with self.subTest(call):
                error = self.error(call)
                self.assertEqual(error["type"], kind)
                for word in words:
                    self.assertIn(word, error["message"])
        self.assertFalse([m for m, _ in self.kernel.calls if m == "tools/call"])

    def test_every_tool_is_reachable(self):
        """Whatever servers call themselves and their tools."""
        idents = {"__class__": "__class___", "__init": "__init", "a-b": "a_b", "a_b": "a_b_2"}
        for name in ("_load", "_client", "_info", "_tools", "_find", "_methods", "_help", "__own", "aio", "класс", "____"):
            idents[name] = name
        idents["____"] = "_____"
        doc = lambda n, i: {"name": n, "ident": i, "signature": f"s.{i}()", "params": []}  # noqa: E731
        info = lambda n, i: dict(name=n, ident=i, description="", tools=1, state="idle", error="")  # noqa: E731

        def answer(method, params):
            if method == "servers/list":
                return {"servers": [info(n, i) for n, i in idents.items()]}
            if method == "tools/list":
                return {"tools": [doc(n, i) for n, i in idents.items()]}
            return {"content": [{"type": "text", "text": f"{params['server']} {params['tool']}"}]}

        self.kernel = self.new_kernel(answer)
        for name, ident in idents.items():
            for code in (
                f"tools.__own.{ident}()",
                f"tools.__own[{name!r}]()",
                f"getattr(tools.__own, {ident!r})()",
                f"tools.call('__own', {name!r})",
                f"next(t for t in tools.__own if t.name == {name!r})()",
            ):
                with self.subTest(code):
                    self.assertEqual(self.value(code), repr(f"__own {name}"))
            with self.subTest(server=name):
                self.assertEqual(self.value(f"tools[{name!r}].aio()"), repr(f"{name} aio"))
                if name != "_client":
                    self.assertEqual(self.value(f"tools.{ident}.aio()"), repr(f"{name} aio"))
        self.assertIn("server _help:", self.printed("help(tools._help)"))
        self.assertEqual(self.value("len(tools.__own), tools.__own.__class__.__name__"), f"({len(idents)}, 'Server')")

    def test_help(self):
        self.assertIn("tools.search(", self.printed("help(tools)"))
        self.assertEqual(self.value("tools"), self.printed("help(tools)").rstrip("\n"))
        server = self.printed("help(tools.demo)")
        self.assertIn("server demo: A demo", server)
        self.assertIn("demo.get_sum(a: float, b: float, from_: str = None) -> dict   Adds two numbers.", server)
        tool = self.printed("help(tools.demo.get_sum)")
        for line in ("demo.get_sum(", "Adds two numbers.\nReally.", "  a: float (required)", "  from_: str (optional)"):
            self.assertIn(line, tool)
        self.assertIn("  class_: str (default 'a')", self.printed("help(tools.demo.self_test)"))
        self.assertIn("  self: str (required)  Who.", self.printed("help(tools.demo.self_test)"))
        self.assertEqual(self.printed("help(tools.search('add')[0])"), tool)
        self.assertIn("Return the number of items", self.printed("help(len)"))
        self.assertIn("Output", self.printed("help(type(out))"))
        self.assertIn("help(tools)", self.value("help"))

    def test_dir_and_iteration(self):
        self.assertEqual(self.printed("print(dir(tools))").strip(), "['acall', 'amap', 'call', 'demo', 'map', 'odd_name', 'prompt', 'prompts', 'read', 'resources', 'search', 'servers']")
        self.assertEqual(self.value("dir(tools.demo)"), "['any', 'get_sum', 'self_test']")
        self.assertEqual(self.value("[t.name for t in tools.demo]"), "['get-sum', 'self-test', 'any']")
        self.assertEqual(self.value("len(tools.demo)"), "3")
        self.assertEqual(self.value("[repr(s).split(':')[0] for s in tools]"), "['<server demo, 3 tools', '<server odd-name, 3 tools']")

    def test_signature(self):
        self.assertEqual(
            self.value("import inspect\nstr(inspect.signature(tools.demo.get_sum))"),
            "\"(a: 'float', b: 'float', from_: 'str' = None)\"",
        )
        self.assertEqual(self.value("tools.demo.get_sum.__name__, tools.demo.get_sum.__doc__[:4]"), "('get_sum', 'Adds')")
        self.assertEqual(self.value("str(inspect.signature(tools.demo.self_test))"), "\"(self: 'str', class_: 'str' = 'a')\"")

    def test_listings(self):
        self.assertEqual(
            self.value("tools.servers()"),
            "demo (tools: 3; ready)   A demo\nodd_name (tools not listed yet; failed: exit 1)",
        )
        self.assertEqual(self.value("tools.servers()[1].error"), "'exit 1'")
        hit = "demo.get_sum(a: float, b: float, from_: str = None) -> dict   Adds."
        self.assertEqual(self.value("tools.search('add')"), hit)
        self.assertEqual(self.value("h = tools.search('add')[0]\nh.server, h.tool, h.score"), "('demo', 'get-sum', 1.5)")
        self.assertEqual(self.kernel.calls[-1], ("tools/search", {"query": "add", "limit": 8}))

    def test_search_that_finds_nothing(self):
        self.kernel.answer = lambda *_: {"hits": [], "note": "2 servers could not be searched"}
        self.assertEqual(self.value("tools.search('x')"), "no tool found\n2 servers could not be searched")
        self.assertEqual(self.value("len(tools.search('x'))"), "0")
        self.kernel.answer = lambda *_: {"hits": [], "note": 'no tool matches "x"; servers: demo'}
        self.assertEqual(self.value("tools.search('x')"), 'no tool matches "x"; servers: demo')

    def test_wrong_arguments_of_our_own(self):
        for code, text in (
            ("tools.search('x', server='demo')", "search(query, limit=8): got an unexpected keyword argument 'server'"),
            ("tools.search()", "search(query, limit=8): missing a required argument: 'query'"),
        ):
            self.assertEqual(self.error(code)["message"], text)
        self.assertIn("int()", self.error("tools.search('x', 'many')")["message"])

    def test_a_traceback_asks_the_host_nothing(self):
        self.error("tools.dmeo")
        self.value("tools.demo.get_sum")
        self.kernel.calls.clear()
        self.error("tools.demo.get_smu")
        self.assertEqual(self.kernel.calls, [])

    def test_new_tools_are_found_after_a_miss(self):
        self.value("tools.demo.get_sum")
        self.error("tools.demo.fresh")
        fresh = {"name": "fresh", "ident": "fresh", "signature": "demo.fresh()", "params": []}
        answer = self.answer
        self.kernel.answer = lambda m, p: {"tools": [*DOCS, fresh]} if m == "tools/list" else answer(m, p)
        self.assertEqual(self.value("tools.demo.fresh()"), "'ok'")

    def test_results(self):
        self.result = {"content": [{"type": "text", "text": '{"items": [{"id": 1}], "keys": 2}'}]}
        self.assertEqual(self.value("r = tools.demo.any()\nr.items()"), "dict_items([('items', [{'id': 1}]), ('keys', 2)])")
        self.assertEqual(self.value("r['items'][0].id"), "1")
        self.assertEqual(self.error("r.itms")["message"], "no key 'itms' here; the keys are: items, keys")
        self.result = {"content": [{"type": "text", "text": "boom"}], "isError": True}
        self.assertEqual(self.error("tools.demo.any()")["traceback"].splitlines()[-1], "ToolError: boom")
        code = "try: tools.demo.any()\nexcept ToolError as e: caught = e\ncaught.server, caught.tool, caught.result['isError']"
        self.assertEqual(self.value(code), "('demo', 'any', True)")

    def test_images(self):
        image = {"type": "image", "data": "iVBORw0=", "mimeType": "image/png"}
        self.result = {"content": [image]}
        cell = self.run_ok("tools.demo.any()")["cell"]
        self.assertEqual(cell["images"], [{"mime": "image/png", "data": "iVBORw0="}])
        self.assertEqual(self.value("repr(_)"), "'<Image image/png, 5 bytes>'")
        self.assertEqual(self.value("import tempfile, os\nopen(tools.demo.any().save(os.path.join(tempfile.mkdtemp(), 'i')), 'rb').read()"), "b'\\x89PNG\\r'")
        self.result = {"content": [{"type": "text", "text": "seen"}, image]}
        cell = self.run_ok("tools.demo.any()")["cell"]
        self.assertEqual(len(cell["images"]), 1)
        self.assertEqual(cell["value"]["text"], "['seen', <Image image/png, 5 bytes>]")


class Unwrap(unittest.TestCase):
    def unwrap(self, *blocks, **more):
        return unwrap(values.parse(harness.json.dumps({"content": list(blocks), **more})), "s", "t")

    def test_rules(self):
        text = lambda t: {"type": "text", "text": t}  # noqa: E731
        for blocks, want in (
            ([], None),
            ([text("plain")], "plain"),
            ([text("")], ""),
            ([text("007")], "007"),
            ([text("true")], "true"),
            ([text('{"a": 1}')], {"a": 1}),
            ([text(" [1, 2] ")], [1, 2]),
            ([text("{not json")], "{not json"),
            ([text("[" * 100_000)], "[" * 100_000),
            ([text("a"), text("[1]")], ["a", [1]]),
            ([{"type": "resource", "resource": {"text": "body", "uri": "a:b"}}], "body"),
            ([{"type": "resource_link", "uri": "a:b"}], {"type": "resource_link", "uri": "a:b"}),
            ([{"type": "future", "x": 1}], {"type": "future", "x": 1}),
        ):
            with self.subTest(str(blocks)[:50]):
                self.assertEqual(self.unwrap(*blocks), want)

    def test_malformed_results(self):
        image = {"type": "image", "data": "AAE=", "mimeType": "image/png"}
        for result, words in (
            ([1], "the result is not an object but list"),
            (None, "the result is not an object"),
            ({"content": "abc"}, "content is not a list but str"),
            ({"content": 0}, "content is not a list"),
            ({"content": {}}, "content is not a list"),
            ({"content": [1]}, "a content block is not an object but int"),
            ({"content": [None]}, "a content block is not an object"),
            ({"content": [{"type": "text", "text": {"a": 1}}]}, "text is not a string but dict"),
            ({"content": [{**image, "data": 5}]}, "data is not a string but int"),
            ({"content": [{**image, "data": "x"}]}, "data is not base64"),
            ({"content": [{**image, "data": "AA\u00e4="}]}, "data is not base64"),
            ({"content": [{**image, "mimeType": {}}]}, "mimeType is not a string but dict"),
            ({"content": [{"type": "resource", "resource": 5}]}, "resource is not an object but int"),
            ({"content": [{"type": "resource", "resource": {"text": []}}]}, "text is not a string"),
            ({"content": [1], "isError": True}, "a content block is not an object"),
        ):
            with self.subTest(str(result)), self.assertRaises(ToolError) as caught:
                unwrap(result, "the server", "the tool")
            error = caught.exception
            self.assertIn("tool 'the tool' of server 'the server' answered with a malformed result: " + words, str(error))
            self.assertEqual((error.server, error.tool, error.result), ("the server", "the tool", result))
        self.assertEqual(unwrap({"content": [{**image, "data": "AA\nE=\n"}]}, "s", "t").data, b"\0\1")
        self.assertEqual(unwrap({"content": [{"type": []}]}, "s", "t"), {"type": []})
        self.assertEqual(unwrap({"content": None}, "s", "t"), None)

    def test_structured_content_comes_first(self):
        got = self.unwrap({"type": "text", "text": "for people"}, structuredContent={"a": {"b": 1}})
        self.assertEqual((got, got.a.b), ({"a": {"b": 1}}, 1))
        self.assertEqual(self.unwrap(structuredContent=None), None)
        self.assertEqual(self.unwrap(structuredContent=[]), [])

    def test_media(self):
        image, sound = self.unwrap(
            {"type": "image", "data": "AAE=", "mimeType": "image/png"},
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
            structuredContent={"a": 1},
        )
        self.assertIsInstance(image, Image)
        self.assertIsInstance(sound, Audio)
        self.assertEqual((image.data, image.mime_type, repr(sound)), (b"\0\1", "image/png", "<Audio audio/wav, 1 bytes>"))

    def test_errors(self):
        for blocks, message in (
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
            ([], "the tool reported an error without saying which"),
            ([{"type": "image", "data": "AA==", "mimeType": "i"}], "the tool reported an error without saying which"),
        ):
            with self.assertRaises(ToolError) as caught:
                self.unwrap(*blocks, isError=True)
            self.assertEqual(str(caught.exception), message)
            self.assertEqual((caught.exception.server, caught.exception.tool), ("s", "t"))

    def test_record(self):
        record = Record(a=1, keys=2)
        self.assertEqual(record.a, 1)
        self.assertEqual(list(record.keys()), ["a", "keys"])
        self.assertEqual(copy.deepcopy(record), record)
        self.assertEqual(pickle.loads(pickle.dumps(record)), record)
        self.assertIn("a", dir(record))
        self.assertFalse(hasattr(record, "b"))
        self.assertEqual(repr(record), "{'a': 1, 'keys': 2}")


class Failures(unittest.TestCase):
    def test_hostile_text(self):
        """What is not seen is not in the text of the error, but in its result."""
        text = "bad \x1b[31mred\x1b[0m \x1b]0;title\x07\u202e\u200b\ufe01\U000e0041\u3164\x85\rend 🙂️\n\tnext"
        result = {"isError": True, "content": [{"type": "text", "text": text}]}
        with self.assertRaises(ToolError) as caught:
            unwrap(result, "s", "t")
        self.assertEqual(str(caught.exception), "bad red end 🙂️\n\tnext")
        self.assertEqual(caught.exception.content[0]["text"], text)

    def test_long_text(self):
        with self.assertRaises(ToolError) as caught:
            unwrap({"isError": True, "content": [{"type": "text", "text": "x" * 10**6}]}, "s", "t")
        self.assertEqual(len(str(caught.exception)), 20_001)


if __name__ == "__main__":
    unittest.main()
