package configedit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// tomlFile is TOML. It is edited by its statements: the headers of tables, and
// keys with their values.
type tomlFile struct{ data []byte }

func (f tomlFile) decode() (map[string]any, error) {
	root := map[string]any{}
	if err := toml.Unmarshal(f.data, &root); err != nil {
		return nil, err
	}
	return root, nil
}

// A statement is a table's header, or a key with its value.
type statement struct {
	path     []string // from the root
	header   bool
	array    bool // [[header]]
	from, to int  // of its lines
	value    int  // offset of a key's value
	valueEnd int
}

// statements reads all of them. The text is known to be valid TOML.
func (f tomlFile) statements() []statement {
	var list []statement
	var table []string
	s := tomlScanner{data: f.data}
	for s.pos < len(s.data) {
		start := s.pos
		s.space()
		switch {
		case s.at("#"), s.at("\n"), s.at("\r"):
			s.skipLine()
			continue
		case s.pos >= len(s.data):
			continue
		case s.at("["):
			array := s.at("[[")
			s.pos += 1
			if array {
				s.pos++
			}
			table = s.key()
			s.skipLine()
			list = append(list, statement{path: table, header: true, array: array, from: start, to: s.pos})
		default:
			key := s.key()
			s.pos++ // the equals sign
			s.space()
			value := s.pos
			s.value()
			end := s.pos
			s.skipLine()
			list = append(list, statement{path: append(slices.Clone(table), key...), from: start, to: s.pos, value: value, valueEnd: end})
		}
	}
	return list
}

func hasPrefix(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

func (f tomlFile) line(path []string) int {
	for _, s := range f.statements() {
		if hasPrefix(s.path, path) {
			return lineOf(f.data, s.from)
		}
	}
	return 0
}

func (f tomlFile) remove(path, keys []string) ([]byte, error) {
	gone := func(s statement) bool {
		return hasPrefix(s.path, path) && len(s.path) > len(path) && slices.Contains(keys, s.path[len(path)])
	}
	var splices []splice
	list := f.statements()
	for i, s := range list {
		if !gone(s) {
			continue
		}
		end := s.to
		if i+1 < len(list) && (s.header || list[i+1].header) {
			end = f.above(list[i+1].from, s.to) // blank lines go with it, the next one's comments stay
		} else if i+1 == len(list) && len(bytes.TrimSpace(f.data[s.to:])) == 0 {
			end = len(f.data)
		}
		start := s.from
		if i == 0 || !gone(list[i-1]) {
			least := 0
			if i > 0 {
				least = list[i-1].to
			}
			if start = f.above(s.from, least); start == 0 {
				start = s.from // comments at the top are the file's
			}
		}
		splices = append(splices, splice{from: start, to: end})
	}
	out := spliced(f.data, splices)
	if n := len(splices); n > 0 && splices[n-1].to == len(f.data) && len(out) > 0 {
		out = append(bytes.TrimRight(out, "\r\n"), newline(f.data)...)
	}
	return out, nil
}

// above is where the comments that stand directly above an offset begin.
func (f tomlFile) above(offset, least int) int {
	for offset > least {
		before := bytes.LastIndexByte(f.data[:offset-1], '\n') + 1
		if before < least || !bytes.HasPrefix(bytes.TrimLeft(f.data[before:offset], " \t"), []byte("#")) {
			break
		}
		offset = before
	}
	return offset
}

func (f tomlFile) put(path []string, value any) ([]byte, error) {
	list := f.statements()
	eol := newline(f.data)
	parent, key := path[:len(path)-1], path[len(path)-1]
	object, isObject := value.(Object)
	last := -1 // of the statements in the parent's own table
	for i, s := range list {
		switch {
		case s.header && s.array && hasPrefix(path, s.path):
			return nil, &UnsafeError{lineOf(f.data, s.from), "is a list of tables"}
		case slices.Equal(s.path, path) && !s.header:
			return spliced(f.data, []splice{{s.value, s.valueEnd, tomlInline(value)}}), nil
		case hasPrefix(s.path, path) && isObject:
			return nil, &UnsafeError{lineOf(f.data, s.from), fmt.Sprintf("%q is there already", key)}
		case s.header && slices.Equal(s.path, parent):
			last = i
		case !s.header && last >= 0 && hasPrefix(s.path, parent) && len(s.path) > len(parent):
			last = i
		case s.header && last >= 0:
			if !isObject {
				text := tomlKey(key) + " = " + tomlInline(value) + eol
				return spliced(f.data, []splice{{list[last].to, list[last].to, text}}), nil
			}
		}
	}
	text := string(f.data)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += eol
	}
	if !isObject {
		if last < 0 {
			return nil, &UnsafeError{Why: "there is no table of its own for it"}
		}
		return []byte(text + tomlKey(key) + " = " + tomlInline(value) + eol), nil
	}
	if text != "" {
		text += eol
	}
	return []byte(text + tomlTable(path, object, eol)), nil
}

