package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// TestBadInput sends what no call should have. Each is refused in words, and
// nothing of it runs.
func TestBadInput(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	c.run(t, "kept = ['kept']")
	for _, test := range []struct {
		name string
		args any
		told []string
	}{
		{"unknown argument", arguments{"code": "kept.append(1)", "langauge": "python"}, []string{"unknown argument", "langauge", "`session`"}},
		{"misspelt argument", arguments{"code": "kept.append(1)", "tiemout": 5}, []string{"unknown argument", "did you mean \"timeout\"?"}},
		{"argument in another case", arguments{"Code": "kept.append(1)"}, []string{"unknown argument", "Code"}},
		{"missing code", arguments{}, []string{"`code` is missing"}},
		{"no arguments", nil, []string{"`code` is missing"}},
		{"missing code with a session", arguments{"session": "a"}, []string{"`code` is missing"}},
		{"code is a number", arguments{"code": 1}, []string{"`code` must be a string", "number 1"}},
		{"code is null", arguments{"code": nil}, []string{"`code` must be a string", "null"}},
		{"code is a list", arguments{"code": []string{"kept.append(1)"}}, []string{"`code` must be a string", "array"}},
		{"code is an object", arguments{"code": map[string]any{}}, []string{"`code` must be a string", "object"}},
		{"code is true", arguments{"code": true}, []string{"`code` must be a string", "boolean"}},
		{"empty code", arguments{"code": ""}, []string{"empty", "nothing is running"}},
		{"timeout 0", arguments{"code": "kept.append(1)", "timeout": 0}, []string{"`timeout`", "at least 0.001"}},
		{"timeout -1", arguments{"code": "kept.append(1)", "timeout": -1}, []string{"`timeout`", "at least 0.001"}},
		{"timeout 1e400", json.RawMessage(`{"code": "kept.append(1)", "timeout": 1e400}`), []string{"`timeout`"}},
		{"timeout 1e-300", arguments{"code": "kept.append(1)", "timeout": 1e-300}, []string{"`timeout`"}},
		{"timeout is a string", arguments{"code": "kept.append(1)", "timeout": "5"}, []string{"`timeout` must be a number", "string"}},
		{"timeout is true", arguments{"code": "kept.append(1)", "timeout": true}, []string{"`timeout` must be a number", "boolean"}},
		{"timeout is a list", arguments{"code": "kept.append(1)", "timeout": []int{5}}, []string{"`timeout` must be a number", "array"}},
		{"session is a number", arguments{"code": "kept.append(1)", "session": 1}, []string{"`session` must be a string"}},
		{"session with a slash", arguments{"code": "kept.append(1)", "session": "a/b"}, []string{"`session`", "not a valid name"}},
		{"session of dots", arguments{"code": "kept.append(1)", "session": ".."}, []string{"`session`", "not a valid name"}},
		{"session with a space", arguments{"code": "kept.append(1)", "session": "a b"}, []string{"`session`", "not a valid name"}},
		{"session with a newline", arguments{"code": "kept.append(1)", "session": "a\n"}, []string{"`session`", "not a valid name"}},
		{"session with NUL", arguments{"code": "kept.append(1)", "session": "a\x00"}, []string{"`session`", "not a valid name"}},
		{"session beyond ASCII", arguments{"code": "kept.append(1)", "session": "żółw"}, []string{"`session`", "not a valid name"}},
		{"session with 65 letters", arguments{"code": "kept.append(1)", "session": strings.Repeat("a", 65)}, []string{"`session`", "not a valid name"}},
		{"code with NUL", arguments{"code": "kept.append(1)\nx = '\x00'"}, []string{"NUL", "line 2"}},
		{"code of 5 MB", arguments{"code": "kept.append(1)\n" + strings.Repeat("#", 5<<20)}, []string{"`code`", "at most"}},
		{"lone surrogate", json.RawMessage(`{"code": "kept.append('\ud800')"}`), []string{"lone surrogate", `\ud800`}},
		{"low surrogate first", json.RawMessage(`{"code": "kept.append('\udc00\ud800')"}`), []string{"lone surrogate", `\udc00`}},
		{"lone surrogate in a name", json.RawMessage(`{"code": "kept.append(1)", "session": "\udfff"}`), []string{"lone surrogate"}},
		{"deeply nested code", arguments{"code": "kept.append(1)\n" + strings.Repeat("(", 100_000)}, []string{"Error"}},
		{"deep expression", arguments{"code": "x = " + strings.Repeat("-", 1_000_000) + "1"}, []string{"Error"}},
		{"not Python", arguments{"code": "SELECT * FROM kept"}, []string{"SyntaxError"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := c.send(t, test.args)
			if !r.isError {
				t.Errorf("was accepted: %.2000s", r.text)
			}
			text := r.text
			contains(t, text, test.told...)
			lacks(t, text, "panic", "goroutine", "unmarshal", "json:")
			if len(text) > 20_000 {
				t.Errorf("the refusal has %d bytes", len(text))
			}
			c.wants(t, "kept", "['kept']")
		})
	}
}

