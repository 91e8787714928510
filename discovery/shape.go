package discovery

import (
	"slices"
)

// Bounds of a shape.
const (
	maxShapeDepth  = 6
	maxShapeFields = 60  // of one object
	maxShapeNodes  = 400 // of all of it
	maxOwnKeys     = 20  // of an object whose values are all alike; with more its keys are data
	maxOwnScalars  = 8   // the same if the values are scalars
)

// A Shape is what is known of the form of a tool's results, from those that
// were seen: types and names of fields, never values. It does not change.
type Shape struct {
	Types   []string     `json:"types,omitempty"`   // None, bool, int, float, str, bytes, Image, Audio
	List    bool         `json:"list,omitempty"`    // there were lists,
	Items   *Shape       `json:"items,omitempty"`   // with these items; nil if all were empty
	Object  bool         `json:"object,omitempty"`  // there were objects,
	Fields  []ShapeField `json:"fields,omitempty"`  // with these fields
	More    bool         `json:"more,omitempty"`    // and others
	Partial bool         `json:"partial,omitempty"` // none of them was seen to its end
	Map     bool         `json:"map,omitempty"`     // there were objects whose keys are data,
	Values  *Shape       `json:"values,omitempty"`  // with these values
	Unsure  bool         `json:"unsure,omitempty"`  // of Map: their keys may be fields after all

	// The fields may be data: see guess. They are for comparing with the next object
	// only, and neither shown nor stored.
	guessed bool
	text    uint64 // of the one object that has them: see guess
}

// A ShapeField is a field of objects.
type ShapeField struct {
	Name     string `json:"name"`
	Optional bool   `json:"optional,omitempty"` // some did not have it
	Shape    *Shape `json:"shape,omitempty"`
}

func scalarShape(name string) *Shape { return &Shape{Types: []string{name}} }

// Merged returns the shape of what is of one shape or the other. Either may be
// nil, for nothing.
func (s *Shape) Merged(other *Shape) *Shape {
	m := s.merged(other, 0)
	for depth := maxShapeDepth; m.nodes() > maxShapeNodes && depth > 0; depth-- {
		m = m.pruned(depth)
	}
	return m
}

func (s *Shape) merged(other *Shape, depth int) *Shape {
	switch {
	case s == nil:
		return other
	case other == nil:
		return s
	case depth > 2*maxShapeDepth:
		return nil
	}
	m := &Shape{
		Types: appendNew(slices.Clone(s.Types), other.Types),
		List:  s.List || other.List,
		Items: s.Items.merged(other.Items, depth+1),
		Map:   s.Map && !s.Unsure || other.Map && !other.Unsure,
	}
	slices.Sort(m.Types)
	m.Values = s.Values.merged(other.Values, depth+1)
	switch {
	case !s.Object && !other.Object && (s.Map || other.Map):
		m.Map, m.Unsure = true, !m.Map
	case !m.Map && (s.Map || other.Map): // the objects tell
		m.Values = nil
	}
	switch {
	case s.Object && other.Object:
		m.mergeFields(s, other, depth)
	case s.Object:
		m.takeFields(s)
	case other.Object:
		m.takeFields(other)
	}
	if m.Object && m.Map { // keys that were data once always are
		m.toMap()
	}
	return m
}

func (s *Shape) takeFields(of *Shape) {
	s.Object, s.Fields, s.More, s.Partial = true, of.Fields, of.More, of.Partial
	s.guessed, s.text = of.guessed, of.text
}

func (s *Shape) mergeFields(a, b *Shape, depth int) {
	switch {
	case a.guessed && !b.guessed:
		a = a.sharing(b)
	case b.guessed && !a.guessed:
		b = b.sharing(a)
	}
	s.Object, s.More, s.Partial = true, a.More || b.More, a.Partial && b.Partial
	shared := 0
	for _, f := range a.Fields {
		i := slices.IndexFunc(b.Fields, func(other ShapeField) bool { return other.Name == f.Name })
		if i >= 0 {
			shared++
			f.Optional = f.Optional || b.Fields[i].Optional
			f.Shape = f.Shape.merged(b.Fields[i].Shape, depth+1)
		} else {
			f.Optional = f.Optional || !b.Partial
		}
		s.Fields = append(s.Fields, f)
	}
	for _, f := range b.Fields {
		if slices.ContainsFunc(a.Fields, func(other ShapeField) bool { return other.Name == f.Name }) {
			continue
		}
		f.Optional = f.Optional || !a.Partial
		s.Fields = append(s.Fields, f)
	}
	strangers := shared == 0 && len(a.Fields) > 0 && len(b.Fields) > 0
	// Of fields some are always there; of entries each object has others.
	differ := shared < len(a.Fields) && shared < len(b.Fields) && 2*shared < len(s.Fields)
	if (strangers || len(s.Fields) > maxOwnKeys) && s.alike() || differ && s.scalars() || s.dataLike() {
		s.toMap()
		return
	}
	s.guessed, s.text = a.guessed && b.guessed && (a.text == b.text || 2*shared < len(s.Fields)), a.text
	if len(s.Fields) > maxShapeFields {
		s.Fields, s.More = s.Fields[:maxShapeFields], true
	}
}

