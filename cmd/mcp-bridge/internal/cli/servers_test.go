package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// ownHome is a home of the test's own, with these files of ~/MCPs. Nothing of the
// user's is reached from it, the keyring included.
func ownHome(t *testing.T, files map[string]string) string {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "APPDATA", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("MCP_BRIDGE_NO_KEYRING", "1")
	for name, text := range files {
		path := filepath.Join(home, "MCPs", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// run runs a command line; in is its stdin.
func run(t *testing.T, in string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main(t.Context(), args, IO{In: strings.NewReader(in), Out: &out, Err: &errs})
	return code, out.String(), errs.String()
}

func mustRun(t *testing.T, in string, args ...string) (stdout, stderr string) {
	t.Helper()
	code, stdout, stderr := run(t, in, args...)
	if code != exitOK {
		t.Fatalf("%q: exit %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout, stderr
}

func fileText(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestServersAdd(t *testing.T) {
	home := ownHome(t, nil)
	mustRun(t, "", "servers", "add", "files", "--env", "A=b=c", "--description", "Files", "--", "npx", "-y", "--env", "x")
	mustRun(t, "", "servers", "add", "docs", "--url", "https://docs.example/mcp", "--header", "Authorization=Bearer ${T}")
	mustRun(t, `{"servers": {"code": {"type": "stdio", "command": "code-server"}}}`, "servers", "add", "--from-json", "-")
	mustRun(t, `{"command": "bare", "args": ["1"]}`, "servers", "add", "named", "--from-json", "-")
	want := `{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "--env", "x"],
      "env": {
        "A": "b=c"
      },
      "description": "Files"
    },
    "docs": {
      "type": "http",
      "url": "https://docs.example/mcp",
      "headers": {
        "Authorization": "Bearer ${T}"
      }
    },
    "code": {
      "command": "code-server"
    },
    "named": {
      "command": "bare",
      "args": ["1"]
    }
  }
}
`
	path := filepath.Join(home, "MCPs", "servers.json")
	if got := fileText(t, path); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for name, tt := range map[string]struct {
		in, want string
		args     []string
	}{
		"twice":         {"", `there is a server "files" already`, []string{"files", "--", "x"}},
		"no command":    {"", "give the server's command after --", []string{"new"}},
		"no name":       {"", "name is missing", []string{"--", "x"}},
		"no dashes":     {"", "put -- before", []string{"new", "npx", "x"}},
		"secret":        {"", "--env: want NAME=VALUE", []string{"new", "--env", "s3cret", "--", "x"}},
		"both":          {"", "is not started", []string{"new", "--url", "https://x.example", "--", "x"}},
		"no address":    {"", "is no address", []string{"new", "--url", "x"}},
		"header alone":  {"", "are for servers with --url", []string{"new", "--header", "a=b", "--", "x"}},
		"no json":       {"{", "invalid JSON", []string{"new", "--from-json", "-"}},
		"empty json":    {`{"mcpServers": {}}`, "there is no server in it", []string{"--from-json", "-"}},
		"nameless json": {`{"command": "x"}`, "has no name", []string{"--from-json", "-"}},
		"invalid":       {`{"mcpServers": {"a": {"command": 3}}}`, "a: command", []string{"--from-json", "-"}},
	} {
		code, stdout, stderr := run(t, tt.in, append([]string{"servers", "add"}, tt.args...)...)
		if code != exitUsage || !strings.Contains(stderr, tt.want) || strings.Contains(stderr, "s3cret") || stdout != "" {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
	}
	if got := fileText(t, path); got != want {
		t.Errorf("a refused server changed the file:\n%s", got)
	}
}

// The rest of a file stays as it is, whatever its dialect and format.
func TestServersEdit(t *testing.T) {
	home := ownHome(t, map[string]string{
		"a.jsonc": "{\n  // mine\n  \"mcpServers\": {\n    \"one\": {\"command\": \"x\"}, // one\n    \"two\": {\"command\": \"y\", \"disabled\": true}\n  }\n}\n",
		"b.toml":  "# codex\n[mcp_servers.three]\ncommand = \"x\" # c\n\n[mcp_servers.four]\ncommand = \"y\"\n",
		"c.yaml":  "# goose\nextensions:\n  five:\n    type: stdio\n    enabled: true # on\n    cmd: x\n  six:\n    type: stdio\n    enabled: false\n    cmd: y\n",
		"d.json":  `{"mcp": {"seven": {"type": "local", "command": ["x"]}, "eight": {"type": "local", "command": ["y"], "enabled": false}}}`,
		"e.json":  "{\n  \"command\": \"x\"\n}\n",
		"f.json":  `{"mcpServers": {"bad": {"command": 3}, "good": {"command": "x"}}}`,
		"g.toml":  "mcp_servers = { nine = { command = \"x\" } }\n",
	})
	for _, name := range []string{"one", "three", "five", "seven", "e"} {
		mustRun(t, "", "servers", "disable", name)
	}
	for _, name := range []string{"two", "six", "eight"} {
		mustRun(t, "", "servers", "enable", name)
	}
	for name, want := range map[string]string{
		"a.jsonc": "{\n  // mine\n  \"mcpServers\": {\n    \"one\": {\"command\": \"x\", \"disabled\": true}, // one\n    \"two\": {\"command\": \"y\"}\n  }\n}\n",
		"b.toml":  "# codex\n[mcp_servers.three]\ncommand = \"x\" # c\nenabled = false\n\n[mcp_servers.four]\ncommand = \"y\"\n",
		"c.yaml":  "# goose\nextensions:\n  five:\n    type: stdio\n    enabled: false # on\n    cmd: x\n  six:\n    type: stdio\n    enabled: true\n    cmd: y\n",
		"d.json":  `{"mcp": {"seven": {"type": "local", "command": ["x"], "enabled": false}, "eight": {"type": "local", "command": ["y"], "enabled": true}}}`,
		"e.json":  "{\n  \"command\": \"x\",\n  \"disabled\": true\n}\n",
	} {
		if got := fileText(t, home, "MCPs", name); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
	mustRun(t, "", "servers", "enable", "one") // and again, which changes nothing
	mustRun(t, "", "servers", "enable", "one")

	for _, name := range []string{"one", "three", "five", "seven", "e", "bad"} {
		mustRun(t, "", "servers", "remove", name)
	}
	for name, want := range map[string]string{
		"a.jsonc": "{\n  // mine\n  \"mcpServers\": {\n    \"two\": {\"command\": \"y\"}\n  }\n}\n",
		"b.toml":  "# codex\n[mcp_servers.four]\ncommand = \"y\"\n",
		"c.yaml":  "# goose\nextensions:\n  six:\n    type: stdio\n    enabled: true\n    cmd: y\n",
		"d.json":  `{"mcp": { "eight": {"type": "local", "command": ["y"], "enabled": true}}}`,
		"f.json":  `{"mcpServers": { "good": {"command": "x"}}}`,
	} {
		if got := fileText(t, home, "MCPs", name); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "MCPs", "e.json")); !os.IsNotExist(err) {
		t.Errorf("e.json: %v", err)
	}
	code, _, stderr := run(t, "", "servers", "remove", "nine")
	if code != exitConfig || !strings.Contains(stderr, "change line 1 of ") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if code, _, stderr = run(t, "", "servers", "disable", "tow"); code != exitUsage || !strings.Contains(stderr, "did you mean two?") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// Nothing is written that would not be what was asked for.
func TestServersDisableIsChecked(t *testing.T) {
	home := ownHome(t, map[string]string{
		"server.json":  `{"name": "io.example/one", "description": "x", "packages": [{"registryType": "npm", "identifier": "one", "transport": {"type": "stdio"}}]}`,
		"wrapped.json": `{"server": {"name": "io.example/wrapped", "packages": [{"registryType": "npm", "identifier": "two"}]}, "_meta": {}}`,
		"gemini.json":  `{"mcp": {"excluded": ["two"]}, "mcpServers": {"two": {"command": "x"}}}`,
		"bad.json":     `{"mcpServers": {"three": {"command": 3}}}`,
	})
	mustRun(t, "", "servers", "disable", "one")
	if got := fileText(t, home, "MCPs", "server.json"); !strings.Contains(got, `"disabled": true`) {
		t.Error(got)
	}
	if stdout, _ := mustRun(t, "", "servers", "list"); !strings.Contains(stdout, "disabled") {
		t.Error(stdout)
	}
	mustRun(t, "", "servers", "enable", "one")
	if got := fileText(t, home, "MCPs", "server.json"); strings.Contains(got, "disabled") {
		t.Error(got)
	}
	mustRun(t, "", "servers", "disable", "wrapped")
	if got := fileText(t, home, "MCPs", "wrapped.json"); !strings.Contains(got, `"disabled": true}, "_meta"`) {
		t.Error(got)
	}
	before := fileText(t, home, "MCPs", "gemini.json")
	code, _, stderr := run(t, "", "servers", "enable", "two")
	if code != exitConfig || !strings.Contains(stderr, "is left as it is") || !strings.Contains(stderr, "hint: ") || fileText(t, home, "MCPs", "gemini.json") != before {
		t.Errorf("exit %d, %s", code, stderr)
	}
	mustRun(t, "", "servers", "disable", "three") // one that cannot be used can be switched off
}

func TestServersListShowsInvalidOnes(t *testing.T) {
	ownHome(t, map[string]string{
		"a.json": `{"mcpServers": {"good": {"command": "x"}, "bad": {"command": 3}, "bridge": {"command": "mcp-bridge", "args": ["run"]}}}`,
		"b.json": "{",
	})
	stdout, _ := mustRun(t, "", "servers", "list")
	for _, want := range []string{"good", "bad", "invalid", "command at 1:", "~/MCPs/a.json", "~/MCPs/b.json", "invalid JSON at"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	stdout, _ = mustRun(t, "", "servers", "list", "--json")
	var list []struct{ Name, State, File, Type, Error string }
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 || list[0].State != "idle" || list[0].Type != "stdio" || list[1].Name != "bad" || list[1].State != "invalid" || list[2].Name != "" {
		t.Errorf("%+v", list)
	}
}

// lines is a writer whose lines a test waits for.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) wait(t *testing.T, want string) {
	t.Helper()
	limit := time.After(60 * time.Second)
	for {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-l.more:
		case <-limit:
			t.Fatalf("%q is missing in\n%s", want, text)
		}
	}
}

func TestServersWatch(t *testing.T) {
	home := ownHome(t, map[string]string{"a.json": `{"mcpServers": {"one": {"command": "x"}}}`})
	ctx, stop := context.WithCancel(t.Context())
	out := &lines{more: make(chan struct{}, 1)}
	done := make(chan int)
	go func() {
		done <- Main(ctx, []string{"servers", "list", "--watch"}, IO{In: strings.NewReader(""), Out: out, Err: io.Discard})
	}()
	out.wait(t, "+ one idle")
	mustRun(t, "", "servers", "add", "two", "--", "y")
	out.wait(t, "+ two idle")
	mustRun(t, "", "servers", "disable", "two")
	out.wait(t, "~ two disabled")
	if err := os.Remove(filepath.Join(home, "MCPs", "a.json")); err != nil {
		t.Fatal(err)
	}
	out.wait(t, "- one")
	stop()
	if code := <-done; code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func TestServersInput(t *testing.T) {
	home := ownHome(t, map[string]string{
		"code.json": `{"inputs": [{"id": "token", "type": "promptString", "description": "Token", "password": true},
			{"id": "region", "type": "pickString", "options": ["eu", "us"], "default": "eu"}],
			"servers": {"code": {"command": "x", "env": {"T": "${input:token}", "R": "${input:region}"}}}}`,
		"plain.json": `{"mcpServers": {"plain": {"command": "x"}}}`,
	})
	_, stderr := mustRun(t, "", "servers", "list")
	if !strings.Contains(stderr, "servers input code") {
		t.Errorf("nothing says how to give a value: %s", stderr)
	}
	_, stderr = mustRun(t, "asia\nus\ns3cret\n", "servers", "input", "code")
	if !strings.Contains(stderr, filepath.Join(home, ".local", "state", "mcp-bridge", "inputs.json")) || strings.Contains(stderr, "s3cret") ||
		!strings.Contains(stderr, "must be one of eu and us") {
		t.Errorf("%s", stderr)
	}
	if fileText(t, home, ".local", "state", "mcp-bridge", "inputs.changed") == "" {
		t.Error("bridges that run hear nothing of it")
	}
	stdout, stderr := mustRun(t, "", "servers", "list")
	if strings.Contains(stderr, "warning") || strings.Contains(stdout, "s3cret") {
		t.Errorf("%s%s", stdout, stderr)
	}
	mustRun(t, "", "servers", "input", "code") // all are known, nothing is asked
	mustRun(t, "", "servers", "input", "code", "--forget")
	if _, stderr = mustRun(t, "", "servers", "list"); !strings.Contains(stderr, "servers input code") {
		t.Errorf("they are not forgotten: %s", stderr)
	}
	if code, _, stderr := run(t, "", "servers", "input", "code"); code != exitConfig || !strings.Contains(stderr, "no value for input") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if _, stderr = mustRun(t, "", "servers", "input", "plain"); !strings.Contains(stderr, "asks for nothing") {
		t.Errorf("%s", stderr)
	}
}

func TestServersImportFlags(t *testing.T) {
	home := ownHome(t, nil)
	if err := os.MkdirAll(filepath.Join(home, ".cursor"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, ".cursor", "mcp.json")
	text := `{"mcpServers": {"files": {"command": "x", "env": {"T": "s3cret"}}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr := mustRun(t, "", "servers", "import", "--from", "claude"); !strings.Contains(stderr, "nothing to import: none of these has a server: Claude Desktop and Claude Code") {
		t.Errorf("%s", stderr)
	}
	stdout, stderr := mustRun(t, "", "servers", "import", "--dry-run", "--move")
	if !strings.Contains(stdout, "Cursor, ~/.cursor/mcp.json\n  files  moved  ~/MCPs/cursor.json") || !strings.Contains(stderr, "nothing was changed") || strings.Contains(stdout, "s3cret") {
		t.Errorf("%s%s", stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(home, "MCPs")); !os.IsNotExist(err) || fileText(t, file) != text {
		t.Errorf("a dry run changed something: %v", err)
	}
	mustRun(t, "", "servers", "import", "--from", "cursor,zed", "--move", "--json")
	if got := fileText(t, file); !strings.Contains(got, `"bridge"`) || strings.Contains(got, "files") {
		t.Errorf("%s", got)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t, "", "servers", "import", "--undo"); code != exitFailure || !strings.Contains(stderr, "--force") || fileText(t, file) != "{" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	mustRun(t, "", "servers", "import", "--undo", "--force")
	if fileText(t, file) != text {
		t.Error("undo did not restore")
	}
	for _, args := range [][]string{{"--undo", "--move"}, {"--force"}, {"--from", "curser"}} {
		if code, _, stderr := run(t, "", append([]string{"servers", "import"}, args...)...); code != exitUsage {
			t.Errorf("%q: exit %d, %s", args, code, stderr)
		}
	}
}

func TestServersThatDoNotWorkYetAreTold(t *testing.T) {
	home := ownHome(t, nil)
	for dir, text := range map[string]string{
		".cursor": `{"mcpServers": {"env": {"command": "x", "env": {"T": "${NOT_SET_HERE}"}}, "web": {"url": "https://example.com/mcp"}, "ok": {"command": "x"}}}`,
		".gemini": `{"mcpServers": {"three": {"command": "z"}}}`,
	} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		name := map[string]string{".cursor": "mcp.json", ".gemini": "settings.json"}[dir]
		if err := os.WriteFile(filepath.Join(home, dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stdout, stderr := mustRun(t, "", "servers", "import", "--move")
	for _, want := range []string{"env does not work yet: environment variable NOT_SET_HERE", "web does not work yet: it has a url", "put into 2 clients' files"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is missing in\n%s%s", want, stdout, stderr)
		}
	}
	if strings.Contains(stderr, "ok does not") || strings.Count(stdout, "moved") != 3 {
		t.Errorf("%s%s", stdout, stderr)
	}
	if _, stderr = mustRun(t, "", "servers", "add", "docs", "--url", "https://example.com/docs"); !strings.Contains(stderr, "docs does not work yet") {
		t.Error(stderr)
	}
	if _, stderr = mustRun(t, "", "servers", "add", "asks", "--", "x", "${input:token}"); !strings.Contains(stderr, "mcp-bridge servers input asks") {
		t.Error(stderr)
	}
}

// A server that fails and a definition that cannot be used are both failures,
// each told once, with what mends it.
func TestServersCheckFails(t *testing.T) {
	ownHome(t, map[string]string{
		"a.json": `{"mcpServers": {"gone": {"command": "/nonexistent/server"}, "bad": {"command": 3}, "off": {"command": "x", "disabled": true}}}`,
	})
	code, stdout, stderr := run(t, "", "servers", "check")
	if code != exitFailure || strings.Count(stderr, `"gone" cannot start`) != 1 || strings.Count(stderr, "bad: command at") != 1 || !strings.Contains(stderr, "hint: ") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	for _, want := range []string{"gone", "failed", "bad", "invalid", "off", "disabled"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
	if code, stdout, stderr = run(t, "", "servers", "check", "off"); code != exitOK {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr = run(t, "", "servers", "check", "gnoe"); code != exitUsage || !strings.Contains(stderr, "did you mean gone?") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// What is said of slips tells what to do instead.
func TestServersTexts(t *testing.T) {
	home := ownHome(t, nil)
	if code, _, stderr := run(t, "", "servers", "add", "web", "https://example.com/mcp"); code != exitUsage || !strings.Contains(stderr, "hint: mcp-bridge servers add web --url https://example.com/mcp") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if _, stderr := mustRun(t, "", "servers", "list"); !strings.Contains(stderr, "mcp-bridge servers import") {
		t.Error(stderr)
	}
	if code, _, stderr := run(t, "", "tools", "list", "nowhere"); code != exitUsage || !strings.Contains(stderr, "no server") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if err := os.MkdirAll(filepath.Join(home, "MCPs"), 0o700); err != nil {
		t.Fatal(err)
	}
	goose := filepath.Join(home, "MCPs", "goose.yaml")
	if err := os.WriteFile(goose, []byte("extensions: {one: {type: stdio, cmd: x}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t, "", "servers", "disable", "one"); code != exitConfig || !strings.Contains(stderr, "is left as it is: it ") || !strings.Contains(stderr, "change line 1") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
