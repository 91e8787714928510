package main_test

import (
	"strings"
	"testing"
)

// auto is the setup in which no engine is named.
func auto(env ...string) setup {
	return setup{env: append([]string{"MCP_BRIDGE_RUNTIME="}, env...)}
}

// TestAuto takes the first engine that works and says so once.
func TestAuto(t *testing.T) {
	t.Parallel()
	c := connect(t, auto())
	lacks(t, c.stderr.String(), "mcp-bridge: engine: ") // nothing was tried yet
	c.wants(t, "1 + 1", "2")
	if r := c.call(t, arguments{"code": "2 + 2", "session": "another"}); r.text != "4" {
		t.Errorf("another session: %s", r.text)
	}
	if stderr := c.stderr.String(); strings.Count(stderr, "mcp-bridge: engine: podman\n") != 1 {
		t.Errorf("stderr of run:\n%s", stderr)
	}
	s := auto()
	got := shell(t, &s, "exec", "-c", "1")
	if got.code != exitOK || got.stdout != "1\n" || got.stderr != "mcp-bridge: engine: podman\n" {
		t.Errorf("exec: %+v", got)
	}
}
