package discovery_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func checker(t testing.TB, schema string) *discovery.Checker {
	t.Helper()
	tool := discovery.Tool{Name: "t", InputSchema: json.RawMessage(schema)}
	c, err := discovery.NewChecker(tool, discovery.Document(discovery.Server{Name: "srv"}, []discovery.Tool{tool})[0])
	if err != nil {
		t.Fatalf("%.100s: %v", schema, err)
	}
	return c
}

const issueSchema = `{"type":"object","properties":{
	"title":{"type":"string","minLength":1},"issueNumber":{"type":"integer","minimum":1},"body":{"type":["string","null"]},
	"labels":{"type":"array","maxItems":3,"uniqueItems":true,"items":{"type":"object","properties":{"name":{"type":"string"},"colour":{"$ref":"#/$defs/Colour"}},"required":["name"],"additionalProperties":false}},
	"state":{"enum":["open","closed"]},"ratio":{"type":"number","exclusiveMaximum":1},"when":{"anyOf":[{"type":"string","pattern":"^\\d{4}-\\d\\d$"},{"type":"null"}]},
	"meta":{"type":"object","additionalProperties":{"type":"integer"}},"from":{"type":"string"},"pair":{"prefixItems":[{"type":"string"},{"type":"integer"}]},
	"edit":{"oneOf":[{"type":"object","properties":{"op":{"const":"add"},"at":{"type":"integer"}},"required":["op","at"]},{"type":"object","properties":{"op":{"const":"del"}},"required":["op"]}]}},
	"required":["title"],"$defs":{"Colour":{"type":"string","enum":["red","green"]}}}`

func TestCheck(t *testing.T) {
	c := checker(t, issueSchema)
	for args, want := range map[string]string{
		`{"title":"x"}`: "",
		`{"title":"x","issueNumber":3,"body":null,"labels":[{"name":"a","colour":"red"}],"state":"open","ratio":0.5,"when":"2024-01","meta":{"a":1},"pair":["a",1,2],"edit":{"op":"del"}}`: "",
		`{"title":"x","issueNumber":3.0,"ratio":0,"when":null,"edit":{"op":"add","at":1}}`:                                                                                                 "",
		`{"title":"x","issueNumber":12345678901234567890}`:                                                                                                                                 "",
		`{}`:                               "missing argument title: str",
		`{"titel":"x"}`:                    "unknown argument titel; did you mean title?",
		`{"title":"x","isue_number":1}`:    "unknown argument isue_number; did you mean issueNumber?",
		`{"title":"x","qqq":1}`:            "unknown argument qqq; the arguments are title, issueNumber, body, labels, state, ratio, when, meta, from_, pair, edit",
		`{"title":"x","a b\u001b":1}`:      `unknown argument 'a b\x1b'; the arguments are title, issueNumber, body, labels, state, ratio, when, meta, from_, pair, edit`,
		`{"title":3}`:                      "argument title: expected str, got int 3",
		`{"title":null}`:                   "argument title: expected str, got None",
		`{"title":""}`:                     "argument title: expected at least 1 characters, got str ''",
		`{"title":"x","issueNumber":"3"}`:  "argument issueNumber: expected int, got str '3'",
		`{"title":"x","issueNumber":true}`: "argument issueNumber: expected int, got bool True",
		`{"title":"x","issueNumber":1.5}`:  "argument issueNumber: expected int, got float 1.5",
		`{"title":"x","issueNumber":0}`:    "argument issueNumber: expected at least 1, got int 0",
		`{"title":"x","ratio":1}`:          "argument ratio: expected less than 1, got int 1",
		`{"title":"x","body":["` + strings.Repeat("x", 10) + `"]}`:         "argument body: expected str | None, got list of 1",
		`{"title":"x","labels":"bug"}`:                                     "argument labels: expected list[{name: str, colour?: Literal['red', 'green']}], got str 'bug'",
		`{"title":"x","labels":["bug"]}`:                                   "argument labels[0]: expected {name: str, colour?: Literal['red', 'green']}, got str 'bug'",
		`{"title":"x","labels":[{"name":"a"},{"name":"b"},{"name":7}]}`:    "argument labels[2].name: expected str, got int 7",
		`{"title":"x","labels":[{"name":"a","colour":"gren"}]}`:            "argument labels[0].colour: expected Literal['red', 'green'], got str 'gren'; did you mean 'green'?",
		`{"title":"x","labels":[{"nam":"a"}]}`:                             "argument labels[0]: missing key name (there is nam)",
		`{"title":"x","labels":[{"name":"a","color":"red"}]}`:              "argument labels[0]: unknown key color; did you mean colour?",
		`{"title":"x","labels":[{"name":"a"},{"name":"b"},{"name":7},{}]}`: "argument labels: expected at most 3 items, got list of 4",
		`{"title":"x","state":"` + strings.Repeat("y", 100) + `"}`:         "argument state: expected Literal['open', 'closed'], got str '" + strings.Repeat("y", 39) + "…'",
		`{"title":"x","when":"May"}`:                                       `argument when: expected str | None, got str 'May'`,
		`{"title":"x","meta":{"a-b":"1"}}`:                                 "argument meta['a-b']: expected int, got str '1'",
		`{"title":"x","pair":["a","b"]}`:                                   "argument pair[1]: expected int, got str 'b'",
		`{"title":"x","edit":{"op":"add"}}`:                                "argument edit: missing key at",
		`{"title":"x","edit":{"op":"add","at":"1"}}`:                       "argument edit.at: expected int, got str '1'",
		`{"title":"x","edit":7}`:                                           "argument edit: expected {op: Literal['add'], at: int} | {op: Literal['del']}, got int 7",
	} {
		sent, err := c.Check(json.RawMessage(args))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%s\n got %s\nwant %s", args, text, want)
		}
		if err == nil && string(sent) != args {
			t.Errorf("%s was sent as %s", args, sent)
		}
	}
}

