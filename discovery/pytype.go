package discovery

import (
	"slices"
	"strings"
)

// A typeKind is the kind of a pyType.
type typeKind int

const (
	typeAny     typeKind = iota
	typeNamed            // text: str, int, None, Image, …
	typeLiteral          // parts: values; named: what they are instances of
	typeList             // parts: of its items, if known
	typeTuple            // parts: of each item
	typeDict             // parts: of its values, if known
	typeObject           // fields
	typeUnion            // parts: the alternatives
)

// A pyType is a type of Python values. It is a tree: whoever makes one bounds
// it, and text bounds what is written of it.
type pyType struct {
	kind   typeKind
	name   string   // of a typeNamed
	values []string // of a typeLiteral, as Python literals
	parts  []*pyType
	fields []pyField
	more   bool // of a typeObject: there are fields beside these
}

type pyField struct {
	name     string
	optional bool
	of       *pyType
}

func named(name string) *pyType { return &pyType{kind: typeNamed, name: name} }

func anything() *pyType { return &pyType{kind: typeAny} }

// isAny reports that nothing is known; a nil type is so.
func (t *pyType) isAny() bool { return t == nil || t.kind == typeAny }

// vague reports that a type says nothing of what is inside its values.
func (t *pyType) vague() bool {
	switch {
	case t.isAny():
		return true
	case t.kind == typeList || t.kind == typeDict:
		return len(t.parts) == 0 || t.parts[0].vague()
	case t.kind == typeObject:
		return len(t.fields) == 0
	}
	return false
}

