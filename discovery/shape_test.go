package discovery_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// textResult is a CallToolResult with one text.
func textResult(text string) json.RawMessage {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(quoted) + `}]}`)
}

func TestObserve(t *testing.T) {
	image := `{"type":"image","data":"aGk=","mimeType":"image/png"}`
	for result, want := range map[string]string{
		`{"content":[]}`: "None",
		`{}`:             "None",
		`{"content":[],"structuredContent":{"n":1,"ok":true,"s":"x","f":1.5,"z":null,"l":[]}}`: "{n: int, ok: bool, s: str, f: float, z: None, l: list}",
		`{"structuredContent":{"a":1},"content":[{"type":"text","text":"{}"}]}`:                "{a: int}",
		`{"structuredContent":null,"content":[{"type":"text","text":"x"}]}`:                    "str",
		`{"structuredContent":{"a":1},"content":[` + image + `]}`:                              "Image",
		`{"content":[` + image + `,{"type":"text","text":"x"}]}`:                               "list[Image | str]",
		`{"content":[{"type":"audio","data":""}]}`:                                             "Audio",
		`{"content":[{"type":"text","text":"plain"}]}`:                                         "str",
		`{"content":[{"type":"text","text":"007"}]}`:                                           "str",
		`{"content":[{"text":" \n[{\"number\": 1, \"labels\": [{\"name\": \"x\"}]}, {\"number\": 2, \"labels\": [], \"body\": null}]","type":"text"}]}`: "list[{number: int, labels: list[{name: str}], body?: None}]",
		`{"content":[{"type":"text","text":"{\"a\": [1, 2.5], \"b\": NaN}"}]}`:                                                                          "{a: list[float], b: float}",
		`{"content":[{"type":"text","text":"{not json}"}]}`:                                                                                             "str",
		`{"content":[{"type":"text","text":"[1] and more"}]}`:                                                                                           "str",
		`{"content":[{"type":"text","text":"{\"a\":1"}]}`:                                                                                               "str",
		`{"content":[{"type":"resource","resource":{"uri":"a://b","text":"{\"a\":1}","mimeType":"application/json; charset=utf-8"}}]}`:                  "{a: int}",
		`{"content":[{"type":"resource","resource":{"uri":"a://b","text":"{\"a\":1}"}}]}`:                                                               "str",
		`{"content":[{"type":"resource","resource":{"uri":"a://b","blob":"aGk="}}]}`:                                                                    "bytes",
		`{"content":[{"type":"resource","resource":{"uri":"a://b","blob":"aGk=","mimeType":"image/png"}}]}`:                                             "Image",
		`{"content":[{"type":"resource_link","uri":"a://b","name":"n"}]}`:                                                                               "{type: str, uri: str, name: str}",
		`{"content":[{"type":"text","text":"no"}],"isError":true}`:                                                                                      "nil",
		`{"content":[{"type":"text","text":"no"}],"isError":false}`:                                                                                     "str",
		`{"content":[`: "nil",
		`nonsense`:     "nil",
		`[]`:           "nil",
		``:             "nil",
		`{"structuredContent":{"2024-01-01":1,"2024-01-02":2.5}}`:                                                                  "dict[str, float]",
		`{"structuredContent":{"a@b.example":{"x":1},"c@d.example":{"x":null}}}`:                                                   "dict[str, {x: int | None}]",
		`{"structuredContent":{"total":1,"7f3a9c1e22":{"x":1}, "name":"n"}}`:                                                       "{total: int, name: str, ...}",
		`{"structuredContent":{"alice":{"age":1,"id":2},"bob":{"age":1,"id":2},"carol":{"age":1,"id":2},"dave":{"age":1,"id":2}}}`: "dict[str, {age: int, id: int}]",
		`{"structuredContent":{"start":{"line":1,"col":2},"end":{"line":1,"col":2}}}`:                                              "{start: {line: int, col: int}, end: {line: int, col: int}}",
		`{"structuredContent":{"content-type":"x","class":"y"}}`:                                                                   "{'content-type': str, 'class': str}",
	} {
		got := "nil"
		if shape := discovery.Observe(json.RawMessage(result), ""); shape != nil {
			got = shape.String()
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", result, got, want)
		}
	}
}

