package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServersImport takes the servers of two clients over, has a cell call one of
// them, leaves the clients with the bridge, which starts as their files say, and
// takes everything back.
func TestServersImport(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := setup{dir: filepath.Join(home, "MCPs"), state: filepath.Join(home, "state")}
	s.env = []string{
		"HOME=" + home, "USERPROFILE=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"),
		"CODEX_HOME=", "CLAUDE_CONFIG_DIR=", "MCP_BRIDGE_NO_KEYRING=1",
	}
	write := func(text string, name ...string) string {
		t.Helper()
		path := filepath.Join(append([]string{home}, name...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	definition, err := json.Marshal(specialServer(t))
	if err != nil {
		t.Fatal(err)
	}
	desktopText := "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"special\": " + string(definition) + "\n  }\n}\n"
	codexText := "# mine\n[mcp_servers.broken]\ncommand = \"sh\"\nargs = [\"-c\", \"echo no database >&2; exit 3\"]\n"
	cursor, codex := write(desktopText, ".cursor", "mcp.json"), write(codexText, ".codex", "config.toml")
	text := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}

	got := shell(t, &s, "servers", "import", "--dry-run")
	contains(t, got.stdout, "Cursor", "special", "Codex", "broken", "copied")
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) || text(cursor) != desktopText {
		t.Errorf("a dry run changed something: %v", err)
	}
	if got = shell(t, &s, "servers", "import", "--move"); got.code != exitOK {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	contains(t, shell(t, &s, "servers", "list").stdout, "special", "broken", "cursor.json", "codex.json", "idle")

	got = shell(t, &s, "servers", "check", "--json")
	var checked []struct {
		Name, State, Error string
		Seconds            float64
		Tools, Tokens      int
	}
	if err := json.Unmarshal([]byte(got.stdout), &checked); err != nil || got.code != exitFailure || len(checked) != 2 {
		t.Fatalf("exit %d, %v: %s%s", got.code, err, got.stdout, got.stderr)
	}
	for _, c := range checked {
		switch c.Name {
		case "special":
			if c.State != "ok" || c.Tools < 5 || c.Tokens < 20*c.Tools || c.Seconds <= 0 {
				t.Errorf("%+v", c)
			}
		case "broken":
			if c.State != "failed" || !strings.Contains(c.Error, "no database") {
				t.Errorf("%+v", c)
			}
		}
	}
	if got = shell(t, &s, "servers", "check", "special"); got.code != exitOK {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
	contains(t, got.stdout, "SERVER", "TOKENS", "special", "ok")

	c := connect(t, s)
	c.wants(t, "tools.special.same(value=1)", "{'value': 1}")

	var moved struct {
		Theme   string `json:"theme"`
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(text(cursor)), &moved); err != nil || moved.Theme != "dark" || len(moved.Servers) != 1 ||
		!strings.HasPrefix(strings.Join(moved.Servers["bridge"].Args, " "), "run") || filepath.Base(moved.Servers["bridge"].Command) != filepath.Base(binary) {
		t.Errorf("%v: %s", err, text(cursor))
	}
	contains(t, text(codex), "# mine\n", "[mcp_servers.bridge]")

	if got = shell(t, &s, "servers", "import", "--undo"); got.code != exitOK || text(cursor) != desktopText || text(codex) != codexText {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
}
