package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemory keeps values across sessions, and across the bridge's restart.
func TestMemory(t *testing.T) {
	t.Parallel()
	s := setup{state: t.TempDir()}
	c := connect(t, s)
	c.wants(t, "memory", `memory: nothing kept yet. memory["key"] = value keeps it across sessions.`)
	c.run(t, "memory['a/b'] = {'n': 1}; memory['a_b'] = 'other'; memory.set('A_B', None, tags=['x'])")
	if got := c.runIn(t, "second", "memory['a/b'].n, memory['a_b'], memory['A_B'], len(memory)"); got != "(1, 'other', None, 3)" {
		t.Errorf("another session sees %s", got)
	}
	c.runIn(t, "second", "memory['a/b'] = {'n': 2}")
	c.wants(t, "memory['a/b'], memory.info('a/b').session", "({'n': 2}, 'second')")
	contains(t, c.fails(t, "memory['k'] = {'when': [object()]}"), "TypeError: memory['k']['when'][0] is of type object")
	contains(t, c.fails(t, "memory['k'] = 'x' * (2 << 20)"), "StateError: ", "one entry may have", "delete what is not needed")
	lacks(t, c.fails(t, "memory['k'] = 'x' * (2 << 20)"), s.state, "kernelUser", "mcpbridge")
	_ = c.Close()

	again := connect(t, s)
	again.wants(t, "memory['a/b'].n, memory['a_b'], memory.info('A_B').metadata.tags", "(2, 'other', ['x'])")
	again.run(t, "del memory['a_b']")
	again.wants(t, "list(memory)", "['A_B', 'a/b']")
}

