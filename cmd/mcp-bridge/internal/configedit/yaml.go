package configedit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// yamlFile is YAML. It is edited by lines, and only in mappings that are written
// in block style.
type yamlFile struct{ data []byte }

func (f yamlFile) decode() (map[string]any, error) {
	root := map[string]any{}
	if err := yaml.Unmarshal(f.data, &root); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if root == nil {
		root = map[string]any{} // a text without any value
	}
	return root, nil
}

// find returns the key and the value of the member at path; nil if there is none.
func (f yamlFile) find(path []string) (key, value *yaml.Node) {
	var document yaml.Node
	if err := yaml.Unmarshal(f.data, &document); err != nil || len(document.Content) == 0 {
		return nil, nil
	}
	value = document.Content[0]
	for _, name := range path {
		i := member(value, name)
		if i < 0 {
			return nil, nil
		}
		key, value = value.Content[i], value.Content[i+1]
	}
	return key, value
}

// member is the index of a key in a mapping, or -1.
func member(mapping *yaml.Node, name string) int {
	if mapping.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return i
		}
	}
	return -1
}

func (f yamlFile) line(path []string) int {
	if key, value := f.find(path); key != nil {
		return key.Line
	} else if value != nil {
		return value.Line
	}
	return 0
}

// offset is where a line begins, counted from 1.
func (f yamlFile) offset(line int) int {
	offset := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(f.data[offset:], '\n')
		if i < 0 {
			return len(f.data)
		}
		offset += i + 1
	}
	return offset
}

// end is the offset of the first line behind a member that is not part of it:
// neither deeper than its key, nor empty, nor a comment before such a line.
func (f yamlFile) end(key *yaml.Node) int {
	offset := f.offset(key.Line + 1)
	end := offset
	for line := range bytes.Lines(f.data[offset:]) {
		offset += len(line)
		text := bytes.TrimLeft(line, " \t")
		trimmed := bytes.TrimSpace(text)
		switch indent := len(line) - len(text); {
		case len(trimmed) == 0, trimmed[0] == '#' && indent < key.Column:
		case indent >= key.Column, trimmed[0] == '-' && indent >= key.Column-1 && key.Column > 0 && f.listBelow(key):
			end = offset
		default:
			return end
		}
	}
	return end
}

// listBelow reports whether a key's value is a list, which may stand no deeper
// than the key.
func (f yamlFile) listBelow(key *yaml.Node) bool {
	line := f.data[f.offset(key.Line):]
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	return bytes.HasSuffix(bytes.TrimSpace(line), []byte(":"))
}

func (f yamlFile) remove(path, keys []string) ([]byte, error) {
	_, mapping := f.find(path)
	if mapping == nil || mapping.Kind != yaml.MappingNode || mapping.Style&yaml.FlowStyle != 0 {
		return nil, &UnsafeError{Why: "it is not written as a block"}
	}
	var splices []splice
	for i := 0; i < len(mapping.Content); i += 2 {
		key := mapping.Content[i]
		if !slices.Contains(keys, key.Value) {
			continue
		}
		splices = append(splices, splice{from: f.offset(key.Line - commentLines(key)), to: f.end(key)})
	}
	out := spliced(f.data, splices)
	if len(splices)*2 < len(mapping.Content) || len(path) == 0 {
		return out, nil
	}
	return yamlFile{out}.emptied(path)
}

// commentLines counts the lines of comments directly above a key.
func commentLines(key *yaml.Node) int {
	if key.HeadComment == "" {
		return 0
	}
	comment := key.HeadComment[strings.LastIndex(key.HeadComment, "\n\n")+1:]
	return 1 + strings.Count(strings.TrimPrefix(comment, "\n"), "\n")
}

// emptied writes {} for a mapping whose last member was removed.
func (f yamlFile) emptied(path []string) ([]byte, error) {
	key, _ := f.find(path)
	if key == nil {
		return nil, &UnsafeError{Why: "it cannot be emptied"}
	}
	start := f.offset(key.Line)
	colon := bytes.IndexByte(f.data[start:], ':')
	if colon < 0 {
		return nil, &UnsafeError{Why: "it cannot be emptied"}
	}
	return spliced(f.data, []splice{{start + colon + 1, start + colon + 1, " {}"}}), nil
}

