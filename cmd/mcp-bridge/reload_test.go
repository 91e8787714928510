package main_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestEditsAreFollowed edits the definitions while a session runs: its next cell
// sees what is new, what changed is restarted, and nothing else is.
func TestEditsAreFollowed(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{}, 100)
	s := setup{dir: filepath.Join(t.TempDir(), "MCPs")}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(t, "kept.json", map[string]definition{"kept": specialServer(t)})
	edited := specialServer(t)
	s.write(t, "edited.json", map[string]definition{"edited": edited})
	c := connectHearing(t, s, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} }})
	c.wants(t, "before = tools.kept.stats().pid, tools.edited.stats().pid; 'added' in dir(tools)", "False")

	s.write(t, "added.json", map[string]definition{"added": specialServer(t)})
	<-changed
	c.wants(t, "tools.added.same(value=1), tools.kept.stats().pid == before[0]", "({'value': 1}, True)")
	listed, err := c.ListTools(t.Context(), nil)
	if err != nil || !strings.Contains(listed.Tools[0].Description, "(added, edited, kept)") {
		t.Errorf("the tool is listed as %+v, %v", listed, err)
	}

	edited.Env["E2E_TOKEN"] = "another"
	s.write(t, "edited.json", map[string]definition{"edited": edited})
	eventually(t, patience, "the changed server is restarted", func() bool {
		return c.run(t, "tools.edited.stats().pid != before[1]") == "True"
	})
	c.wants(t, "tools.edited.stats().secret, tools.kept.stats().pid == before[0]", "(False, True)")

	if err := os.WriteFile(filepath.Join(s.dir, "edited.json"), []byte(`{"mcpServers": {`), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the bad edit is told", func() bool {
		return strings.Contains(c.run(t, "tools.servers()"), "its definition was edited and cannot be used")
	})
	contains(t, c.stderr.String(), "server definition not used", "edited.json")
	c.wants(t, "tools.edited.same(value=2)", "{'value': 2}")

	if err := os.Remove(filepath.Join(s.dir, "edited.json")); err != nil {
		t.Fatal(err)
	}
	<-changed // the note of added has been taken
	eventually(t, patience, "the sandbox hears that the server is gone", func() bool { return c.run(t, "'edited' in dir(tools)") == "False" })
	contains(t, c.fails(t, "tools.edited"), "UnknownTool", "no server 'edited'")
}