// TestMemoryOfTwoBridges has two bridges, with two sessions each, count together.
func TestMemoryOfTwoBridges(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	const each = 25
	count := fmt.Sprintf("for _ in range(%d): memory.change('n', lambda n: n + 1, 0)", each)
	done := make(chan error)
	counters := 0
	var last *client
	for range 2 {
		last = connect(t, setup{state: state})
		for _, session := range []string{"one", "two"} {
			counters++
			go func(c *client) {
				r, err := c.try(t.Context(), arguments{"code": count, "session": session, "timeout": 60})
				if err == nil && r.isError {
					err = fmt.Errorf("counting failed: %s", r.text)
				}
				done <- err
			}(last)
		}
	}
	for range counters {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	last.wants(t, "memory['n']", itoa(counters*each))
}

// TestStateDirThatFails costs what is kept, and nothing else.
func TestStateDirThatFails(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".local"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := connect(t, setup{env: []string{"MCP_BRIDGE_STATE_DIR=", "XDG_STATE_HOME=", "HOME=" + home}})
	c.wants(t, "1 + 1", "2")
	text := c.fails(t, "memory['k'] = 1")
	contains(t, text, "StateError: nothing is kept across sessions here", "--state-dir")
	lacks(t, text, home)
	contains(t, c.stderr.String(), "state directory cannot be used")
	if strings.Count(c.stderr.String(), home) == 0 {
		t.Error("the log does not say which directory")
	}
}

// TestSkills keeps functions, with what they use, across sessions and the
// bridge's restart, and has them found.
func TestSkills(t *testing.T) {
	t.Parallel()
	s := special(t)
	s.state = t.TempDir()
	c := connect(t, s)
	contains(t, c.run(t, "skills"), "no skills yet")
	c.run(t, "import json\nLIMIT = 3\ndef shorten(items):\n    return items[:LIMIT]\n"+
		"def harvest_values(items):\n    \"\"\"Harvest values from an orchard.\"\"\"\n"+
		"    return json.dumps(shorten([tools.special.same(value=i).value for i in items]))\n"+
		"skills.save(harvest_values, tags=['demo'])")
	if got := c.runIn(t, "second", "from skills import harvest_values\nharvest_values([4, 5, 6, 7])"); got != "'[4, 5, 6]'" {
		t.Errorf("another session's call returns %s", got)
	}
	_ = c.Close()

	again := connect(t, s)
	again.wants(t, "skills.harvest_values([8])", "'[8]'")
	contains(t, again.run(t, "skills"), "skills.harvest_values(items)   Harvest values from an orchard. [demo] (v1, ")
	contains(t, again.run(t, "tools.search('harvst the orchard')"), "skills.harvest_values(items)   Harvest values from an orchard")
	again.wants(t, "tools.search('harvest orchard')[0]([9])", "'[9]'")
	contains(t, again.run(t, "skills.source('harvest_values')"), "LIMIT = 3", "def shorten(items):", "import json")
	again.runIn(t, "third", "def harvest_values(items):\n    'Another way.'\n    return 'new'\nskills.save(harvest_values)")
	again.wants(t, "skills.harvest_values([8])", "'new'")
	contains(t, again.run(t, "skills.history('harvest_values')"), "v2  ", "session third, cell 1", "v1  ", "Harvest values from an orchard.")
	again.run(t, "skills.restore('harvest_values', 1)")
	again.wants(t, "skills.harvest_values([8])", "'[8]'")
	again.run(t, "skills.delete('harvest_values')")
	contains(t, again.fails(t, "skills.harvest_values"), "AttributeError: no skill 'harvest_values'")
	lacks(t, again.run(t, "tools.search('harvest orchard')"), "harvest_values(")
}

// TestBrokenSkills keeps no session from starting, and no other skill from working.
func TestBrokenSkills(t *testing.T) {
	t.Parallel()
	s := setup{state: t.TempDir()}
	c := connect(t, s)
	c.run(t, "skills.save('import not_there\\ndef missing(): pass', name='missing')\n"+
		"skills.save('while True: pass', name='endless')\nskills.save('def fine(): return 1', name='fine')\n"+
		"skills.save('def torn(): return 1', name='torn')")
	_ = c.Close()
	files, err := filepath.Glob(filepath.Join(s.state, "skills", "torn.*.entry"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the skill is in %q (%v)", files, err)
	}
	if err := os.Truncate(files[0], 150); err != nil {
		t.Fatal(err)
	}
	again := connect(t, s)
	again.wants(t, "skills.fine()", "1")
	contains(t, again.run(t, "skills"), "skills.missing() ", "BROKEN: module 'not_there' is not installed here", "skills.torn(...)", "BROKEN: ", "damaged")
	contains(t, again.fails(t, "skills.missing()"), "SkillError: skill 'missing' (version 1", "No module named 'not_there'")
	again.run(t, "kept = 1")
	r := again.call(t, arguments{"code": "skills.endless()", "timeout": 1})
	if !r.isError {
		t.Errorf("an endless skill returned %s", r.text)
	}
	again.wants(t, "kept, skills.fine()", "(1, 1)")
}

// TestAncestorsCode runs what was written for mcp-server-code-execution-mode,
// with servers from the file that its variable names.
func TestAncestorsCode(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "more.json")
	s := setup{dir: filepath.Dir(file)}
	s.write(t, filepath.Base(file), map[string]definition{"special": specialServer(t)})
	c := connect(t, setup{env: []string{"MCP_SERVERS_CONFIG=" + file}})
	c.wants(t, `import mcp.runtime as runtime

print(runtime.discovered_servers(), runtime.list_servers_sync())
hits = await runtime.search_tool_docs("returns the same value", limit=3)
result = await mcp_special.same(value=[1, 2])
print(result["value"], result["isError"], [hit["toolAlias"] for hit in hits][0])
first, second = await runtime.call_tool("special", "same", {"value": 3}), await mcp_servers["special"].same(value=4)
print(first["isError"] if "isError" in first else False, second["value"])`,
		"('special',) ('special',)\n[1, 2] False same\nFalse 4")
	c.wants(t, "from mcp.servers.special import same\nimport asyncio\nawait asyncio.gather(same(value=1), same(value=2))", "[{'value': 1}, {'value': 2}]")
	contains(t, c.fails(t, "await mcp_special.fail(why='that')"), "MCPError: it failed")
	contains(t, c.fails(t, "await mcp_specail.same(value=1)"), "NameError: name 'mcp_specail' is not defined", "did you mean mcp_special?")
	c.wants(t, "def twice(n):\n    return n * 2\nprint(save_tool(twice)); print(save_memory('k', [1], metadata={'tags': ['t']}))\nupdate_memory('k', lambda v: v + [2])",
		"Tool 'twice' saved (version 1). Use it in any session: from skills import twice\nMemory 'k' saved.\n[1, 2]")
	got := c.runIn(t, "another", "from user_tools import twice\ntwice(4), load_memory('k'), get_memory_info('k')['metadata'], memory_exists('x')")
	if got != "(8, [1, 2], {'tags': ['t']}, False)" {
		t.Errorf("another session says %s", got)
	}
	c.wants(t, "write_file('a/b.txt', 'text'), list_files(), read_file('a/b.txt'), delete_file('a/b.txt')",
		"('Written 4 bytes to a/b.txt', ['a/b.txt'], 'text', 'Deleted a/b.txt')")
	c.wants(t, "rows = [{'n': 1}, {'n': 2}]\nresult = summarize_list(filter_by_field(rows, 'n', 2))\nprint('done')", "done\n{'count': 1, 'sample': [{'n': 2}]}")
	c.wants(t, "safe, tokens = tokenize_pii('mail a@b.org'); detokenize_pii(safe), 'a@b' in safe", "('mail a@b.org', False)")
	contains(t, c.run(t, "get_execution_stats()"), "'servers': 1")
}
