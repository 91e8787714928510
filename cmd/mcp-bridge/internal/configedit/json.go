package configedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonFile is JSON, comments and trailing commas allowed.
type jsonFile struct{ data []byte }

func (j jsonFile) parse() (hujson.Value, error) {
	if len(bytes.TrimSpace(j.data)) == 0 {
		return hujson.Value{Value: &hujson.Object{}}, nil // clients take an empty file for one without settings
	}
	return hujson.Parse(j.data)
}

func (j jsonFile) decode() (map[string]any, error) {
	if len(bytes.TrimSpace(j.data)) == 0 {
		return map[string]any{}, nil
	}
	text, err := hujson.Standardize(bytes.Clone(j.data))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var root map[string]any
	if err := d.Decode(&root); err != nil {
		return nil, err
	}
	if root == nil {
		return nil, errors.New("is no object")
	}
	return root, nil
}

// find returns the object at path, and nil if there is none. One of its name
// that is there twice is an error: clients differ in which of them counts.
func (j jsonFile) find(path []string) (*hujson.Value, error) {
	root, err := j.parse()
	if err != nil {
		return nil, err
	}
	value := &root
	for _, key := range path {
		object, ok := value.Value.(*hujson.Object)
		if !ok {
			return nil, nil
		}
		var found *hujson.Value
		for i := range object.Members {
			if nameOf(&object.Members[i]) != key {
				continue
			}
			if found != nil {
				return nil, &UnsafeError{lineOf(j.data, object.Members[i].Name.StartOffset), fmt.Sprintf("%q is there twice", key)}
			}
			found = &object.Members[i].Value
		}
		if found == nil {
			return nil, nil
		}
		value = found
	}
	return value, nil
}

func nameOf(m *hujson.ObjectMember) string {
	literal, ok := m.Name.Value.(hujson.Literal)
	if !ok {
		return ""
	}
	return literal.String()
}

func (j jsonFile) line(path []string) int {
	if value, err := j.find(path); err == nil && value != nil {
		return lineOf(j.data, value.StartOffset)
	}
	return 0
}

// gap is the text before member i of an object, behind the brace or comma; that
// of the count of members is what stands before the closing brace.
func (j jsonFile) gap(v *hujson.Value, object *hujson.Object, i int) (from, to int) {
	from = v.StartOffset + 1
	if i > 0 {
		from = j.behind(object, i-1)
	}
	if i < len(object.Members) {
		return from, object.Members[i].Name.StartOffset
	}
	return from, v.EndOffset - 1
}

// comma is where the comma behind a member is, or would be.
func (j jsonFile) comma(object *hujson.Object, i int) int {
	value := &object.Members[i].Value
	return value.EndOffset + len(value.AfterExtra)
}

// behind is the offset behind a member and its comma, if it has one.
func (j jsonFile) behind(object *hujson.Object, i int) int {
	if i < len(object.Members)-1 || trailingComma(object) {
		return j.comma(object, i) + 1
	}
	return object.Members[i].Value.EndOffset
}

func trailingComma(object *hujson.Object) bool {
	n := len(object.Members)
	return n > 0 && object.Members[n-1].Value.AfterExtra != nil
}

// lineEnd is the offset of the end of the line on which a gap begins: what is
// before it belongs to what is before the gap, such as a comment behind it.
func (j jsonFile) lineEnd(from, to int) int {
	if i := bytes.IndexByte(j.data[from:to], '\n'); i >= 0 {
		if i > 0 && j.data[from+i-1] == '\r' {
			i--
		}
		return from + i
	}
	return from
}

func (j jsonFile) remove(path, keys []string) ([]byte, error) {
	v, err := j.find(path)
	if err != nil {
		return nil, err
	}
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, &UnsafeError{Why: "it is no object"}
	}
	var splices []splice
	lastKept := -1
	for i := range object.Members {
		if !slices.Contains(keys, nameOf(&object.Members[i])) {
			lastKept = i
			continue
		}
		from, to := j.gap(v, object, i)
		start := j.lineEnd(from, to)
		// Comments directly above go with the member, those above a blank line stay.
		if blank := lastBlankLine(j.data[start:to]); blank > 0 {
			start += blank
		}
		end := j.lineEnd(j.gap(v, object, i+1))
		splices = append(splices, splice{from: start, to: end})
	}
	if n := len(object.Members); lastKept >= 0 && lastKept < n-1 && !trailingComma(object) {
		comma := j.comma(object, lastKept)
		splices = append(splices, splice{from: comma, to: comma + 1})
	}
	return spliced(j.data, splices), nil
}