func TestMergedShapes(t *testing.T) {
	for _, tt := range []struct {
		results []string
		want    string
	}{
		{[]string{`{"a":1}`, `{"a":2.5,"b":"x"}`, `{"a":null}`}, "{a: float | None, b?: str}"},
		{[]string{`[]`, `[{"a":1}]`, `[{"a":"x"},{"b":[]}]`}, "list[{a?: int | str, b?: list}]"},
		{[]string{`{"a":1}`, `plain`, `[1]`}, "list[int] | {a: int} | str"},
		{[]string{`{"alice":{"n":1}}`, `{"bob":{"n":2}}`, `{"carol":{"n":2.5}}`}, "dict[str, {n: float}]"},
		{[]string{`{"2024-01-01":1}`, `{"today":2}`}, "dict[str, int]"},
		{[]string{`{"a":{"x":1}}`, `{"a":{"x":1,"y":{"z":true}}}`}, "{a: {x: int, y?: {z: bool}}}"},
		{[]string{`{"error":"x"}`, `{"items":[1]}`}, "{error?: str, items?: list[int]}"},
		{[]string{`{"alice":1,"bob":2,"carol":3}`, `{"alice":1,"dave":2}`}, "dict[str, int]"},
		{[]string{`{"id":"x","title":"x","body":"x"}`, `{"id":"x","title":"x","tag":"x"}`}, "{id: str, title: str, body?: str, tag?: str}"},
		{[]string{`{"id":"x","title":"x"}`, `{"id":"x"}`}, "{id: str, title?: str}"},
	} {
		var merged *discovery.Shape
		for _, result := range tt.results {
			merged = merged.Merged(discovery.Observe(textResult(result), ""))
		}
		if merged.String() != tt.want {
			t.Errorf("%v: got %s, want %s", tt.results, merged, tt.want)
		}
		if again := merged.Merged(discovery.Observe(textResult(tt.results[0]), "")); !again.Equal(merged) {
			t.Errorf("%v: %s became %s by what it knew", tt.results, merged, again)
		}
		data, err := json.Marshal(merged)
		var back *discovery.Shape
		if err != nil || json.Unmarshal(data, &back) != nil || !back.Equal(merged) {
			t.Errorf("%v: stored as %s, read as %s", tt.results, data, back)
		}
	}
}

// Keys that may be data are not stored: they can be ids, names, secrets.
func TestShapesHoldNoData(t *testing.T) {
	for _, key := range []string{
		"sk-proj-Ab3dE6gH9jK2mN5pQ8sT1vW4", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE", "user@example.com",
		"2024-05-01T10:00", "550e8400-e29b-41d4-a716-446655440000", "deadbeef01", "a b", "/etc/passwd", "1234", "x1y2z3w4", "naïve\u202e",
		"ghp_AbCd", "gho_x", "github_pat_abc", "xoxb-ab", "sk-abc", "AKIAX", "eyJab", "glpat-abcdef", "aB3dE6gH", "AbCdEf", "key-qXzWrT",
		"thisisasinglewordofmanyletters", "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPBdG", "AbCdEfGhIjKl", "tel4915112345678", "",
	} {
		quoted, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		shape := discovery.Observe(textResult(`{"id":"sEcReT","list":["sEcReT"],`+string(quoted)+`:"sEcReT"}`), "")
		data, err := json.Marshal(shape)
		if err != nil || shape.String() != "{id: str, list: list[str], ...}" {
			t.Errorf("%q: %s, %v", key, shape, err)
		}
		if strings.Contains(string(data), "sEcReT") || key != "" && strings.Contains(string(data), key) {
			t.Errorf("%q is stored: %s", key, data)
		}
	}
	for _, key := range []string{
		"id", "created_at", "pullRequestReviewUrl", "Content-Type", "customfield_10010", "md5", "sha256sum", "s3_bucket", "ipv4Address", "@type", "$ref", "_links",
		"x", "HTMLURL", "html_url", "line2", "größe", "名前", "utf8", "dot.name", "base64Encoded", "address1",
	} {
		shape := discovery.Observe(textResult(`{"`+key+`":1}`), "")
		if !strings.Contains(fmt.Sprint(shape), key) {
			t.Errorf("%q is taken for data: %s", key, shape)
		}
	}
}

