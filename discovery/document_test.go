package discovery_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func document(t *testing.T, tool discovery.Tool) discovery.ToolDoc {
	t.Helper()
	docs := discovery.Document(discovery.Server{Name: "srv"}, []discovery.Tool{tool})
	if len(docs) != 1 {
		t.Fatalf("%d documents", len(docs))
	}
	return docs[0]
}

func TestSignatures(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{``, `srv.t()`},
		{`{}`, `srv.t()`},
		{`{"type":"object"}`, `srv.t()`},
		{`{"properties":{},"required":["x"]}`, `srv.t(x)`},
		{`{"properties":{"body":{"type":"string"},"title":{"type":"string"}},"required":["title"]}`, `srv.t(title: str, body: str = None)`},
		{`{"properties":{"z":{"type":"integer"},"a":{"type":"number"},"m":{"type":"boolean"}}}`, `srv.t(z: int = None, a: float = None, m: bool = None)`},
		{`{"properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"array"}}}`, `srv.t(a: list[str] = None, b: list = None)`},
		{`{"properties":{"a":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}}`, `srv.t(a: list[list[int]] = None)`},
		{`{"properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`, `srv.t(a: tuple[str] = None)`},
		{`{"properties":{"o":{"type":"object","properties":{"x":{}}},"p":{"properties":{"x":{}}}}}`, `srv.t(o: {x?: Any} = None, p: {x?: Any} = None)`},
		{`{"properties":{"a":{"type":["string","null"]},"b":{"type":["null","integer","string"]}}}`, `srv.t(a: str | None = None, b: int | str | None = None)`},
		{`{"properties":{"a":{"enum":["x","y"]},"b":{"enum":[1,2,null]},"c":{"const":"k"}}}`, `srv.t(a: Literal['x', 'y'] = None, b: Literal[1, 2] | None = None, c: Literal['k'] = None)`},
		{`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}}}`, `srv.t(a: str | None = None)`},
		{`{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}}}`, `srv.t(a: str | list[str] = None)`},
		{`{"properties":{"a":{"anyOf":[{"type":"string"},{}]}}}`, `srv.t(a = None)`},
		{`{"properties":{"a":{"allOf":[{"description":"d"},{"type":"integer"}]}}}`, `srv.t(a: int = None)`},
		{`{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/definitions/a~1b"}},"$defs":{"A":{"type":"string"}},"definitions":{"a/b":{"type":"integer"}}}`, `srv.t(a: str = None, b: int = None)`},
		{`{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/nowhere"},"c":{"$ref":"https://x.example/s"}},"$defs":{"A":{"$ref":"#/$defs/A"}}}`, `srv.t(a = None, b = None, c = None)`},
		{`{"properties":{"a":{"$ref":"#/$defs/N"}},"$defs":{"N":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/N"}},{"type":"string"}]}}}`, `srv.t(a: list | str = None)`},
		{`{"$ref":"#/$defs/P","$defs":{"P":{"properties":{"a":{"type":"string"}},"required":["a"]}}}`, `srv.t(a: str)`},
		{`{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{}}}]}`, `srv.t(a: str, b = None)`},
		{`{"anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"]}]}`, `srv.t(a: str = None)`},
		{`{"properties":{"n":{"type":"integer","default":10},"b":{"type":"boolean","default":false},"s":{"type":"string","default":"it's"}}}`, `srv.t(n: int = 10, b: bool = False, s: str = "it's")`},
		{`{"properties":{"l":{"default":[1,"a",null]},"d":{"default":{"k":true}},"e":{"default":""}}}`, `srv.t(l = [1, 'a', None], d = {'k': True}, e = '')`},
		{`{"properties":{"s":{"type":"string","default":"` + strings.Repeat("x", 100) + `"}}}`, `srv.t(s: str = ...)`},
		{`{"properties":{"s":{"default":"a\n\\\u001b\u202e\"'"}}}`, `srv.t(s = 'a\n\\\x1b\u202e"\'')`},
		{`{"properties":{"a":{"enum":["` + strings.Repeat("x", 70) + `","y"]}}}`, `srv.t(a: str = None)`},
		{`{"properties":{"from":{"type":"string"},"a-b":{},"a_b":{}}}`, `srv.t(from_: str = None, a_b_2 = None, a_b = None)`},
		{`{"properties":{"a":true,"b":7,"c":null,"d":{"type":3},"e":{"type":"weird"},"f":{"enum":[]}}}`, `srv.t(a = None, b = None, c = None, d = None, e = None, f = None)`},
		{`{"properties":{"a":{"type":"string","nullable":true},"b":{"$ref":"#/$defs/E","nullable":true},"c":{"nullable":true}},"$defs":{"E":{"enum":["x"]}}}`, `srv.t(a: str | None = None, b: Literal['x'] | None = None, c = None)`},
		{`{"properties":{"a":{"$ref":"#item"},"b":{"$ref":"https://x.example/s.json#/$defs/I"},"c":{"$ref":"#/$defs/sp%20ace"},"d":{"$ref":"#/properties/e/anyOf/1"},"e":{"anyOf":[{"type":"null"},{"type":"string"}]}},
			"$id":"https://x.example/s.json","$defs":{"I":{"$anchor":"item","type":"integer"},"sp ace":{"type":"boolean"}}}`, `srv.t(a: int = None, b: int = None, c: bool = None, d: str = None, e: str | None = None)`},
		{`{"properties":{"a":{"$ref":"#/definitions/A","type":"string"}},"definitions":{"A":{"type":"integer"}},"$schema":"http://json-schema.org/draft-07/schema#"}`, `srv.t(a: int = None)`},
		{`{"properties":{"a":{"$ref":"#/$defs/A","properties":{"y":{"type":"string"}},"required":["y","x"]}},"$defs":{"A":{"type":"object","properties":{"x":{"type":"integer"}}}}}`, `srv.t(a: {x: int, y: str} = None)`},
		{`{"properties":{"a":{"allOf":[{"$ref":"#/$defs/A"},{"properties":{"y":{"type":"string"}}}]}},"$defs":{"A":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}}`, `srv.t(a: {x: int, y?: str} = None)`},
		{`{"properties":{"a":{"type":"object","oneOf":[{"required":["x"]},{"required":["y"]}],"properties":{"x":{"type":"integer"},"y":{"type":"string"}}}}}`, `srv.t(a: {x?: int, y?: str} = None)`},
		{`{"properties":{"a":{"oneOf":[{"const":"x","title":"X"},{"const":"y"},{"type":"null"}]},"b":{"type":"string","anyOf":[{"enum":["k"]},{"pattern":"^z"}]}}}`, `srv.t(a: Literal['x', 'y'] | None = None, b: str = None)`},
		{`{"properties":{"a":{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}}},"b":{"type":"object","properties":{"x":{"type":"null"}},"additionalProperties":true},"c":{"type":"object","patternProperties":{"^x":{"type":"string"}}}}}`, `srv.t(a: dict[str, list[int]] = None, b: {x?: None, ...} = None, c: dict = None)`},
		{`{"properties":{"a":{"prefixItems":[{"type":"string"},{"type":"integer"}],"items":false},"b":{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":{"type":"null"}}}}`, `srv.t(a: tuple[str, int] = None, b: list[str | int | None] = None)`},
		{`{"properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true},"b":{"type":["string"]},"c":{"type":[]},"d":{"not":{"type":"string"}},"e":{"type":["array","null"],"items":{"type":"string"}}}}`, `srv.t(a: float = None, b: str = None, c = None, d = None, e: list[str] | None = None)`},
		{`{"properties":{"kind":{"type":"string"}},"if":{"properties":{"kind":{"const":"x"}}},"then":{"properties":{"x":{"type":"integer"}},"required":["x"]},"else":{"properties":{"y":{}}},"dependentSchemas":{"kind":{"properties":{"z":{}}}}}`, `srv.t(kind: str = None, x: int = None, y = None, z = None)`},
		{`{"properties":{"node":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"v":{"type":"string"},"next":{"$ref":"#/$defs/N"},"all":{"type":"array","items":{"$ref":"#/$defs/N"}}}}}}`, `srv.t(node: {v?: str, next?: dict, all?: list[dict]} = None)`},
		{`{"properties":{"a":{"type":"object","properties":{"b":{"type":"object","properties":{"class":{"type":"object","properties":{"a-b":{"type":"object","properties":{"e":{"type":"object","properties":{"f":{}}}}}}}}}}}}}`, `srv.t(a: {b?: {'class'?: {'a-b'?: {e?: dict}}}} = None)`},
		{`{"properties":{"a":{"enum":["` + strings.Repeat("x", 70) + `","` + strings.Repeat("y", 70) + `",null,3]},"b":{"enum":[{"k":1},[2]]}}}`, `srv.t(a: str | int | None = None, b: dict | list = None)`},
		{`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"boolean"},{"type":"null"},{"type":"array"},{"type":"object"}]}}}`, `srv.t(a = None)`},
		{`{"properties":[1],"required":"a"}`, `srv.t()`},
		{`[]`, `srv.t(...)`},
		{`{"properties":`, `srv.t(...)`},
	} {
		if got := document(t, discovery.Tool{Name: "t", InputSchema: json.RawMessage(tt.schema)}).Signature; got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.schema, got, tt.want)
		}
	}
}

