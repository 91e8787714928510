package discovery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// fuzzParser: any bytes give definitions or one error, and errors are fit to
// show. It is inside the package because a file for each input would make it a
// hundred times slower.
func fuzzParser(f *testing.F, ext string, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	files, err := filepath.Glob(filepath.Join("testdata", "clients", "*"+ext+"*"))
	if err != nil || len(files) == 0 {
		f.Fatal("no examples", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		definitions, err := parseConfig("/d/f"+ext, data)
		if err != nil {
			checkText(t, Problem{File: "f", Err: err}.String())
			return
		}
		expand := newExpander(func(name string) (string, bool) { return "value", name != "MISSING" })
		expand.input = func(id string, _ Input) (string, bool) { return "typed", len(id)%2 == 0 }
		expand.read = func(string) ([]byte, error) { return data, nil }
		for _, d := range definitions {
			s := d.server
			err := d.err
			inputsOf(s, d.inputs)
			if err == nil {
				err = expand.of(d).server(&s)
			}
			if err != nil {
				checkText(t, Problem{File: "f", Server: s.Name, Err: err}.String())
				continue
			}
			if !s.Disabled && strings.TrimSpace(s.Command) == "" && s.URL == "" {
				t.Errorf("nothing to start: %q", data)
			}
			newSelfMatcher("").matches(s)
			s.Fingerprint()
		}
		ServerIdents([]string{string(data), string(data)})
	})
}

func FuzzParseConfig(f *testing.F) {
	fuzzParser(f, ".json", ``, `[]`, `{}`, `{"mcpServers":{}}`, "\ufeff{}", `{"mcpServers":{"a":{"command":"x","args":["${A:-b}","$${"],"env":{"K":"~/v"},"cwd":".","disabled":false}}}`,
		`{"mcpServers":{"a":{"url":"x"},"a":3,"":{"comand":""}},"description":"d"}`, `{"mcpServers":{"\u001b[2J":{"command":"\u0000"}}}`, `{"a":/*,*/[1,],}//`)
}

func FuzzParseTOML(f *testing.F) {
	fuzzParser(f, ".toml", `a=1`, "[mcp_servers.a]\ncommand='''x'''", `mcp_servers.a={command="\u00e9",args=[1979-05-27,inf,0x1F]}`, "[[mcp_servers]]\n[[mcp_servers]]")
}

func FuzzParseYAML(f *testing.F) {
	fuzzParser(f, ".yaml", `a: 1`, "a: &a [*a]", "a: &a {b: c}\nextensions: {x: {<<: *a, cmd: !!str 3}}", "? [x]\n: |\n  y\n", "--- !!binary aGk=\n...")
}

func FuzzEnvFile(f *testing.F) {
	f.Add([]byte("A=1\nexport B='x y' # c\n#\nC=\"a\\nb\""))
	f.Fuzz(func(t *testing.T, data []byte) {
		vars, err := parseEnvFile(data)
		if err != nil {
			checkText(t, err.Error())
		}
		for name, value := range vars {
			if !variableName(name) || strings.ContainsRune(value, 0) {
				t.Errorf("%q=%q", name, value)
			}
		}
	})
}

