"""Resources and prompts of upstream servers."""

import unittest

import harness
from harness import KernelTest

RESOURCES = [
    {"uri": "note://1", "name": "one", "title": "The first", "mimeType": "text/plain", "description": "A note."},
    {"uri": "note://2", "name": "two"},
]
CONTENTS = {
    "note://text": [{"uri": "note://text", "text": "[1]", "mimeType": "text/plain"}],
    "note://json": [{"uri": "note://json", "text": '{"a": [{"b": 1}]}', "mimeType": "application/json; charset=utf-8"}],
    "note://ld": [{"uri": "note://ld", "text": "[1]", "mimeType": "application/ld+json"}],
    "note://bad": [{"uri": "note://bad", "text": "{no", "mimeType": "application/json"}],
    "note://bytes": [{"uri": "note://bytes", "blob": "AAE="}],
    "note://image": [{"uri": "note://image", "blob": "iVBORw0=", "mimeType": "image/png"}],
    "note://sound": [{"uri": "note://sound", "blob": "AAE=", "mimeType": "audio/wav"}],
    "note://empty": [],
    "note://many": [{"uri": "note://1", "text": "a"}, {"uri": "note://2", "blob": "AAE="}],
    "note://odd": [{"uri": "note://odd"}],
    "note://broken": [{"uri": "note://broken", "blob": 5}],
}
PROMPT = {
    "name": "greet",
    "description": "Greets.\nFriendly.",
    "arguments": [{"name": "tone"}, {"name": "who", "required": True, "description": "Whom."}, 7],
}


