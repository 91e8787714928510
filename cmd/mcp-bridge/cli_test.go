package main_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Exit codes of the command line.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNoEngine    = 3
	exitConfig      = 4
	exitInterrupted = 130
)

// TestCommands runs every command with every flag as a shell does. Results go to
// stdout and nothing else does.
func TestCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cell.py")
	if err := os.WriteFile(file, []byte("print('from a file')\n6 * 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cats := setup{servers: map[string]definition{
		"special":    specialServer(t),
		"everything": everything(t),
		"off":        {Command: "/nonexistent", Disabled: true, Description: "Switched off"},
	}}
	cats.command(t) // makes the folders, which the commands share
	for _, test := range []struct {
		name   string
		args   []string
		stdin  string
		code   int
		stdout []string // parts of it; none if there is to be nothing
		stderr []string
	}{
		{"version", []string{"version"}, "", exitOK, []string{"mcp-bridge ", "linux/"}, nil},
		{"help", []string{"--help"}, "", exitOK, []string{"run", "exec", "tools", "servers", "doctor", "version"}, nil},
		{"no command", nil, "", exitOK, []string{"Usage"}, nil},
		{"unknown command", []string{"rnu"}, "", exitUsage, nil, []string{`"rnu" for "mcp-bridge": did you mean run?`, "mcp-bridge --help"}},
		{"unknown flag", []string{"version", "--nope"}, "", exitUsage, nil, []string{"--nope", "version --help"}},
		{"unknown subcommand", []string{"tools", "serch", "x"}, "", exitUsage, nil, []string{"serch", "did you mean search?", "mcp-bridge tools --help"}},
		{"odd subcommand", []string{"servers", "lst"}, "", exitUsage, nil, []string{"did you mean list?"}},
		{"group alone", []string{"tools"}, "", exitOK, []string{"search", "list", "describe", "call"}, nil},

		{"completion for PowerShell", []string{"completion", "powershell"}, "", exitOK, []string{"Register-ArgumentCompleter", "__complete"}, nil},
		{"completion for an unknown shell", []string{"completion", "tcsh"}, "", exitUsage, nil, []string{"tcsh"}},

		{"exec code", []string{"exec", "-c", "1 + 1"}, "", exitOK, []string{"2\n"}, nil},
		{"exec file", []string{"exec", file}, "", exitOK, []string{"from a file\n42\n"}, nil},
		{"exec stdin", []string{"exec", "-"}, "print('from stdin')", exitOK, []string{"from stdin\n"}, nil},
		{"exec with tools", []string{"exec", "-c", "tools.special.same(value=5)['value']"}, "", exitOK, []string{"5\n"}, nil},
		{"exec image", []string{"exec", "-c", "tools.everything.get_tiny_image()[1]"}, "", exitOK, []string{"[image/png, "}, nil},
		{"exec that fails", []string{"exec", "-c", "print('before')\n1 / 0"}, "", exitFailure, nil, []string{"before", "ZeroDivisionError"}},
		{"exec that exits", []string{"exec", "-c", "import sys; sys.exit(3)"}, "", exitFailure, nil, []string{"ended with sys.exit(3).\n"}},
		{"exec that has nothing to say", []string{"exec", "-c", "x = 1"}, "", exitOK, nil, nil},
		{"exec with a note", []string{"exec", "-c", "print(1)\ndisplay(type('P', (), {'_repr_png_': lambda s: b'x' * (7 << 20)})())"}, "", exitOK, []string{"1\n"}, []string{"[an image of 7,340,032 bytes is not shown: "}},
		{"exec that takes long", []string{"exec", "--timeout", "1", "-c", "while True: pass"}, "", exitFailure, nil, []string{"Timed out"}},
		{"exec of much", []string{"exec", "-c", "print('x' * 1_000_000)"}, "", exitOK, []string{strings.Repeat("x", 1_000_000)}, nil},
		{"exec of nothing", []string{"exec"}, "", exitUsage, nil, []string{"-c CODE"}},
		{"exec of empty code", []string{"exec", "-c", ""}, "", exitUsage, nil, []string{"no code"}},
		{"exec of empty stdin", []string{"exec", "-"}, "", exitUsage, nil, []string{"no code"}},
		{"exec of both", []string{"exec", "-c", "1", file}, "", exitUsage, nil, []string{"either"}},
		{"exec of two", []string{"exec", file, file}, "", exitUsage, nil, []string{"accepts"}},
		{"exec of a missing file", []string{"exec", "/nonexistent.py"}, "", exitUsage, nil, []string{"/nonexistent.py"}},
		{"exec NUL", []string{"exec", "-"}, "x = '\x00'", exitFailure, nil, []string{"NUL"}},

		{"memory", []string{"exec", "--memory", "100m", "-c", "x = b'x' * (1 << 28)"}, "", exitFailure, nil, []string{"MemoryError"}},
		{"little memory", []string{"exec", "--memory", "1m", "-c", "1"}, "", exitUsage, nil, []string{"--memory", "64m"}},
		{"odd memory", []string{"exec", "--memory", "lots", "-c", "1"}, "", exitUsage, nil, []string{"--memory", "512m"}},
		{"few processes", []string{"exec", "--pids", "1", "-c", "1"}, "", exitUsage, nil, []string{"--pids", "needs 8"}},
		{"odd processes", []string{"exec", "--pids", "many", "-c", "1"}, "", exitUsage, nil, []string{`--pids: "many" is not a whole number`, "mcp-bridge exec --help"}},
		{"no processors", []string{"exec", "--cpus", "0", "-c", "1"}, "", exitUsage, nil, []string{"--cpus: 0 is out of range: give 0.01 to "}},
		{"hardly a processor", []string{"exec", "--cpus", "0.001", "-c", "1"}, "", exitUsage, nil, []string{"--cpus: 0.001 is out of range: give 0.01 to "}},
		{"more processors than there are", []string{"exec", "--cpus", "4096", "-c", "1"}, "", exitUsage, nil, []string{"--cpus: 4096 is out of range: give 0.01 to "}},
		{"odd processors", []string{"exec", "--cpus", "some", "-c", "1"}, "", exitUsage, nil, []string{`--cpus: "some" is not a number`}},
		{"no time", []string{"exec", "--timeout", "0", "-c", "1"}, "", exitUsage, nil, []string{"--timeout", "between 0.001 and 86400"}},
		{"neither yes nor no", []string{"exec", "--allow-unlimited=maybe", "-c", "1"}, "", exitUsage, nil, []string{`--allow-unlimited: "maybe" is not true or false`}},
		{"a transport podman lacks", []string{"exec", "--transport", "fd", "--runtime", "podman", "-c", "1"}, "", exitUsage, nil, []string{"podman has no transport fd: use auto, socket or stdio"}},
		{"a transport gvisor lacks", []string{"exec", "--transport", "socket", "--runtime", "gvisor", "-c", "1"}, "", exitUsage, nil, []string{"gvisor has no transport socket: use auto, fd or stdio"}},
		{"an odd target", []string{"image", "build", "--target", "dat"}, "", exitUsage, nil, []string{"did you mean data?"}},
		{"odd timeout", []string{"exec", "--timeout", "soon", "-c", "1"}, "", exitUsage, nil, []string{"--timeout"}},
		{"negative timeout", []string{"exec", "--timeout=-1", "-c", "1"}, "", exitUsage, nil, []string{"--timeout"}},
		{"timeout over the most", []string{"exec", "--timeout", "500", "-c", "1"}, "", exitUsage, nil, []string{"--max-timeout"}},
		{"more than the most", []string{"exec", "--timeout", "150", "--max-timeout", "200", "-c", "1"}, "", exitOK, []string{"1\n"}, nil},
		{"engine by name", []string{"exec", "--runtime", "podman", "-c", "1"}, "", exitOK, []string{"1\n"}, nil},
		{"unknown engine", []string{"exec", "--runtime", "dokcer", "-c", "1"}, "", exitUsage, nil, []string{"dokcer", "podman"}},
		{"run with an unknown engine", []string{"run", "--runtime", "dokcer"}, "", exitUsage, nil, []string{"dokcer", "podman"}},
		{"missing image", []string{"exec", "--image", "localhost/e2e-none:1", "-c", "1"}, "", exitNoEngine, nil, []string{"e2e-none", "mcp-bridge image build"}},
		{"log level", []string{"exec", "--log-level", "debug", "-c", "1"}, "", exitOK, []string{"1\n"}, []string{"level=DEBUG"}},
		{"odd log level", []string{"exec", "--log-level", "loud", "-c", "1"}, "", exitUsage, nil, []string{`--log-level: "loud" is not debug, info, warn or error`}},
		{"run with an argument", []string{"run", "x"}, "", exitUsage, nil, []string{"unknown command", "mcp-bridge run --help"}},
		{"exec never yields: nobody could wait on", []string{"exec", "--yield", "1", "-c", "1"}, "", exitUsage, nil, []string{"--yield"}},
		{"version as a flag", []string{"--version"}, "", exitOK, []string{"mcp-bridge version "}, nil},
		{"a missing folder", []string{"servers", "list", "--config-dir", "/nonexistent"}, "", exitOK, []string{"special"}, []string{"warning", "/nonexistent"}},
		{"run of nothing", []string{"run"}, "", exitOK, nil, nil},

		{"search", []string{"tools", "search", "echo"}, "", exitOK, []string{"everything", "everything.echo(message: str)", "Echoes"}, nil},
		{"search with a typo", []string{"tools", "search", "pyhton", "keywrods"}, "", exitOK, []string{"special.odd_name"}, nil},
		{"search with a limit", []string{"tools", "search", "get", "--limit", "1"}, "", exitOK, []string{"get"}, nil},
		{"search as JSON", []string{"tools", "search", "echo", "--json"}, "", exitOK, []string{`"server": "everything"`, `"signature"`, `"score"`}, nil},
		{"search for stdin", []string{"tools", "search", "-", "--output", "json"}, "echo\n", exitOK, []string{`"tool": "echo"`}, nil},
		{"search for nothing on stdin", []string{"tools", "search", "-"}, "", exitFailure, nil, []string{"no words"}},
		{"odd output", []string{"tools", "list", "-o", "yaml"}, "", exitUsage, nil, []string{`"yaml" is not text or json`}},
		{"search for nothing known", []string{"tools", "search", "qqqqqqqqqqqq"}, "", exitFailure, nil, nil},
		{"search without words", []string{"tools", "search"}, "", exitUsage, nil, []string{"requires"}},
		{"search with limit 0", []string{"tools", "search", "x", "--limit", "0"}, "", exitUsage, nil, []string{"--limit"}},
		{"list all", []string{"tools", "list"}, "", exitOK, []string{"special.same(value", "everything.echo("}, nil},
		{"list one", []string{"tools", "list", "special"}, "", exitOK, []string{"special.odd_name(class_: str, from_: str = None, max_items: int = None)"}, nil},
		{"list as JSON", []string{"tools", "list", "special", "--json"}, "", exitOK, []string{`"odd-name"`}, nil},
		{"list of an unknown server", []string{"tools", "list", "specail"}, "", exitUsage, nil, []string{"specail", "special"}},
		{"describe", []string{"tools", "describe", "special.odd_name"}, "", exitOK, []string{"special.odd_name(class_: str", "keywords as parameters", "Parameters:", "(required)", "(optional)"}, nil},
		{"describe by its own name", []string{"tools", "describe", "special.odd-name"}, "", exitOK, []string{"special.odd_name("}, nil},
		{"describe as Python writes it", []string{"tools", "describe", "tools.special.odd_name"}, "", exitOK, []string{"special.odd_name("}, nil},
		{"describe as JSON", []string{"tools", "describe", "special.same", "--json"}, "", exitOK, []string{`"server": "special"`, `"name": "same"`}, nil},
		{"describe an unknown tool", []string{"tools", "describe", "special.nothing"}, "", exitFailure, nil, []string{"nothing", "tools list special"}},
		{"describe a mistyped tool", []string{"tools", "describe", "special.smae"}, "", exitFailure, nil, []string{"did you mean same?"}},
		{"call a mistyped server", []string{"tools", "call", "everthing.x"}, "", exitUsage, nil, []string{"did you mean everything.x?"}},
		{"describe nothing", []string{"tools", "describe"}, "", exitUsage, nil, []string{"SERVER.TOOL", "mcp-bridge tools list SERVER"}},
		{"list of a server unlike any", []string{"tools", "list", "zzzzzzzz"}, "", exitUsage, nil, []string{"hint: mcp-bridge servers list"}},
		{"describe an unknown server", []string{"tools", "describe", "nothing.x"}, "", exitUsage, nil, []string{"nothing", "servers list"}},
		{"describe no tool", []string{"tools", "describe", "special"}, "", exitUsage, nil, []string{"SERVER.TOOL", "hint: mcp-bridge tools list special"}},
		{"call", []string{"tools", "call", "everything.echo", "--json", `{"message": "hi"}`}, "", exitOK, []string{"Echo: hi\n"}, nil},
		{"call with structured content", []string{"tools", "call", "special.same", "--json", `{"value": 12345678901234567890123}`}, "", exitOK, []string{`12345678901234567890123`}, nil},
		{"call with words", []string{"tools", "call", "everything.get_sum", "a=2", "b=3"}, "", exitOK, []string{"5"}, nil},
		{"call with JSON words", []string{"tools", "call", "special.same", `value:={"a": [12345678901234567890123]}`}, "", exitOK, []string{`{"a":[12345678901234567890123]}`}, nil},
		{"call with stdin", []string{"tools", "call", "everything.echo", "-"}, `{"message": "from stdin"}`, exitOK, []string{"Echo: from stdin\n"}, nil},
		{"call with stdin as JSON", []string{"tools", "call", "everything.echo", "--json", "-"}, `{"message": "hi"}`, exitOK, []string{"Echo: hi\n"}, nil},
		{"call with a wrong argument", []string{"tools", "call", "everything.get_sum", "a=two", "b=3"}, "", exitFailure, nil, []string{"argument a: expected float", "hint: its signature is everything.get_sum("}},
		{"call with half an argument", []string{"tools", "call", "everything.get_sum", "a"}, "", exitUsage, nil, []string{`"a" is not an argument of the form key=text or key:=json`}},
		{"call, as JSON", []string{"tools", "call", "special.texts", "-o", "json"}, "", exitOK, []string{"\n  \"content\": ["}, nil},
		{"call, raw", []string{"tools", "call", "special.texts", "--raw"}, "", exitOK, []string{`"content"`, `"plain"`}, nil},
		{"call for an image", []string{"tools", "call", "everything.get_tiny_image"}, "", exitOK, []string{"[image image/png, ", "--raw"}, nil},
		{"call that fails", []string{"tools", "call", "special.fail"}, "", exitFailure, nil, []string{"it failed"}},
		{"call with odd JSON", []string{"tools", "call", "special.same", "--json", "{"}, "", exitUsage, nil, []string{"--json"}},
		{"call with a JSON list", []string{"tools", "call", "special.same", "--json", "[]"}, "", exitUsage, nil, []string{"--json"}},
		{"servers", []string{"servers", "list"}, "", exitOK, []string{"SERVER", "special", "tools.special", "Odd tools for tests", "disabled"}, nil},
		{"servers as JSON", []string{"servers", "list", "--json"}, "", exitOK, []string{`"name": "special"`}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := cats
			got := shellWith(t, &s, test.stdin, test.args...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d\n%s\n%s", got.code, test.code, got.stdout, got.stderr)
			}
			contains(t, got.stdout, test.stdout...)
			contains(t, got.stderr, test.stderr...)
			if test.stdout == nil && got.stdout != "" {
				t.Errorf("stdout has %.500q", got.stdout)
			}
			if test.code >= exitUsage {
				contains(t, got.stderr, "mcp-bridge: error: ")
			}
			if test.code == exitOK && test.stderr == nil && got.stderr != "" {
				t.Errorf("stderr has %q", got.stderr)
			}
			lacks(t, got.stdout+got.stderr, secret)
			if strings.Contains(strings.Join(test.args, " "), "--json") && test.args[1] != "call" && test.code == exitOK && !json.Valid([]byte(got.stdout)) {
				t.Errorf("not JSON: %s", got.stdout)
			}
		})
	}
}

