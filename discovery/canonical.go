package discovery

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
)

// canonicalJSON writes a JSON text so that all texts that mean the same are the
// same bytes, whatever blanks, escapes and order of members they have: members are
// sorted, those of one name stay in their order, and numbers stay as they are
// written. null is nothing. A text of too many values only loses its blanks.
func canonicalJSON(raw json.RawMessage) []byte {
	n, err := parseJSON(raw, maxSchemaValues)
	switch {
	case err == nil && n.is(kindNull):
		return nil
	case err == nil:
		return n.appendCanonical(make([]byte, 0, len(raw)))
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return raw
	}
	return compact.Bytes()
}

func (n *jsonNode) appendCanonical(to []byte) []byte {
	switch n.kind {
	case kindObject:
		members := slices.Clone(n.members)
		slices.SortStableFunc(members, func(a, b jsonMember) int { return cmp.Compare(a.key, b.key) })
		to = append(to, '{')
		for _, m := range members {
			to = append(strconv.AppendQuote(to, m.key), ':')
			to = append(m.value.appendCanonical(to), ',')
		}
		return append(to, '}')
	case kindArray:
		to = append(to, '[')
		for _, item := range n.items {
			to = append(item.appendCanonical(to), ',')
		}
		return append(to, ']')
	case kindString:
		return strconv.AppendQuote(to, n.text)
	case kindNumber, kindBool, kindNull:
	}
	return append(to, n.text...)
}
