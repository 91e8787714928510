package discovery

import (
	"encoding/json"
	"strings"
	"time"
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
	Signature   string          `json:"signature"`             // server.tool(a: str, b: int = 3) -> dict
	Params      []Param         `json:"params"`                // required ones first
	Open        bool            `json:"open,omitempty"`        // takes arguments beside Params
	Aliases     []string        `json:"aliases,omitempty"`     // further names it goes by
	Returns     string          `json:"returns,omitempty"`     // the type of what a call returns, if known
	Annotations json.RawMessage `json:"annotations,omitempty"` // the hints MCP defines that are booleans

	learnable bool
}

// A Param is one parameter of a tool.
type Param struct {
	Name        string   `json:"name"`
	Ident       string   `json:"ident"`
	Type        string   `json:"type"` // as in a signature; "Any" if unknown
	Required    bool     `json:"required"`
	Default     string   `json:"default,omitempty"` // a Python literal, "..." for a long one; empty for none
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`    // values as Python literals, the first few
	Aliases     []string `json:"aliases,omitempty"` // further names it goes by

	of *pyType // what Type is a text of; nil after decoding
}

// Bounds of one tool's documentation.
const (
	maxSchemaBytes     = 1 << 20
	maxSchemaValues    = 50_000
	maxParams          = 128
	maxSignatureLength = 1_000
	maxReturnLength    = 240   // of one type
	maxAnnotations     = 4_096 // bytes looked at
)

// Changed returns the document of a tool that is not what the user has approved,
// which says so. withheld is for one that cannot be called, of which nothing else
// is shown.
func (d ToolDoc) Changed(since time.Time, withheld bool) ToolDoc {
	note := "[changed since " + since.UTC().Format(time.DateOnly) + ", not approved by the user]"
	if !withheld {
		d.Description = cleanText(note+" "+d.Description, maxToolDescription)
		return d
	}
	path, _, _ := strings.Cut(d.Signature, "(")
	return ToolDoc{
		Name: d.Name, Ident: d.Ident, Aliases: d.Aliases, Params: []Param{}, Open: true, Signature: path + "(...)",
		Description: note + " It cannot be called until the user approves it.",
	}
}

// Document renders the tools of a server, in their order. Schemas that are too
// large or make no sense give a signature that accepts anything.
func Document(server Server, tools []Tool) []ToolDoc {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	idents := memberIdents(names)
	aliases := snakeAliases(names, idents)
	docs := make([]ToolDoc, len(tools))
	for i, t := range tools {
		docs[i] = document(server.ident()+"."+idents[i], t)
		docs[i].Ident = idents[i]
		docs[i].Aliases = aliases[i]
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
	complete := len(t.InputSchema) == 0
	doc.Open = true
	if schema := parseSchema(t.InputSchema, maxSchemaBytes); schema != nil {
		var f *fields
		doc.Params, f = newRenderer(newSchemaDoc(schema)).params()
		complete = !f.cut
		doc.Open = f.cut || f.open || len(doc.Params) == 0 && !f.closed
	}
	out := outputType(t)
	if doc.learnable = out.vague(); !out.isAny() {
		doc.Returns = out.text(maxReturnLength)
	}
	doc.Signature = signature(path, doc.Params, complete) + arrow(doc.Returns)
	return doc
}

// outputType is what a tool's server says that it returns.
func outputType(t Tool) *pyType {
	schema := parseSchema(t.OutputSchema, maxSchemaBytes)
	if schema == nil {
		return nil
	}
	return newRenderer(newSchemaDoc(schema)).typeOf(schema, 0)
}

// arrow writes a return type behind a signature.
func arrow(returns string) string {
	if returns == "" || returns == anyType {
		return ""
	}
	return " -> " + returns
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

// signature writes the call as Python would declare it, but for what it
// returns: with types as long as there is room for, and "..." for parameters
// that do not fit or are not known.
func signature(path string, params []Param, complete bool) string {
	return signatureWithin(path, params, complete, maxSignatureLength)
}

// HitSignature is the signature as search hits have it: a long one is without what
// the tool returns, then with shorter types, and at last with "..." for the
// parameters at the end, so that ten hits are about 500 tokens.
func (d *ToolDoc) HitSignature() string {
	const limit = maxHitSignature
	if len(d.Signature) <= limit {
		return d.Signature
	}
	if call, _, ok := strings.Cut(d.Signature, ") -> "); ok && len(call) < limit {
		return call + ")"
	}
	path, _, _ := strings.Cut(d.Signature, "(")
	return signatureWithin(path, d.Params, !strings.Contains(d.Signature, "...)"), limit)
}

func signatureWithin(path string, params []Param, complete bool, most int) string {
	text := ""
	for _, limit := range []int{maxTypeLength, 80, 40, 20} {
		text = path + "("
		fits := true
		for i, p := range params {
			next := declaration(p, limit)
			if i > 0 {
				next = ", " + next
			}
			if fits = len(text)+len(next) <= most; !fits {
				break
			}
			text += next
		}
		if fits {
			break
		}
		if limit == 20 {
			complete = false
		}
	}
	if !complete {
		if !strings.HasSuffix(text, "(") {
			text += ", "
		}
		text += "..."
	}
	return text + ")"
}

// declaration writes a parameter, its type in at most limit bytes.
func declaration(p Param, limit int) string {
	text, hint := p.Ident, p.Type
	if len(hint) > limit {
		hint = p.of.text(limit)
	}
	if hint != anyType {
		text += ": " + hint
	}
	switch {
	case p.Required:
		return text
	case p.Default != "":
		return text + " = " + p.Default
	}
	return text + " = None"
}
