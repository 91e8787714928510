"""Snippets written for mcp-server-code-execution-mode, function by function.

Where ours answers otherwise than it did, the comment says what it did.
"""

import json
import re
import unittest

import harness
import keeping


def doc(name, ident, params=(), description="", aliases=()):
    params = [{"name": p, "ident": p, "type": kind, "required": required, "description": about} for p, kind, required, about in params]
    signature = f"github.{ident}({', '.join(p['name'] for p in params)})"
    return {"name": name, "ident": ident, "description": description, "signature": signature, "params": params, "aliases": list(aliases)}


TOOLS = {
    "git-hub": [
        doc("createIssue", "createIssue", [("title", "str", True, "What it is about."), ("labels", "list[str]", False, "")], "Create an issue."),
        doc("list-files", "list_files", [("path", "str", True, "")], "List files."),
        doc("say", "say", [("text", "str", True, "")], "Say something."),
        doc("fail", "fail", [], "Fail."),
    ],
    "Empty": [],
}
SERVERS = [
    dict(name="git-hub", ident="git_hub", description="Git", tools=4, state="idle", error=""),
    dict(name="Empty", ident="Empty", description="", tools=0, state="idle", error=""),
    dict(name="off", ident="off", description="", tools=None, state="disabled", error=""),
]


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def answer(method, params):
    if method == "servers/list":
        return {"servers": SERVERS}
    if method == "tools/list":
        return {"tools": TOOLS[params["server"]]}
    if method == "tools/search":
        words = params["query"].split()
        found = [tool for tool in TOOLS["git-hub"] if any(word in tool["name"] for word in words)]
        hits = [dict(server="git-hub", tool=t["name"], signature=t["signature"], description=t["description"], score=1.0) for t in found]
        return {"hits": hits[: params["limit"]], "note": ""}
    if method != "tools/call":
        raise LookupError(method)
    tool, arguments = params["tool"], params["arguments"]
    if tool == "createIssue":
        return {**text("made"), "structuredContent": {"number": 7, **arguments}}
    if tool == "list-files":
        return text(json.dumps([arguments["path"], "b"]))
    if tool == "say":
        return text(arguments["text"])
    if tool == "fail":
        return {**text("it did not work"), "isError": True}
    raise LookupError(f"no tool {tool!r}")


class CompatTest(harness.KernelTest):
    @classmethod
    def setUpClass(cls):
        cls.keeper = keeping.Keeper(answer)
        cls.kernel = harness.Kernel(cls.keeper)

    def setUp(self):
        for area in self.keeper.areas.values():
            area.clear()

    def check(self, code, want):
        got = self.value(code)
        self.assertEqual(got and re.sub(r"\n *", " ", got), want, code)  # long ones are on several lines


