package main_test

import "testing"

// TestFunctionsOfTools has a snippet for each thing that help(tools) names.
func TestFunctionsOfTools(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	for _, test := range []struct{ name, code, want string }{
		{"search", "tools.search('gives back its arguments')[0].tool", "'same'"},
		{"search, async", "(await tools.search.aio('gives back its arguments', limit=1))[0](value=1)['value']", "1"},
		{"servers", "[s.name for s in tools.servers()]", "['special']"},
		{"server by name", "tools['special'] is tools.special, 'special' in tools", "(True, True)"},
		{"dir", "{'same', 'odd_name', 'createIssue'} <= set(dir(tools.special))", "True"},
		{"iteration", "{t.name for t in tools.special} >= {'same', 'odd-name'}", "True"},
		{"positional", "tools.special.odd_name('c', 'f', 3)", "{'class': 'c', 'from': 'f', 'max-items': 3}"},
		{"aio", "(await tools.special.same.aio(value=2))['value']", "2"},
		{"raw", "r = tools.special.fail.raw(why='x')\nr.isError, 'it failed' in r.content[0].text", "(True, True)"},
		{"snake_case", "tools.special.create_issue(issue_title='t')", "{'issueTitle': 't'}"},
		{"snake_case by name", "tools.call('special', 'create_issue', {'issueTitle': 't'})", "{'issueTitle': 't'}"},
		{"call", "tools.call('special.same', {'value': 3})['value']", "3"},
		{"acall", "(await tools.acall('special', 'same', {'value': 4}))['value']", "4"},
		{"map", "[r['value'] for r in tools.map(tools.special.same, range(100))] == list(range(100))", "True"},
		{"amap", "[r['value'] for r in await tools.amap(tools.special.same, range(100))] == list(range(100))", "True"},
		{"async for", "[r['value'] async for r in tools.amap(tools.special.same, range(5))]", "[0, 1, 2, 3, 4]"},
		{"gather", "import asyncio\n[r['value'] for r in await asyncio.gather(*(tools.special.same.aio(i) for i in range(5)))]", "[0, 1, 2, 3, 4]"},
		{"read text", "tools.read('note://text')", "'the text of note://text'"},
		{"read JSON", "tools.read('note://json', server='special').rows[0].n", "9007199254740993"},
		{"read bytes", "tools.read('note://bytes')", `b'\x00\x01\x02'`},
		{"read by a template", "tools.special.read('note://whatever')", "'the text of note://whatever'"},
		{"read, async", "await tools.read.aio('note://text')", "'the text of note://text'"},
		{"read in parallel", "tools.map(tools.read, ['note://text', 'note://bytes'])", `['the text of note://text', b'\x00\x01\x02']`},
		{"read a link", "tools.read(tools.special.link())", "'the text of note://link'"},
		{"resources", "sorted(r.uri for r in tools.resources())", "['note://bytes', 'note://json', 'note://text']"},
		{"templates", "tools.special.templates()", "note://{name}   any note"},
		{"a tool called resources", "tools.special.resources()", "'the tool'"},
		{"prompts", "tools.prompts()", "special.greet(who: str)   Greets"},
		{"prompt", "tools.prompt('special', 'greet', {'who': 'Ada'})", "user: Greet Ada"},
		{"prompt of a server", "tools.special.prompt('greet', who='Ada').text", "'Greet Ada'"},
		{"prompt that was listed", "(await tools.special.prompts()[0].aio('Ada'))[0].role", "'user'"},
		{"doc", "print(tools.special.createIssue.doc)", "special.createIssue(issueTitle: str) -> {issueTitle: str}\n\nA name in camelCase\n\nParameters:\n  issueTitle: str (required)"},
		{"brief doc", "tools.special.createIssue.doc('brief')", "special.createIssue(issueTitle: str) -> {issueTitle: str}   A name in camelCase"},
		{"full doc", "'issueTitle' in tools.special.createIssue.doc('full')", "True"},
		{"kept in a variable", "import pickle\nsame = pickle.loads(pickle.dumps(tools.special.same))\nsame(7)['value']", "7"},
	} {
		t.Run(test.name, func(t *testing.T) { c.wants(t, test.code, test.want) })
	}
}

