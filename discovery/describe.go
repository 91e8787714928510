package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A Detail is how much documentation is wanted.
type Detail string

// The lengths of documentation.
const (
	Brief         Detail = "brief"     // a line: the signature and the first sentence
	SignatureOnly Detail = "signature" // how to call it, and what it returns
	Help          Detail = "help"      // that, the description and the parameters
	Full          Detail = "full"      // all there is: constraints, examples, results, schemas
)

// Bounds of documentation.
const (
	maxNestedLines  = 120
	maxNestedDepth  = 5
	maxConstraints  = 300
	maxSchemaShown  = 6_000
	maxExampleShown = 200
	maxDocLength    = 24_000
)

// Describe writes the documentation of a tool, of which doc is the document.
// For any other detail than those there are it is as for Full.
func Describe(t Tool, doc ToolDoc, learned *Shape, detail Detail) string {
	switch detail {
	case Brief:
		return strings.TrimSpace(doc.Signature + "   " + firstSentence(doc.Description))
	case SignatureOnly:
		return doc.Signature
	}
	d := describer{tool: t, doc: doc, full: detail != Help}
	if schema := parseSchema(t.InputSchema, maxSchemaBytes); schema != nil {
		d.input = newRenderer(newSchemaDoc(schema))
	}
	d.line(0, doc.Signature)
	if doc.Title != "" && d.full && !strings.HasPrefix(doc.Description, doc.Title) {
		d.line(0, "\n"+doc.Title)
	}
	if doc.Description != "" {
		d.line(0, "\n"+doc.Description)
	}
	d.parameters()
	if d.full {
		d.returns(learned)
		d.hints()
		d.examples()
		d.schema("Input schema", t.InputSchema)
		d.schema("Output schema", t.OutputSchema)
	}
	return truncateText(strings.TrimSpace(d.String()), maxDocLength)
}

// truncateText cuts a text of several lines.
func truncateText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

type describer struct {
	strings.Builder
	tool   Tool
	doc    ToolDoc
	full   bool
	input  *renderer // nil without a schema
	nested int       // lines about what is inside of parameters and results
}

func (d *describer) line(indent int, text string) {
	if d.Len() > maxDocLength || text == "" {
		return
	}
	d.WriteString(strings.Repeat("  ", indent))
	d.WriteString(strings.ReplaceAll(text, "\n", "\n"+strings.Repeat("  ", indent)))
	d.WriteString("\n")
}

func (d *describer) parameters() {
	if len(d.doc.Params) > 0 {
		d.line(0, "\nParameters:")
	}
	var schemas map[string]*jsonNode
	if d.full && d.input != nil {
		f := &fields{index: make(map[string]int)}
		d.input.collect(f, d.input.doc.root, true, 0)
		schemas = make(map[string]*jsonNode, len(f.list))
		for _, p := range f.list {
			schemas[p.name] = p.schema
		}
	}
	for _, p := range d.doc.Params {
		d.parameter(p, schemas[p.Name])
	}
	if d.doc.Open && len(d.doc.Params) > 0 {
		d.line(1, "and others, by name")
	}
}

func (d *describer) parameter(p Param, schema *jsonNode) {
	need := "required"
	switch {
	case !p.Required && p.Default != "":
		need = "default " + p.Default
	case !p.Required:
		need = "optional"
	}
	head := p.Ident + ": " + p.Type + " (" + need + ")"
	if !d.full {
		d.line(1, strings.TrimSpace(head+"  "+p.Description))
		return
	}
	var also []string
	if shown := cleanLine(p.Name, 100); shown != p.Ident {
		also = append(also, pythonQuoted(shown))
	}
	if also = append(also, p.Aliases...); len(also) > 0 {
		head += ", also " + strings.Join(also, ", ")
	}
	d.line(1, head)
	if schema == nil {
		d.line(2, p.Description)
	} else {
		d.line(2, cleanText(d.input.annotation(schema, "description").str(), 4*maxParamDescription))
		d.line(2, d.constraints(schema, p.Type))
		d.members(schema, 2, 0)
	}
}

// members writes what is inside of objects, and of lists of them.
func (d *describer) members(schema *jsonNode, indent, depth int) {
	n := d.input.resolve(schema)
	for range maxSchemaDepth {
		items := n.get("items")
		if !items.is(kindObject) || n.get("properties") != nil {
			break
		}
		n = d.input.resolve(items)
	}
	f := &fields{index: make(map[string]int)}
	d.input.collect(f, n, true, 0)
	if depth >= maxNestedDepth || d.input.active[n] {
		return
	}
	d.input.active[n] = true
	defer delete(d.input.active, n)
	for _, p := range f.list {
		if d.nested++; d.nested > maxNestedLines {
			return
		}
		t := d.input.typeOf(p.schema, 0).text(maxTypeLength)
		text := shownName(cleanLine(p.name, 60))
		if !p.required {
			text += "?"
		}
		text += ": " + t
		if about := cleanLine(d.input.annotation(p.schema, "description").str(), maxParamDescription); about != "" {
			text += "  " + about
		}
		d.line(indent, text)
		d.line(indent+1, d.constraints(p.schema, t))
		d.members(p.schema, indent+1, depth+1)
	}
}

