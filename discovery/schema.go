package discovery

import (
	"slices"
	"strings"
)

// anyType is the type of a value nothing is known about.
const anyType = "Any"

// Bounds of rendering one schema.
const (
	maxSchemaVisits = 5_000 // nodes looked at, references followed included
	maxSchemaDepth  = 8
	maxUnion        = 5  // alternatives worth writing out
	maxTypeLength   = 80 // characters of one type
	maxEnumValues   = 20
	maxEnumLength   = 60 // characters of an enumeration written as a type
	maxKeysLength   = 300
	maxParamName    = 256
)

// A renderer turns one JSON Schema into Python types. It never fails: what it
// does not understand, or is too deep or too much, is Any.
type renderer struct {
	root   *jsonNode
	visits int // still allowed
}

func newRenderer(root *jsonNode) *renderer { return &renderer{root, maxSchemaVisits} }

// params returns the properties of the root schema, required ones first, and
// whether that is all of them.
func (r *renderer) params() ([]Param, bool) {
	f := fields{index: make(map[string]int)}
	r.collect(&f, r.root, true, 0)
	if len(f.list) > maxParams {
		f.list, f.cut = f.list[:maxParams], true
	}
	slices.SortStableFunc(f.list, func(a, b field) int {
		switch {
		case a.required == b.required:
			return 0
		case a.required:
			return -1
		}
		return 1
	})
	names := make([]string, len(f.list))
	for i, p := range f.list {
		names[i] = p.name
	}
	idents := identifiers(names, pythonKeywords)
	params := make([]Param, len(f.list))
	for i, p := range f.list {
		params[i] = r.param(p)
		params[i].Ident = idents[i]
	}
	return params, !f.cut
}

// A field is a property of an object schema, before it is rendered.
type field struct {
	name     string
	schema   *jsonNode // nil if it is only listed as required
	required bool
}