func TestReturns(t *testing.T) {
	for schema, want := range map[string]string{
		``:                  "srv.t()",
		`{"type":"object"}`: "srv.t() -> dict",
		`{"type":"array","items":{"type":"object"}}`: "srv.t() -> list[dict]",
		`{"type":"string"}`:                          "srv.t() -> str",
		`{}`:                                         "srv.t()",
		`nonsense`:                                   "srv.t()",
	} {
		if got := document(t, discovery.Tool{Name: "t", OutputSchema: json.RawMessage(schema)}).Signature; got != want {
			t.Errorf("%s: got %s, want %s", schema, got, want)
		}
	}
}

func TestDocumentFields(t *testing.T) {
	docs := discovery.Document(discovery.Server{Name: "my server"}, []discovery.Tool{
		{
			Name: "create-issue", Title: "Create\n\x1b[1missue", Description: "Line one.\r\n\tLine\u200b two.\x00\x1b]0;title\a",
			InputSchema: json.RawMessage(`{"properties":{"state":{"type":"string","enum":["open","shut"],"description":"the\u202e state"},
				"who":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]},"description":"People."}},
				"required":["who"]}`),
			Annotations: json.RawMessage(`{"readOnlyHint":true,"title":"x","evil":"y","openWorldHint":"no"}`),
		},
		{Name: "create_issue", Annotations: json.RawMessage(`{"title":"From annotations"}`)},
		{Name: "import"},
	})
	got, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"create-issue","ident":"create_issue_2","title":"Create issue","description":"Line one.\n Line two.",` +
		`"signature":"my_server.create_issue_2(who: list[{name: str, age?: int}], state: Literal['open', 'shut'] = None)",` +
		`"params":[{"name":"who","ident":"who","type":"list[{name: str, age?: int}]","required":true,"description":"People."},` +
		`{"name":"state","ident":"state","type":"Literal['open', 'shut']","required":false,"description":"the state","enum":["'open'","'shut'"]}],"annotations":{"readOnlyHint":true}},` +
		`{"name":"create_issue","ident":"create_issue","title":"From annotations","signature":"my_server.create_issue()","params":[],"open":true},` +
		`{"name":"import","ident":"import_","signature":"my_server.import_()","params":[],"open":true}]`
	if text := strings.NewReplacer(`\u003e`, ">", `\u003c`, "<").Replace(string(got)); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// hostileSchemas are large, deep and circular in ways that cost most.
func hostileSchemas() map[string]string {
	var wide, refs, doubling strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&wide, `"p%d":{"type":"string"},`, i)
		fmt.Fprintf(&refs, `{"$ref":"#/$defs/A"},`)
	}
	for i := range 60 {
		fmt.Fprintf(&doubling, `"D%d":{"anyOf":[{"$ref":"#/$defs/D%d"},{"$ref":"#/$defs/D%d"}]},`, i, i+1, i+1)
	}
	return map[string]string{
		"wide":      `{"properties":{` + wide.String() + `"last":{}}}`,
		"deep":      `{"properties":{"a":` + strings.Repeat(`{"type":"array","items":`, 5000) + `{}` + strings.Repeat(`}`, 5000) + `}}`,
		"too deep":  strings.Repeat(`{"items":`, 20_000),
		"refs":      `{"properties":{"a":{"anyOf":[` + refs.String() + `{}]}},"$defs":{"A":{"anyOf":[` + refs.String() + `{}]}}}`,
		"doubling":  `{"properties":{"a":{"$ref":"#/$defs/D0"}},"$defs":{` + doubling.String() + `"D60":{"type":"string"}}}`,
		"circle":    `{"$ref":"#","properties":{"a":{"$ref":"#"}}}`,
		"allOf":     `{"allOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}`,
		"long name": `{"properties":{"` + strings.Repeat("n", 100_000) + `":{}}}`,
		"long ref":  `{"properties":{"a":{"$ref":"#` + strings.Repeat("/a", 100_000) + `"}}}`,
		"enum":      `{"properties":{"a":{"enum":[` + strings.Repeat(`"v",`, 30_000) + `1]}}}`,
		"default":   `{"properties":{"a":{"default":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}}`,
		"number":    `{"properties":{"a":{"default":` + strings.Repeat("9", 100_000) + `}}}`,
		"huge":      `{"properties":{"a":{"description":"` + strings.Repeat("x", 2<<20) + `"}}}`,
		"far refs":  farReferences(),
		"anchors":   `{"properties":{"a":{"$ref":"#x"}},"$defs":[` + strings.Repeat(`{"$anchor":"x","$ref":"#x"},`, 10_000) + `{}]}`,
		"tuples":    `{"properties":{"a":` + strings.Repeat(`{"prefixItems":[{},`, 2000) + `{}` + strings.Repeat(`]}`, 2000) + `}}`,
		"objects":   `{"properties":{"a":` + strings.Repeat(`{"additionalProperties":true,"properties":{"x":{"type":"string"},"a":`, 2000) + `{}` + strings.Repeat(`}}`, 2000) + `}}`,
		"long keys": `{"properties":{"a":{"properties":{"` + strings.Repeat("k'", 120) + `":{"enum":["` + strings.Repeat("'", 79) + `"]}}}}}`,
		"values":    `{"x":[` + strings.Repeat("1,", 400_000) + `1]}`,
	}
}

