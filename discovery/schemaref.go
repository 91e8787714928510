package discovery

import (
	"net/url"
	"strconv"
	"strings"
)

// maxRefLength is the longest reference that is followed.
const maxRefLength = 1024

// A schemaDoc is a JSON Schema in which references are looked up. Those that
// lead out of it are never followed. It does not change once it is made, so
// that it may be used concurrently.
type schemaDoc struct {
	root    *jsonNode
	id      string               // the root's $id
	anchors map[string]*jsonNode // nil if the schema refers to none
	nested  bool                 // parts of it are schemas with an $id of their own
	draft7  bool                 // or earlier: what stands beside a $ref means nothing
}

func newSchemaDoc(root *jsonNode) *schemaDoc {
	d := &schemaDoc{root: root, id: strings.TrimSuffix(schemaID(root), "#")}
	version := root.get("$schema").str()
	d.draft7 = strings.Contains(version, "json-schema.org/draft-0")
	left := maxSchemaValues
	d.scan(root, &left)
	return d
}

func schemaID(n *jsonNode) string {
	if id := n.get("$id").str(); id != "" {
		return id
	}
	return n.get("id").str() // of draft 4
}

// scan notes the anchors, and makes it cheap to look up members. It may take for one what is not, such as a property
// of that name: then a schema refers to it, or it does not matter.
func (d *schemaDoc) scan(n *jsonNode, left *int) {
	if *left--; *left < 0 {
		return
	}
	n.indexed()
	for _, item := range n.items {
		d.scan(item, left)
	}
	for _, m := range n.members {
		switch {
		case !m.value.is(kindString):
			d.scan(m.value, left)
		case m.key == "$anchor" || m.key == "$dynamicAnchor":
			d.anchor(m.value.text, n)
		case (m.key == "$id" || m.key == "id") && strings.HasPrefix(m.value.text, "#"):
			d.anchor(m.value.text[1:], n)
		case m.key == "$id" && n != d.root:
			d.nested = true
		}
	}
}

func (d *schemaDoc) anchor(name string, n *jsonNode) {
	if name == "" || len(name) > maxRefLength {
		return
	}
	if d.anchors == nil {
		d.anchors = make(map[string]*jsonNode)
	}
	if d.anchors[name] == nil {
		d.anchors[name] = n
	}
}

// lookup finds what a reference points at: "#", "#/$defs/Item", "#anchor", the
// same after the schema's own $id. It is nil for everything else.
func (d *schemaDoc) lookup(ref string) *jsonNode {
	if len(ref) > maxRefLength {
		return nil
	}
	if rest, ok := strings.CutPrefix(ref, d.id); ok && d.id != "" && (rest == "" || rest[0] == '#') {
		ref = "#" + strings.TrimPrefix(rest, "#")
	}
	if ref == "#" {
		return d.root
	}
	if name, ok := strings.CutPrefix(ref, "#"); ok && !strings.HasPrefix(name, "/") {
		return d.anchors[name]
	}
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	n := d.root
	for key := range strings.SplitSeq(pointer, "/") {
		n = n.at(pointerKey(key))
	}
	return n
}

// pointerKey decodes one step of a JSON pointer in a URI.
func pointerKey(key string) string {
	if strings.Contains(key, "%") {
		key = percentDecoded(key)
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
}

func percentDecoded(s string) string {
	decoded, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return decoded
}

// at returns the member of that name, or the item of that number.
func (n *jsonNode) at(key string) *jsonNode {
	if !n.is(kindArray) {
		return n.get(key)
	}
	i, err := strconv.Atoi(key)
	if err != nil || i < 0 || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}