class ProxiesTest(CompatTest):
    def test_awaited(self):
        # It returned {"content": [...]}; its manual had the unwrapped value, as here.
        self.check("issue = await mcp_git_hub.createIssue(title='x')\nissue['number'], issue.title", "(7, 'x')")
        self.check("await mcp_git_hub.list_files(path='a')", "['a', 'b']")
        self.check("(await mcp_git_hub.say(text='hello'))[:4]", "'hell'")

    def test_the_envelope(self):
        # What did work with it: the result as it came.
        self.check("r = await mcp_git_hub.say(text='hello')\nr['content'][0]['text'], r['isError'], r.get('structuredContent')", "('hello', False, None)")
        self.check("r = await mcp_git_hub.createIssue(title='x')\nr['structuredContent']['number'], r.get('content')[0]['text'], r.get('none', 1)", "(7, 'made', 1)")
        self.check("r = await mcp_git_hub.list_files(path='a')\nr['content'][0].type, r[0], r[-1:]", "('text', 'a', ['b'])")
        self.assertIn("KeyError", self.error("(await mcp_git_hub.createIssue(title='x'))['nothing']")["type"])

    def test_lower_case_names(self):
        self.check("(await mcp_git_hub.createissue(title='x')).number", "7")
        self.check("(await mcp_git_hub.create_issue(title='x')).number", "7")

    def test_not_awaited(self):
        # It was a coroutine, and nothing happened.
        self.check("mcp_git_hub.createIssue(title='x').number", "7")
        self.check("def f():\n    return mcp_git_hub.say(text='y')\nf()", "'y'")

    def test_gather(self):
        self.check("import asyncio\nawait asyncio.gather(mcp_git_hub.say(text='a'), mcp_git_hub.say(text='b'))", "['a', 'b']")
        self.check("calls = [mcp_git_hub.say(text=str(n)) for n in range(3)]\nawait asyncio.gather(*calls)", "['0', '1', '2']")
        self.check("async def main():\n    return await mcp_git_hub.say(text='m')\nawait main()", "'m'")
        self.check("task = asyncio.create_task(mcp_git_hub.say(text='t'))\nx = await task\nx", "'t'")

    def test_asyncio_run(self):
        # It failed: a loop was running.
        self.check("import asyncio\nasync def main():\n    return await mcp_git_hub.say(text='r')\nasyncio.run(main())", "'r'")
        self.check("asyncio.run(mcp_git_hub.say(text='s'))", "'s'")

    def test_positional_arguments(self):
        # The first one was taken for the name of the tool.
        self.check("await mcp_git_hub.say('first')", "'first'")

    def test_errors(self):
        # It raised nothing.
        for code in ("await mcp_git_hub.fail()", "mcp_git_hub.fail()"):
            error = self.error(code)
            self.assertEqual((error["type"], error["message"]), ("MCPError", "it did not work"))
        self.check("try:\n    await mcp_git_hub.fail()\nexcept RuntimeError as e:\n    caught = isinstance(e, ToolError), e.server, e.result['isError']\ncaught", "(True, 'git-hub', True)")
        self.assertEqual(self.error("await mcp_git_hub.say(txt='x')")["type"], "TypeError")
        self.assertIn("no tool 'sayy' (did you mean say", self.error("mcp_git_hub.sayy")["message"])

    def test_names(self):
        self.assertEqual(self.error("mcp_githob.say(text='x')")["type"], "NameError")
        self.assertIn("did you mean mcp_git_hub", self.error("mcp_git_hob.say")["message"])
        self.check("mcp_mine = 3\nmcp_mine", "3")
        self.check("dir(mcp_git_hub), repr(mcp_git_hub.say)", "(['createIssue', 'fail', 'list_files', 'say'], 'github.say(text)   Say something.')")
        self.assertNotIn("mcp_git_hub", self.value("dir()"))

    def test_mcp_servers(self):
        self.check("await mcp_servers['git-hub'].say(text='x')", "'x'")
        self.check("await mcp_servers['git_hub'].say(text='x')", "'x'")
        self.check("list(mcp_servers), 'off' in mcp_servers, len(mcp_servers), mcp_servers.get('off')", "(['git-hub', 'Empty'], False, 2, None)")
        self.check("[name for name, server in mcp_servers.items()], len(mcp_servers.values())", "(['git-hub', 'Empty'], 2)")
        self.assertEqual(self.error("mcp_servers['none']")["type"], "KeyError")
        self.check("LOADED_MCP_SERVERS", "('Empty', 'git-hub')")

    def test_list_tools_of_a_proxy(self):
        self.check("[t['name'] for t in await mcp_git_hub.list_tools()]", "['createIssue', 'list-files', 'say', 'fail']")


class ModulesTest(CompatTest):
    def test_from_mcp_servers(self):
        self.check("from mcp.servers.git_hub import createissue, list_files as ls, createIssue\n(await createissue(title='t')).number, await ls(path='p')", "(7, ['p', 'b'])")
        self.check("import mcp.servers.git_hub as gh\ngh.TOOL_MAP['list_files'], gh.TOOLS[0]['name'], gh.__all__[2], gh.say.__doc__", "('list-files', 'createIssue', 'say', 'Say something.')")
        self.check("import mcp.servers\nmcp.servers.git_hub.say(text='x')", "'x'")
        self.assertIn("no server is called so (did you mean git_hub?)", self.error("from mcp.servers.git_hob import say")["message"])
        self.assertEqual(self.error("from mcp.servers.git_hub import none")["type"], "ImportError")
        self.check("from mcp.servers import git_hub\ngit_hub.say('z')", "'z'")

    def test_runtime(self):
        self.check("import mcp.runtime as runtime\nfrom mcp import runtime as again\nruntime is again, mcp.runtime is again", "(True, True)")
        self.check("from mcp.runtime import list_servers_sync, MCPError\nlist_servers_sync()", "('Empty', 'git-hub')")
        self.assertEqual(self.error("from mcp import nothing")["type"], "ImportError")

    def test_without_import(self):
        # None of these names was there.
        kernel = self.new_kernel(self.keeper)
        self.assertEqual(kernel.run("runtime.list_servers_sync(), mcp.runtime is runtime")["cell"]["value"]["text"], "(('Empty', 'git-hub'), True)")
        self.assertEqual(kernel.run("save_memory('k', 1)")["cell"]["value"]["text"], '"Memory \'k\' saved."')