// TestSearchLimit counts the lines.
func TestSearchLimit(t *testing.T) {
	t.Parallel()
	s := setup{servers: map[string]definition{"everything": everything(t)}}
	for _, limit := range []string{"1", "3"} {
		got := shell(t, &s, "tools", "search", "get", "--limit", limit)
		if n := strings.Count(got.stdout, "\n"); itoa(n) != limit {
			t.Errorf("%d hits with --limit %s:\n%s", n, limit, got.stdout)
		}
	}
}

// TestEnvironment gives settings as variables.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, variable string
		args           []string
		code           int
		out, err       string
	}{
		{"timeout", "MCP_BRIDGE_TIMEOUT=1", []string{"exec", "-c", "while True: pass"}, exitFailure, "", "Timed out"},
		{"flag wins", "MCP_BRIDGE_IMAGE=localhost/e2e-none:1", []string{"exec", "--image", sandboxImage, "-c", "1"}, exitOK, "1\n", ""},
		{"image", "MCP_BRIDGE_IMAGE=localhost/e2e-none:1", []string{"exec", "-c", "1"}, exitNoEngine, "", "e2e-none"},
		{"runtime", "MCP_BRIDGE_RUNTIME=dokcer", []string{"exec", "-c", "1"}, exitConfig, "", "MCP_BRIDGE_RUNTIME: dokcer"},
		{"memory", "MCP_BRIDGE_MEMORY=100m", []string{"exec", "-c", "b'x' * (1 << 28)"}, exitFailure, "", "MemoryError"},
		{"pids", "MCP_BRIDGE_PIDS=1", []string{"exec", "-c", "1"}, exitConfig, "", "MCP_BRIDGE_PIDS: 1"},
		{"cpus", "MCP_BRIDGE_CPUS=-1", []string{"exec", "-c", "1"}, exitConfig, "", "MCP_BRIDGE_CPUS: -1"},
		{"max timeout", "MCP_BRIDGE_MAX_TIMEOUT=5", []string{"exec", "-c", "1"}, exitConfig, "", "MCP_BRIDGE_MAX_TIMEOUT 5"},
		{"flag against a variable", "MCP_BRIDGE_MAX_TIMEOUT=5", []string{"exec", "--timeout", "6", "-c", "1"}, exitUsage, "", "--timeout 6 is more than MCP_BRIDGE_MAX_TIMEOUT 5"},
		{"transport", "MCP_BRIDGE_TRANSPORT=fd", []string{"exec", "-c", "1"}, exitConfig, "", "podman has no transport fd"},
		{"odd switch", "MCP_BRIDGE_ALLOW_UNLIMITED=maybe", []string{"exec", "-c", "1"}, exitConfig, "", `MCP_BRIDGE_ALLOW_UNLIMITED: "maybe" is not true or false`},
		{"log level", "MCP_BRIDGE_LOG_LEVEL=debug", []string{"exec", "-c", "1"}, exitOK, "1\n", "level=DEBUG"},
		{"odd value", "MCP_BRIDGE_MEMORY=lots", []string{"exec", "-c", "1"}, exitConfig, "", "MCP_BRIDGE_MEMORY"},
		{"empty value", "MCP_BRIDGE_MEMORY=", []string{"exec", "-c", "1"}, exitOK, "1\n", ""},
		{"log level in Python's words", "MCP_BRIDGE_LOG_LEVEL=WARNING", []string{"exec", "-c", "1"}, exitOK, "1\n", ""},
		{"a switch in words", "MCP_BRIDGE_ALLOW_SELF_SERVER=yes", []string{"exec", "-c", "1"}, exitOK, "1\n", ""},
		{"a file of servers that is not there", "MCP_SERVERS_CONFIG=/nonexistent/servers.json", []string{"exec", "-c", "1"}, exitOK, "1\n", "/nonexistent/servers.json"},
		{"state", "MCP_BRIDGE_STATE_DIR=/proc/nothing", []string{"exec", "-c", "1"}, exitConfig, "", "MCP_BRIDGE_STATE_DIR: "},
		{"cache", "MCP_BRIDGE_CACHE_DIR=/proc/nothing", []string{"exec", "-c", "1"}, exitOK, "1\n", ""}, // the flag is given
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := shell(t, &setup{env: []string{test.variable}}, test.args...)
			if got.code != test.code || got.stdout != test.out {
				t.Errorf("exit code %d and stdout %q, want %d and %q\n%s", got.code, got.stdout, test.code, test.out, got.stderr)
			}
			contains(t, got.stderr, test.err)
		})
	}
}

