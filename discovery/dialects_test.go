package discovery_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// shown is a server in one line, without what is empty.
func shown(s discovery.Server) string {
	var b strings.Builder
	add := func(name string, value any, empty bool) {
		if !empty {
			fmt.Fprintf(&b, " %s=%v", name, value)
		}
	}
	fmt.Fprintf(&b, "%s: %s", s.Name, s.Type)
	add("command", strings.Join(append([]string{s.Command}, s.Args...), "|"), s.Command == "")
	pairs := func(m map[string]string) (list []string) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			list = append(list, key+"="+m[key])
		}
		return list
	}
	add("env", pairs(s.Env), len(s.Env) == 0)
	add("envFile", s.EnvFile, s.EnvFile == "")
	add("cwd", s.Cwd, s.Cwd == "")
	add("url", s.URL, s.URL == "")
	add("headers", pairs(s.Headers), len(s.Headers) == 0)
	add("off", s.Disabled, !s.Disabled)
	add("timeout", s.Timeout, s.Timeout == 0)
	add("allow", s.AllowTools, len(s.AllowTools) == 0)
	add("deny", s.DenyTools, len(s.DenyTools) == 0)
	add("approve", s.Approve, len(s.Approve) == 0)
	add("auto", s.AutoApprove, len(s.AutoApprove) == 0)
	add("concurrency", s.Concurrency, s.Concurrency == 0)
	add("idle", s.Idle, s.Idle == 0)
	return b.String()
}