// FuzzDocument: any schema gives a bounded document that can be indexed.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"properties":{"a":{"$ref":"#"}},"required":["a","b"]}`, `{"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"},{"type":["string","null"]}]}}}`,
		`{"properties":{"a b":{"enum":["x",1,null,{"k":[]}],"default":{"a":[1.5e3,true]}},"class":{"items":{"const":"\u202e"}}}}`,
	} {
		f.Add("create_issue", "Does \x1b[1mthings\x1b[0m. Really.", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, name, description string, schema []byte) {
		server := Server{Name: name}
		raw := json.RawMessage(schema)
		docs := Document(server, []Tool{{Name: name, Description: description, InputSchema: raw, OutputSchema: raw, Annotations: raw}, {Name: name}})
		if docs[0].Ident == docs[1].Ident {
			t.Errorf("both are %q", docs[0].Ident)
		}
		d := docs[0]
		checkText(t, d.Signature)
		for _, p := range d.Params {
			checkText(t, p.Type+p.Default+strings.Join(p.Enum, ""))
			checkText(t, strings.ReplaceAll(p.Description, "\n", ""))
		}
		if len(d.Params) > maxParams || utf8.RuneCountInString(d.Signature) > 2*maxSignatureLength || utf8.RuneCountInString(d.Description) > maxToolDescription {
			t.Errorf("unbounded: %d parameters, signature of %d", len(d.Params), len(d.Signature))
		}
		full := Describe(Tool{Name: name, InputSchema: raw, OutputSchema: raw, Description: description}, d, nil, Full)
		if checkText(t, strings.ReplaceAll(full, "\n", "")); len(full) > 2*maxDocLength {
			t.Errorf("%d bytes of documentation", len(full))
		}
		if _, err := json.Marshal(docs); err != nil {
			t.Error(err)
		}
		r := NewIndex([]IndexedServer{{Server: server, Tools: docs, Listed: true}}).Search(description, 3)
		checkText(t, r.Note)
	})
}

func checkText(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.ContainsFunc(s, hidden) {
		t.Errorf("not fit to show: %q", s)
	}
}

// FuzzCheck: any schema and any arguments end soon, in the arguments or in a
// text that is fit to be shown.
func FuzzCheck(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"properties":{"a":{"$ref":"#"},"camelCase":{"anyOf":[{"const":1},{"type":["string","null"]}]}},"required":["a"],"additionalProperties":false}`, `{"a":{},"camel_case":null}`},
		{`{"if":{"minProperties":1},"then":{"properties":{"x":{"pattern":"^(a|b)*$","maxLength":3}}},"not":{"required":["y"]}}`, `{"x":"ab\u202e","y":[1e400,{"k":"v"}]}`},
		{`{"properties":{"l":{"items":[{"enum":["x"]}],"additionalItems":{"multipleOf":2},"uniqueItems":true}}}`, `{"l":["y",3,3]}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		tool := Tool{Name: "t", InputSchema: json.RawMessage(schema)}
		c, err := NewChecker(tool, Document(Server{Name: "s"}, []Tool{tool})[0])
		if err != nil {
			return
		}
		sent, err := c.Check(args)
		if err == nil {
			if !json.Valid(sent) {
				t.Errorf("%q became %q", args, sent)
			}
			return
		}
		checkText(t, err.Error())
		if len(err.Error()) > 4000 {
			t.Errorf("%d bytes of text", len(err.Error()))
		}
	})
}

// FuzzObserve: any result has a bounded shape, which is stored and read again.
func FuzzObserve(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"[{\"a\": 1}, {\"b\": [null, 1.5]}]"}]}`, `{"structuredContent":{"k":{"x@y":1}},"content":[{"type":"image"}]}`,
		`{"isError":false,"content":[{"type":"resource","resource":{"text":"{}","mimeType":"a/json"}},{"type":"x"}]}`,
	} {
		f.Add([]byte(seed), []byte(seed))
	}
	f.Fuzz(func(t *testing.T, one, other []byte) {
		a, b := Observe(one, ""), Observe(other, "")
		m := a.Merged(b)
		checkText(t, m.String())
		if !m.usable(0) || m.nodes() > maxShapeNodes || len(m.String()) > maxReturnLength {
			t.Errorf("not usable: %s", m)
		}
		if again := m.Merged(b); !again.Merged(b).Equal(again) {
			t.Errorf("%s does not settle", m)
		}
		data, err := json.Marshal(m)
		var back *Shape
		if err != nil || json.Unmarshal(data, &back) != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if again, err := json.Marshal(back); err != nil || string(again) != string(data) || back.String() != m.String() {
			t.Errorf("%v: %s, and again %s", err, data, again)
		}
	})
}