// tomlTable writes an object as a table, and those in it as tables below.
func tomlTable(path []string, object Object, eol string) string {
	var keys, tables strings.Builder
	for _, f := range object {
		if below, ok := f.Value.(Object); ok {
			tables.WriteString(eol + tomlTable(append(slices.Clone(path), f.Key), below, eol))
			continue
		}
		keys.WriteString(tomlKey(f.Key) + " = " + tomlInline(f.Value) + eol)
	}
	quoted := make([]string, len(path))
	for i, key := range path {
		quoted[i] = tomlKey(key)
	}
	return "[" + strings.Join(quoted, ".") + "]" + eol + keys.String() + tables.String()
}

func tomlKey(key string) string {
	bare := func(r rune) bool {
		return r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	if key != "" && !strings.ContainsFunc(key, func(r rune) bool { return !bare(r) }) {
		return key
	}
	return tomlString(key)
}

func tomlInline(value any) string {
	switch value := value.(type) {
	case string:
		return tomlString(value)
	case []string:
		parts := make([]string, len(value))
		for i, s := range value {
			parts[i] = tomlString(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Object:
		parts := make([]string, len(value))
		for i, f := range value {
			parts[i] = tomlKey(f.Key) + " = " + tomlInline(f.Value)
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return fmt.Sprint(value)
}

// tomlString is a basic string; those of JSON are, but for DEL.
func tomlString(s string) string {
	return strings.ReplaceAll(written(s, "", "", ""), "\x7f", `\u007f`)
}

// tomlScanner finds the ends of keys and values in valid TOML. It never goes
// beyond the text, whatever that is.
type tomlScanner struct {
	data []byte
	pos  int
}

func (s *tomlScanner) at(prefix string) bool { return bytes.HasPrefix(s.data[s.pos:], []byte(prefix)) }

func (s *tomlScanner) space() {
	for s.pos < len(s.data) && (s.data[s.pos] == ' ' || s.data[s.pos] == '\t') {
		s.pos++
	}
}

func (s *tomlScanner) skipLine() {
	if i := bytes.IndexByte(s.data[s.pos:], '\n'); i >= 0 {
		s.pos += i + 1
		return
	}
	s.pos = len(s.data)
}

// key reads a dotted key, up to what follows it.
func (s *tomlScanner) key() []string {
	var path []string
	for s.pos < len(s.data) {
		s.space()
		start := s.pos
		if s.at(`"`) || s.at("'") {
			s.str()
			text := string(s.data[start:s.pos])
			var decoded struct{ K string }
			if toml.Unmarshal([]byte("K = "+text), &decoded) == nil {
				text = decoded.K
			}
			path = append(path, text)
		} else {
			for s.pos < len(s.data) && bytes.IndexByte([]byte(" \t.=]\r\n#"), s.data[s.pos]) < 0 {
				s.pos++
			}
			path = append(path, string(s.data[start:s.pos]))
		}
		s.space()
		if !s.at(".") {
			return path
		}
		s.pos++
	}
	return path
}

// str skips a string of any of the four kinds.
func (s *tomlScanner) str() {
	quote := string(s.data[s.pos])
	end := quote
	if s.at(quote + quote + quote) {
		end = quote + quote + quote
	}
	s.pos += len(end)
	for s.pos < len(s.data) && !s.at(end) {
		if quote == `"` && s.data[s.pos] == '\\' {
			s.pos++
		}
		s.pos++
	}
	s.pos = min(s.pos+len(end), len(s.data))
	for len(end) == 3 && s.at(quote) {
		s.pos++ // up to two quotes may stand before the three
	}
}

// value skips a value, comments and line ends within lists included.
func (s *tomlScanner) value() {
	depth := 0
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case '"', '\'':
			s.str()
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '#':
			if depth == 0 {
				s.trim()
				return
			}
			s.skipLine()
			continue
		case '\n':
			if depth <= 0 {
				s.trim()
				return
			}
		}
		s.pos++
	}
	s.trim()
}

// trim goes back over white space.
func (s *tomlScanner) trim() {
	for s.pos > 0 && strings.IndexByte(" \t\r", s.data[s.pos-1]) >= 0 {
		s.pos--
	}
}