// farReferences has many references that lead nowhere in an object with many members.
func farReferences() string {
	var members, refs strings.Builder
	for i := range 15_000 {
		fmt.Fprintf(&members, `"k%d":0,`, i)
	}
	for i := range 5000 {
		fmt.Fprintf(&refs, `{"$ref":"#/$defs/q%d"},`, i)
	}
	return `{"properties":{"a":{"anyOf":[{}]},"b":{"allOf":[` + refs.String() + `{}]},"c":{"allOf":[` + refs.String() + `{}]}},"$defs":{` + members.String() + `"q":{}}}`
}

func TestDocumentBoundsHostileSchemas(t *testing.T) {
	for name, schema := range hostileSchemas() {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			raw := json.RawMessage(schema)
			checkDoc(t, document(t, discovery.Tool{Name: "t", InputSchema: raw, OutputSchema: raw, Annotations: raw}))
			t.Log(len(schema), "bytes:", time.Since(start))
		})
	}
}

// checkDoc fails if anything in a document is unbounded or not fit to show.
func checkDoc(t *testing.T, d discovery.ToolDoc) {
	t.Helper()
	limits := map[string]int{d.Signature: 1400, d.Title: 200, d.Description: 4000, d.Returns: 240, d.Ident: 120}
	if len(d.Params) > 128 {
		t.Errorf("%d parameters", len(d.Params))
	}
	seen := make(map[string]bool)
	for _, p := range d.Params {
		limits[p.Type], limits[p.Default], limits[p.Description], limits[p.Ident] = 160, 60, 900, 120
		if seen[p.Ident] || p.Ident == "" || strings.Trim(p.Ident, "0123456789") == "" || strings.ContainsAny(p.Ident, " -.\n'\"") {
			t.Errorf("identifier %q", p.Ident)
		}
		seen[p.Ident] = true
		if len(p.Enum) > 20 {
			t.Errorf("%d enum values", len(p.Enum))
		}
	}
	for text, limit := range limits {
		if n := utf8.RuneCountInString(text); n > limit {
			t.Errorf("%d characters, limit %d: %.60q", n, limit, text)
		}
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\u009b\u202e\u200b\u2066") {
			t.Errorf("not fit to show: %q", text)
		}
	}
	if len(d.Annotations) > 0 && !json.Valid(d.Annotations) {
		t.Errorf("annotations %q", d.Annotations)
	}
}

func TestDescriptionsAreClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[31mred\x1b[0m b":                   "ared b",
		"a\u009b31mb":                             "ab",
		"a\x1b]8;;http://x\x1b\\link\x1b]8;;\ab":  "alinkb",
		"a\x1bcb":                                 "ab",
		"a\x1b":                                   "a",
		"zero\u200bwidth\u2060\ufeff":             "zerowidth",
		"bidi\u202eabc\u202c\u2066x\u2069":        "bidiabcx",
		"tags\U000e0041\U000e007f":                "tags",
		"vs\ufe0f\U000e0100":                      "vs",
		"fill\u3164\u115f\u2800er":                "filler",
		"soft\u00adhyphen":                        "softhyphen",
		"private\ue000\U000f0000":                 "private",
		"bad\xff\xfeutf8":                         "badutf8",
		"keep\nlines\tand é 日本 😀":                 "keep\nlines and é 日本 😀",
		"nbsp\u00a0line\u2028sep":                 "nbsp line\nsep",
		"  trimmed\r\n ":                          "trimmed",
		strings.Repeat("é", 5000):                 strings.Repeat("é", 4000),
		strings.Repeat("\x1b[1m", 1<<20) + "late": "",
	} {
		if got := document(t, discovery.Tool{Name: "t", Description: in}).Description; got != want {
			t.Errorf("%.40q: got %.40q, want %.40q", in, got, want)
		}
	}
}