// constraints writes in one line what a type does not say.
func (d *describer) constraints(schema *jsonNode, shown string) string {
	n := d.input.resolve(schema)
	var parts []string
	for key := range strings.FieldsSeq("format contentMediaType minimum exclusiveMinimum maximum exclusiveMaximum multipleOf " +
		"minLength maxLength pattern minItems maxItems uniqueItems minProperties maxProperties") {
		if v := n.get(key); v != nil && v.kind != kindObject && v.kind != kindArray {
			parts = append(parts, key+" "+cleanLine(plainValue(v), 100))
		}
	}
	if values := n.get("enum").list(); len(values) > 0 && !strings.Contains(shown, "Literal[") {
		parts = append(parts, "one of "+literals(values))
	}
	for _, key := range []string{"examples", "example"} {
		if v := d.input.annotation(schema, key); v != nil {
			list := v.list()
			if !v.is(kindArray) {
				list = []*jsonNode{v}
			}
			parts = append(parts, "such as "+literals(list))
		}
	}
	if isTrue(n.get("deprecated")) {
		parts = append(parts, "deprecated")
	}
	return truncate(strings.Join(parts, "; "), maxConstraints)
}

// plainValue is a value without quotes.
func plainValue(v *jsonNode) string {
	if v.is(kindString) {
		return v.text
	}
	return pythonLiteral(v)
}

func literals(values []*jsonNode) string {
	const most = 20
	var texts []string
	for _, v := range values[:min(len(values), most)] {
		texts = append(texts, pythonLiteral(v))
	}
	if len(values) > most {
		texts = append(texts, "…")
	}
	return strings.Join(texts, ", ")
}

// returns writes what a call gives: as it was declared, or as it was seen.
func (d *describer) returns(learned *Shape) {
	t, source := outputType(d.tool), "declared by the server"
	if t.vague() && learned != nil {
		t, source = learned.pyType(), "as seen so far"
	}
	if t.isAny() {
		return
	}
	d.line(0, "\nReturns, "+source+":")
	d.nested = 0
	d.tree("", t, 1)
}

// tree writes a type with a line for each field.
func (d *describer) tree(label string, t *pyType, indent int) {
	if d.nested++; d.nested > maxNestedLines {
		return
	}
	prefix := label
	for t.kind == typeList && len(t.parts) == 1 && !t.parts[0].isAny() {
		prefix += "list of "
		t = t.parts[0]
	}
	if t.kind == typeDict && len(t.parts) == 1 && t.parts[0].kind == typeObject {
		prefix += "dict of str to "
		t = t.parts[0]
	}
	if t.kind != typeObject || len(t.fields) == 0 || indent > maxNestedDepth {
		d.line(indent, prefix+t.text(maxTypeLength))
		return
	}
	d.line(indent, prefix+"dict:")
	for _, f := range t.fields {
		mark := ": "
		if f.optional {
			mark = "?: "
		}
		d.tree(shownName(f.name)+mark, f.of, indent+1)
	}
	if t.more {
		d.line(indent+1, "...")
	}
}

func (d *describer) hints() {
	var hints []string
	annotations := parseSchema(d.doc.Annotations, maxAnnotations)
	for _, h := range []struct{ key, yes, no string }{
		{"readOnlyHint", "only reads", "changes things"},
		{"destructiveHint", "may destroy", ""},
		{"idempotentHint", "may be repeated", ""},
	} {
		v := annotations.get(h.key)
		switch {
		case v.is(kindBool) && v.text == "true" && h.yes != "":
			hints = append(hints, h.yes)
		case v.is(kindBool) && v.text == "false" && h.no != "":
			hints = append(hints, h.no)
		}
	}
	if len(hints) > 0 {
		d.line(0, "\nThe server says that it "+strings.Join(hints, ", ")+".")
	}
}

// examples writes those of the whole call.
func (d *describer) examples() {
	if d.input == nil {
		return
	}
	root := d.input.doc.root
	examples := root.get("examples").list()
	if example := root.get("example"); example != nil {
		examples = append(examples, example)
	}
	for i, e := range examples[:min(len(examples), 3)] {
		if i == 0 {
			d.line(0, "\nExamples:")
		}
		if text := string(d.tool.InputSchema[e.offset:e.end]); len(text) <= maxExampleShown {
			d.line(1, cleanLine(text, maxExampleShown))
		}
	}
}

// schema writes a schema as its server wrote it, but for white space.
func (d *describer) schema(title string, raw json.RawMessage) {
	var b bytes.Buffer
	if len(raw) == 0 || len(raw) > maxSchemaBytes || json.Compact(&b, raw) != nil {
		return
	}
	text := cleanText(cleanEscapes(b.String()), maxSchemaShown)
	if b.Len() > len(text)+len(text)/4 {
		text += fmt.Sprintf("… (%d bytes in all)", b.Len())
	}
	d.line(0, "\n"+title+":")
	d.line(1, text)
}
