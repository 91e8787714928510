package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// maxDottedParts bounds a key of TOML such as a.b.c: each part makes a table.
const maxDottedParts = 10

// parseTOML parses a text into the tree of the JSON that means the same. A
// syntax error is reported with its line and column; the tree has no positions.
func parseTOML(data []byte) (*jsonNode, error) {
	if err := boundTOML(data); err != nil {
		return nil, err
	}
	var root map[string]any
	meta, err := toml.Decode(string(data), &root)
	if err != nil {
		if e, ok := errors.AsType[toml.ParseError](err); ok {
			// The parser's own line is one too far where the text ends with it.
			return nil, fmt.Errorf("invalid TOML at %s: %s", position(data, e.Position.Start), cleanLine(e.Message, 200))
		}
		return nil, fmt.Errorf("invalid TOML: %s", cleanLine(err.Error(), 200))
	}
	b := tomlBuilder{order: make(map[string]int), left: maxFileValues}
	for i, key := range meta.Keys() {
		if path := strings.Join(key, "\x00"); b.order[path] == 0 {
			b.order[path] = i + 1
		}
	}
	n := b.node("", root)
	if b.left < 0 {
		return nil, errTooManyValues
	}
	return n, nil
}

// boundTOML refuses what would cost the parser more than its size: deep
// nesting, and keys of many parts.
func boundTOML(data []byte) error {
	depth, parts := 0, 1
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"', '\'':
			i += tomlStringLen(data[i:]) - 1
		case '#':
			for i+1 < len(data) && data[i+1] != '\n' {
				i++
			}
		case '[', '{':
			depth++
			parts = 1
		case ']', '}':
			depth = max(0, depth-1)
			parts = 1
		case '\n', '=', ',':
			parts = 1
		case '.':
			parts++
		}
		if depth > maxFileDepth {
			return fmt.Errorf("invalid TOML at %s: more than %d levels", position(data, i), maxFileDepth)
		}
		if parts > maxDottedParts {
			return fmt.Errorf("invalid TOML at %s: a key of more than %d parts", position(data, i), maxDottedParts)
		}
	}
	return nil
}

// tomlStringLen returns the length of the string that s begins with; one
// without an end reaches to the end of its line, or of the text.
func tomlStringLen(s []byte) int {
	quote := string(s[:1])
	long := strings.HasPrefix(string(s[:min(3, len(s))]), quote+quote+quote)
	for i := 1; i < len(s); i++ {
		switch {
		case long && i < 3:
		case s[i] == '\\' && quote == `"`:
			i++
		case !long && (s[i] == s[0] || s[i] == '\n'):
			return i + 1
		case long && s[i] == s[0] && i+2 < len(s) && s[i+1] == s[0] && s[i+2] == s[0]:
			return i + 3
		}
	}
	return len(s)
}

type tomlBuilder struct {
	order map[string]int // of keys, by their path
	left  int            // values that may still be made
}

func (b *tomlBuilder) node(path string, value any) *jsonNode {
	n := &jsonNode{offset: -1}
	if b.left--; b.left < 0 {
		return n
	}
	switch v := value.(type) {
	case map[string]any:
		n.kind = kindObject
		b.members(n, path, v)
	case []map[string]any:
		n.kind = kindArray
		for _, item := range v {
			n.items = append(n.items, b.node(path, item))
		}
	case []any:
		n.kind = kindArray
		for _, item := range v {
			n.items = append(n.items, b.node(path, item))
		}
	case string:
		n.kind, n.text = kindString, v
	case bool:
		n.kind, n.text = kindBool, strconv.FormatBool(v)
	case int64:
		n.kind, n.text = kindNumber, strconv.FormatInt(v, 10)
	case float64:
		n.kind, n.text = kindNumber, strconv.FormatFloat(v, 'g', -1, 64)
		if math.IsInf(v, 0) || math.IsNaN(v) {
			n.kind = kindString
		}
	case time.Time:
		n.kind, n.text = kindString, v.Format(time.RFC3339Nano)
	default:
		n.kind = kindNull
	}
	return n
}

func (b *tomlBuilder) members(n *jsonNode, path string, table map[string]any) {
	type keyed struct {
		key, path string
	}
	keys := make([]keyed, 0, len(table))
	for key := range table {
		below := key
		if path != "" {
			below = path + "\x00" + key
		}
		keys = append(keys, keyed{key, below})
	}
	slices.SortFunc(keys, func(x, y keyed) int {
		return cmp.Or(b.order[x.path]-b.order[y.path], strings.Compare(x.key, y.key))
	})
	for _, k := range keys {
		n.members = append(n.members, jsonMember{k.key, b.node(k.path, table[k.key])})
	}
}