func TestDocumentKeepsOrderAndNames(t *testing.T) {
	tools := []discovery.Tool{{Name: "b"}, {Name: ""}, {Name: "a\x1b[2J"}, {Name: strings.Repeat("x", 10_000)}, {Name: "b"}}
	var got []string
	for i, d := range discovery.Document(discovery.Server{Name: "s", Ident: "given"}, tools) {
		if d.Name != tools[i].Name {
			t.Errorf("name %q, want %q", d.Name, tools[i].Name)
		}
		checkDoc(t, d)
		got = append(got, d.Signature)
	}
	want := []string{"given.b()", "given._()", "given.a__2J()", "given." + strings.Repeat("x", 100) + "()", "given.b_2()"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A tool whose schema leaves its arguments open can be given some; one that
// names them is held to the names, so that a misspelt one is found.
func TestDocumentOpen(t *testing.T) {
	for schema, want := range map[string]bool{
		``:                  true,
		`[]`:                true,
		`{"type":"object"}`: true,
		`{"properties":{}}`: true,
		`{"properties":{},"additionalProperties":false}`:                                         false,
		`{"properties":{"a":{}}}`:                                                                false,
		`{"properties":{"a":{}},"additionalProperties":false}`:                                   false,
		`{"properties":{"a":{}},"additionalProperties":true}`:                                    true,
		`{"properties":{"a":{}},"additionalProperties":{"type":"null"}}`:                         true,
		`{"properties":{"a":{}},"patternProperties":{"^x-":{}}}`:                                 true,
		`{"properties":{"a":{}},"unevaluatedProperties":true}`:                                   true,
		`{"properties":{},"unevaluatedProperties":false}`:                                        false,
		`{"$ref":"#/$defs/P","$defs":{"P":{"properties":{"a":{}},"additionalProperties":true}}}`: true,
	} {
		if got := document(t, discovery.Tool{Name: "t", InputSchema: json.RawMessage(schema)}).Open; got != want {
			t.Errorf("%s: open is %v, want %v", schema, got, want)
		}
	}
}
