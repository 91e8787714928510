package discovery

import (
	"encoding/json"
	"strings"
)

// A Tool is one tool as its server described it in tools/list.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// A ToolDoc is a tool as Python code sees it. All of it is bounded and fit to
// be shown, except Name, which is the server's own and needed to call the tool.
type ToolDoc struct {
	Name        string          `json:"name"`
	Ident       string          `json:"ident"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Signature   string          `json:"signature"`      // server.tool(a: str, b: int = 3) -> dict
	Params      []Param         `json:"params"`         // required ones first
	Open        bool            `json:"open,omitempty"` // takes arguments beside Params
	Returns     string          `json:"returns,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"` // the hints MCP defines that are booleans
}

// A Param is one parameter of a tool.
type Param struct {
	Name        string   `json:"name"`
	Ident       string   `json:"ident"`
	Type        string   `json:"type"` // as in a signature; "Any" if unknown
	Required    bool     `json:"required"`
	Default     string   `json:"default,omitempty"` // a Python literal, "..." for a long one; empty for none
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"` // values as Python literals, the first few
}

// Bounds of one tool's documentation.
const (
	maxSchemaBytes     = 1 << 20
	maxSchemaValues    = 50_000
	maxParams          = 128
	maxSignatureLength = 1_000
	maxAnnotations     = 4_096 // bytes looked at
)

// Document renders the tools of a server, in their order. Schemas that are too
// large or make no sense give a signature that accepts anything.
func Document(server Server, tools []Tool) []ToolDoc {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	idents := identifiers(names, pythonKeywords)
	docs := make([]ToolDoc, len(tools))
	for i, t := range tools {
		docs[i] = document(server.ident()+"."+idents[i], t)
		docs[i].Ident = idents[i]
	}
	return docs
}

func document(path string, t Tool) ToolDoc {
	hints := parseSchema(t.Annotations, maxAnnotations)
	title := t.Title
	if title == "" {
		title = hints.get("title").str()
	}
	doc := ToolDoc{
		Name:        t.Name,
		Title:       cleanLine(title, maxTitle),
		Description: cleanText(t.Description, maxToolDescription),
		Annotations: booleanHints(hints),
		Params:      []Param{},
	}
	schema := parseSchema(t.InputSchema, maxSchemaBytes)
	complete := schema != nil
	if schema != nil {
		doc.Params, complete = newRenderer(schema).params()
	}
	if out := parseSchema(t.OutputSchema, maxSchemaBytes); out != nil {
		if doc.Returns = newRenderer(out).typeOf(out); doc.Returns == anyType {
			doc.Returns = ""
		}
	}
	doc.Open = !complete || takesMore(schema, doc.Params)
	doc.Signature = signature(path, doc.Params, doc.Returns, complete || len(t.InputSchema) == 0)
	return doc
}

// takesMore reports whether a tool wants arguments its schema does not name: it
// says so, or names none and does not rule them out. That JSON Schema allows
// more wherever it is silent is not enough: a misspelt name would go through.
func takesMore(schema *jsonNode, params []Param) bool {
	more := schema.get("additionalProperties")
	if more.is(kindBool) {
		return more.text == "true"
	}
	return more.is(kindObject) || len(params) == 0
}

// parseSchema returns nil for what is absent, too large or not a JSON object.
func parseSchema(raw json.RawMessage, limit int) *jsonNode {
	if len(raw) == 0 || len(raw) > limit {
		return nil
	}
	n, err := parseJSON(raw, maxSchemaValues)
	if err != nil || !n.is(kindObject) {
		return nil
	}
	return n
}

// booleanHints keeps of a tool's annotations what MCP defines, so that nothing
// else can ride along.
func booleanHints(n *jsonNode) json.RawMessage {
	var parts []string
	for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		if v := n.get(hint); v.is(kindBool) {
			parts = append(parts, `"`+hint+`":`+v.text)
		}
	}
	if parts == nil {
		return nil
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

// signature writes the call as Python would declare it. What does not fit, or
// is not known, is "...".
func signature(path string, params []Param, returns string, complete bool) string {
	var b strings.Builder
	b.WriteString(path + "(")
	for i, p := range params {
		text := declaration(p)
		if b.Len()+len(text) > maxSignatureLength {
			complete = false
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text)
	}
	if !complete {
		if !strings.HasSuffix(b.String(), "(") {
			b.WriteString(", ")
		}
		b.WriteString("...")
	}
	b.WriteString(")")
	if returns != "" {
		b.WriteString(" -> " + returns)
	}
	return b.String()
}

func declaration(p Param) string {
	text := p.Ident
	if p.Type != anyType {
		text += ": " + p.Type
	}
	switch {
	case p.Required:
		return text
	case p.Default != "":
		return text + " = " + p.Default
	}
	return text + " = None"
}