// TestErrorsOfTools shows what a model sees of each way to fail.
func TestErrorsOfTools(t *testing.T) {
	t.Parallel()
	s := special(t)
	s.servers["plain"] = npmServer(t, "server-filesystem", t.TempDir())
	c := connect(t, s)
	for _, test := range []struct {
		name, code string
		want       []string
	}{
		{"tool that fails", "tools.special.fail(why='x')", []string{"ToolError: it failed"}},
		{"tool that is not there", "tools.special.smae(1)", []string{"UnknownTool", `no tool 'smae' (did you mean same?)`}},
		{"server that is not there", "tools.speciel", []string{"UnknownTool", "did you mean special?"}},
		{"argument that is missing", "tools.special.odd_name()", []string{"TypeError", "misses 'class_'", "Signature: special.odd_name(class_: str"}},
		{"argument that is misspelt", "tools.special.odd_name('c', form='x')", []string{"TypeError", "no parameter 'form' (did you mean from_?)"}},
		{"too many arguments", "tools.special.same(1, 2)", []string{"TypeError", "takes 1 argument, got 2"}},
		{"server that ends", "tools.special.crash()", []string{"ServerUnavailable: server \"special\" exited", "Hint: check whether it took effect"}},
		{"resource that no server has", "tools.read('else://1')", []string{`ToolError: no server lists a resource "else://1"`, "Hint: see tools.resources()"}},
		{"resource that is not there", "tools.read('note://none')", []string{`ToolError: resource "note://none" of server "special" failed`}},
		{"server without resources", "tools.plain.resources()", []string{`ToolError: server "plain" offers no resources`}},
		{"server without prompts", "tools.prompts('plain')", []string{`ToolError: server "plain" offers no prompts`}},
		{"prompt's argument", "tools.special.prompts()[0](whom='x')", []string{"TypeError", "did you mean who?", "special.greet(who: str)"}},
		{"one call of many", "tools.map(tools.call, [('special.same', {'value': 1}), ('special.fail',)])", []string{"ToolError: it failed", "item 1 of 2: ('special.fail',); 1 succeeded, 1 failed: see .results"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := c.fails(t, test.code)
			contains(t, text, test.want...)
			lacks(t, text, "mcpbridge/", "RemoteError")
		})
	}
	c.wants(t, "try: tools.special.crash()\nexcept ConnectionError as e: caught = isinstance(e, ToolError), e.server, e.tool\ncaught", "(True, 'special', 'crash')")
}

// TestOthersOfRealServers reads resources and prompts of servers from npm.
func TestOthersOfRealServers(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{servers: map[string]definition{"everything": everything(t), "memory": npmServer(t, "server-memory")}})
	contains(t, c.run(t, "tools.resources('everything')"), "demo://resource/static/document/architecture.md (text/markdown)")
	contains(t, c.run(t, "print(tools.read('demo://resource/dynamic/text/7'))"), "Resource 7: This is a plaintext resource")
	contains(t, c.run(t, "print(tools.read('demo://resource/dynamic/blob/7')[:11])"), "b'Resource 7:")
	contains(t, c.run(t, "tools.everything.prompts()"), "everything.args-prompt(city: str, state: str = None)")
	c.wants(t, "tools.prompt('everything.args-prompt', {'city': 'Bern'})", "user: What's weather in Bern?")
	contains(t, c.run(t, "print(tools.everything.get_resource_reference(resourceType='Text', resourceId=1))"), "Resource 1: This is a plaintext resource")
	contains(t, c.run(t, "tools.map(tools.everything.get_sum, [(i, i) for i in range(3)])"), "2", "4")
}