// lastBlankLine is the offset of the end of the last empty line, or -1. Lines of
// spaces are left alone.
func lastBlankLine(gap []byte) int {
	for i := len(gap) - 1; i > 0; i-- {
		if gap[i] != '\n' {
			continue
		}
		before := bytes.TrimRight(gap[:i], " \t\r")
		if len(before) > 0 && before[len(before)-1] == '\n' {
			if gap[i-1] == '\r' {
				return i - 1
			}
			return i
		}
	}
	return -1
}

func (j jsonFile) put(path []string, value any) ([]byte, error) {
	if len(bytes.TrimSpace(j.data)) == 0 {
		return jsonFile{[]byte("{}\n")}.put(path, value)
	}
	for depth := len(path); ; depth-- {
		v, err := j.find(path[:depth])
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue // the root is always there
		}
		if depth == len(path) {
			text := written(value, j.indentOf(v.StartOffset), j.unit(), newline(j.data))
			return spliced(j.data, []splice{{v.StartOffset, v.EndOffset, text}}), nil
		}
		for i := len(path) - 1; i > depth; i-- {
			value = Object{{path[i], value}}
		}
		object, ok := v.Value.(*hujson.Object)
		if !ok {
			if depth == 0 {
				return nil, &UnsafeError{1, "it is no object"}
			}
			text := written(Object{{path[depth], value}}, j.indentOf(v.StartOffset), j.unit(), newline(j.data)) // was null
			return spliced(j.data, []splice{{v.StartOffset, v.EndOffset, text}}), nil
		}
		return spliced(j.data, j.insert(v, object, path[depth], value)), nil
	}
}

// insert adds a member at the end of an object.
func (j jsonFile) insert(v *hujson.Value, object *hujson.Object, key string, value any) []splice {
	n := len(object.Members)
	from, to := j.gap(v, object, n)
	inLines := bytes.IndexByte(j.data[v.StartOffset:v.EndOffset], '\n') >= 0
	if n == 0 {
		inLines = inLines || v.StartOffset == 0 || bytes.IndexByte(bytes.TrimSpace(j.data), '\n') >= 0
	} else if first, end := j.gap(v, object, 0); bytes.IndexByte(j.data[first:end], '\n') < 0 {
		inLines = false
	}
	name := string(hujson.String(key))
	if !inLines {
		text := name + ": " + written(value, "", "", "")
		if n > 0 {
			return []splice{{from: object.Members[n-1].Value.EndOffset, to: object.Members[n-1].Value.EndOffset, text: ", " + text}}
		}
		return []splice{{from: from, to: from, text: text}}
	}
	eol, unit := newline(j.data), j.unit()
	outer := j.indentOf(v.StartOffset)
	indent := outer + unit
	if n > 0 {
		indent = j.indentOf(object.Members[0].Name.StartOffset)
	}
	text := eol + indent + name + ": " + written(value, indent, unit, eol)
	if trailingComma(object) {
		text += ","
	}
	place := j.lineEnd(from, to)
	if bytes.IndexByte(j.data[from:to], '\n') < 0 {
		place = from
		text += eol + outer
	}
	splices := []splice{{place, place, text}}
	if n > 0 && !trailingComma(object) {
		end := object.Members[n-1].Value.EndOffset
		if end == place {
			splices[0].text = "," + text
		} else {
			splices = append(splices, splice{end, end, ","})
		}
	}
	return splices
}

// indentOf is the white space that the line of an offset begins with.
func (j jsonFile) indentOf(offset int) string {
	line := j.data[bytes.LastIndexByte(j.data[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unit is by how much the file indents: as its first indented line.
func (j jsonFile) unit() string {
	for line := range bytes.Lines(j.data) {
		if rest := bytes.TrimLeft(line, " \t"); len(rest) < len(line) && len(bytes.TrimSpace(rest)) > 0 {
			return string(line[:len(line)-len(rest)])
		}
	}
	return "  "
}

// written is a value as JSON, over several lines unless unit is empty. Lists of
// strings stay on one line, as people write them.
func written(value any, indent, unit, eol string) string {
	switch value := value.(type) {
	case Object:
		if len(value) == 0 {
			return "{}"
		}
		open, between, end := "{"+eol+indent+unit, ","+eol+indent+unit, eol+indent+"}"
		if unit == "" {
			open, between, end = "{", ", ", "}"
		}
		parts := make([]string, len(value))
		for i, f := range value {
			parts[i] = string(hujson.String(f.Key)) + ": " + written(f.Value, indent+unit, unit, eol)
		}
		return open + strings.Join(parts, between) + end
	case []string:
		parts := make([]string, len(value))
		for i, s := range value {
			parts[i] = string(hujson.String(s))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return string(hujson.String(value))
	}
	return fmt.Sprint(value) // bool, int
}
