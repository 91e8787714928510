// Package configedit changes single members of configuration files that belong
// to somebody else, and leaves everything else as it is, byte for byte: other
// settings, comments, the order and the form of what is written.
//
// Every edit is checked by decoding what it made: unless that is exactly what
// was wanted, the edit fails with an [*UnsafeError], and says which line a
// person has to change.
package configedit

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// A Format is a syntax of configuration files.
type Format int

// The formats that can be edited. JSON may have comments and trailing commas.
const (
	JSON Format = iota
	TOML
	YAML
)

// FormatOf tells a file's format by its name.
func FormatOf(path string) Format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".toml":
		return TOML
	case ".yaml", ".yml":
		return YAML
	}
	return JSON
}

// A Field is a member of an Object. Its value is a string, a bool, an int, a
// []string or an Object.
type Field struct {
	Key   string
	Value any
}

// An Object is a value that is written with its members in this order.
type Object []Field

// plain is the object as decoding it gives it.
func (o Object) plain() map[string]any {
	m := make(map[string]any, len(o))
	for _, f := range o {
		m[f.Key] = plainValue(f.Value)
	}
	return m
}

func plainValue(value any) any {
	switch value := value.(type) {
	case Object:
		return value.plain()
	case []string:
		list := make([]any, len(value))
		for i, s := range value {
			list[i] = s
		}
		return list
	case int:
		return fmt.Sprint(value) // as normal has numbers
	}
	return value
}

// An UnsafeError is why a file was not edited.
type UnsafeError struct {
	Line int // from 1, where a person would have to change the file; 0 if it is not known
	Why  string
}

func (e *UnsafeError) Error() string {
	if e.Line == 0 {
		return e.Why
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Why)
}

// A syntax is what a format can do. Neither method checks what it made.
type syntax interface {
	decode() (map[string]any, error)
	// remove cuts members of the object at path.
	remove(path, keys []string) ([]byte, error)
	// put adds a member, or replaces its value. What is above it is made.
	put(path []string, value any) ([]byte, error)
	line(path []string) int
}

func open(f Format, data []byte) syntax {
	switch f {
	case TOML:
		return tomlFile{data}
	case YAML:
		return yamlFile{data}
	}
	return jsonFile{data}
}

var bom = []byte("\ufeff")

// Remove takes members away from the object at path; those that are not there
// are passed over.
func Remove(f Format, data []byte, path []string, keys ...string) ([]byte, error) {
	return edit(f, data, func(s syntax, want map[string]any) ([]byte, error) {
		parent := at(want, path)
		var there []string
		for _, key := range keys {
			if _, ok := parent[key]; ok {
				there = append(there, key)
				delete(parent, key)
			}
		}
		if len(there) == 0 {
			return nil, nil
		}
		out, err := s.remove(path, there)
		return out, lined(err, s, append(slices.Clone(path), there[0]))
	}, path)
}

// Put adds the member at path, or replaces its value; missing objects above it
// are made. See [Field] for what value may be.
func Put(f Format, data []byte, value any, path ...string) ([]byte, error) {
	return edit(f, data, func(s syntax, want map[string]any) ([]byte, error) {
		parent := want
		for i, key := range path[:len(path)-1] {
			next, ok := parent[key].(map[string]any)
			if !ok {
				if parent[key] != nil {
					return nil, &UnsafeError{s.line(path[:i+1]), fmt.Sprintf("%q is no object", key)}
				}
				next = map[string]any{}
				parent[key] = next
			}
			parent = next
		}
		parent[path[len(path)-1]] = plainValue(value)
		out, err := s.put(path, value)
		return out, lined(err, s, path)
	}, path)
}

// lined gives an error the line of the nearest thing that is there.
func lined(err error, s syntax, path []string) error {
	unsafe, ok := err.(*UnsafeError) //nolint:errorlint // made here, never wrapped
	if ok && unsafe.Line == 0 {
		for i := len(path); i > 0 && unsafe.Line == 0; i-- {
			unsafe.Line = s.line(path[:i])
		}
	}
	return err
}

func edit(f Format, data []byte, change func(s syntax, want map[string]any) ([]byte, error), path []string) ([]byte, error) {
	text, marked := bytes.CutPrefix(data, bom)
	s := open(f, text)
	want, err := s.decode()
	if err != nil {
		return nil, err
	}
	out, err := change(s, want)
	if err != nil || out == nil {
		return data, err
	}
	got, err := open(f, out).decode()
	if err != nil || !reflect.DeepEqual(normal(got), normal(want)) {
		return nil, lined(&UnsafeError{Why: "it is written in a way that cannot be edited without touching other settings"}, s, path)
	}
	if marked {
		out = append(slices.Clone(bom), out...)
	}
	return out, nil
}

// Lookup returns the value at path as decoded, or nil. A file that cannot be
// decoded has none.
func Lookup(f Format, data []byte, path ...string) any {
	root, err := open(f, bytes.TrimPrefix(data, bom)).decode()
	if err != nil {
		return nil
	}
	var value any = root
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

func at(root map[string]any, path []string) map[string]any {
	for _, key := range path {
		next, ok := root[key].(map[string]any)
		if !ok {
			return nil
		}
		root = next
	}
	return root
}

// normal makes values of different decoders alike, and empty objects absent:
// whether an object without members is there makes no difference to anybody.
func normal(value any) any {
	switch value := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(value))
		for key := range maps.Keys(value) {
			if v := normal(value[key]); v != nil {
				m[key] = v
			}
		}
		if len(m) == 0 {
			return nil
		}
		return m
	case []any:
		list := make([]any, len(value))
		for i, v := range value {
			list[i] = normal(v)
		}
		return list
	case nil, string, bool:
		return value
	}
	return fmt.Sprint(value)
}

// A splice replaces a span of a text.
type splice struct {
	from, to int
	text     string
}

// spliced applies splices, which must not overlap.
func spliced(data []byte, splices []splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.from - b.from })
	var out bytes.Buffer
	last := 0
	for _, s := range splices {
		if s.from > last {
			out.Write(data[last:s.from])
		}
		out.WriteString(s.text)
		last = max(last, s.to)
	}
	return append(append([]byte{}, out.Bytes()...), data[last:]...) // never nil
}

// lineOf is the line of an offset, from 1.
func lineOf(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte("\n"))
}

// newline is how the lines of a text end.
func newline(data []byte) string {
	if bytes.Contains(data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// Valid returns the error of a file that cannot be decoded.
func Valid(f Format, data []byte) error {
	_, err := open(f, bytes.TrimPrefix(data, bom)).decode()
	return err
}
