package discovery

import (
	"path"
	"strings"
)

// A Client is a program that has MCP servers configured.
type Client struct {
	Key   string   // for a command line, such as "claude-code"
	Name  string   // as its makers write it
	Files []string // where its user's servers are defined, the first one preferred; none of them may exist
}

// Clients returns the clients that are known, with the paths of their files on
// a system, named as GOOS, and in an environment. Paths are written with the
// separator of that system. It looks at no file.
func Clients(goos string, lookup func(name string) (string, bool)) []Client {
	p := newPlaces(goos, lookup)
	vscode := func(variant, file string) string { return p.config(variant + "/User/" + file) }
	extension := func(id, file string) []string {
		var files []string
		for _, variant := range []string{"Code", "Code - Insiders", "Cursor", "Windsurf", "VSCodium"} {
			files = append(files, vscode(variant, "globalStorage/"+id+"/settings/"+file))
		}
		return files
	}
	clients := []Client{
		{"claude-desktop", "Claude Desktop", []string{p.config("Claude/claude_desktop_config.json")}},
		{"claude-code", "Claude Code", []string{p.in("CLAUDE_CONFIG_DIR", p.home, ".claude.json")}},
		{"cursor", "Cursor", []string{p.at(".cursor/mcp.json")}},
		{"windsurf", "Windsurf", []string{p.at(".codeium/windsurf/mcp_config.json")}},
		{"vscode", "VS Code", []string{vscode("Code", "mcp.json"), vscode("Code", "settings.json")}},
		{"vscode-insiders", "VS Code Insiders", []string{vscode("Code - Insiders", "mcp.json"), vscode("Code - Insiders", "settings.json")}},
		{"vscodium", "VSCodium", []string{vscode("VSCodium", "mcp.json"), vscode("VSCodium", "settings.json")}},
		{"gemini", "Gemini CLI", []string{p.at(".gemini/settings.json")}},
		{"cline", "Cline", extension("saoudrizwan.claude-dev", "cline_mcp_settings.json")},
		{"roo", "Roo Code", extension("rooveterinaryinc.roo-cline", "mcp_settings.json")},
		{"kilo", "Kilo Code", extension("kilocode.kilo-code", "mcp_settings.json")},
		{"lmstudio", "LM Studio", []string{p.at(".lmstudio/mcp.json")}},
		{"opencode", "OpenCode", []string{p.xdg("opencode/opencode.json"), p.xdg("opencode/opencode.jsonc")}},
		{"codex", "Codex", []string{p.in("CODEX_HOME", p.home+"/.codex", "config.toml")}},
		{"zed", "Zed", []string{p.zed("settings.json")}},
		{"goose", "goose", []string{p.goose("config.yaml")}},
		{"amazonq", "Amazon Q", []string{p.at(".aws/amazonq/mcp.json"), p.at(".aws/amazonq/default.json")}},
		{"kiro", "Kiro", []string{p.at(".kiro/settings/mcp.json")}},
		{"qwen", "Qwen Code", []string{p.at(".qwen/settings.json")}},
		{"warp", "Warp", []string{p.at(".warp/.mcp.json")}},
	}
	for i := range clients {
		for j, file := range clients[i].Files {
			clients[i].Files[j] = p.written(file)
		}
	}
	return clients
}

// places are the folders of one user, with slashes.
type places struct {
	goos    string
	lookup  func(string) (string, bool)
	home    string
	xdgHome string // where programs of Linux, and some everywhere, keep settings
	support string // where programs with windows do
}

func newPlaces(goos string, lookup func(string) (string, bool)) places {
	p := places{goos: goos, lookup: lookup}
	p.home = p.env("HOME", "")
	if goos == "windows" {
		p.home = p.env("USERPROFILE", p.home)
	}
	p.xdgHome = p.env("XDG_CONFIG_HOME", p.home+"/.config")
	switch goos {
	case "windows":
		p.support = p.env("APPDATA", p.home+"/AppData/Roaming")
	case "darwin":
		p.support = p.home + "/Library/Application Support"
	default:
		p.support = p.xdgHome
	}
	return p
}

// env is a folder from the environment; one that is not absolute is none.
func (p places) env(name, otherwise string) string {
	value, ok := p.lookup(name)
	if !ok {
		return otherwise
	}
	if p.goos == "windows" {
		value = strings.ReplaceAll(value, `\`, "/")
		if len(value) < 3 || value[1] != ':' && !strings.HasPrefix(value, "//") {
			return otherwise
		}
	} else if !strings.HasPrefix(value, "/") {
		return otherwise
	}
	return strings.TrimRight(value, "/")
}

func (p places) at(file string) string     { return p.home + "/" + file }
func (p places) config(file string) string { return p.support + "/" + file }
func (p places) xdg(file string) string    { return p.xdgHome + "/" + file }

// in is a file in the folder that a variable names.
func (p places) in(variable, otherwise, file string) string {
	return p.env(variable, otherwise) + "/" + file
}

// zed keeps its settings as on Linux on a Mac, too.
func (p places) zed(file string) string {
	switch p.goos {
	case "windows":
		return p.config("Zed/" + file)
	case "darwin":
		return p.at(".config/zed/" + file)
	}
	return p.xdg("zed/" + file)
}

func (p places) goose(file string) string {
	if p.goos == "windows" {
		return p.config("Block/goose/config/" + file)
	}
	return p.xdg("goose/" + file)
}

// written is a path as its system writes it.
func (p places) written(file string) string {
	file = path.Clean(file)
	if p.goos == "windows" {
		return strings.ReplaceAll(file, "/", `\`)
	}
	return file
}

// IsBridge reports whether the server is the bridge itself, of which executable
// is the path; it may be empty.
func (s Server) IsBridge(executable string) bool {
	return newSelfMatcher(executable).matches(s)
}