type fields struct {
	list  []field
	index map[string]int
	cut   bool // there were more
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
// and, never required, those of alternatives.
func (r *renderer) collect(f *fields, n *jsonNode, certain bool, depth int) {
	n = r.resolve(n)
	if !n.is(kindObject) || depth > maxSchemaDepth || !r.visit() {
		return
	}
	if properties := n.get("properties"); properties != nil {
		for _, m := range properties.members {
			f.add(m.key, m.value, false)
		}
	}
	if required := n.get("required"); required != nil && certain {
		for _, item := range required.items {
			if item.is(kindString) {
				f.add(item.text, nil, true)
			}
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if parts := n.get(key); parts != nil {
			for _, part := range parts.items {
				r.collect(f, part, certain && key == "allOf", depth+1)
			}
		}
	}
}

func (r *renderer) param(p field) Param {
	schema := r.resolve(p.schema)
	param := Param{
		Name:        p.name,
		Type:        r.typeOf(p.schema),
		Required:    p.required,
		Description: cleanText(p.schema.get("description").str(), maxParamDescription),
		Enum:        r.enumValues(schema),
	}
	if param.Description == "" {
		param.Description = cleanText(schema.get("description").str(), maxParamDescription)
	}
	def := p.schema.get("default")
	if def == nil {
		def = schema.get("default")
	}
	if def != nil {
		param.Default = pythonLiteral(def)
	}
	if keys := r.keys(schema); keys != "" {
		param.Description = strings.TrimSpace(param.Description + " Keys: " + keys)
	}
	return param
}

// keys describes the members of a parameter that is an object, or a list of
// objects, for its signature says no more than dict.
func (r *renderer) keys(n *jsonNode) string {
	if items := n.get("items"); items != nil && n.get("properties") == nil {
		n = r.resolve(items)
	}
	f := fields{index: make(map[string]int)}
	r.collect(&f, n, true, 0)
	var b strings.Builder
	for i, p := range f.list {
		text := cleanLine(p.name, 60)
		if t := r.typeOf(p.schema); t != anyType {
			text += ": " + t
		}
		if p.required {
			text += " (required)"
		}
		if b.Len()+len(text) > maxKeysLength {
			b.WriteString(", …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text)
	}
	return b.String()
}

// visit takes one from the budget.
func (r *renderer) visit() bool {
	r.visits--
	return r.visits >= 0
}

// typeOf renders a schema as a Python type.
func (r *renderer) typeOf(n *jsonNode) string {
	return joinUnion(r.alternatives(n, 0))
}

// joinUnion writes alternatives as one type, None last.
func joinUnion(parts []string) string {
	var kept []string
	nullable := false
	for _, p := range parts {
		switch {
		case p == anyType:
			return anyType
		case p == "None":
			nullable = true
		case !slices.Contains(kept, p):
			kept = append(kept, p)
		}
	}
	if nullable {
		kept = append(kept, "None")
	}
	text := strings.Join(kept, "|")
	if len(kept) == 0 || len(text) > maxTypeLength || len(kept) > maxUnion {
		return anyType
	}
	return text
}

// alternatives returns the types a value may have.
func (r *renderer) alternatives(n *jsonNode, depth int) []string {
	n = r.resolve(n)
	if !n.is(kindObject) || depth > maxSchemaDepth || !r.visit() {
		return []string{anyType}
	}
	if values := n.get("enum"); values.is(kindArray) && len(values.items) > 0 {
		return enumTypes(values.items)
	}
	if value := n.get("const"); value != nil {
		return enumTypes([]*jsonNode{value})
	}
	switch t := n.get("type"); {
	case t.is(kindString):
		return []string{r.named(t.text, n, depth)}
	case t.is(kindArray):
		var parts []string
		for _, item := range t.items[:min(len(t.items), 8)] {
			parts = append(parts, r.named(item.str(), n, depth))
		}
		return parts
	}
	return r.combined(n, depth)
}

// combined handles a schema without a type of its own.
func (r *renderer) combined(n *jsonNode, depth int) []string {
	for _, key := range []string{"anyOf", "oneOf"} {
		if choices := n.get(key); choices.is(kindArray) && len(choices.items) > 0 {
			var parts []string
			for _, choice := range choices.items[:min(len(choices.items), 3*maxUnion)] {
				parts = append(parts, r.alternatives(choice, depth+1)...)
			}
			return parts
		}
	}
	if all := n.get("allOf"); all.is(kindArray) {
		for _, part := range all.items[:min(len(all.items), 3*maxUnion)] {
			if parts := r.alternatives(part, depth+1); !slices.Contains(parts, anyType) {
				return parts
			}
		}
	}
	switch {
	case n.get("properties").is(kindObject):
		return []string{"dict"}
	case n.get("items") != nil || n.get("prefixItems") != nil:
		return []string{r.named("array", n, depth)}
	}
	return []string{anyType}
}

// named renders a value of the JSON Schema type "type".
func (r *renderer) named(name string, n *jsonNode, depth int) string {
	switch name {
	case "string":
		return "str"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "boolean":
		return "bool"
	case "null":
		return "None"
	case "object":
		return "dict"
	case "array":
		return r.list(n.get("items"), depth)
	}
	return anyType
}

func (r *renderer) list(items *jsonNode, depth int) string {
	// Without items, as a tuple of draft 7 or with a boolean schema nothing is
	// known about them; about lists of lists of lists nobody wants to know.
	if !items.is(kindObject) || depth > 1 {
		return "list"
	}
	inner := joinUnion(r.alternatives(items, depth+1))
	if inner == anyType || len(inner) > maxEnumLength {
		return "list"
	}
	return "list[" + inner + "]"
}

// enumTypes writes short enumerations out and names the types of long ones.
func enumTypes(values []*jsonNode) []string {
	var literals, types []string
	length := 0
	for _, v := range values[:min(len(values), 1000)] {
		if t := typeOfValue(v); !slices.Contains(types, t) {
			types = append(types, t)
		}
		if length <= maxEnumLength {
			literals = append(literals, pythonLiteral(v))
			length += len(literals[len(literals)-1]) + 1
		}
	}
	if length-1 > maxEnumLength || slices.Contains(literals, "...") ||
		slices.Contains(types, "dict") || slices.Contains(types, "list") {
		return types
	}
	// One alternative: within a union its values are not counted one by one.
	return []string{strings.Join(literals, "|")}
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
		n = r.lookup(ref.str())
	}
	return nil
}

// lookup finds what a reference such as "#/$defs/Item" points at.
func (r *renderer) lookup(ref string) *jsonNode {
	if ref == "#" {
		return r.root
	}
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok || len(pointer) > 1024 {
		return nil
	}
	n := r.root
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for key := range strings.SplitSeq(pointer, "/") {
		n = n.get(unescape.Replace(key))
	}
	return n
}
