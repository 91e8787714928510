package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// jsonKind is the kind of a JSON value, named as in error messages.
type jsonKind string

const (
	kindObject jsonKind = "an object"
	kindArray  jsonKind = "an array"
	kindString jsonKind = "a string"
	kindNumber jsonKind = "a number"
	kindBool   jsonKind = "a boolean"
	kindNull   jsonKind = "null"
)

// A jsonNode is a JSON value that remembers what encoding/json's maps forget:
// the order of members, repeated keys, and where in the text it stands.
type jsonNode struct {
	kind    jsonKind
	offset  int                  // of the first byte in the text
	end     int                  // of the first byte behind it
	text    string               // the decoded string, or the literal of a number or boolean
	members []jsonMember         // of an object, in order, repeated keys included
	items   []*jsonNode          // of an array
	index   map[string]*jsonNode // of members, if there are many and they are looked up often
}

type jsonMember struct {
	key   string
	value *jsonNode
}

// get returns the first member of that name, or nil. A nil node has no members.
func (n *jsonNode) get(key string) *jsonNode {
	if n == nil {
		return nil
	}
	if n.index != nil {
		return n.index[key]
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// indexed makes get fast. The members must not change after it.
func (n *jsonNode) indexed() {
	const many = 16
	if len(n.members) <= many || n.index != nil {
		return
	}
	n.index = make(map[string]*jsonNode, len(n.members))
	for _, m := range n.members {
		if _, ok := n.index[m.key]; !ok {
			n.index[m.key] = m.value
		}
	}
}

// indexedAll makes get fast in a value and in all that it holds.
func (n *jsonNode) indexedAll() *jsonNode {
	n.indexed()
	for _, item := range n.items {
		item.indexedAll()
	}
	for _, m := range n.members {
		m.value.indexedAll()
	}
	return n
}

// is reports the kind; a nil node is of none.
func (n *jsonNode) is(kind jsonKind) bool { return n != nil && n.kind == kind }

// str returns the value of a string, or "" for anything else.
func (n *jsonNode) str() string {
	if n.is(kindString) {
		return n.text
	}
	return ""
}

var errTooManyValues = errors.New("too many JSON values")

// parseJSON parses one JSON text of at most maxNodes values. A syntax error
// is reported with its line and column.
func parseJSON(data []byte, maxNodes int) (*jsonNode, error) {
	if !json.Valid(data) {
		return nil, syntaxError(data)
	}
	p := jsonParser{data: data, left: maxNodes}
	n := p.value()
	if p.left < 0 {
		return nil, errTooManyValues
	}
	return n, nil
}

func syntaxError(data []byte) error {
	var any json.RawMessage
	err := json.Unmarshal(data, &any)
	se, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return fmt.Errorf("invalid JSON: %v", err)
	}
	// Offset counts the bytes read, the offending one included.
	return fmt.Errorf("invalid JSON at %s: %v", position(data, max(0, int(se.Offset)-1)), se)
}

// position renders an offset as line:column, both from 1, columns in runes.
func position(data []byte, offset int) string {
	before := string(data[:min(offset, len(data))])
	line := 1 + strings.Count(before, "\n")
	column := 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return fmt.Sprintf("%d:%d", line, column)
}

// jsonParser builds the tree of a text already known to be valid JSON, which
// also bounds the nesting (encoding/json refuses more than 10,000 levels).
type jsonParser struct {
	data []byte
	pos  int
	left int // values that may still be made; negative once there were too many
}

func (p *jsonParser) value() *jsonNode {
	p.space()
	n := &jsonNode{offset: p.pos}
	if p.left--; p.left < 0 {
		p.pos = len(p.data)
		return n
	}
	switch p.data[p.pos] {
	case '{':
		n.kind = kindObject
		p.list('}', func() {
			p.space()
			key := p.str()
			p.space()
			p.pos++ // the colon
			n.members = append(n.members, jsonMember{key, p.value()})
		})
	case '[':
		n.kind = kindArray
		p.list(']', func() { n.items = append(n.items, p.value()) })
	case '"':
		n.kind, n.text = kindString, p.str()
	case 't', 'f':
		n.kind, n.text = kindBool, p.literal()
	case 'n':
		n.kind, n.text = kindNull, p.literal()
	default:
		n.kind, n.text = kindNumber, p.literal()
	}
	n.end = p.pos
	return n
}

// list parses the elements between two brackets.
func (p *jsonParser) list(end byte, element func()) {
	p.pos++ // the opening bracket
	if p.space(); p.pos < len(p.data) && p.data[p.pos] == end {
		p.pos++
		return
	}
	for p.left >= 0 {
		element()
		if p.space(); p.pos >= len(p.data) {
			return
		}
		p.pos++ // a comma or the closing bracket
		if p.data[p.pos-1] == end {
			return
		}
	}
}

func (p *jsonParser) str() string {
	start := p.pos
	escaped := false
	for p.pos++; p.data[p.pos] != '"'; p.pos++ {
		if p.data[p.pos] == '\\' {
			escaped = true
			p.pos++
		}
	}
	p.pos++
	if inner := p.data[start+1 : p.pos-1]; !escaped && utf8.Valid(inner) {
		return string(inner)
	}
	var s string
	_ = json.Unmarshal(p.data[start:p.pos], &s) // valid: checked as part of the whole
	return s
}

func (p *jsonParser) literal() string {
	start := p.pos
	for p.pos < len(p.data) && !strings.ContainsRune(",]} \t\r\n", rune(p.data[p.pos])) {
		p.pos++
	}
	return string(p.data[start:p.pos])
}

func (p *jsonParser) space() {
	for p.pos < len(p.data) && strings.IndexByte(" \t\r\n", p.data[p.pos]) >= 0 {
		p.pos++
	}
}