// toMap takes the names of the fields for data.
func (s *Shape) toMap() {
	for _, f := range s.Fields {
		s.Values = s.Values.merged(f.Shape, 0)
	}
	s.Object, s.Fields, s.More, s.Partial, s.Map = false, nil, false, false, true
	s.guessed, s.text = false, 0
}

// alike reports whether the values of all fields are of one form.
func (s *Shape) alike() bool {
	for i := range s.Fields {
		if !s.Fields[0].Shape.like(s.Fields[i].Shape) {
			return false
		}
	}
	return true
}

// like reports whether two shapes are of one form, as far as that is seen from
// outside.
func (s *Shape) like(other *Shape) bool {
	if s == nil || other == nil {
		return s == other
	}
	if s.List != other.List || s.Map != other.Map || s.Object != other.Object || len(s.Fields) != len(other.Fields) {
		return false
	}
	for i := range s.Fields {
		if s.Fields[i].Name != other.Fields[i].Name {
			return false
		}
	}
	number := func(name string) string {
		if name == "float" {
			return "int"
		}
		return name
	}
	return slices.EqualFunc(s.Types, other.Types, func(a, b string) bool { return number(a) == number(b) })
}

// Equal reports whether two shapes are the same.
func (s *Shape) Equal(other *Shape) bool {
	if s == nil || other == nil {
		return s == other
	}
	return slices.Equal(s.Types, other.Types) && s.List == other.List && s.Object == other.Object && s.More == other.More &&
		s.Partial == other.Partial && s.Map == other.Map && s.Unsure == other.Unsure && s.guessed == other.guessed && s.Items.Equal(other.Items) && s.Values.Equal(other.Values) &&
		slices.EqualFunc(s.Fields, other.Fields, func(a, b ShapeField) bool {
			return a.Name == b.Name && a.Optional == b.Optional && a.Shape.Equal(b.Shape)
		})
}

// nodes counts the shapes in a shape, itself included.
func (s *Shape) nodes() int {
	if s == nil {
		return 0
	}
	n := 1 + s.Items.nodes() + s.Values.nodes()
	for _, f := range s.Fields {
		n += f.Shape.nodes()
	}
	return n
}

// pruned leaves out what is deeper than so many levels.
func (s *Shape) pruned(levels int) *Shape {
	if s == nil || levels == 0 {
		return nil
	}
	p := *s
	p.Items, p.Values = s.Items.pruned(levels-1), s.Values.pruned(levels-1)
	p.Fields = slices.Clone(s.Fields)
	for i := range p.Fields {
		p.Fields[i].Shape = p.Fields[i].Shape.pruned(levels - 1)
	}
	return &p
}

// String writes the shape as a type, as in a signature.
func (s *Shape) String() string { return s.pyType().text(maxReturnLength) }

// pyType is the shape as a type.
func (s *Shape) pyType() *pyType {
	if s == nil {
		return anything()
	}
	s = s.known()
	var parts []*pyType
	if s.List {
		parts = append(parts, &pyType{kind: typeList, parts: []*pyType{s.Items.pyType()}})
	}
	if s.Object {
		t := &pyType{kind: typeObject, more: s.More || s.Partial}
		for _, f := range s.Fields {
			t.fields = append(t.fields, pyField{f.Name, f.Optional, f.Shape.pyType()})
		}
		parts = append(parts, t)
	}
	if s.Map {
		parts = append(parts, &pyType{kind: typeDict, parts: []*pyType{s.Values.pyType()}})
	}
	for _, name := range s.Types {
		if name != "int" || !slices.Contains(s.Types, "float") {
			parts = append(parts, named(name))
		}
	}
	return union(parts...)
}

const shapeTypes = "None bool int float str bytes Image Audio"

// usable reports whether a shape that was stored is one that could have been
// made here.
func (s *Shape) usable(depth int) bool {
	if s == nil {
		return true
	}
	known := wordSet(shapeTypes)
	for _, name := range s.Types {
		if !known[name] {
			return false
		}
	}
	for _, f := range s.Fields {
		if !fieldLike(f.Name) || !f.Shape.usable(depth+1) {
			return false
		}
	}
	return depth <= 2*maxShapeDepth && len(s.Fields) <= maxShapeFields && s.Items.usable(depth+1) && s.Values.usable(depth+1)
}