func TestObserveIsBounded(t *testing.T) {
	fields := func(n int, value func(i int) string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"field_%s":%s`, strings.Repeat("ab", i%9)+invented(i), value(i))
		}
		return `{` + b.String()[1:] + `}`
	}
	mixed := func(i int) string { return []string{"1", `"x"`, "[]", "{}"}[i%4] }
	for name, result := range map[string]string{
		"text":     string(textResult("[" + strings.Repeat(`{"a":"`+strings.Repeat("x", 1000)+`"},`, 10_000) + `{"a":"x"}]`)),
		"numbers":  string(textResult("[" + strings.Repeat(`1,`, 5_000_000) + `1]`)),
		"deep":     `{"structuredContent":{"a":` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + `}}`,
		"image":    `{"content":[{"type":"image","data":"` + strings.Repeat("QUJD", 2_000_000) + `"}]}`,
		"quotes":   string(textResult("[" + strings.Repeat(`"\\\"",`, 800_000) + `1]`)),
		"blocks":   `{"content":[` + strings.Repeat(`{"type":"text","text":"x"},`, 300_000) + `{"type":"text","text":"x"}]}`,
		"keys":     `{"structuredContent":` + fields(20_000, func(int) string { return "1" }) + `}`,
		"mixed":    `{"structuredContent":` + fields(100, mixed) + `}`,
		"wide":     `{"structuredContent":` + fields(100, func(i int) string { return []string{"1", fields(70, mixed)}[i%2] }) + `}`,
		"unclosed": `{"content":[{"type":"text","text":"` + strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			shape := discovery.Observe(json.RawMessage(result), "")
			took := time.Since(begun)
			shape = shape.Merged(shape)
			data, err := json.Marshal(shape)
			if err != nil || len(data) > 64<<10 || len(shape.String()) > 240 {
				t.Errorf("%d bytes, %v", len(data), err)
			}
			t.Log(len(result), "bytes took", took, shape)
			if took > 5*time.Second {
				t.Error("too long")
			}
		})
	}
}

func BenchmarkObserve(b *testing.B) {
	small := textResult(`[{"number":1,"title":"x","labels":[{"name":"bug"}]},{"number":2,"title":"y","labels":[]}]`)
	for b.Loop() {
		discovery.Observe(small, "")
	}
}

// A declared return type counts, unless it says nothing.
func TestDeclaredReturnsWin(t *testing.T) {
	shape := discovery.Observe(textResult(`[{"a":1}]`), "")
	for schema, want := range map[string]string{
		``:                  "srv.t() -> list[{a: int}]",
		`{"type":"object"}`: "srv.t() -> list[{a: int}]",
		`{"type":"array","items":{"type":"object"}}`:                  "srv.t() -> list[{a: int}]",
		`{"type":"object","properties":{"b":{}}}`:                     "srv.t() -> {b?: Any}",
		`{"type":"array","items":{"type":"string"}}`:                  "srv.t() -> list[str]",
		`{"type":"object","additionalProperties":{"type":"integer"}}`: "srv.t() -> dict[str, int]",
	} {
		doc := document(t, discovery.Tool{Name: "t", OutputSchema: json.RawMessage(schema)})
		if doc.Learnable() {
			doc = doc.WithShape(shape)
			doc = doc.WithShape(shape)
		}
		if doc.Signature != want {
			t.Errorf("%s: got %s, want %s", schema, doc.Signature, want)
		}
	}
}

