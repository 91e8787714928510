package discovery_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func describeTool() discovery.Tool {
	return discovery.Tool{
		Name: "createIssue", Title: "Create Issue", Description: "Creates an issue. Needs a token.\nReturns it.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{
			"title":{"type":"string","minLength":1,"maxLength":256,"description":"What it is about"},
			"dueDate":{"type":"string","format":"date-time","examples":["2024-01-01T00:00:00Z"],"pattern":"^\\d"},
			"perPage":{"type":"integer","minimum":1,"maximum":100,"default":30,"example":50},
			"labels":{"type":"array","maxItems":3,"items":{"$ref":"#/$defs/Label"},"description":"Labels to set"},
			"from":{"type":"string"},
			"zone":{"enum":["` + strings.Repeat("a", 50) + `","` + strings.Repeat("b", 50) + `"]}},
			"required":["title"],"examples":[{"title":"A","perPage":3}],
			"$defs":{"Label":{"type":"object","properties":{"name":{"type":"string","description":"Shown"},"child":{"$ref":"#/$defs/Label"},"colour":{"type":"string","default":"red"}},"required":["name"]}}}`),
		Annotations: json.RawMessage(`{"readOnlyHint":false,"destructiveHint":true}`),
	}
}

func TestDescribe(t *testing.T) {
	tool := describeTool()
	doc := document(t, tool)
	shape := discovery.Observe(textResult(`[{"number":1,"user":{"login":"x"},"labels":[{"name":"x"}],"when":null}]`), "")
	doc = doc.WithShape(shape)
	const call = `srv.createIssue(title: str, dueDate: str = None, perPage: int = 30, labels: list[{name: str, child?: dict, colour?: str}] = None, from_: str = None, zone: str = None)` +
		` -> list[{number: int, user: {login: str}, labels: list[{name: str}], when: None}]`
	if got := discovery.Describe(tool, doc, shape, discovery.Brief); got != call+"   Creates an issue" {
		t.Error(got)
	}
	if got := discovery.Describe(tool, doc, shape, discovery.SignatureOnly); got != call {
		t.Error(got)
	}
	help := call + `

Creates an issue. Needs a token.
Returns it.

Parameters:
  title: str (required)  What it is about
  dueDate: str (optional)
  perPage: int (default 30)
  labels: list[{name: str, child?: dict, colour?: str}] (optional)  Labels to set
  from_: str (optional)
  zone: str (optional)`
	if got := discovery.Describe(tool, doc, shape, discovery.Help); got != help {
		t.Errorf("got\n%s\nwant\n%s", got, help)
	}
	full := call + `

Create Issue

Creates an issue. Needs a token.
Returns it.

Parameters:
  title: str (required)
    What it is about
    minLength 1; maxLength 256
  dueDate: str (optional), also due_date
    format date-time; pattern ^\d; such as '2024-01-01T00:00:00Z'
  perPage: int (default 30), also per_page
    minimum 1; maximum 100; such as 50
  labels: list[{name: str, child?: dict, colour?: str}] (optional)
    Labels to set
    maxItems 3
    name: str  Shown
    child?: dict
    colour?: str
  from_: str (optional), also 'from'
  zone: str (optional)
    one of '` + strings.Repeat("a", 50) + `', '` + strings.Repeat("b", 50) + `'

Returns, as seen so far:
  list of dict:
    number: int
    user: dict:
      login: str
    labels: list of dict:
      name: str
    when: None

The server says that it changes things, may destroy.

Examples:
  {"title":"A","perPage":3}

Input schema:
  {"type":"object","properties":{"title":`
	if got := discovery.Describe(tool, doc, shape, discovery.Full); !strings.HasPrefix(got, full) {
		t.Errorf("got\n%s\nwant\n%s", got, full)
	}
}

func TestDescribeIsBounded(t *testing.T) {
	for name, schema := range hostileSchemas() {
		t.Run(name, func(t *testing.T) {
			raw := json.RawMessage(schema)
			tool := discovery.Tool{Name: "t", InputSchema: raw, OutputSchema: raw, Description: strings.Repeat("x\x1b[2J", 10_000)}
			begun := time.Now()
			for _, detail := range []discovery.Detail{discovery.Brief, discovery.SignatureOnly, discovery.Help, discovery.Full} {
				text := discovery.Describe(tool, document(t, tool), nil, detail)
				if len(text) > 32_000 || !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\u202e") {
					t.Errorf("%s: %d bytes, or not fit to be shown", detail, len(text))
				}
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}
