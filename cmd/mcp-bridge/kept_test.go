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