// TestGoodInput has what looks odd and is right.
func TestGoodInput(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	for _, test := range []struct {
		name string
		args any
		want string
	}{
		{"pair of surrogates", json.RawMessage(`{"code": "'\ud83d\udc22'"}`), "'🐢'"},
		{"escaped surrogate", json.RawMessage(`{"code": "len('\\ud800')"}`), "1"},
		{"null for optional ones", json.RawMessage(`{"code": "2", "timeout": null, "session": null}`), "2"},
		{"fraction of a second", arguments{"code": "3", "timeout": 0.9}, "3"},
		{"the longest timeout", arguments{"code": "4", "timeout": 120}, "4"},
		{"more than the longest", arguments{"code": "4", "timeout": 1e9}, "4"},
		{"Windows line ends", arguments{"code": "x = 5\r\nx"}, "5"},
		{"a line of spaces", arguments{"code": "   \n\t\n"}, "(no output)"},
		{"4 MB of code", arguments{"code": "6\n" + strings.Repeat("#", 4<<20-2)}, "6"},
		{"indented", arguments{"code": "if True:\n\n    7\n\n7"}, "7"},
		{"byte order mark", arguments{"code": "\ufeff8"}, "8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := c.send(t, test.args)
			if r.isError || r.text != test.want {
				t.Errorf("gave %.2000q, error %v, want %q", r.text, r.isError, test.want)
			}
		})
	}
}

// TestRawBytes sends what a JSON library would not.
func TestRawBytes(t *testing.T) {
	t.Parallel()
	s := setup{}
	cmd := s.command(t, "run")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bridges.add(cmd.Process.Pid)
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	ask := func(line string) string {
		if _, err := io.WriteString(stdin, line+"\n"); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatalf("no answer to %q: %v", line, lines.Err())
		}
		return lines.Text()
	}
	contains(t, ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`), `"serverInfo"`)
	if _, err := io.WriteString(stdin, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	call := func(arguments string) string {
		return ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python","arguments":` + arguments + `}}`)
	}
	contains(t, call(`{"code":"kept = ['kept']; 1"}`), `"text":"1"`)
	for _, bad := range []struct{ arguments, told string }{
		{`{"code":"kept.append('\ud800')"}`, "lone surrogate"},
		{`{"code":"kept.append('\udc22\ud83d')"}`, "lone surrogate"},
		{"{\"code\":\"kept.append('\xff')\"}", "UTF-8"},
		{`{"code":"kept.append('\u0000')"}`, "NUL"},
		{`[]`, "object"},
		{`"kept.append(1)"`, "object"},
	} {
		answer := call(bad.arguments)
		contains(t, answer, bad.told, `"isError":true`)
		contains(t, call(`{"code":"kept"}`), `"text":"['kept']"`)
	}
	contains(t, ask(`{"jsonrpc":"2.0","id":3,"method":"no/such"}`), `"error"`)
	contains(t, ask(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"no_such","arguments":{}}}`), `"error"`)
	contains(t, call(`{"code":"kept"}`), `"text":"['kept']"`)
}
