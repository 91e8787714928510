package configedit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/configedit"
)

var bridge = configedit.Object{
	{"command", "/usr/bin/mcp-bridge"}, {"args", []string{"run"}}, {"env", configedit.Object{{"A B", "x: \"y\""}}},
}

func format(name string) configedit.Format {
	return configedit.FormatOf("x." + name[:4])
}

func TestRemove(t *testing.T) {
	for name, tt := range map[string]struct {
		in, out string
		path    string
		keys    string
	}{
		"json": {
			in:   "// top\r\n{\r\n\t\"a\": 1, // one\r\n\t\"s\": {\r\n\t\t// about x\r\n\t\t\"x\": {\"c\": [1, 2,],}, // x\r\n\t\t\"y\": 2 /* y */ // y\r\n\t}, // servers\r\n\t\"z\": [ ]\r\n}\r\n",
			out:  "// top\r\n{\r\n\t\"a\": 1, // one\r\n\t\"s\": {\r\n\t\t\"y\": 2 /* y */ // y\r\n\t}, // servers\r\n\t\"z\": [ ]\r\n}\r\n",
			path: "s", keys: "x",
		},
		"json last":      {in: "{\"s\": {\n  \"x\": 1, // x\n  \"y\": 2 // y\n}}", out: "{\"s\": {\n  \"x\": 1 // x\n}}", path: "s", keys: "y"},
		"json last kept": {in: "{\"s\": {\n  \"x\": 1,\n  \"y\": 2, // y\n}}", out: "{\"s\": {\n  \"x\": 1,\n}}", path: "s", keys: "y"},
		"json all":       {in: "{\"s\": {\n  \"x\": 1,\n  \"y\": 2\n  },\n  \"t\": 0}", out: "{\"s\": {\n  },\n  \"t\": 0}", path: "s", keys: "x y"},
		"json line":      {in: `{"s": {"x": 1, "y": 2, "z": 3}}`, out: `{"s": {"x": 1}}`, path: "s", keys: "y z"},
		"json first":     {in: `{"s": {"x": 1, "y": 2, "z": 3}}`, out: `{"s": { "z": 3}}`, path: "s", keys: "x y"},
		"json section":   {in: "{\n  // section\n\n  // x\n  \"x\": 1,\n  \"y\": 2\n}\n", out: "{\n  // section\n\n  \"y\": 2\n}\n", keys: "x"},
		"json twice":     {in: "{\"x\": 1, \"y\": 2, \"x\": 3}", out: "{ \"y\": 2}", keys: "x"},
		"json none":      {in: "{\"x\": 1}", out: "{\"x\": 1}", path: "s", keys: "x"},
		"json bom":       {in: "\ufeff{\"x\": 1.50, \"y\": 2}", out: "\ufeff{\"x\": 1.50}", keys: "y"},
		"toml": {
			in:   "# top\nmodel = \"o3\"\n\n[mcp_servers.x] # x\ncommand = 'a'\nargs = [\n  \"]\", # ]\n]\n[mcp_servers.x.env]\nK = \"\"\"\n[mcp_servers.y]\n\"\"\"\n\n# about y\n[mcp_servers.y]\ncommand = \"b\"\n\n[[profiles]]\na = 1\n",
			out:  "# top\nmodel = \"o3\"\n\n# about y\n[mcp_servers.y]\ncommand = \"b\"\n\n[[profiles]]\na = 1\n",
			path: "mcp_servers", keys: "x",
		},
		"toml last":   {in: "a = 1\n\n# b\n[s.\"b\"]\nc = 1\n", out: "a = 1\n", path: "s", keys: "b"},
		"toml dotted": {in: "[s]\nb.c = 1\nb.d = { x = 1 }\nk = 2\n", out: "[s]\nk = 2\n", path: "s", keys: "b"},
		"toml spread": {in: "[s.b]\nc = 1\n[other]\nx = 1\n[s.b.env]\nd = 2\n[s.k]\nc = 1\n", out: "[other]\nx = 1\n[s.k]\nc = 1\n", path: "s", keys: "b"},
		"yaml": {
			in:   "# top\nmodel: x\nextensions:\n  # about a\n  a:\n    cmd: npx # c\n    args:\n    - x\n    text: |\n      # no comment\n\n      more\n  # about b\n  b:\n    cmd: y\n\n# end\nlast: 1\n",
			out:  "# top\nmodel: x\nextensions:\n  # about b\n  b:\n    cmd: y\n\n# end\nlast: 1\n",
			path: "extensions", keys: "a",
		},
		"yaml last": {in: "s:\n  a: 1\n  b:\n    c: 1\n\nlast: 1\n", out: "s:\n  a: 1\n\nlast: 1\n", path: "s", keys: "b"},
		"yaml all":  {in: "s:\n  a: 1\n  b:\n    c: 1\nlast: 1\n", out: "s: {}\nlast: 1\n", path: "s", keys: "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := configedit.Remove(format(name), []byte(tt.in), strings.Fields(tt.path), strings.Fields(tt.keys)...)
			if err != nil || string(got) != tt.out {
				t.Errorf("%v\n%q, want\n%q", err, got, tt.out)
			}
		})
	}
}