class RuntimeTest(CompatTest):
    def test_discovered_servers(self):
        self.check("runtime.discovered_servers()", "('git-hub', 'Empty')")
        self.check("runtime.discovered_servers(detailed=True)", "({'name': 'git-hub', 'description': 'Git'}, {'name': 'Empty', 'description': ''})")

    def test_list_servers(self):
        # Those loaded for the run; here all can be used.
        self.check("await runtime.list_servers()", "('Empty', 'git-hub')")
        self.check("runtime.list_servers()", "('Empty', 'git-hub')")
        self.check("runtime.list_servers_sync()", "('Empty', 'git-hub')")

    def test_list_tools(self):
        self.check("[t['name'] for t in await runtime.list_tools('git-hub')]", "['createIssue', 'list-files', 'say', 'fail']")
        self.check(
            "(await runtime.list_tools('git-hub'))[0]['inputSchema']",
            "{'type': 'object', 'properties': {'title': {'type': 'string', 'description': 'What it is about.'}, 'labels': {'type': 'array'}}, 'required': ['title']}",
        )
        self.check("runtime.list_tools_sync('git-hub')[1]['alias'], type(runtime.list_tools_sync('Empty'))", "('list_files', <class 'tuple'>)")
        self.assertEqual(self.error("runtime.list_tools_sync()")["type"], "MCPError")
        self.assertIn("Server 'nope' is not available", self.error("await runtime.list_tools('nope')")["message"])

    def test_describe_server(self):
        self.check("d = runtime.describe_server('git-hub')\nsorted(d), d['alias'], len(d['tools']), sorted(d['tools'][0])", "(['alias', 'cwd', 'name', 'tools'], 'git_hub', 4, ['alias', 'description', 'input_schema', 'name'])")
        self.assertEqual(self.error("runtime.describe_server('off')")["type"], "MCPError")

    def test_list_loaded_server_metadata(self):
        self.check("[(d['name'], len(d['tools'])) for d in runtime.list_loaded_server_metadata()]", "[('git-hub', 4), ('Empty', 0)]")

    def test_query_tool_docs(self):
        one = "{'server': 'git-hub', 'serverAlias': 'git_hub', 'tool': 'list-files', 'toolAlias': 'list_files', 'description': 'List files.'}"
        self.check("await runtime.query_tool_docs('git-hub', 'list-files')", one)
        self.check("runtime.query_tool_docs_sync('git-hub', 'list_files')", f"[{one}]")  # a list, as it did
        self.check("len(await runtime.query_tool_docs('git-hub')), len(runtime.query_tool_docs_sync('git-hub'))", "(4, 4)")
        self.check("(await runtime.query_tool_docs('git-hub', tool='say', detail='full'))['inputSchema']['required']", "['text']")
        self.check("'inputSchema' in await runtime.query_tool_docs('git-hub', tool='say', detail='odd')", "False")
        self.assertIn("Tool 'none' not found for server git-hub", self.error("runtime.query_tool_docs_sync('git-hub', 'none')")["message"])

    def test_search_tool_docs(self):
        # All words had to occur; of the loaded servers only. Here it is tools.search.
        self.check("[d['tool'] for d in await runtime.search_tool_docs('say fail')]", "['say', 'fail']")
        self.check("[d['toolAlias'] for d in runtime.search_tool_docs_sync('files say', limit=1)]", "['list_files']")
        self.check("'inputSchema' in runtime.search_tool_docs_sync('say', limit=99, detail='full')[0]", "True")
        self.check("runtime.search_tool_docs_sync('unheard')", "[]")

    def test_call_tool(self):
        # The raw result, also of a failure.
        self.check("(await runtime.call_tool('git-hub', 'say', {'text': 'x'}))['content']", "[{'type': 'text', 'text': 'x'}]")
        self.check("runtime.call_tool('git_hub', 'list_files', {'path': 'x'})['content'][0]['text']", "'[\"x\", \"b\"]'")
        self.check("(await runtime.call_tool('git-hub', 'fail'))['isError']", "True")
        self.assertEqual(self.error("await runtime.call_tool('nope', 'x')")["type"], "MCPError")

    def test_capability_summary(self):
        self.assertIn("save_tool(fn)", self.printed("print(runtime.capability_summary())"))

    def test_save_tool(self):
        # It could not work at all.
        self.run_ok("import math\ndef area(r):\n    'Of a circle.'\n    return round(math.pi * r * r, 1)")
        self.assertRegex(self.value("save_tool(area)"), r"Tool 'area' saved \(version 1\)")
        kernel = self.new_kernel(self.keeper)
        self.assertEqual(kernel.run("from user_tools import area\narea(2), skills.area(1)")["cell"]["value"]["text"], "(12.6, 3.1)")

    def test_memory_functions(self):
        self.check("save_memory('plan', {'goal': 'x', 'done': []}, metadata={'tags': ['a']})", '"Memory \'plan\' saved."')
        self.check("load_memory('plan')['goal'], load_memory('none'), load_memory('none', default=3), get_memory('plan').done", "('x', None, 3, [])")
        self.check("update_memory('plan', lambda p: {**p, 'done': [1]})", "{'goal': 'x', 'done': [1]}")
        self.check("update_memory('new', lambda v: [v])", "[None]")
        # It lost the metadata.
        self.check("i = get_memory_info('plan'); i['metadata'], i['value']['done'], i['created_at'] <= i['updated_at'], i['key']", "({'tags': ['a']}, [1], True, 'plan')")
        self.check("[(m['key'], sorted(m)) for m in list_memories()][1]", "('plan', ['created_at', 'key', 'metadata', 'updated_at'])")
        self.check("memory_exists('plan'), memory_exists('none'), get_memory_info('none')", "(True, False, None)")
        # One of the two overwrote the other.
        self.run_ok("save_memory('a/b', 1); save_memory('a_b', 2)")
        self.check("load_memory('a/b'), load_memory('a_b'), memory['a/b']", "(1, 2, 1)")
        self.check("delete_memory('plan'), delete_memory('plan')", '("Memory \'plan\' deleted.", "Memory \'plan\' not found.")')
        self.check("import mcp.runtime as rt\nrt.save_memory('k', 1), rt.load_memory('k')", '("Memory \'k\' saved.", 1)')


