package discovery

import (
	"cmp"
	"slices"
	"strings"
)

// anyType is the type of a value nothing is known about.
const anyType = "Any"

// Bounds of rendering one schema.
const (
	maxSchemaVisits = 5_000 // nodes looked at, references followed included
	maxSchemaDepth  = 8
	maxChoices      = 50  // alternatives looked at
	maxTypeLength   = 160 // bytes of one type
	maxEnumValues   = 20
	maxKeysLength   = 300
	maxParamName    = 256
)

// A renderer turns one JSON Schema into Python types. It never fails: what it
// does not understand, or is too deep or too much, is Any.
type renderer struct {
	doc    *schemaDoc
	visits int                // still allowed
	active map[*jsonNode]bool // references being rendered: those that lead back to one are recursive
}

func newRenderer(doc *schemaDoc) *renderer {
	return &renderer{doc: doc, visits: maxSchemaVisits, active: make(map[*jsonNode]bool)}
}

// visit takes one from the budget.
func (r *renderer) visit() bool {
	r.visits--
	return r.visits >= 0
}

// params returns the properties of the root schema, required ones first, and
// what more there is.
func (r *renderer) params() ([]Param, *fields) {
	f := &fields{index: make(map[string]int)}
	r.collect(f, r.doc.root, true, 0)
	if len(f.list) > maxParams {
		f.list, f.cut = f.list[:maxParams], true
	}
	slices.SortStableFunc(f.list, func(a, b field) int { return cmp.Compare(b2i(b.required), b2i(a.required)) })
	names := make([]string, len(f.list))
	for i, p := range f.list {
		names[i] = p.name
	}
	idents := memberIdents(names)
	aliases := snakeAliases(names, idents)
	params := make([]Param, len(f.list))
	for i, p := range f.list {
		params[i] = r.param(p)
		params[i].Ident = idents[i]
		params[i].Aliases = aliases[i]
	}
	return params, f
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A field is a property of an object schema, before it is rendered.
type field struct {
	name     string
	schema   *jsonNode // nil if it is only listed as required
	required bool
}

// fields are the properties an object may have.
type fields struct {
	list   []field
	index  map[string]int
	cut    bool // there were more
	open   bool // the schema says that there may be others
	closed bool // the schema says that there may not
}

func (f *fields) add(name string, schema *jsonNode, required bool) {
	if i, ok := f.index[name]; ok {
		f.list[i].required = f.list[i].required || required
		if f.list[i].schema == nil {
			f.list[i].schema = schema
		}
		return
	}
	if len(name) > maxParamName || len(f.list) > 4*maxParams {
		f.cut = true
		return
	}
	f.index[name] = len(f.list)
	f.list = append(f.list, field{name, schema, required})
}

// collect gathers the properties an object may have: its own, those of allOf,
// and, never required, those of alternatives and conditions.
func (r *renderer) collect(f *fields, n *jsonNode, certain bool, depth int) {
	if !n.is(kindObject) || depth > maxSchemaDepth || !r.visit() {
		return
	}
	if ref := n.get("$ref"); ref != nil {
		r.collect(f, r.resolve(n), certain, depth+1)
	}
	for _, m := range n.get("properties").children() {
		f.add(m.key, m.value, false)
	}
	if required := n.get("required"); required != nil && certain {
		for _, item := range required.items {
			if item.is(kindString) {
				f.add(item.text, nil, true)
			}
		}
	}
	f.note(n)
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if parts := n.get(key); parts != nil {
			for _, part := range parts.items {
				r.collect(f, part, certain && key == "allOf", depth+1)
			}
		}
	}
	for _, key := range []string{"then", "else"} {
		r.collect(f, n.get(key), false, depth+1)
	}
	for _, m := range n.get("dependentSchemas").children() {
		r.collect(f, m.value, false, depth+1)
	}
}

// note sees what a schema says of other properties than those it names.
func (f *fields) note(n *jsonNode) {
	for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
		more := n.get(key)
		f.open = f.open || more.is(kindObject) || more.is(kindBool) && more.text == "true"
		f.closed = f.closed || more.is(kindBool) && more.text == "false"
	}
	f.open = f.open || len(n.get("patternProperties").children()) > 0
}

// children returns the members of an object, none of anything else.
func (n *jsonNode) children() []jsonMember {
	if n == nil {
		return nil
	}
	return n.members
}