func TestPut(t *testing.T) {
	for name, tt := range map[string]struct {
		in, out string
		path    string
		value   any
	}{
		"json": {
			in:   "{\n    // c\n    \"s\": {\n        \"y\": 2 // y\n    }\n}\n",
			out:  "{\n    // c\n    \"s\": {\n        \"y\": 2, // y\n        \"b\": {\n            \"command\": \"/usr/bin/mcp-bridge\",\n            \"args\": [\"run\"],\n            \"env\": {\n                \"A B\": \"x: \\\"y\\\"\"\n            }\n        }\n    }\n}\n",
			path: "s b", value: bridge,
		},
		"json comma":   {in: "{\n\t\"y\": 2, // y\n}", out: "{\n\t\"y\": 2, // y\n\t\"b\": true,\n}", path: "b", value: true},
		"json empty":   {in: "{\n  \"s\": {\n  }\n}", out: "{\n  \"s\": {\n    \"b\": 1\n  }\n}", path: "s b", value: 1},
		"json missing": {in: "{}", out: "{\n  \"s\": {\n    \"b\": \"x\"\n  }\n}", path: "s b", value: "x"},
		"json nothing": {in: " \n", out: "{\n  \"b\": \"x\"\n}\n", path: "b", value: "x"},
		"json line":    {in: `{"s": {"x": 1}}`, out: `{"s": {"x": 1, "b": {"c": ["d"]}}}`, path: "s b", value: configedit.Object{{"c", []string{"d"}}}},
		"json replace": {in: `{"s": {"x": /* a */ 1 /* b */}}`, out: `{"s": {"x": /* a */ true /* b */}}`, path: "s x", value: true},
		"json null":    {in: "{\n  \"s\": null\n}", out: "{\n  \"s\": {\n    \"b\": true\n  }\n}", path: "s b", value: true},
		"toml": {
			in:   "a = 1",
			out:  "a = 1\n\n[s.b]\ncommand = \"/usr/bin/mcp-bridge\"\nargs = [\"run\"]\n\n[s.b.env]\n\"A B\" = \"x: \\\"y\\\"\"\n",
			path: "s b", value: bridge,
		},
		"toml field":   {in: "[s.b]\nc = 1 # c\n# end\n\n[t]\n", out: "[s.b]\nc = 1 # c\ne = false\n# end\n\n[t]\n", path: "s b e", value: false},
		"toml last":    {in: "[s.b]\nc = 1", out: "[s.b]\nc = 1\ne = false\n", path: "s b e", value: false},
		"toml replace": {in: "[s.b]\nenabled = true # on\n", out: "[s.b]\nenabled = false # on\n", path: "s b enabled", value: false},
		"toml empty":   {in: "", out: "[s.b]\nc = \"\\u007f\"\n", path: "s b", value: configedit.Object{{"c", "\x7f"}}},
		"yaml": {
			in:   "x: 1\nextensions:\n  a:\n    cmd: npx\n\n# end\nlast: 1\n",
			out:  "x: 1\nextensions:\n  a:\n    cmd: npx\n  b:\n    command: /usr/bin/mcp-bridge\n    args:\n      - run\n    env:\n      \"A B\": \"x: \\\"y\\\"\"\n\n# end\nlast: 1\n",
			path: "extensions b", value: bridge,
		},
		"yaml none":    {in: "x: 1\n", out: "x: 1\ns:\n  b:\n    c: \"true\"\n", path: "s b", value: configedit.Object{{"c", "true"}}},
		"yaml empty":   {in: "", out: "b: 1\n", path: "b", value: 1},
		"yaml braces":  {in: "s: {}\nx: 1\n", out: "s:\n  b: 1\nx: 1\n", path: "s b", value: 1},
		"yaml null":    {in: "s:\nx: 1\n", out: "s:\n  b: 1\nx: 1\n", path: "s b", value: 1},
		"yaml replace": {in: "s:\n  enabled: true # on\n", out: "s:\n  enabled: false # on\n", path: "s enabled", value: false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := configedit.Put(format(name), []byte(tt.in), tt.value, strings.Fields(tt.path)...)
			if err != nil || string(got) != tt.out {
				t.Errorf("%v\n%q, want\n%q", err, got, tt.out)
			}
		})
	}
}

// What cannot be edited is not touched, and the line is named.
func TestUnsafe(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		path string
		key  string
		line int
	}{
		"json twice":  {"{\n\"s\": {\"a\": 1},\n\"s\": {\"a\": 2}}", "s", "a", 3},
		"toml inline": {"x = 1\ns = { a = { b = 1 }, c = 2 }\n", "s", "a", 2},
		"yaml flow":   {"x: 1\ns: {a: 1, b: 2}\n", "s", "a", 2},
		"yaml alias":  {"x: &x\n  a: 1\ns:\n  a: &y\n    b: 1\n  c: *y\n", "s", "a", 3},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := configedit.Remove(format(name), []byte(tt.in), []string{tt.path}, tt.key)
			unsafe, ok := errors.AsType[*configedit.UnsafeError](err)
			if !ok || unsafe.Line != tt.line {
				t.Errorf("%q, %v; want an error at line %d", got, err, tt.line)
			}
		})
	}
}

func FuzzEdit(f *testing.F) {
	f.Add(0, "{\n  \"s\": {\"a\": 1, // x\n \"b\": 2,}}")
	f.Add(1, "[s.a]\nx = 1\n[s.b]\ny = '''x'''\n")
	f.Add(2, "s:\n  a:\n    x: 1\n  b: 2\n")
	f.Fuzz(func(t *testing.T, kind int, text string) {
		format := configedit.Format((kind%3 + 3) % 3)
		if strings.Contains(text, "<<") {
			return // merged keys of YAML
		}
		out, err := configedit.Remove(format, []byte(text), []string{"s"}, "a")
		if err != nil {
			return
		}
		if configedit.Lookup(format, out, "s", "a") != nil {
			t.Errorf("%q still has it", out)
		}
		back, err := configedit.Put(format, out, configedit.Object{{"c", "d"}}, "s", "a")
		if err == nil && configedit.Lookup(format, back, "s", "a", "c") != any("d") {
			t.Errorf("%q does not have it", back)
		}
	})
}
