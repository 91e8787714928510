package discovery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// writeFiles makes a folder with these files.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func load(t *testing.T, files map[string]string) *discovery.Config {
	t.Helper()
	return discovery.Load(discovery.LoadOptions{
		Dirs: []string{writeFiles(t, files)},
		LookupEnv: env(map[string]string{
			"HOME": "/home/u", "TOKEN": "s3cret-value", "EMPTY": "", "NESTED": "${TOKEN}", "TILDE": "~/x",
		}),
	})
}

func names(c *discovery.Config) []string {
	var list []string
	for _, s := range c.Servers {
		list = append(list, s.Name)
	}
	return list
}

// problems joins them, one a line, with the folder's path cut away.
func problems(c *discovery.Config) string {
	var b strings.Builder
	for _, p := range c.Problems {
		p.File = filepath.Base(p.File)
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

func one(definition string) map[string]string {
	return map[string]string{"a.json": `{"mcpServers": {"s": ` + definition + `}}`}
}

func TestLoadReadsEveryField(t *testing.T) {
	c := load(t, one(`{"command": "node", "args": ["a", "b"], "env": {"K": "v"}, "cwd": "/w", "description": "What\u001b[31m it\u202e does", "disabled": true}`))
	if len(c.Servers) != 1 || len(c.Problems) != 0 {
		t.Fatalf("got %v, problems %v", c.Servers, problems(c))
	}
	s := c.Servers[0]
	if s.Command != "node" || !slices.Equal(s.Args, []string{"a", "b"}) || s.Env["K"] != "v" || s.Cwd != "/w" ||
		s.Description != "What it does" || !s.Disabled || s.Ident != "s" || filepath.Base(s.File) != "a.json" {
		t.Errorf("got %#v %q %q %q %q %q %v %q %q", s, s.Command, s.Args, s.Env, s.Cwd, s.Description, s.Disabled, s.Ident, s.File)
	}
}

func TestLoadOrder(t *testing.T) {
	files := map[string]string{
		"b.json":       `{"description": "of the file", "mcpServers": {"z": {"command": "x"}, "a": {"command": "x", "description": "own"}}}`,
		"a.json":       `{"mcpServers": {"m": {"command": "first"}}}`,
		"c.json":       "\ufeff" + `{"mcpServers": {"m": {"command": "second"}, "n": {"command": "x"}, "n": {"command": "y"}}}`,
		".hidden.json": `not even JSON`,
		"notes.txt":    `not even JSON`,
	}
	for range 3 {
		c := load(t, files)
		if got := names(c); !slices.Equal(got, []string{"m", "z", "a", "n"}) {
			t.Fatalf("servers %q", got)
		}
		if c.Servers[0].Command != "first" || c.Servers[1].Description != "of the file" || c.Servers[2].Description != "own" {
			t.Errorf("wrong definitions: %q, %q, %q", c.Servers[0].Command, c.Servers[1].Description, c.Servers[2].Description)
		}
		want := "c.json: m: already defined in a.json; the first definition counts\nc.json: n: already defined in this file; the first definition counts\n"
		if got := problems(c); got != want {
			t.Errorf("problems\n%swant\n%s", got, want)
		}
	}
}

func TestLoadDuplicateAcrossFoldersNamesBothPaths(t *testing.T) {
	first, second := writeFiles(t, one(`{"command": "x"}`)), writeFiles(t, one(`{"command": "y"}`))
	c := discovery.Load(discovery.LoadOptions{Dirs: []string{first, second, first}})
	if len(c.Problems) != 1 {
		t.Fatalf("problems %v", c.Problems)
	}
	text := c.Problems[0].String()
	if !strings.Contains(text, filepath.Join(first, "a.json")) || !strings.Contains(text, filepath.Join(second, "a.json")) {
		t.Errorf("%q does not name both files", text)
	}
}

func TestLoadBadFilesHideNothing(t *testing.T) {
	const good = `{"mcpServers": {"good": {"command": "x"}}}`
	for name, tt := range map[string]struct{ content, want string }{
		"syntax":        {"{\n  \"mcpServers\": {\n    oops\n", "bad.json: invalid JSON at 3:5:"},
		"cut off":       {`{"mcpServers": {`, "bad.json: invalid JSON at 1:16: unexpected end of JSON input"},
		"two values":    {`{} {}`, "bad.json: invalid JSON at 1:4:"},
		"array":         {`[]`, "bad.json: is an array; want"},
		"string":        {`"x"`, "bad.json: is a string; want"},
		"empty":         {``, "bad.json: invalid JSON at 1:1:"},
		"no servers":    {`{}`, `bad.json: no "mcpServers"; want`},
		"misspelt":      {`{"mcpservers": {}}`, `but "mcpservers"`},
		"servers array": {`{"mcpServers": []}`, "bad.json: mcpServers at 1:16 is an array; want"},
		"latin 1":       {"{\"mcpServers\": {\"caf\xe9\": {}}}", "bad.json: is not UTF-8 text"},
		"utf 16":        {"\xff\xfe{\x00}\x00", "bad.json: is not UTF-8 text"},
		"too large":     {`{"mcpServers": {}}` + strings.Repeat(" ", 1<<20), "bad.json: larger than 1024 KiB"},
		"too many":      {"[" + strings.Repeat("1,", 500_000) + "1]", "bad.json: too many JSON values"},
		"too deep":      {strings.Repeat("[", 500_000), "bad.json: invalid JSON at"},
		"description":   {`{"description": 3, "mcpServers": {}}`, "bad.json: description at 1:17: is a number, want a string"},
	} {
		t.Run(name, func(t *testing.T) {
			c := load(t, map[string]string{"bad.json": tt.content, "good.json": good})
			if !slices.Equal(names(c), []string{"good"}) {
				t.Errorf("servers %q", names(c))
			}
			if got := problems(c); len(c.Problems) != 1 || !strings.Contains(got, tt.want) {
				t.Errorf("problems %q, want one with %q", got, tt.want)
			}
		})
	}
}

func TestLoadFolders(t *testing.T) {
	dir := writeFiles(t, map[string]string{"file": ""})
	c := discovery.Load(discovery.LoadOptions{Dirs: []string{filepath.Join(dir, "missing"), filepath.Join(dir, "file")}})
	if got := problems(c); len(c.Servers) != 0 || got != "file: is not a directory\n" {
		t.Errorf("problems %q", got)
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "MCPs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "MCPs", "x.json"), []byte(`{"mcpServers": {"d": {"command": "x"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c = discovery.Load(discovery.LoadOptions{LookupEnv: env(map[string]string{"HOME": home})})
	if !slices.Equal(names(c), []string{"d"}) {
		t.Errorf("default folder: %q, %s", names(c), problems(c))
	}
}

func TestLoadBadEntriesHideNoSiblings(t *testing.T) {
	for definition, want := range map[string]string{
		`3`:                                             "bad: the definition at 1:24: is a number, want an object",
		`{}`:                                            `bad: no "command"`,
		`{"command": {"a": "b"}}`:                       "bad: command at 1:36: is an object, want a string",
		`{"command": "a\u0000b"}`:                       "NUL",
		`{"command": "  "}`:                             "bad: command is empty",
		`{"command": "a", "args": "b"}`:                 "args at 1:49: is a string, want an array",
		`{"command": "a", "args": ["b", 8080]}`:         "args[1] at 1:55: is a number, want a string",
		`{"command": "a", "env": ["K=V"]}`:              "env at 1:48: is an array, want an object",
		`{"command": "a", "env": {"K": 1}}`:             "env K at 1:54: is a number, want a string",
		`{"command": "a", "env": {"A=B": "x"}}`:         `"A=B" is not a variable's name`,
		`{"command": "a", "env": {"A": "x", "A": "y"}}`: `"A" is given twice`,
		`{"command": "a", "cwd": true}`:                 "cwd at 1:48: is a boolean, want a string",
		`{"command": "a", "disabled": "yes"}`:           "disabled at 1:53: is a string, want a boolean",
		`{"command": "a", "command": "b"}`:              `"command" is given twice`,
		`{"comand": "a"}`:                               `unknown key "comand" at 1:35; did you mean "command"?`,
		`{"command": "a", "disable": true}`:             `did you mean "disabled"?`,
		`{"command": "a", "Args": []}`:                  `did you mean "args"?`,
		`{"url": "htps://x.example/?key=s3cret-value"}`: `url: want an address that begins with http:// or https://`,
	} {
		t.Run(definition, func(t *testing.T) {
			c := load(t, map[string]string{
				"f.json": `{"mcpServers": {"bad": ` + definition + `, "sibling": {"command": "x", "type": "stdio", "timeout": 3, "args": null}}}`,
			})
			if !slices.Equal(names(c), []string{"sibling"}) {
				t.Errorf("servers %q", names(c))
			}
			got := problems(c)
			if len(c.Problems) != 1 || !strings.HasPrefix(got, "f.json: bad: ") || !strings.Contains(got, want) {
				t.Errorf("problems %q, want one with %q", got, want)
			}
			if strings.Contains(got, "s3cret-value") {
				t.Errorf("the secret is shown: %q", got)
			}
		})
	}
}

func TestLoadServerNames(t *testing.T) {
	c := load(t, map[string]string{"f.json": `{"mcpServers": {"": {"command": "x"}, "a\u001b[2Jb": {"command": "x"}, "x\u200by": {"command": "x"},
		"` + strings.Repeat("n", 129) + `": {"command": "x"}, "日本 server/1": {"command": "x"}}}`})
	if !slices.Equal(names(c), []string{"日本 server/1"}) {
		t.Errorf("servers %q", names(c))
	}
	if len(c.Problems) != 4 || strings.ContainsAny(problems(c), "\x1b\u200b") {
		t.Errorf("problems %q", problems(c))
	}
}

func TestLoadExpansion(t *testing.T) {
	for in, want := range map[string]string{
		"plain":             "plain",
		"${TOKEN}":          "s3cret-value",
		"a${TOKEN}b${HOME}": "as3cret-valueb/home/u",
		"${NONE:-def}":      "def",
		"${NONE:-}":         "",
		"${EMPTY:-def}":     "def",
		"${EMPTY}":          "",
		"${TOKEN:-def}":     "s3cret-value",
		"$${TOKEN}":         "${TOKEN}",
		"$TOKEN":            "$TOKEN",
		"~":                 "/home/u",
		"~/x":               "/home/u/x",
		"~user/x":           "~user/x",
		"a~/x":              "a~/x",
		"${NESTED}":         "${TOKEN}", // values are not expanded again
		"${TILDE}":          "~/x",
	} {
		t.Run(in, func(t *testing.T) {
			c := load(t, one(fmt.Sprintf(`{"command": "x%[1]s", "args": [%[2]q], "env": {"E": %[2]q}}`, "", in)))
			if len(c.Servers) != 1 {
				t.Fatal(problems(c))
			}
			if s := c.Servers[0]; s.Args[0] != want || s.Env["E"] != want {
				t.Errorf("args %q, env %q, want %q", s.Args[0], s.Env["E"], want)
			}
		})
	}
}

func TestLoadExpandsCommandAndCwd(t *testing.T) {
	dir := writeFiles(t, one(`{"command": "~/bin/x", "cwd": "data"}`))
	c := discovery.Load(discovery.LoadOptions{Dirs: []string{dir}, LookupEnv: env(map[string]string{"HOME": "/home/u"})})
	if s := c.Servers[0]; s.Command != "/home/u/bin/x" || s.Cwd != filepath.Join(dir, "data") {
		t.Errorf("command %q, cwd %q", s.Command, s.Cwd)
	}
}

func TestLoadExpansionProblems(t *testing.T) {
	for in, want := range map[string]string{
		"${MISSING}":                   "a.json: s: environment variable MISSING is not set",
		"${MISSING}${OTHER}${MISSING}": "environment variables MISSING, OTHER are not set",
		"${TOKEN} ${MISSING}":          "environment variable MISSING is not set",
		"x ${TOKEN":                    "args[0]: ${ without }",
		"${inputs:s3cret-value}":       "args[0]: only ${NAME}, ${NAME:-default}, ${input:ID}, ${workspaceFolder} and ${userHome} are understood",
		"${1X}":                        "only ${NAME}",
		"${}":                          "only ${NAME}",
		"${NONE:-${TOKEN}}":            "the default of ${NONE} contains a variable",
	} {
		t.Run(in, func(t *testing.T) {
			c := load(t, map[string]string{"a.json": fmt.Sprintf(`{"mcpServers": {"s": {"command": "x", "args": [%q]}, "t": {"command": "x"}}}`, in)})
			if got := problems(c); !slices.Equal(names(c), []string{"t"}) || !strings.Contains(got, want) || strings.Contains(got, "s3cret-value") {
				t.Errorf("servers %q, problems %q, want %q", names(c), got, want)
			}
		})
	}
	if c := load(t, one(`{"command": "x", "args": ["${MISSING}"], "disabled": true}`)); len(c.Problems) != 0 || len(c.Servers) != 1 {
		t.Errorf("a disabled server needs no variables: %s", problems(c))
	}
}

func TestLoadBadDefinitionDoesNotTakeTheName(t *testing.T) {
	c := load(t, map[string]string{
		"a.json": `{"mcpServers": {"s": {"command": "x", "args": ["${MISSING}"]}}}`,
		"b.json": `{"mcpServers": {"s": {"command": "good"}}}`,
	})
	if len(c.Servers) != 1 || c.Servers[0].Command != "good" || len(c.Problems) != 1 {
		t.Errorf("servers %v, problems %s", c.Servers, problems(c))
	}
}

func TestLoadManyServers(t *testing.T) {
	files := make(map[string]string)
	for f := range 40 {
		var b strings.Builder
		for s := range 100 {
			fmt.Fprintf(&b, `,"server-%02d-%02d": {"command": "x"}`, f, s)
		}
		files[fmt.Sprintf("%02d.json", f)] = `{"mcpServers": {` + b.String()[1:] + `}}`
	}
	if c := load(t, files); len(c.Servers) != 4000 || len(c.Problems) != 0 {
		t.Errorf("%d servers, problems %s", len(c.Servers), problems(c))
	}
	// 102 files of 100 servers each exceed the bound of 10,000.
	for f := 40; f < 102; f++ {
		files[fmt.Sprintf("%03d.json", f)] = strings.ReplaceAll(files["00.json"], "server-00", fmt.Sprintf("server-%03d", f))
	}
	c := load(t, files)
	if len(c.Servers) != 10_000 || len(c.Problems) == 0 || !strings.Contains(problems(c), "more than 10000") {
		t.Errorf("%d servers, problems %s", len(c.Servers), problems(c))
	}
}

func TestLoadManyProblemsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 60_000 { // on one line
		fmt.Fprintf(&b, `,"s%d": 1`, i)
	}
	c := load(t, map[string]string{"a.json": `{"mcpServers": {` + b.String()[1:] + `}}`})
	if n := len(c.Problems); n != 1001 {
		t.Errorf("%d problems", n)
	}
}

func TestServerShowsNoSecrets(t *testing.T) {
	s := discovery.Server{Name: "s", Args: []string{"--token=s3cret-value"}, Env: map[string]string{"T": "s3cret-value"}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		for _, v := range []any{s, &s, []discovery.Server{s}} {
			if text := fmt.Sprintf(format, v); strings.Contains(text, "s3cret") {
				t.Errorf("%s shows %s", format, text)
			}
		}
	}
	if text := fmt.Sprint(s.LogValue()); strings.Contains(text, "s3cret") {
		t.Error(text)
	}
}

func TestFingerprint(t *testing.T) {
	base := discovery.Server{Name: "s", Command: "c", Args: []string{"a", "b"}, Env: map[string]string{"K": "v", "L": "w"}, Cwd: "/x"}
	same := base
	same.Description, same.File, same.Disabled, same.Name = "d", "f", true, "other"
	same.Timeout, same.Approve, same.Concurrency, same.Type = 1, []string{"*"}, 3, discovery.TypeStdio
	if base.Fingerprint() != same.Fingerprint() || len(base.Fingerprint()) != 64 {
		t.Error("what does not change the process changes the fingerprint")
	}
	if (discovery.Server{Args: []string{}, Env: map[string]string{}}).Fingerprint() != (discovery.Server{}).Fingerprint() {
		t.Error("empty and absent differ")
	}
	seen := map[string]string{base.Fingerprint(): "base"}
	for name, change := range map[string]func(*discovery.Server){
		"command":  func(s *discovery.Server) { s.Command = "d" },
		"args":     func(s *discovery.Server) { s.Args = []string{"a b"} },
		"boundary": func(s *discovery.Server) { s.Args = []string{"ab", ""} },
		"env":      func(s *discovery.Server) { s.Env = map[string]string{"K": "w", "L": "v"} },
		"cwd":      func(s *discovery.Server) { s.Cwd = "" },
		"url":      func(s *discovery.Server) { s.Type, s.URL = discovery.TypeHTTP, "https://x" },
		"sse":      func(s *discovery.Server) { s.Type, s.URL = discovery.TypeSSE, "https://x" },
		"headers": func(s *discovery.Server) {
			s.Type, s.URL, s.Headers = discovery.TypeHTTP, "https://x", map[string]string{"a": "b"}
		},
	} {
		s := base
		change(&s)
		if other, ok := seen[s.Fingerprint()]; ok {
			t.Errorf("%s: same fingerprint as %s", name, other)
		}
		seen[s.Fingerprint()] = name
	}
}

func TestEqual(t *testing.T) {
	base := discovery.Server{Name: "s", Command: "c", Args: []string{}, AllowTools: []string{"a"}}
	if same := (discovery.Server{Name: "s", Command: "c", Env: map[string]string{}, AllowTools: []string{"a"}, Type: "stdio"}); !base.Equal(same) || !same.Equal(base) {
		t.Error("empty and absent differ")
	}
	for name, change := range map[string]func(*discovery.Server){
		"name":    func(s *discovery.Server) { s.Name = "t" },
		"allow":   func(s *discovery.Server) { s.AllowTools = []string{"b"} },
		"timeout": func(s *discovery.Server) { s.Timeout = 1 },
		"env":     func(s *discovery.Server) { s.Env = map[string]string{"A": ""} },
	} {
		other := base
		if change(&other); base.Equal(other) {
			t.Errorf("another %s is equal", name)
		}
	}
}

// A file that is named is read after the folders, and one that is missing is told.
func TestLoadFiles(t *testing.T) {
	dir, more := t.TempDir(), filepath.Join(t.TempDir(), "more.txt")
	for path, content := range map[string]string{
		filepath.Join(dir, "a.json"): `{"mcpServers":{"one":{"command":"first"}}}`,
		more:                         `{"mcpServers":{"two":{"command":"second"}}}`,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := discovery.Load(discovery.LoadOptions{Dirs: []string{dir}, Files: []string{more, "/nonexistent/file.json"}})
	if len(config.Servers) != 2 || config.Servers[0].Name != "one" || config.Servers[1].Name != "two" {
		t.Errorf("the servers are %v", config.Servers)
	}
	if len(config.Problems) != 1 || config.Problems[0].File != "/nonexistent/file.json" {
		t.Errorf("the problems are %v", config.Problems)
	}
}