// TestDialects reads what each client writes, as it is and expanded.
func TestDialects(t *testing.T) {
	for file, tt := range map[string]struct {
		dialect  string
		want     []string
		problems string
	}{
		"claude_desktop_config.json": {discovery.DialectOwn, []string{
			"filesystem: stdio command=npx|-y|@modelcontextprotocol/server-filesystem|/home/u/Documents",
			"github: stdio command=docker|run|-i|--rm|-e|GITHUB_TOKEN|ghcr.io/github/github-mcp-server env=[GITHUB_TOKEN=s3cret]",
		}, ""},
		"claude_user.json": {"", []string{
			"notes: sse url=https://notes.example/sse",
			"db: stdio command=uvx|mcp-server-sqlite|--db-path|/home/u/shop/shop.db cwd=/home/u/shop/tools",
			"tickets: http url=https://tickets.example/mcp headers=[Authorization=Bearer s3cret]",
			"old: stdio command=old-server off=true",
		}, "claude_user.json: db: already defined in this file; the first definition counts\n"},
		"cline.json": {discovery.DialectOwn, []string{
			"browser: stdio command=npx|-y|browser-server timeout=1m30s auto=[screenshot]",
			"docs: http url=https://docs.example/mcp timeout=1m0s deny=[delete] auto=[search read]",
		}, ""},
		"gemini_settings.json": {discovery.DialectOwn, []string{
			"py: stdio command=python|-m|my_server env=[API_KEY=s3cret] cwd=DIR/server timeout=15s allow=[safe_tool] deny=[rm] auto=[*]",
			"web: http url=http://localhost:3000/mcp headers=[X-Key=k] off=true timeout=5s",
			"other: stdio command=other off=true",
		}, ""},
		"vscode_mcp.json": {discovery.DialectVSCode, []string{
			"perplexity: stdio command=npx|-y|server-perplexity|--region|eu env=[FROM_FILE=f KEY=typed ROOT=DIR]",
			"github: http url=https://api.githubcopilot.example/mcp/",
		}, ""},
		"vscode_settings.json": {discovery.DialectSettings, []string(nil), "vscode_settings.json: fetch: input token not set: run `mcp-bridge servers input fetch`, which asks for it\n"},
		"opencode.jsonc": {discovery.DialectOpenCode, []string{
			"everything: stdio command=npx|-y|@modelcontextprotocol/server-everything env=[LEVEL=debug TOKEN=s3cret] timeout=500ms",
			"sentry: http url=https://sentry.example/mcp headers=[Authorization=Bearer ${TOKEN}] off=true",
		}, ""},
		"opencode_2.jsonc": {discovery.DialectSettings, []string{
			"everything: stdio command=npx|everything env=[A=s3cret] cwd=DIR timeout=30s", "off: stdio command=x off=true",
		}, ""},
		"codex.toml": {discovery.DialectCodex, []string{
			"zeta: stdio command=npx|-y|zeta-server env=[KEY=s3cret] timeout=45.5s allow=[open read] deny=[write]",
			"name with.dot: http url=https://mcp.example/mcp headers=[Authorization=Bearer s3cret X-Region=eu X-User=/home/u]",
			"alpha: stdio command=alpha env=[LANG=${LANG:-} PORT=8080 UNSET=${UNSET:-}] cwd=/srv off=true",
		}, ""},
		"zed_settings.json": {discovery.DialectZed, []string{
			"custom: stdio command=uv|run|main.py timeout=1m0s", "nested: stdio command=/opt/server|serve env=[A=b]",
			"remote: http url=https://zed.example/mcp headers=[Authorization=Bearer x]",
		}, "zed_settings.json: extension: no \"command\": it is an extension of Zed, which knows how to start it; give the command here\n"},
		"goose_config.yaml": {discovery.DialectGoose, []string{
			"github: stdio command=npx|-y|@modelcontextprotocol/server-github|8080 env=[PORT=8080 TOKEN=s3cret VERBOSE=true] timeout=5m0s allow=[search]",
			"nested: stdio command=nested off=true", "sse-one: sse url=http://localhost:9000/sse",
			"http-one: http url=http://localhost:9000/mcp headers=[Authorization=Bearer s3cret]",
		}, ""},
		"single.json": {discovery.DialectSingle, []string{
			"single: stdio command=node|server.js timeout=1m30s allow=[read_*] deny=[read_secret] approve=[write_*] concurrency=2 idle=10m0s",
		}, ""},
		"registry.server.json": {discovery.DialectRegistry, []string{
			"weather: stdio command=npx|-y|--node-options|--max-old-space-size=512|@someone/weather@1.2.0|serve|--units|metric|--key|typed|Graz env=[FIXED=x-{y} LEVEL=info TOKEN=s3cret]",
		}, ""},
		"registry_remote.json": {discovery.DialectRegistry, []string{
			"acme: http url=https://a.acme.example/mcp headers=[Authorization=Bearer typed]",
		}, ""},
	} {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", "clients", file))
			if err != nil {
				t.Fatal(err)
			}
			dir := writeFiles(t, map[string]string{file: string(data), ".env": "# ours\nexport FROM_FILE='f' # quoted\nKEY=of-the-file\n"})
			c := discovery.Load(discovery.LoadOptions{
				Dirs: []string{dir}, Workspace: dir,
				LookupEnv: env(map[string]string{"HOME": "/home/u", "TOKEN": "s3cret"}),
				Input: func(id string, in discovery.Input) (string, bool) {
					if id != in.ID {
						t.Errorf("input %q is described as %q", id, in.ID)
					}
					value, ok := map[string]string{"key": "typed", "city": "Graz", "tenant": "a"}[id]
					return value, ok
				},
			})
			var got []string
			for _, s := range c.Servers {
				got = append(got, strings.ReplaceAll(shown(s), dir, "DIR"))
				if want := cmp.Or(tt.dialect, s.Dialect); s.Dialect != want || s.File != filepath.Join(dir, file) {
					t.Errorf("%s: dialect %q, want %q; file %s", s.Name, s.Dialect, want, s.File)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("servers\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if p := problems(c); p != tt.problems {
				t.Errorf("problems %q, want %q", p, tt.problems)
			}
			rewritten(t, filepath.Join(dir, file))
		})
	}
}

