package discovery

import (
	"encoding/json"
	"hash/fnv"
	"slices"
)

// fieldNames tells names of fields from data, by the words they are made of.
type fieldNames struct {
	about string
	words map[string]bool // nil until the first name is asked for
}

// most reports whether at least half of the fields have names of fields.
func (n *fieldNames) most(fields []ShapeField) bool {
	if n.words == nil {
		n.words = fieldWordSet(n.about)
	}
	known := 0
	for _, f := range fields {
		if isFieldName(f.Name, n.words) {
			known++
		}
	}
	return 2*known >= len(fields)
}

// guess marks the fields of an object as perhaps no fields at all: {"alice": 1, "bob":
// 2} is a table of which the names are data, and looks like a record. So it is
// where all values are of one form, and no word says otherwise. The names
// count when another object, of another text, has them too; until then the object
// is shown and stored as a table.
func (s *Shape) guess(names *fieldNames, text []byte) {
	const compared = 4 << 10
	if len(s.Fields) < 2 || !s.alike() || names.most(s.Fields) {
		return
	}
	h := fnv.New64a()
	_, _ = h.Write(text[:min(len(text), compared)])
	s.guessed, s.text = true, h.Sum64()
}

// sharing is the shape of an object whose fields are guessed, with those only that
// another has, too, unless these are most of them.
func (s *Shape) sharing(other *Shape) *Shape {
	var shared []ShapeField
	for _, f := range s.Fields {
		if slices.ContainsFunc(other.Fields, func(o ShapeField) bool { return o.Name == f.Name }) {
			shared = append(shared, f)
		}
	}
	if 2*len(shared) >= len(s.Fields) {
		return s
	}
	less := *s
	less.Fields, less.More = shared, true
	return &less
}

// known is the shape without what is only guessed.
func (s *Shape) known() *Shape {
	if !s.guessed {
		return s
	}
	table := *s
	table.toMap()
	table.Unsure = true
	return &table
}

// MarshalJSON implements [json.Marshaler]: nothing that is only guessed is stored.
func (s *Shape) MarshalJSON() ([]byte, error) {
	type plain Shape
	return json.Marshal((*plain)(s.known()))
}