func TestCatalogOfShapes(t *testing.T) {
	dir := t.TempDir()
	c, err := discovery.OpenCatalog(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := discovery.Server{Name: "s", Command: "x"}
	tools := []discovery.Tool{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	learn := func(tool discovery.Tool, text string) discovery.Learned {
		return discovery.Learned{Definition: tool.Definition(), Shape: discovery.Observe(textResult(text), "")}
	}
	put := func(tools []discovery.Tool, learned map[string]discovery.Learned) {
		t.Helper()
		if err := c.Put(server, tools); err != nil {
			t.Fatal(err)
		}
		if err := c.PutShapes(server, tools, learned); err != nil {
			t.Fatal(err)
		}
	}
	want := func(shapes string) {
		t.Helper()
		got := make(map[string]string)
		for name, learned := range c.Shapes(server) {
			got[name] = learned.Shape.String()
		}
		if fmt.Sprint(got) != shapes {
			t.Errorf("got %v, want %s", got, shapes)
		}
	}
	want("map[]")
	put(tools, map[string]discovery.Learned{"a": learn(tools[0], "x"), "b": learn(tools[1], `{"n":1}`)})
	put(tools, map[string]discovery.Learned{"b": learn(tools[1], `{"m":"x","n":2}`), "c": learn(tools[0], "of another")})
	want("map[a:str b:{n: int, m?: str}]")
	put([]discovery.Tool{{Name: "a", Description: "changed"}, tools[1]}, nil)
	want("map[b:{n: int, m?: str}]")
	if got := c.Shapes(discovery.Server{Name: "s", Command: "other"}); len(got) > 0 {
		t.Errorf("another definition has %v", got)
	}
	// What somebody wrote there is not believed.
	files, err := filepath.Glob(filepath.Join(dir, "*.shapes.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, replaced := range []string{`"name":"n\u001b[2J"`, `"name":"n\""`, `"types":["\u202e"]`} {
		bad := strings.Replace(string(data), `"name":"n"`, replaced, 1)
		if err := os.WriteFile(files[0], []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c.Shapes(server)); strings.ContainsAny(got, "\x1b\u202e\"") {
			t.Errorf("%s: %q", replaced, got)
		}
	}
	if err := os.WriteFile(files[0], data[:len(data)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	want("map[]")
}

// Names that may be data are, where the values are of one scalar type.
func TestShapesOfScalars(t *testing.T) {
	for result, want := range map[string]string{
		`{"number":1,"id":2,"size":3}`:                                                    "{number: int, id: int, size: int}",
		`{"createdAt":"x","updatedAt":"x","userName":"x","htmlUrl":"x"}`:                  "{createdAt: str, updatedAt: str, userName: str, htmlUrl: str}",
		`{"ID":"x","Name":"x","URL":"x"}`:                                                 "{ID: str, Name: str, URL: str}",
		`{"md5":"x","size":1,"line2":"x"}`:                                                "{md5: str, size: int, line2: str}",
		`{"line1":"x","line2":"y"}`:                                                       "{line1: str, line2: str}",
		`{"hunter2":1,"swordfish":2,"letmein":3}`:                                         "dict[str, int]",
		`{"correct-horse-battery":"x","alice_smith":"x","bob":"x"}`:                       "dict[str, str]",
		`{"AAPL":1.5,"MSFT":2,"GOOG":3}`:                                                  "dict[str, float]",
		`{"alice":1,"bob":2,"ghp_AbCdEfGhIjKl":3}`:                                        "dict[str, int]",
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}`:                               "{a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int}",
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"alice_smith":1}`:               "dict[str, int]",
		`[{"total":1,"by":{"alice.smith":1,"bob.jones":2,"carol":3}}]`:                    "list[{total: int, by: dict[str, int]}]",
		`{"a":"x","b":"x","c":"x","d":"x","e":"x","f":"x","g":"x","h":"x","i":"x","n":1}`: "{a: str, b: str, c: str, d: str, e: str, f: str, g: str, h: str, i: str, n: int}",
	} {
		if got := discovery.Observe(textResult(result), "").String(); got != want {
			t.Errorf("%s\n got %s\nwant %s", result, got, want)
		}
	}
}