func (r *renderer) param(p field) Param {
	schema := r.resolve(p.schema)
	t := r.typeOf(p.schema, 0)
	param := Param{
		Name:        p.name,
		Type:        t.text(maxTypeLength),
		Required:    p.required,
		Description: cleanText(r.annotation(p.schema, "description").str(), maxParamDescription),
		Enum:        r.enumValues(schema),
		of:          t,
	}
	if def := r.annotation(p.schema, "default"); def != nil {
		param.Default = pythonLiteral(def)
	}
	// Names that the type has no room for can still be read, and searched for.
	if strings.Contains(param.Type, "...") || !strings.Contains(param.Type, "{") {
		if keys := r.keys(schema); keys != "" {
			param.Description = strings.TrimSpace(param.Description + " Keys: " + keys)
		}
	}
	return param
}

// annotation returns what a schema, or else what it refers to, says about itself.
func (r *renderer) annotation(n *jsonNode, key string) *jsonNode {
	if value := n.get(key); value != nil {
		return value
	}
	return r.resolve(n).get(key)
}

// keys describes the members of a parameter that is an object, or a list of
// objects, where its type does not.
func (r *renderer) keys(n *jsonNode) string {
	if items := n.get("items"); items != nil && n.get("properties") == nil {
		n = r.resolve(items)
	}
	f := fields{index: make(map[string]int)}
	r.collect(&f, n, true, 0)
	var b strings.Builder
	for i, p := range f.list {
		text := cleanLine(p.name, 60)
		if t := r.typeOf(p.schema, 0).text(maxEnumLength); t != anyType {
			text += ": " + t
		}
		if p.required {
			text += " (required)"
		}
		if b.Len()+len(text) > maxKeysLength {
			b.WriteString(", …")
			break
		}
		writeSeparator(&b, i)
		b.WriteString(text)
	}
	return b.String()
}

// typeOf renders a schema.
func (r *renderer) typeOf(n *jsonNode, depth int) *pyType {
	if !n.is(kindObject) || depth > maxSchemaDepth || !r.visit() {
		return anything() // of "false", which nothing fits, too
	}
	if n.get("$ref") == nil {
		return r.ownType(n, depth)
	}
	target := r.resolve(n)
	t := r.referred(target, depth)
	if len(n.members) > 1 && !r.doc.draft7 {
		if t = narrowed(t, r.ownType(n, depth)); isTrue(n.get("nullable")) {
			t = union(t, named("None"))
		}
	}
	return t
}

// referred renders what a reference leads to. Within itself it is as vague as
// it can be: what is written would have no end.
func (r *renderer) referred(target *jsonNode, depth int) *pyType {
	switch {
	case target == nil:
		return anything()
	case !r.active[target]:
		r.active[target] = true
		defer delete(r.active, target)
		return r.typeOf(target, depth+1)
	case target.get("type").str() == "object" || target.get("properties").is(kindObject):
		return &pyType{kind: typeDict}
	case target.get("type").str() == "array":
		return &pyType{kind: typeList}
	}
	return anything()
}

