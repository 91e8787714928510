package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// documented is a tool with parameters of the kinds there are.
func documented(t *testing.T) discovery.ToolDoc {
	t.Helper()
	schema := `{"properties":{
		"title":{"type":"string"},"count":{"type":"integer"},"ratio":{"type":"number"},"force":{"type":"boolean"},
		"labels":{"type":"array","items":{"type":"string"}},"filter":{"type":"object"},"either":{"type":["integer","string"]},
		"state":{"enum":["open","closed"]},"level":{"enum":[1,2]},"maybe":{"type":["null","integer"]},"any":{},"max-items":{"type":"integer"},
		"nested":{"type":"array","items":{"type":["string","null"]}}}}`
	return discovery.Document(discovery.Server{Name: "s"}, []discovery.Tool{{Name: "t", InputSchema: json.RawMessage(schema)}})[0]
}

func TestCallArguments(t *testing.T) {
	for _, test := range []struct {
		words  string // apart by |
		object string
		stdin  string
		want   string
		err    string
	}{
		{"", "", "", `{}`, ""},
		{"title=a b", "", "", `{"title":"a b"}`, ""},
		{"title=5", "", "", `{"title":"5"}`, ""},
		{"title=", "", "", `{"title":""}`, ""},
		{"title=a=b:=c", "", "", `{"title":"a=b:=c"}`, ""},
		{"title=null|maybe=null", "", "", `{"maybe":null,"title":"null"}`, ""},
		{"count=12345678901234567890123", "", "", `{"count":12345678901234567890123}`, ""},
		{"count=many", "", "", `{"count":"many"}`, ""}, // the schema says what is wrong
		{"ratio=-0.5|force=true", "", "", `{"force":true,"ratio":-0.5}`, ""},
		{`labels=["a","b"]|filter={"a":{"b":1}}|nested=[null]`, "", "", `{"filter":{"a":{"b":1}},"labels":["a","b"],"nested":[null]}`, ""},
		{"labels=bug", "", "", `{"labels":"bug"}`, ""},
		{"either=5|state=open|level=2|any=5", "", "", `{"any":"5","either":"5","level":2,"state":"open"}`, ""},
		{`either:=5|any:={"a":[1]}`, "", "", `{"any":{"a":[1]},"either":5}`, ""},
		{"max_items=3", "", "", `{"max-items":3}`, ""}, // by its other name
		{"new=5", "", "", `{"new":"5"}`, ""},
		{"title=b", `{"count": 1}`, "", `{"count":1,"title":"b"}`, ""},
		{"", ` {"z": 1, "a": 1e400}`, "", ` {"z": 1, "a": 1e400}`, ""}, // as it came
		{"-", "", `{"count": 2}`, `{"count": 2}`, ""},
		{"", "-", `{"count": 2}`, `{"count": 2}`, ""},
		{"title=x|-", "", `{"count": 2}`, `{"count":2,"title":"x"}`, ""},

		{"title=a|title=b", "", "", "", "given twice"},
		{"count=1|count:=2", "", "", "", "given twice"},
		{"title=a", `{"title": "b"}`, "", "", "given twice"},
		{"max_items=3|max-items=4", "", "", "", "given twice"},
		{"count:=many", "", "", "", "argument count: many is not JSON"},
		{"title", "", "", "", "key=text"},
		{"=x", "", "", "", "key=text"},
		{":=1", "", "", "", "key=text"},
		{"", "[]", "", "", "--json must be a JSON object"},
		{"", "null", "", "", "--json must be a JSON object"},
		{"", "{", "", "", "--json must be a JSON object"},
		{"-", "", "", "", "stdin must be a JSON object"},
		{"-", "{}", "{}", "", "either in --json or"},
	} {
		r := &root{io: IO{In: strings.NewReader(test.stdin)}}
		var words []string
		if test.words != "" {
			words = strings.Split(test.words, "|")
		}
		object, given := test.object, test.object != ""
		if !given {
			object = "{}"
		}
		var got json.RawMessage
		arguments, err := r.callArguments(words, object, given)
		if err == nil {
			got, err = arguments.of(documented(t))
		}
		switch {
		case test.err == "" && (err != nil || string(got) != test.want):
			t.Errorf("%q, --json %q: %s, %v; want %s", test.words, test.object, got, err, test.want)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err) || exitCode(t.Context(), err) != exitUsage):
			t.Errorf("%q, --json %q: %s, %v; want %s", test.words, test.object, got, err, test.err)
		}
	}
}

func TestUnionParts(t *testing.T) {
	for typ, want := range map[string]string{
		"str":                                  "str",
		"int | None":                           "int;None",
		"list[str | None] | dict[str, a | b]":  "list[str | None];dict[str, a | b]",
		`Literal['a | b', "c'|"] | {x: a | b}`: `Literal['a | b', "c'|"];{x: a | b}`,
		"":                                     "",
	} {
		if got := strings.Join(unionParts(typ), ";"); got != want {
			t.Errorf("%q: %q, want %q", typ, got, want)
		}
	}
}