class Others(KernelTest):
    def setUp(self):
        self.kernel.answer = self.answer
        self.kernel.calls.clear()
        self.tools = []

    def answer(self, method, params):
        if method == "servers/list":
            info = dict(description="", tools=0, error="")
            return {
                "servers": [
                    dict(info, name="notes", ident="notes", state="ready"),
                    dict(info, name="plain", ident="plain", state="idle"),
                    dict(info, name="bad", ident="bad", state="failed"),
                    dict(info, name="off", ident="off", state="disabled"),
                ]
            }
        if method == "tools/list":
            return {"tools": self.tools}
        if params.get("server") in ("plain", "bad"):
            kind = {"plain": "unsupported", "bad": "server_failed"}[params["server"]]
            raise harness.Refusal(f"{params['server']} has none; its last output was:\nTrouble", kind)
        if method == "resources/list":
            return {"items": RESOURCES, "note": "there are more"}
        if method == "resources/templates":
            return {"items": [{"uriTemplate": "note://{n}", "name": "notes"}]}
        if method == "resources/read":
            return {"contents": CONTENTS[params["uri"]]}
        if method == "prompts/list":
            return {"items": [PROMPT]}
        if method == "prompts/get":
            image = {"type": "image", "data": "iVBORw0=", "mimeType": "image/png"}
            text = {"type": "text", "text": f"Greet {params['arguments'].get('who')}"}
            messages = [{"role": "user", "content": text}, {"role": "assistant", "content": image}]
            return {"description": "A greeting", "messages": messages}
        return harness.demo_server(method, params)

    def test_read(self):
        for uri, want in {
            "text": "'[1]'",
            "json": "{'a': [{'b': 1}]}",
            "ld": "[1]",
            "bad": "'{no'",
            "bytes": "b'\\x00\\x01'",
            "sound": "<Audio audio/wav, 2 bytes>",
            "empty": "[]",
            "many": "['a', b'\\x00\\x01']",
            "odd": "{'uri': 'note://odd'}",
        }.items():
            with self.subTest(uri):
                self.assertEqual(self.value(f"tools.read('note://{uri}', server='notes')"), want)
                self.assertEqual(self.value(f"await tools.notes.read.aio('note://{uri}')"), want)
        self.assertEqual(self.value("tools.read('note://json').a[0].b"), "1")
        self.assertEqual(self.kernel.calls[-1], ("resources/read", {"uri": "note://json", "server": ""}))
        self.assertEqual(self.run_ok("tools.read('note://image')")["cell"]["images"][0]["mime"], "image/png")
        self.assertEqual(self.value("tools.read.raw('note://text').contents[0].uri"), "'note://text'")
        self.assertIn("resource 'note://broken' is malformed", self.error("tools.read('note://broken')")["message"])
        self.assertEqual(self.value("tools.map(tools.read, ['note://text', 'note://ld'])"), "['[1]', [1]]")
        for wrong in ("tools.read(5)", "tools.read('a:b', server=5)", "tools.read({})"):
            self.assertEqual(self.error(wrong)["type"], "TypeError")

    def test_read_what_was_listed(self):
        CONTENTS["note://1"] = CONTENTS["note://text"]
        for code in ("tools.read(tools.resources('notes')[0])", "tools.read('note://1', tools.notes)", "tools.notes.read('note://1')"):
            self.assertEqual(self.value(code), "'[1]'")
            self.assertEqual(self.kernel.calls[-1][1], {"uri": "note://1", "server": "notes"})

    def test_listings(self):
        lines = "note://1 (text/plain)   The first   A note.\nnote://2   two\nthere are more"
        for code in ("tools.resources('notes')", "tools.notes.resources()", "await tools.resources.aio('notes')", "tools.resources(tools.notes)"):
            self.assertEqual(self.value(code), lines)
        self.assertEqual(self.value("r = tools.notes.resources()[0]\nr.uri, r.mimeType, r.server"), "('note://1', 'text/plain', 'notes')")
        self.assertEqual(self.value("tools.notes.templates()"), "note://{n}   notes")
        self.assertEqual(self.value("tools.notes.prompts()"), "notes.greet(who: str, tone: str = None)   Greets.")
        self.assertEqual(self.error("tools.plain.resources()")["message"].split(";")[0], "plain has none")

    def test_of_all_servers(self):
        for code in ("tools.resources()", "await tools.resources.aio()"):
            self.assertEqual(self.value(f"r = {code}\n[x.uri for x in r], r.note"), "(['note://1', 'note://2'], 'there are more\\n(bad: bad has none)')")
            asked = [p for method, p in self.kernel.calls if method == "resources/list"]
            self.assertTrue(asked and all(p["brief"] for p in asked), asked)
        self.assertEqual(self.value("[(p.server, p.name) for p in tools.prompts()]"), "[('notes', 'greet')]")
        self.assertNotIn("off", [p.get("server") for _, p in self.kernel.calls])

    def test_prompts(self):
        for code in (
            "tools.prompt('notes', 'greet', {'who': 'Ada'})",
            "tools.prompt('notes.greet', {'who': 'Ada'})",
            "tools.prompt(tools.notes, 'greet', {'who': 'Ada', 'tone': None})",
            "tools.notes.prompt('greet', who='Ada')",
            "tools.prompts('notes')[0]('Ada')",
            "await tools.prompts('notes')[0].aio(who='Ada')",
            "await tools.prompt.aio('notes', 'greet', {'who': 'Ada'})",
        ):
            with self.subTest(code):
                self.assertEqual(self.value(f"m = {code}\nm"), "user: Greet Ada\n\nassistant: <Image image/png, 5 bytes>")
                self.assertEqual(self.kernel.calls[-1], ("prompts/get", {"server": "notes", "name": "greet", "arguments": {"who": "Ada"}}))
        self.assertEqual(self.value("m.description, m.text, m[0].role, len(m)"), "('A greeting', 'Greet Ada', 'user', 2)")
        self.run_ok("tools.notes.prompt('greet', who=['a', 1], tone=2)")
        self.assertEqual(self.kernel.calls[-1][1]["arguments"], {"who": '["a", 1]', "tone": "2"})
        error = self.error("tools.prompts('notes')[0](hwo='Ada')")
        self.assertEqual((error["type"], error["message"]), ("TypeError", "prompt greet has no parameter 'hwo' (did you mean who?). Signature: notes.greet(who: str, tone: str = None)"))
        self.assertEqual(self.error("tools.prompts('notes')[0]()")["message"].split(".")[0], "prompt greet misses 'who'")
        self.assertIn("  who  Whom.", self.printed("help(tools.prompts('notes')[0])"))

    def test_prompts_that_are_odd(self):
        odd = [
            {"name": "p", "arguments": 5, "description": ["x"], "title": 7},
            {"name": "q", "arguments": [{"name": "a-b", "required": True}, {"name": "class"}, {"name": 5}, {"name": ""}, {"name": "1", "description": {}}]},
        ]
        self.kernel = self.new_kernel(lambda m, p: {"items": odd} if m == "prompts/list" else self.answer(m, p))
        self.assertEqual(self.value("p, q = tools.prompts('notes')\np, q"), "(notes.p(), notes.q(a_b: str, class_: str = None, _1: str = None))")
        self.run_ok("p(), q('x', class_='y', _1='z')")
        self.assertEqual(self.kernel.calls[-1][1]["arguments"], {"a-b": "x", "class": "y", "1": "z"})
        self.printed("help(p); help(q)")

    def test_answers_that_are_odd(self):
        for reply in ({"messages": 5}, {"messages": [5]}, {"messages": [{"content": 5}]}, {"messages": [{"role": 5, "content": {}}]}, []):
            with self.subTest(str(reply)):
                self.kernel.answer = lambda m, p: reply if m == "prompts/get" else self.answer(m, p)
                error = self.error("tools.prompt('notes.greet')")
                self.assertEqual(error["type"], "ToolError")
                self.assertIn("prompt 'greet' of server 'notes' is malformed", error["message"])
        for reply in ({"contents": 5}, {"contents": [5]}, {"contents": [{"blob": "x"}]}, {"contents": [{"text": 5}]}, []):
            with self.subTest(str(reply)):
                self.kernel.answer = lambda m, p: reply if m == "resources/read" else self.answer(m, p)
                self.assertIn("resource 'a:b' is malformed", self.error("tools.read('a:b')")["message"])

    def test_a_tool_of_that_name_goes_first(self):
        self.tools = [{"name": n, "ident": n, "signature": f"notes.{n}()", "params": []} for n in ("resources", "read", "doc")]
        code = "[getattr(tools.notes, n).name for n in ('resources', 'read', 'doc')], callable(tools.notes.prompts)"
        self.kernel = self.new_kernel(self.answer)
        self.assertEqual(self.value(code), "(['resources', 'read', 'doc'], True)")
        self.assertEqual(self.value("len(tools.resources('notes'))"), "2")


if __name__ == "__main__":
    unittest.main()
