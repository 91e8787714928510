package cli

import (
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// A model hears of servers that cannot be used, and nothing of the host's folders.
func TestInvalidServersAreTold(t *testing.T) {
	home := ownHome(t, map[string]string{
		"a.json": `{"mcpServers": {"good": {"command": "x"}, "bad": {"command": 3}, "file": {"command": "x", "envFile": "gone.env"},
			"token": {"command": "x", "env": {"T": "${input:token}"}}, "env": {"command": "${NOT_SET_HERE}"}, "good!": {"command": 4}}}`,
		"b.json": `{"mcpServers": {"good": {"command": "y"}}}`,
	})
	config := discovery.Load(discovery.LoadOptions{Dirs: []string{home + "/MCPs"}})
	servers, notes := withInvalid(config)
	if len(servers) != 6 || len(notes) != 5 || servers[0].Ident != "good" || servers[0].Disabled {
		t.Errorf("%+v, %q", servers, notes)
	}
	for name, want := range map[string]string{
		"bad": "cannot be used", "file": "cannot be used", "token": "mcp-bridge servers input token", "env": "NOT_SET_HERE is not set",
	} {
		if !strings.Contains(notes[name], want) || strings.Contains(notes[name], home) {
			t.Errorf("%s: %q", name, notes[name])
		}
	}
	for _, s := range servers[1:] {
		if !s.Disabled || s.Ident == "" || s.Ident == "good" {
			t.Errorf("%+v", s)
		}
	}
}