// TestFolders finds definitions in ~/MCPs, and in MCP_BRIDGE_CONFIG_DIR.
func TestFolders(t *testing.T) {
	t.Parallel()
	home := setup{dir: filepath.Join(t.TempDir(), "MCPs")}
	if err := os.Mkdir(home.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	home.write(t, "a.json", map[string]definition{"athome": {Command: "x"}})
	other := setup{dir: t.TempDir()}
	other.write(t, "b.json", map[string]definition{"elsewhere": {Command: "x"}})
	run := func(env ...string) run {
		cmd := home.command(t)
		cmd.Args = []string{binary, "servers", "list"}
		cmd.Env = append(append(cmd.Env, "HOME="+filepath.Dir(home.dir), "XDG_CACHE_HOME="+t.TempDir()), env...)
		return finish(t, cmd, "")
	}
	contains(t, run().stdout, "athome")
	lacks(t, run().stdout, "elsewhere")
	contains(t, run("MCP_BRIDGE_CONFIG_DIR="+other.dir).stdout, "elsewhere")
	both := run("MCP_BRIDGE_CONFIG_DIR=" + other.dir + "," + home.dir)
	contains(t, both.stdout, "elsewhere", "athome")
	if got := run("MCP_BRIDGE_CACHE_DIR=/proc/nothing"); got.code != exitConfig {
		t.Errorf("exit code %d with a cache that cannot be written, want %d: %s", got.code, exitConfig, got.stderr)
	}
}

// TestBadFile has one bad file among good ones: it is named and hides nothing.
func TestBadFile(t *testing.T) {
	t.Parallel()
	s := setup{dir: t.TempDir(), servers: nil}
	s.write(t, "good.json", map[string]definition{"special": specialServer(t)})
	for name, text := range map[string]string{
		"bad.json":    `{"mcpServers": {"x": {"command": `,
		"worse.json":  "\x00\xff",
		"list.json":   `[1, 2]`,
		"wrong.json":  `{"mcpServers": {"odd": {"command": 5, "env": {"TOKEN": "` + secret + `"}}, "fine": {"command": "true"}}}`,
		"notes.txt":   "not a definition",
		"noaccess.md": "# neither",
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := shell(t, &s, "servers", "list")
	if got.code != exitOK {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	contains(t, got.stdout, "special", "fine")
	contains(t, got.stderr, "bad.json", "worse.json", "list.json", "wrong.json", "odd", "mcp-bridge: warning: ")
	lacks(t, got.stderr, "notes.txt", "noaccess.md", secret)
	got = shell(t, &s, "tools", "call", "special.same", "--json", `{"value": 1}`)
	contains(t, got.stdout, `"value":1`)
	c := connect(t, s)
	c.wants(t, "tools.special.same(value=1)['value']", "1")
	contains(t, c.stderr.String(), "bad.json")
	lacks(t, c.stderr.String(), secret)
}

// TestSelf has the bridge among its own servers, and leaves it out.
func TestSelf(t *testing.T) {
	t.Parallel()
	s := setup{servers: map[string]definition{
		"bridge":  {Command: binary, Args: []string{"run"}},
		"special": specialServer(t),
	}}
	without := shell(t, &s, "servers", "list")
	lacks(t, without.stdout, "tools.bridge")
	told := `servers.json: server "bridge" is mcp-bridge itself and is left out (MCP_BRIDGE_ALLOW_SELF_SERVER=1 to keep it)`
	if strings.Count(without.stderr, told) != 1 {
		t.Errorf("stderr: %s", without.stderr)
	}
	contains(t, shell(t, &s, "doctor").stdout, "servers\n", "1 server\n", "it is mcp-bridge itself", "mend: remove it")
	contains(t, shell(t, &s, "servers", "list", "--allow-self-server").stdout, "tools.bridge", "tools.special")
	s.env = []string{"MCP_BRIDGE_ALLOW_SELF_SERVER=true"}
	contains(t, shell(t, &s, "servers", "list").stdout, "tools.bridge")

	// In a way that its definition does not show.
	hidden := definition{Command: "python3", Args: []string{"-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])", binary, "run"}}
	s = setup{servers: map[string]definition{"hidden": hidden}}
	got := shell(t, &s, "tools", "list", "hidden")
	contains(t, got.stderr, `server "hidden" exited while starting`, "is started by one of its own servers", "MCP_BRIDGE_ALLOW_SELF_SERVER=1")
}

// TestNoServers says why there are none.
func TestNoServers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		told  string
	}{
		"empty folder": {nil, "put their definitions into "},
		"one left out": {map[string]string{"a.json": "{"}, "was left out; the warning above says why"},
		"two left out": {map[string]string{"a.json": "{", "b.json": `{"mcpServers": {"x": {"command": 5}}}`}, "2 definitions or files in "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup{dir: t.TempDir()}
			for file, text := range test.files {
				if err := os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range [][]string{{"servers", "list"}, {"tools", "list"}, {"tools", "search", "x"}} {
				got := shell(t, &s, args...)
				contains(t, got.stderr, "no servers are configured: ", test.told, s.dir)
				lacks(t, got.stdout+got.stderr, "~/MCPs")
			}
		})
	}
	gone := setup{dir: filepath.Join(t.TempDir(), "gone")}
	cmd := gone.command(t, "servers", "list")
	cmd.Args = append(cmd.Args, "--cache-dir="+t.TempDir())
	contains(t, finish(t, cmd, "").stderr, "no servers are configured: there is no folder "+gone.dir)
}

// TestInterruptedRun has a person's ^C end a bridge: that is no error.
func TestInterruptedRun(t *testing.T) {
	t.Parallel()
	s := setup{}
	cmd := s.command(t, "run")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var stdout, stderr buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bridges.add(cmd.Process.Pid)
	if _, err := io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the bridge answers", func() bool { return strings.Contains(stdout.String(), "serverInfo") })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || stderr.String() != "" {
		t.Errorf("exit code %d, want %d, and stderr %q", code, exitInterrupted, stderr.String())
	}
}

// TestInterrupted ends commands by SIGINT.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"exec": {[]string{"exec", "-c", "tools.special.sleep(ms=100_000)", "--timeout", "100"}, exitInterrupted},
		"call": {[]string{"tools", "call", "special.sleep", "--json", `{"ms": 100000}`}, exitInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := special(t)
			cmd := s.command(t, test.args...)
			var stdout, stderr buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			bridges.add(cmd.Process.Pid)
			eventually(t, patience, "the server runs", func() bool {
				for _, p := range descendants(cmd.Process.Pid) {
					environ, _ := os.ReadFile("/proc/" + itoa(p.pid) + "/environ")
					if strings.Contains(string(environ), upstreamVar+"=serve") {
						return true
					}
				}
				return false
			})
			processes := descendants(cmd.Process.Pid)
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != test.code || stdout.String() != "" {
				t.Errorf("exit code %d and stdout %q, want %d and nothing\n%s", code, stdout.String(), test.code, stderr.String())
			}
			contains(t, stderr.String(), "mcp-bridge: error: ")
			nothingLeft(t, &client{cmd: cmd}, processes)
		})
	}
}