// rewritten holds that what WriteServers writes of a file reads the same.
func rewritten(t *testing.T, path string) {
	t.Helper()
	definitions, _ := discovery.ReadFile(path)
	var servers []discovery.Server
	var inputs []discovery.Input
	for _, d := range definitions {
		servers = append(servers, d.Server)
		inputs = append(inputs, d.Inputs...)
	}
	var b bytes.Buffer
	if err := discovery.WriteServers(&b, servers, inputs...); err != nil {
		t.Fatal(err)
	}
	dir := writeFiles(t, map[string]string{"again.json": b.String()})
	again, wrong := discovery.ReadFile(filepath.Join(dir, "again.json"))
	if len(wrong) > 0 || len(again) != len(servers) {
		t.Fatalf("%d servers, problems %v in\n%s", len(again), wrong, &b)
	}
	for i, d := range again {
		if got, want := shown(d.Server), shown(servers[i]); got != want || d.Dialect != discovery.DialectOwn {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestReadFileExpandsNothing(t *testing.T) {
	definitions, wrong := discovery.ReadFile(filepath.Join("testdata", "clients", "vscode_mcp.json"))
	if len(definitions) != 2 || len(wrong) > 0 {
		t.Fatal(definitions, wrong)
	}
	d := definitions[0]
	if d.Server.Env["KEY"] != "${input:key}" || d.Server.EnvFile != "${workspaceFolder}/.env" || len(d.Inputs) != 2 ||
		d.Inputs[0].ID != "region" || !slices.Equal(d.Inputs[0].Options, []string{"eu", "us"}) || !d.Inputs[1].Password {
		t.Errorf("%s, inputs %+v", shown(d.Server), d.Inputs)
	}
	definitions, _ = discovery.ReadFile(filepath.Join("testdata", "clients", "claude_user.json"))
	if len(definitions) != 5 || definitions[1].Project != "/home/u/shop" || definitions[0].Project != "" {
		t.Errorf("%v", definitions)
	}
}

// TestTimes: numbers have the unit of their client.
func TestTimes(t *testing.T) {
	for definition, want := range map[string][2]time.Duration{
		`"timeout": 30`:                       {30 * time.Second, 0},
		`"timeout": 0.5`:                      {time.Second / 2, 0},
		`"timeout": 999`:                      {999 * time.Second, 0},
		`"timeout": 1000`:                     {time.Second, 0},
		`"timeout": 600000`:                   {10 * time.Minute, 0},
		`"timeout": "2m"`:                     {2 * time.Minute, 0},
		`"timeoutMs": 250`:                    {time.Second / 4, 0},
		`"idle": 60`:                          {0, time.Minute},
		`"idle": "never", "timeout": null`:    {0, -1},
		`"idle": 0`:                           {0, -1},
		`"idle": false, "alwaysAllow": false`: {0, -1},
	} {
		c := load(t, one(`{"command": "x", `+definition+`}`))
		if len(c.Servers) != 1 || len(c.Problems) > 0 || [2]time.Duration{c.Servers[0].Timeout, c.Servers[0].Idle} != want {
			t.Errorf("%s: %v, %s", definition, c.Servers, problems(c))
		}
	}
}

func TestBadFields(t *testing.T) {
	for definition, want := range map[string]string{
		`{"command": "x", "timeout": -1}`:                                "timeout at 1:52: is out of range",
		`{"command": "x", "timeout": 1e300}`:                             "timeout at 1:52: is out of range",
		`{"command": "x", "timeout": "soon"}`:                            "want a time such as",
		`{"command": "x", "timeout": []}`:                                "is an array, want a number or a time",
		`{"command": "x", "idle": true}`:                                 "idle at 1:49: is a boolean",
		`{"command": "x", "concurrency": 1.5}`:                           "want a whole number from 1 to",
		`{"command": "x", "concurrency": "4"}`:                           "concurrency at 1:56: is a string, want a number",
		`{"command": "x", "tools": "all"}`:                               "tools at 1:50: is a string, want an object",
		`{"command": "x", "tools": {"only": []}}`:                        `unknown key "only" at 1:59 in tools`,
		`{"command": "x", "tools": {"allow": "a"}}`:                      "tools.allow at 1:60: is a string, want an array",
		`{"command": "x", "approve": "yes"}`:                             "approve at 1:52: is a string, want an array",
		`{"command": "x", "enabled": 1}`:                                 "enabled at 1:52: is a number, want a boolean",
		`{"command": []}`:                                                "command at 1:36: is empty",
		`{"type": "carrier pigeon", "command": "x"}`:                     `type at 1:33: unknown; want "stdio", "http" or "sse"`,
		`{"type": "http", "command": "x"}`:                               `no "url"`,
		`{"url": "ftp://x"}`:                                             "url: want an address that begins with http:// or https://",
		`{"url": "https://"}`:                                            "url: want an address",
		`{"url": "https://x", "headers": {"a b": "c"}}`:                  `"a b" is not a header's name`,
		`{"url": "https://x", "headers": {"a": "s3cret-value\r\nb: c"}}`: "headers a: contains a line break",
		`{"url": "https://x", "headers": {"a": "${MISSING}"}}`:           "environment variable MISSING is not set",
		`{"command": "x", "envFile": "missing.env"}`:                     "envFile missing.env: stat: no such file or directory",
		`{"command": "x", "env_keys": ["A=B"]}`:                          "is not a variable's name",
		`{"command": "x", "url": 3}`:                                     "url at 1:48: is a number",
	} {
		c := load(t, map[string]string{"f.json": `{"mcpServers": {"bad": ` + definition + `, "ok": {"command": "x"}}}`})
		if got := problems(c); !slices.Equal(names(c), []string{"ok"}) || !strings.Contains(got, want) || strings.Contains(got, "s3cret-value") {
			t.Errorf("%s: servers %q, problems %q, want %q", definition, names(c), got, want)
		}
	}
}

// TestBadText: each kind of file says where it is wrong.
func TestBadText(t *testing.T) {
	deep := strings.Repeat("[", 5000)
	laughs := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'n'; c++ {
		laughs += fmt.Sprintf("%c: &%[1]c [*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c,*%[2]c]\n", c, c-1)
	}
	for name, tt := range map[string]struct{ file, content, want string }{
		"jsonc":           {"f.jsonc", "{\n  // ü\n  \"mcpServers\": {,}\n}", "f.jsonc: invalid JSON at 3:18:"},
		"open comment":    {"f.json", "{ /* never", "f.json: invalid JSON at 1:3:"},
		"two commas":      {"f.json", `{"mcpServers": {"a": {"command": "x"},,}}`, "invalid JSON at 1:39"},
		"toml":            {"f.toml", "[mcp_servers.a]\ncommand = \n", "f.toml: invalid TOML at 2:"},
		"toml at its end": {"f.toml", "mcp_servers = { a = \n", "f.toml: invalid TOML at 1:"},
		"toml twice":      {"f.toml", "[mcp_servers.a]\ncommand = 'x'\ncommand = 'y'\n", "f.toml: invalid TOML at 3:"},
		"toml deep":       {"f.toml", "a = " + deep, "f.toml: invalid TOML at 1:105: more than 100 levels"},
		"toml dots":       {"f.toml", "a" + strings.Repeat(".a", 5000) + " = 1", "a key of more than 10 parts"},
		"toml shape":      {"f.toml", "[mcp_servers.a]\ncommand = 3\n", "f.toml: a: command: is a number, want a string"},
		"toml none":       {"f.toml", "x = 1", `f.toml: no "mcpServers"`},
		"yaml":            {"f.yaml", "extensions:\n  a: [b\n", "f.yaml: invalid YAML at "},
		"yaml tab":        {"f.yml", "extensions:\n\ta: b\n", "f.yml: invalid YAML at 2:"},
		"yaml shape":      {"f.yaml", "extensions:\n  ä:\n    enabled: true\n    cmd: [1, {}]\n", "f.yaml: ä: cmd[1] at 4:14: is an object, want a string"},
		"yaml deep":       {"f.yaml", deep, "f.yaml: invalid YAML"},
		"yaml laughs":     {"f.yaml", laughs, "f.yaml: "},
		"yaml aliases":    {"f.yaml", "a: &a [1, 2]\nb: [" + strings.Repeat("*a,", 300_000) + "]\n", "f.yaml: too many JSON values"},
		"yaml cycle":      {"f.yaml", "a: &a [*a]\n", "f.yaml: "},
		"yaml empty":      {"f.yaml", "", "f.yaml: "},
		"yaml documents":  {"f.yaml", "a: 1\n---\nb: 2\n", "f.yaml: "},
		"yaml key":        {"f.yaml", "[a]: 1\n", "a key that is not a text"},
		"inputs":          {"f.json", `{"inputs": {}, "servers": {}}`, "inputs at 1:12: is an object, want an array"},
		"input":           {"f.json", `{"inputs": [{"id": 3}], "servers": {}}`, "inputs at 1:13: want"},
		"servers":         {"f.json", `{"servers": []}`, "servers at 1:13 is an array; want"},
		"mcp":             {"f.json", `{"mcp": 3}`, "mcp at 1:9 is a number; want"},
		"projects":        {"f.json", `{"projects": {"/x": {"mcpServers": []}}}`, "mcpServers at 1:36 is an array"},
		"link":            {"f.json", "", "f.json: stat: too many levels of symbolic links"},
		"registry":        {"f.json", `{"name": "a/b", "packages": [{"registryType": "cargo", "identifier": "x"}]}`, "f.json: b: has no package that can be started"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeFiles(t, map[string]string{tt.file: tt.content, "good.json": `{"command": "x"}`})
			if name == "link" {
				if err := errors.Join(os.Remove(filepath.Join(dir, tt.file)), os.Symlink(tt.file, filepath.Join(dir, tt.file))); err != nil {
					t.Fatal(err)
				}
			}
			c := discovery.Load(discovery.LoadOptions{Dirs: []string{dir}})
			if got := problems(c); !slices.Equal(names(c), []string{"good"}) || len(c.Problems) != 1 || !strings.Contains(got, tt.want) {
				t.Errorf("servers %q, problems %q, want %q", names(c), got, tt.want)
			}
		})
	}
}

// TestMergedKeys: YAML's anchors and << mean what they say.
func TestMergedKeys(t *testing.T) {
	c := load(t, map[string]string{"a.yaml": "base: &b {command: x, args: [1]}\nmcpServers:\n  one: {<<: *b, args: [2]}\n  two: *b\n"})
	if len(c.Servers) != 2 || shown(c.Servers[0]) != "one: stdio command=x|2" || shown(c.Servers[1]) != "two: stdio command=x|1" {
		t.Errorf("%s%v", problems(c), c.Servers)
	}
}

// TestProjectFile: it is read last, and takes nobody's place.
func TestProjectFile(t *testing.T) {
	home := writeFiles(t, one(`{"command": "mine"}`))
	project := writeFiles(t, map[string]string{".mcp.json": `{"mcpServers": {"s": {"command": "theirs"}, "p": {"command": "x", "args": ["${workspaceFolder}"]}}}`})
	c := discovery.Load(discovery.LoadOptions{Dirs: []string{home}, Project: project})
	if !slices.Equal(names(c), []string{"s", "p"}) || c.Servers[0].Command != "mine" || c.Servers[1].Args[0] != project || len(c.Problems) != 1 {
		t.Errorf("servers %q, problems %s", names(c), problems(c))
	}
	if c = discovery.Load(discovery.LoadOptions{Dirs: []string{home}, Project: home}); len(c.Problems) > 0 {
		t.Errorf("a project without the file: %s", problems(c))
	}
}

// TestManyNames: 2,000 servers with names of all kinds have identifiers of their own.
func TestManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		for _, name := range []string{"My Server %d", "my_server_%d", "MY__server-%d", "🚀 %d"} {
			fmt.Fprintf(&b, ",%q: {\"command\": \"x\"}", fmt.Sprintf(name, i))
		}
	}
	c := load(t, map[string]string{"a.jsonc": `{"servers": {` + b.String()[1:] + ",}}"})
	seen := make(map[string]bool)
	for _, s := range c.Servers {
		if seen[s.Ident] || s.Ident == "" {
			t.Errorf("%q: identifier %q", s.Name, s.Ident)
		}
		seen[s.Ident] = true
	}
	if len(c.Servers) != 2000 || len(c.Problems) > 0 {
		t.Errorf("%d servers, %s", len(c.Servers), problems(c))
	}
}
