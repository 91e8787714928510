package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// parseYAML parses a text of one document into the tree of the JSON that means
// the same. Aliases count as often as they are used, and nesting is bounded. A
// syntax error is reported with its line and column.
func parseYAML(data []byte) (*jsonNode, error) {
	var root yaml.Node
	limits := loaderlimits.New(loaderlimits.DepthValue(maxFileDepth))
	if err := yaml.Load(data, &root, yaml.WithPlugin(limits)); err != nil {
		return nil, yamlError(err)
	}
	b := yamlBuilder{data: data, left: maxFileValues}
	n, err := b.node(&root, 0)
	if err != nil {
		return nil, err
	}
	return n, nil
}

func yamlError(err error) error {
	if e, ok := errors.AsType[*yaml.LoadError](err); ok && e.Mark.Line > 0 {
		return fmt.Errorf("invalid YAML at %d:%d: %s", e.Mark.Line, max(1, e.Mark.Column), cleanLine(e.Message, 200))
	}
	return fmt.Errorf("invalid YAML: %s", cleanLine(strings.TrimPrefix(err.Error(), "yaml: "), 200))
}

type yamlBuilder struct {
	data  []byte
	left  int    // values that may still be made
	lines []int  // where each line begins
	plain []bool // whether it is ASCII
}

// node returns an error for what JSON has no word for.
func (b *yamlBuilder) node(y *yaml.Node, depth int) (*jsonNode, error) {
	n := &jsonNode{offset: b.offset(y)}
	if b.left--; b.left < 0 {
		return nil, errTooManyValues
	}
	if depth > 2*maxFileDepth { // only an alias within its own anchor goes so deep
		return nil, fmt.Errorf("invalid YAML at %d:%d: nested too deeply", y.Line, y.Column)
	}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) != 1 {
			return nil, errors.New("is empty")
		}
		return b.node(y.Content[0], depth+1)
	case yaml.AliasNode:
		if y.Alias == nil {
			return nil, fmt.Errorf("invalid YAML at %d:%d: unknown anchor", y.Line, y.Column)
		}
		return b.node(y.Alias, depth+1)
	case yaml.SequenceNode:
		n.kind = kindArray
		for _, item := range y.Content {
			v, err := b.node(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
		}
	case yaml.MappingNode:
		n.kind = kindObject
		return n, b.members(n, y, depth)
	case yaml.ScalarNode:
		n.text = y.Value
		switch y.ShortTag() {
		case "!!null":
			n.kind = kindNull
		case "!!bool":
			n.kind, n.text = kindBool, strings.ToLower(y.Value)
		case "!!int", "!!float":
			n.kind = kindNumber
		default:
			n.kind = kindString
		}
	default:
		return nil, errors.New("is empty")
	}
	return n, nil
}

// members fills in a mapping. Of keys that are merged from others (<<) its own count.
func (b *yamlBuilder) members(n *jsonNode, y *yaml.Node, depth int) error {
	var merged []*jsonNode
	for i := 0; i+1 < len(y.Content); i += 2 {
		key := y.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key == nil || key.Kind != yaml.ScalarNode {
			return fmt.Errorf("invalid YAML at %d:%d: a key that is not a text", y.Content[i].Line, y.Content[i].Column)
		}
		v, err := b.node(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		if key.ShortTag() == "!!merge" {
			merged = append(merged, v)
			continue
		}
		n.members = append(n.members, jsonMember{key.Value, v})
	}
	own := make(map[string]bool)
	if len(merged) > 0 {
		for _, m := range n.members {
			own[m.key] = true
		}
	}
	for _, m := range merged {
		for _, from := range append([]*jsonNode{m}, m.items...) {
			for _, member := range from.members {
				if b.left--; b.left < 0 {
					return errTooManyValues
				}
				if !own[member.key] {
					own[member.key] = true
					n.members = append(n.members, member)
				}
			}
		}
	}
	return nil
}

// offset returns where a node begins; -1 if it does not say.
func (b *yamlBuilder) offset(y *yaml.Node) int {
	if b.lines == nil {
		b.lines = lineStarts(b.data)
		b.plain = make([]bool, len(b.lines))
		for i, start := range b.lines {
			end := len(b.data)
			if i+1 < len(b.lines) {
				end = b.lines[i+1]
			}
			b.plain[i] = !slices.ContainsFunc(b.data[start:end], func(c byte) bool { return c >= utf8.RuneSelf })
		}
	}
	if y.Line < 1 || y.Line > len(b.lines) || y.Column < 1 {
		return -1
	}
	at := b.lines[y.Line-1]
	if b.plain[y.Line-1] {
		return min(at+y.Column-1, len(b.data))
	}
	const far = 1000 // so that one long line does not take the square of its length
	if y.Column > far {
		return at
	}
	column := 1
	for i := range string(b.data[at:min(len(b.data), at+4*y.Column)]) {
		if column == y.Column {
			return at + i
		}
		column++
	}
	return at
}