func (f yamlFile) put(path []string, value any) ([]byte, error) {
	depth := len(path)
	key, there := f.find(path)
	for there == nil && depth > 0 {
		depth--
		key, there = f.find(path[:depth])
	}
	eol := newline(f.data)
	switch {
	case there == nil: // an empty file
		return append(bytes.Clone(f.data), yamlMember(nested(path, value), 0, eol)...), nil
	case depth == len(path):
		if there.Kind != yaml.ScalarNode || there.Line != key.Line {
			return nil, &UnsafeError{Why: "it is not a plain value"}
		}
		start := f.offset(there.Line) + there.Column - 1
		line := f.data[start:]
		if i := bytes.IndexAny(line, "\r\n"); i >= 0 {
			line = line[:i]
		}
		if i := bytes.Index(line, []byte(" #")); i >= 0 {
			line = bytes.TrimRight(line[:i], " ")
		}
		return spliced(f.data, []splice{{start, start + len(line), yamlScalar(value)}}), nil
	case there.Kind == yaml.MappingNode && there.Style&yaml.FlowStyle == 0 && len(there.Content) > 0:
		last := there.Content[len(there.Content)-2]
		text := yamlMember(nested(path[depth:], value), last.Column-1, eol)
		end := f.end(last)
		if end > 0 && f.data[end-1] != '\n' {
			text = eol + text
		}
		return spliced(f.data, []splice{{end, end, text}}), nil
	case key != nil && (there.Kind == yaml.MappingNode && len(there.Content) == 0 || there.Tag == "!!null"):
		start := f.offset(key.Line)
		line := f.data[start:]
		if i := bytes.IndexAny(line, "\r\n"); i >= 0 {
			line = line[:i]
		}
		head := bytes.TrimRight(bytes.TrimSuffix(bytes.TrimSpace(line), []byte("{}")), " ")
		if !bytes.HasSuffix(head, []byte(":")) {
			break
		}
		indent := key.Column - 1
		text := strings.Repeat(" ", indent) + string(head) + eol + strings.TrimSuffix(yamlMember(nested(path[depth:], value), indent+2, eol), eol)
		return spliced(f.data, []splice{{start, start + len(line), text}}), nil
	}
	return nil, &UnsafeError{Why: "it is not written as a block"}
}

// nested is a member with the objects of path around it.
func nested(path []string, value any) Object {
	for i := len(path) - 1; i > 0; i-- {
		value = Object{{path[i], value}}
	}
	return Object{{path[0], value}}
}

func yamlMember(object Object, indent int, eol string) string {
	var b strings.Builder
	margin := strings.Repeat(" ", indent)
	for _, f := range object {
		key := yamlScalar(f.Key)
		switch value := f.Value.(type) {
		case Object:
			if len(value) == 0 {
				b.WriteString(margin + key + ": {}" + eol)
				continue
			}
			b.WriteString(margin + key + ":" + eol + yamlMember(value, indent+2, eol))
		case []string:
			if len(value) == 0 {
				b.WriteString(margin + key + ": []" + eol)
				continue
			}
			b.WriteString(margin + key + ":" + eol)
			for _, s := range value {
				b.WriteString(margin + "  - " + yamlScalar(s) + eol)
			}
		default:
			b.WriteString(margin + key + ": " + yamlScalar(value) + eol)
		}
	}
	return b.String()
}

// yamlScalar is plain where a word is plain in every YAML, and else a string of
// JSON, which YAML has, too.
func yamlScalar(value any) string {
	s, ok := value.(string)
	if !ok {
		return fmt.Sprint(value)
	}
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("_-/.", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0 && ('a' <= s[0] && s[0] <= 'z' || s[0] == '/')
	var decoded any
	if plain && yaml.Unmarshal([]byte(s), &decoded) == nil && decoded == any(s) {
		return s
	}
	return written(s, "", "", "")
}