// Other names of a parameter become its own, a null that may not be is left
// out, and all else goes as it came.
func TestCheckMendsNames(t *testing.T) {
	c := checker(t, issueSchema)
	for args, want := range map[string]string{
		`{ "title" : "\u0041" , "issue_number" : 1e2, "from_":"a" }`: `{"title":"\u0041","issueNumber":1e2,"from":"a"}`,
		`{"title":"x","state":null,"labels":null,"body":null}`:       `{"title":"x","body":null}`,
		`{"title":"x","issue_number":1,"issueNumber":2}`:             "argument issueNumber is given twice, as issue_number too",
		`{"title":"x", "meta":{"n":12345678901234567890}}`:           `{"title":"x", "meta":{"n":12345678901234567890}}`,
	} {
		sent, err := c.Check(json.RawMessage(args))
		if err != nil {
			sent = json.RawMessage(err.Error())
		}
		if string(sent) != want {
			t.Errorf("%s: got %s, want %s", args, sent, want)
		}
	}
	open := checker(t, `{"properties":{"issueNumber":{"type":"integer"}},"additionalProperties":true}`)
	if sent, err := open.Check(json.RawMessage(`{"issue_number":"x"}`)); err != nil || string(sent) != `{"issue_number":"x"}` {
		t.Errorf("got %s, %v: an open schema takes any name", sent, err)
	}
}