// union returns the type of what is of any of these types.
func union(types ...*pyType) *pyType {
	var parts []*pyType
	var literal *pyType
	var add func(list []*pyType) bool
	add = func(list []*pyType) bool {
		for _, t := range list {
			switch {
			case t.isAny():
				return false
			case t.kind == typeUnion:
				if !add(t.parts) {
					return false
				}
			case t.kind == typeLiteral && literal != nil:
				literal.values = appendNew(literal.values, t.values)
				for _, base := range t.parts {
					if !containsNamed(literal.parts, base.name) {
						literal.parts = append(literal.parts, base)
					}
				}
			case t.kind == typeLiteral:
				literal = &pyType{kind: typeLiteral, values: slices.Clone(t.values), parts: slices.Clone(t.parts)}
				parts = append(parts, literal)
			case t.kind == typeNamed && containsNamed(parts, t.name):
			default:
				parts = append(parts, t)
			}
		}
		return true
	}
	if !add(types) || len(parts) == 0 {
		return anything()
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &pyType{kind: typeUnion, parts: parts}
}

func appendNew(list, more []string) []string {
	for _, v := range more {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

func containsNamed(list []*pyType, name string) bool {
	return slices.ContainsFunc(list, func(t *pyType) bool { return t.kind == typeNamed && t.name == name })
}

// narrowed returns the type of what is of both types, as well as it can: the
// one that says more where they cannot be combined.
func narrowed(a, b *pyType) *pyType {
	switch {
	case a.isAny():
		return b
	case b.isAny():
		return a
	case a.kind == typeObject && b.kind == typeObject:
		return mergedObjects(a, b)
	case specificity(b) > specificity(a):
		return b
	}
	return a
}

func specificity(t *pyType) int {
	switch t.kind {
	case typeLiteral:
		return 4
	case typeObject:
		return 3
	case typeTuple:
		return 3
	case typeList, typeDict:
		return 2
	case typeNamed:
		return 1
	}
	return 0
}

// mergedObjects has the fields of both, required if either requires them.
func mergedObjects(a, b *pyType) *pyType {
	m := &pyType{kind: typeObject, fields: slices.Clone(a.fields), more: a.more || b.more}
	for _, f := range b.fields {
		i := slices.IndexFunc(m.fields, func(have pyField) bool { return have.name == f.name })
		if i < 0 {
			m.fields = append(m.fields, f)
			continue
		}
		m.fields[i].optional = m.fields[i].optional && f.optional
		m.fields[i].of = narrowed(m.fields[i].of, f.of)
	}
	return m
}

// Bounds of a type that is written.
const (
	deepestWritten = 4
	maxUnion       = 5 // alternatives worth writing out
	maxEnumLength  = 80
)

// text writes the type in at most limit bytes: with all that is nested if that
// fits, else with as many levels as do, else with the first few fields.
func (t *pyType) text(limit int) string {
	for levels := deepestWritten; levels >= 0; levels-- {
		w := typeWriter{limit: limit}
		w.write(t, levels)
		if !w.full() {
			return w.String()
		}
		if levels == 1 {
			w = typeWriter{limit: limit, cut: true}
			w.write(t, 1)
			if !w.full() {
				return w.String()
			}
		}
	}
	return anyType
}

// A typeWriter writes types until it is full.
type typeWriter struct {
	strings.Builder
	limit int
	cut   bool // leave out fields that do not fit
}

func (w *typeWriter) full() bool { return w.Len() > w.limit }

func (w *typeWriter) write(t *pyType, levels int) {
	if w.full() {
		return
	}
	switch {
	case t.isAny():
		w.WriteString(anyType)
	case t.kind == typeNamed:
		w.WriteString(t.name)
	case t.kind == typeLiteral:
		w.literal(t)
	case t.kind == typeList:
		w.generic("list", t, levels)
	case t.kind == typeDict:
		w.generic("dict", t, levels)
	case t.kind == typeTuple && levels > 0:
		w.WriteString("tuple[")
		for i, part := range t.parts {
			writeSeparator(&w.Builder, i)
			w.write(part, levels-1)
		}
		w.WriteString("]")
	case t.kind == typeTuple:
		w.WriteString("list")
	case t.kind == typeObject:
		w.object(t, levels)
	case t.kind == typeUnion:
		w.union(t, levels)
	}
}

// generic writes list[…] and dict[str, …]; unknown items are not written.
func (w *typeWriter) generic(name string, t *pyType, levels int) {
	w.WriteString(name)
	// To go into a list costs no level, or there would be none for what it holds;
	// about lists of lists of lists nobody wants to know.
	if len(t.parts) == 0 || t.parts[0].isAny() || levels < 0 {
		return
	}
	below := levels
	if t.parts[0].kind == typeList || t.parts[0].kind == typeDict {
		below = levels - 1
	}
	w.WriteString("[")
	if name == "dict" {
		w.WriteString("str, ")
	}
	w.write(t.parts[0], below)
	w.WriteString("]")
}

func (w *typeWriter) object(t *pyType, levels int) {
	if levels <= 0 || len(t.fields) == 0 {
		w.WriteString("dict")
		return
	}
	w.WriteString("{")
	more := t.more
	for i, f := range t.fields {
		field := typeWriter{limit: w.limit}
		writeSeparator(&field.Builder, i)
		field.WriteString(shownName(f.name))
		if f.optional {
			field.WriteString("?")
		}
		field.WriteString(": ")
		field.write(f.of, levels-1)
		const ending = len(", ...}]]]")
		if w.cut && i > 0 && w.Len()+field.Len()+ending > w.limit {
			more = true
			break
		}
		w.WriteString(field.String())
		if w.full() {
			return
		}
	}
	if more {
		w.WriteString(", ...")
	}
	w.WriteString("}")
}

// shownName is a field's name as it is written: quoted if it could not be a variable's.
func shownName(name string) string {
	if isIdentifier(name) && !isKeyword(name) {
		return name
	}
	return pythonQuoted(name)
}

func (w *typeWriter) literal(t *pyType) {
	if !t.writable() {
		w.write(union(t.parts...), 0)
		return
	}
	w.WriteString("Literal[" + strings.Join(t.values, ", ") + "]")
}

// writable reports whether the values of a literal type are few and short.
func (t *pyType) writable() bool {
	length := 0
	for _, v := range t.values {
		length += len(v) + len(", ")
	}
	return length <= maxEnumLength+len(", ") && !slices.Contains(t.values, "...")
}

// union writes the alternatives, each once, None last.
func (w *typeWriter) union(t *pyType, levels int) {
	var texts []string
	for _, part := range t.parts {
		alternatives := []*pyType{part}
		if part.kind == typeLiteral && !part.writable() {
			alternatives = part.parts
		}
		for _, alternative := range alternatives {
			inner := typeWriter{limit: w.limit, cut: w.cut}
			inner.write(alternative, levels)
			texts = appendNew(texts, []string{inner.String()})
		}
	}
	if i := slices.Index(texts, "None"); i >= 0 {
		texts = append(slices.Delete(texts, i, i+1), "None")
	}
	if len(texts) > maxUnion || slices.Contains(texts, anyType) {
		texts = []string{anyType}
	}
	w.WriteString(strings.Join(texts, " | "))
}

// fieldNames appends the names of the fields in a type, all levels of it.
func (t *pyType) fieldNames(names []string) []string {
	if t == nil {
		return names
	}
	for _, part := range t.parts {
		names = part.fieldNames(names)
	}
	for _, f := range t.fields {
		names = f.of.fieldNames(append(names, f.name))
	}
	return names
}