class HelpersTest(CompatTest):
    """Helpers of code-execution-mcp."""

    def test_files(self):
        self.check("write_file('d/a.txt', 'żółw'), read_file('d/a.txt')", "('Written 7 bytes to d/a.txt', 'żółw')")
        self.check("write_file('b.bin', b'12'), list_files(), list_files('d')", "('Written 2 bytes to b.bin', ['b.bin', 'd/a.txt'], ['d/a.txt'])")
        self.check("delete_file('b.bin'), list_files('none')", "('Deleted b.bin', [])")
        self.assertEqual(self.error("read_file('b.bin')")["message"], "File not found: b.bin")
        # It took a path that only began like the workspace's for one in it.
        for path in ("../x", "/etc/passwd", "d/../../x"):
            for code in (f"read_file({path!r})", f"write_file({path!r}, '')", f"delete_file({path!r})", f"list_files({path!r})"):
                self.assertEqual(self.error(code)["type"], "PermissionError", code)
        self.run_ok("import os\nos.symlink('/etc', 'd/link')")
        self.assertEqual(self.error("read_file('d/link/passwd')")["type"], "PermissionError")
        self.run_ok("os.unlink('d/link'); delete_file('d/a.txt')")

    def test_tools(self):
        self.check("s = search_tools('say'); s['count'], s.tools[0]['name'], s.tools[0].category, s.detail_level", "(1, 'say', 'git-hub', 'summary')")
        self.check("search_tools('say', category='Empty').count, search_tools('say', detail_level='full').tools[0].signature", "(0, 'github.say(text)')")
        self.check("d = get_tool_definition('say'); d.name, d.category, d.inputSchema.required if hasattr(d.inputSchema, 'required') else d.inputSchema['required']", "('say', 'git-hub', ['text'])")
        self.check("get_tool_definition('git_hub.createissue').name, get_tool_definition('say', 'git-hub').name, get_tool_definition('say', 'Empty')", "('createIssue', 'say', None)")
        self.check("list_tool_categories()", "{'categories': {'git-hub': {'description': 'Git', 'tool_count': 4}, 'Empty': {'description': '', 'tool_count': 0}}, 'total_tools': 4}")

    def test_skills(self):
        self.check("save_skill('double', 'def double(n):\\n    return 2 * n', 'Doubles.')", '"Skill \'double\' saved successfully"')
        self.check("load_skill('double')", "'def double(n):\\n    return 2 * n'")
        self.check("exec(load_skill('double'))\ndouble(2)", "4")  # exec was missing there
        self.check("skills.double(3)", "6")
        self.check("[(s['name'], s['description'], s['version'], len(s['code_hash'])) for s in list_skills()]", "[('double', 'Doubles.', 1, 64)]")
        self.assertEqual(self.error("load_skill('none')")["type"], "FileNotFoundError")
        self.assertEqual(self.error("load_skill('../etc')")["type"], "FileNotFoundError")
        self.assertEqual(self.error("save_skill('../x', 'pass')")["type"], "ValueError")  # it wrote outside
        self.check("save_skill('steps', 'a = 1\\nb = a + 1', 'No function.')\nskills.steps.b", "2")

    def test_personal_data(self):
        text = "Ann a.b+c@x-y.co.uk, +1 (555) 123-4567, SSN 123-45-6789, card 4111 1111 1111 1111, 10.0.0.255, sk-proj-abcdefghij0123456789"
        self.run_ok(f"text = {text!r}\nsafe, tokens = tokenize_pii(text)")
        safe = self.value("safe")
        for secret in ("x-y.co", "123-4567", "6789", "1111", "10.0", "abcdef"):
            self.assertNotIn(secret, safe)
        self.assertRegex(safe, r"Ann \[EMAIL_[0-9a-f]{8}\], \[PHONE_.*SSN \[SSN_.*card \[CREDIT_CARD_.*\[IP_ADDRESS_.*\[API_KEY_")
        self.check("detokenize_pii(safe) == text, detokenize_pii(safe, tokens) == text, len(tokens), tokenize_pii(text)[0] == safe", "(True, True, 6, True)")
        self.check("detokenize_pii(safe, {}) == safe, tokenize_pii(safe)", f"(True, ({safe}, {{}}))")
        self.check("tokenize_pii('on 2024-01-15 at 10:30, v1.2.3, 4111 1111 1111 1112, 1234567890123')", "('on 2024-01-15 at 10:30, v1.2.3, 4111 1111 1111 1112, 1234567890123', {})")
        # It said "IP" and "CREDIT".
        self.check("s = sanitize_pii('1.2.3.4 x@y.org'); s['pii_found'], s['pii_types'], restore_pii(s['sanitized_text'])", "(2, ['email', 'ip_address'], {'restored_text': '1.2.3.4 x@y.org'})")

    def test_data(self):
        self.run_ok("rows = [{'n': 1, 'p': 2.5, 'ok': True, 's': 'a'}, {'n': 3, 's': 'b'}, {'s': 'a', 'q': 4}]")
        self.check("[r.get('n') for r in filter_by_field(rows, 's', 'a')], filter_by_field(rows, 'none', None) == rows", "([1, None], True)")
        self.check("summarize_list(rows, limit=1)['count'], len(summarize_list(range(99))['sample'])", "(3, 10)")
        # A row without the field counted as 0, and only the first row's fields were found.
        self.check("aggregate_stats(rows)", "{'count': 3, 'n_sum': 4, 'n_avg': 2.0, 'n_min': 1, 'n_max': 3, 'p_sum': 2.5, 'p_avg': 2.5, 'p_min': 2.5, 'p_max': 2.5, 'q_sum': 4, 'q_avg': 4.0, 'q_min': 4, 'q_max': 4}")
        self.check("aggregate_stats(rows, ['n']), aggregate_stats([])", "({'count': 3, 'n_sum': 4, 'n_avg': 2.0, 'n_min': 1, 'n_max': 3}, {'count': 0})")
        self.check("format_output({'a': 1})", "'{\\n  \"a\": 1\\n}'")
        self.check("t = format_output(list(range(999)), max_chars=60); len(t), t[-26:]", "(60, ' (6,885 characters in all)')")

    def test_result(self):
        for code, want in (
            ("result = 5", "5"),
            ("for x in (1, 2):\n    result = x * 2", "4"),
            ("result = {'a': 1}\nprint('done')", "{'a': 1}"),
            ("result = 1\nresult = result + 1", "2"),
            ("result: int = 3\nresult += 1", "4"),
            ("result = result2 = 1\nresult2 + 1", "2"),
            ("result = 6\nprint(result)", None),
            ("result = 6\nx = result", None),
            ("result = 6; print();", None),
            ("x = result", None),
            ("def f():\n    result = 9\nf()", None),
            ("for result in (1, 2): pass", None),
            ("import json as result", None),
            ("result = None", None),
        ):
            self.check(code, want)
        self.check("_", "2")

    def test_get_execution_stats(self):
        self.run_ok("memory['k'] = 1")
        self.check("s = get_execution_stats(); s.servers, s.tools, s.memories, s.skills, s.uptime_s >= 0, 'skills' in s.capabilities", "(3, 4, 1, 0, True, True)")

    def test_the_user_s_own_names_win(self):
        self.check("def read_file(p): return 'mine'\nread_file('x')", "'mine'")
        self.check("read_file('y')", "'mine'")
        self.run_ok("del read_file")
        self.assertEqual(self.error("read_file('y')")["message"], "File not found: y")
        self.assertNotIn("write_file", self.value("write_file and dir()"))


if __name__ == "__main__":
    unittest.main()