func TestCheckConditions(t *testing.T) {
	c := checker(t, `{"properties":{"kind":{"type":"string"},"x":{},"n":{"not":{"const":3}},"p":{"type":"string","pattern":"(?=a)b"}},
		"if":{"properties":{"kind":{"const":"a"}},"required":["kind"]},"then":{"required":["x"]},"else":{"not":{"required":["x"]}}}`)
	for args, ok := range map[string]bool{
		`{"kind":"a","x":1}`: true, `{"kind":"a"}`: false, `{"kind":"b"}`: true, `{"kind":"b","x":1}`: false,
		`{"n":3}`: false, `{"n":4}`: true, `{"p":"zzz"}`: true,
	} {
		if _, err := c.Check(json.RawMessage(args)); (err == nil) != ok {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// Schemas that are meant to hurt cost little, and refuse nothing by mistake.
func TestCheckBoundsHostileSchemas(t *testing.T) {
	args := json.RawMessage(`{"a":{"a":[{"a":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}]}}`)
	for name, schema := range hostileSchemas() {
		t.Run(name, func(t *testing.T) {
			tool := discovery.Tool{Name: "t", InputSchema: json.RawMessage(schema)}
			doc := discovery.Document(discovery.Server{Name: "srv"}, []discovery.Tool{tool})[0]
			c, err := discovery.NewChecker(tool, doc)
			if err != nil {
				t.Log(err)
				c = nil
			}
			begun := time.Now()
			_, err = c.Check(args)
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
			if err != nil && len(err.Error()) > 2000 {
				t.Errorf("%d bytes of text: %.300s", len(err.Error()), err)
			}
			t.Log(time.Since(begun), err)
		})
	}
}

// What is refused of real tools is also refused by a validator of JSON Schema.
func TestCheckIsSound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	refused, valid := 0, 0
	for server, tools := range realTools(t) {
		for i, doc := range discovery.Document(discovery.Server{Name: server}, tools) {
			var schema jsonschema.Schema
			if err := json.Unmarshal(tools[i].InputSchema, &schema); err != nil {
				t.Log(doc.Name, err)
				continue
			}
			reference, err := schema.Resolve(nil)
			if err != nil {
				t.Log(doc.Name, err)
				continue
			}
			c, err := discovery.NewChecker(tools[i], doc)
			if err != nil {
				t.Errorf("%s.%s: %v", server, doc.Name, err)
				continue
			}
			for range 40 {
				args := map[string]any{}
				for _, p := range doc.Params {
					if p.Required && random.IntN(20) > 0 || random.IntN(3) == 0 {
						args[p.Name] = like(random, p.Type)
					}
				}
				raw, err := json.Marshal(args)
				if err != nil {
					t.Fatal(err)
				}
				sent, err := c.Check(raw)
				switch {
				case err == nil && reference.Validate(decoded(t, sent)) == nil:
					valid++
				case err != nil && reference.Validate(args) == nil:
					t.Errorf("%s.%s refused %s: %v", server, doc.Name, raw, err)
				case err != nil:
					refused++
				default:
					t.Logf("%s.%s let pass %s: %.300v", server, doc.Name, raw, reference.Validate(args))
				}
			}
		}
	}
	t.Log(valid, "valid,", refused, "refused")
	if valid < 50 || refused < 50 {
		t.Error("too few to say anything")
	}
}

func decoded(t *testing.T, raw json.RawMessage) (value any) {
	t.Helper()
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// like returns a value that mostly is of the type in a signature.
func like(random *rand.Rand, hint string) any {
	if random.IntN(8) == 0 {
		hint = []string{"str", "int", "float", "bool", "list[str]", "dict", "None"}[random.IntN(7)]
	}
	switch {
	case strings.HasPrefix(hint, "Literal['"):
		values := strings.Split(strings.Trim(hint[8:], "[]'"), "', '")
		return strings.TrimSuffix(values[random.IntN(len(values))], "']")
	case strings.HasPrefix(hint, "str"):
		return "some text"
	case strings.HasPrefix(hint, "int"):
		return random.IntN(100) - 5
	case strings.HasPrefix(hint, "float"):
		return random.Float64() * 10
	case strings.HasPrefix(hint, "bool"):
		return true
	case strings.HasPrefix(hint, "list["):
		return []any{like(random, hint[5:]), like(random, hint[5:])}
	case strings.HasPrefix(hint, "list"):
		return []any{1}
	case strings.HasPrefix(hint, "{"):
		object := map[string]any{}
		name, rest, ok := strings.Cut(hint[1:], ": ")
		if ok && random.IntN(3) > 0 {
			object[strings.TrimSuffix(name, "?")] = like(random, rest)
		}
		return object
	case strings.HasPrefix(hint, "dict"):
		return map[string]any{"k": "v"}
	case hint == "None":
		return nil
	}
	return fmt.Sprint(random.IntN(5))
}

func BenchmarkCheck(b *testing.B) {
	c := checker(b, issueSchema)
	args := json.RawMessage(`{"title":"x","issueNumber":3,"body":null,"labels":[{"name":"a","colour":"red"}],"state":"open"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Check(args); err != nil {
			b.Fatal(err)
		}
	}
}