// ownType renders a schema but for its $ref.
func (r *renderer) ownType(n *jsonNode, depth int) *pyType {
	t := r.declared(n, depth)
	if all := n.get("allOf"); all.is(kindArray) {
		for _, part := range all.items[:min(len(all.items), maxChoices)] {
			t = narrowed(t, r.typeOf(part, depth+1))
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if choices := n.get(key); choices.is(kindArray) && len(choices.items) > 0 {
			t = r.chosen(t, n, choices.items, depth)
		}
	}
	if isTrue(n.get("nullable")) && !t.isAny() {
		t = union(t, named("None"))
	}
	return t
}

// chosen narrows a type by alternatives. Those of an object often only say
// which of its properties go together.
func (r *renderer) chosen(t *pyType, n *jsonNode, choices []*jsonNode, depth int) *pyType {
	var parts []*pyType
	for _, choice := range choices[:min(len(choices), maxChoices)] {
		parts = append(parts, r.typeOf(choice, depth+1))
	}
	if len(choices) > maxChoices {
		parts = append(parts, anything())
	}
	if t.kind == typeObject || t.kind == typeDict {
		for _, part := range parts {
			if part.kind != typeObject && part.kind != typeAny {
				return t
			}
		}
		return r.object(n, depth)
	}
	return narrowed(t, union(parts...))
}

// declared renders what enum, const and type say.
func (r *renderer) declared(n *jsonNode, depth int) *pyType {
	if values := n.get("enum"); values.is(kindArray) && len(values.items) > 0 {
		return enumType(values.items)
	}
	if value := n.get("const"); value != nil {
		return enumType([]*jsonNode{value})
	}
	switch t := n.get("type"); {
	case t.is(kindString):
		return r.named(t.text, n, depth)
	case t.is(kindArray) && len(t.items) > 0:
		var parts []*pyType
		for _, item := range t.items[:min(len(t.items), 8)] {
			parts = append(parts, r.named(item.str(), n, depth))
		}
		return union(parts...)
	}
	switch {
	case n.get("properties").is(kindObject):
		return r.object(n, depth)
	case n.get("items") != nil || n.get("prefixItems") != nil:
		return r.list(n, depth)
	}
	return anything()
}

// named renders a value of the JSON Schema type "type".
func (r *renderer) named(name string, n *jsonNode, depth int) *pyType {
	switch name {
	case "string":
		return named("str")
	case "integer":
		return named("int")
	case "number":
		return named("float")
	case "boolean":
		return named("bool")
	case "null":
		return named("None")
	case "object":
		return r.object(n, depth)
	case "array":
		return r.list(n, depth)
	}
	return anything()
}

// object renders an object: its fields, or else what its values are.
func (r *renderer) object(n *jsonNode, depth int) *pyType {
	f := fields{index: make(map[string]int)}
	r.collect(&f, n, true, depth)
	if len(f.list) == 0 {
		t := &pyType{kind: typeDict}
		if more := n.get("additionalProperties"); more.is(kindObject) {
			t.parts = []*pyType{r.typeOf(more, depth+1)}
		}
		return t
	}
	const most = 50
	t := &pyType{kind: typeObject, more: f.cut || f.open || len(f.list) > most}
	for _, p := range f.list[:min(len(f.list), most)] {
		t.fields = append(t.fields, pyField{cleanLine(p.name, 60), !p.required, r.typeOf(p.schema, depth+1)})
	}
	return t
}

// list renders an array: as a tuple if each of its items has a type of its own
// and there are no others.
func (r *renderer) list(n *jsonNode, depth int) *pyType {
	const mostTuple = 8
	items, rest := n.get("prefixItems"), n.get("items")
	if !items.is(kindArray) && rest.is(kindArray) { // of draft 7
		items, rest = rest, n.get("additionalItems")
	}
	if items.is(kindArray) && len(items.items) > 0 && len(items.items) <= mostTuple {
		t := &pyType{kind: typeTuple}
		for _, item := range items.items {
			t.parts = append(t.parts, r.typeOf(item, depth+1))
		}
		if !rest.is(kindObject) {
			return t
		}
		return &pyType{kind: typeList, parts: []*pyType{union(append(t.parts, r.typeOf(rest, depth+1))...)}}
	}
	t := &pyType{kind: typeList}
	if rest.is(kindObject) {
		t.parts = []*pyType{r.typeOf(rest, depth+1)}
	}
	return t
}

// enumType is the type of what is one of these values.
func enumType(values []*jsonNode) *pyType {
	t := &pyType{kind: typeLiteral}
	nullable := false
	length := 0
	for _, v := range values[:min(len(values), 1000)] {
		if v.is(kindNull) {
			nullable = true
			continue
		}
		if base := typeOfValue(v); !containsNamed(t.parts, base) {
			t.parts = append(t.parts, named(base))
		}
		if length > maxEnumLength { // too long to be written out
			continue
		}
		text := pythonLiteral(v)
		if v.kind == kindObject || v.kind == kindArray {
			text = "..."
		}
		t.values = append(t.values, text)
		length += len(text)
	}
	switch {
	case !nullable:
		return t
	case len(t.values) == 0:
		return named("None")
	}
	return union(t, named("None"))
}

func (r *renderer) enumValues(n *jsonNode) []string {
	values := n.get("enum")
	if values == nil {
		values = r.resolve(n.get("items")).get("enum")
	}
	if !values.is(kindArray) {
		return nil
	}
	var list []string
	for _, v := range values.items[:min(len(values.items), maxEnumValues)] {
		if v.kind != kindObject && v.kind != kindArray {
			list = append(list, pythonLiteral(v))
		}
	}
	return list
}

func typeOfValue(n *jsonNode) string {
	switch n.kind {
	case kindString:
		return "str"
	case kindBool:
		return "bool"
	case kindNull:
		return "None"
	case kindArray:
		return "list"
	case kindObject:
		return "dict"
	}
	if strings.ContainsAny(n.text, ".eE") {
		return "float"
	}
	return "int"
}

// resolve follows references within the document. A reference elsewhere, to
// nothing, or in a circle gives nil.
func (r *renderer) resolve(n *jsonNode) *jsonNode {
	for range maxSchemaDepth {
		ref := n.get("$ref")
		if ref == nil {
			return n
		}
		if !r.visit() {
			return nil
		}
		n = r.doc.lookup(ref.str())
	}
	return nil
}

func isTrue(n *jsonNode) bool { return n.is(kindBool) && n.text == "true" }
