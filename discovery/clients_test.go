package discovery_test

import (
	"path"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// files are the first files of the clients, by key.
func clientFiles(goos string, vars map[string]string) map[string]string {
	files := map[string]string{}
	for _, c := range discovery.Clients(goos, env(vars)) {
		files[c.Key] = c.Files[0]
	}
	return files
}

// The paths are those of the clients' documentation.
func TestClients(t *testing.T) {
	for goos, tt := range map[string]struct {
		env  map[string]string
		want map[string]string
	}{
		"linux": {
			env: map[string]string{"HOME": "/home/u"},
			want: map[string]string{
				"claude-desktop":  "/home/u/.config/Claude/claude_desktop_config.json",
				"claude-code":     "/home/u/.claude.json",
				"cursor":          "/home/u/.cursor/mcp.json",
				"windsurf":        "/home/u/.codeium/windsurf/mcp_config.json",
				"vscode":          "/home/u/.config/Code/User/mcp.json",
				"vscode-insiders": "/home/u/.config/Code - Insiders/User/mcp.json",
				"gemini":          "/home/u/.gemini/settings.json",
				"cline":           "/home/u/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
				"roo":             "/home/u/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
				"lmstudio":        "/home/u/.lmstudio/mcp.json",
				"opencode":        "/home/u/.config/opencode/opencode.json",
				"codex":           "/home/u/.codex/config.toml",
				"zed":             "/home/u/.config/zed/settings.json",
				"goose":           "/home/u/.config/goose/config.yaml",
				"amazonq":         "/home/u/.aws/amazonq/mcp.json",
				"kiro":            "/home/u/.kiro/settings/mcp.json",
			},
		},
		"darwin": {
			env: map[string]string{"HOME": "/Users/u"},
			want: map[string]string{
				"claude-desktop": "/Users/u/Library/Application Support/Claude/claude_desktop_config.json",
				"claude-code":    "/Users/u/.claude.json",
				"vscode":         "/Users/u/Library/Application Support/Code/User/mcp.json",
				"cline":          "/Users/u/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
				"opencode":       "/Users/u/.config/opencode/opencode.json",
				"zed":            "/Users/u/.config/zed/settings.json",
				"goose":          "/Users/u/.config/goose/config.yaml",
			},
		},
		"windows": {
			env: map[string]string{"USERPROFILE": `C:\Users\u`, "APPDATA": `C:\Users\u\AppData\Roaming`},
			want: map[string]string{
				"claude-desktop": `C:\Users\u\AppData\Roaming\Claude\claude_desktop_config.json`,
				"claude-code":    `C:\Users\u\.claude.json`,
				"cursor":         `C:\Users\u\.cursor\mcp.json`,
				"vscode":         `C:\Users\u\AppData\Roaming\Code\User\mcp.json`,
				"zed":            `C:\Users\u\AppData\Roaming\Zed\settings.json`,
				"goose":          `C:\Users\u\AppData\Roaming\Block\goose\config\config.yaml`,
				"opencode":       `C:\Users\u\.config\opencode\opencode.json`,
				"codex":          `C:\Users\u\.codex\config.toml`,
			},
		},
	} {
		got := clientFiles(goos, tt.env)
		for key, want := range tt.want {
			if got[key] != want {
				t.Errorf("%s: %s is %s, want %s", goos, key, got[key], want)
			}
		}
	}
}

func TestClientsFollowTheEnvironment(t *testing.T) {
	got := clientFiles("linux", map[string]string{
		"HOME": "/home/u", "XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/codex/", "CLAUDE_CONFIG_DIR": "relative",
	})
	for key, want := range map[string]string{
		"claude-desktop": "/x/Claude/claude_desktop_config.json", "vscode": "/x/Code/User/mcp.json", "zed": "/x/zed/settings.json",
		"goose": "/x/goose/config.yaml", "codex": "/codex/config.toml", "claude-code": "/home/u/.claude.json",
	} {
		if got[key] != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
}

func TestClientsAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range discovery.Clients("linux", env(map[string]string{"HOME": "/home/u"})) {
		for _, file := range c.Files {
			if seen[file] || seen[c.Key] || !path.IsAbs(file) {
				t.Errorf("%s: %s", c.Key, file)
			}
			seen[file] = true
		}
		if seen[c.Key] = true; strings.ToLower(c.Key) != c.Key || c.Name == "" {
			t.Errorf("%+v", c)
		}
	}
}
