package discovery

import (
	"fmt"
	"strings"
)

// maxLiteral bounds a literal; longer ones become "...".
const maxLiteral = 60

// pythonLiteral writes a JSON value as Python would.
func pythonLiteral(n *jsonNode) string {
	var b strings.Builder
	writeLiteral(&b, n)
	if b.Len() > maxLiteral {
		return "..."
	}
	return b.String()
}

// writeLiteral stops soon after the bound has been passed, so neither size
// nor depth of the value matter.
func writeLiteral(b *strings.Builder, n *jsonNode) {
	if b.Len() > maxLiteral {
		return
	}
	switch n.kind {
	case kindNull:
		b.WriteString("None")
	case kindBool:
		b.WriteString(map[string]string{"true": "True", "false": "False"}[n.text])
	case kindNumber:
		b.WriteString(n.text[:min(len(n.text), maxLiteral+1)])
	case kindString:
		writePythonString(b, n.text)
	case kindArray:
		b.WriteByte('[')
		for i, item := range n.items {
			writeSeparator(b, i)
			writeLiteral(b, item)
			if b.Len() > maxLiteral {
				return
			}
		}
		b.WriteByte(']')
	case kindObject:
		b.WriteByte('{')
		for i, m := range n.members {
			writeSeparator(b, i)
			writePythonString(b, m.key)
			b.WriteString(": ")
			writeLiteral(b, m.value)
			if b.Len() > maxLiteral {
				return
			}
		}
		b.WriteByte('}')
	}
}

// pythonQuoted writes a short string as Python would.
func pythonQuoted(s string) string {
	var b strings.Builder
	writePythonString(&b, truncate(s, maxLiteral/2))
	return b.String()
}

func writeSeparator(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteString(", ")
	}
}

func writePythonString(b *strings.Builder, s string) {
	quote := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		quote = '"'
	}
	b.WriteRune(quote)
	for _, r := range s {
		if b.Len() > maxLiteral {
			return
		}
		switch {
		case r == quote || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x100 && hidden(r):
			fmt.Fprintf(b, `\x%02x`, r)
		case r < 0x10000 && hidden(r):
			fmt.Fprintf(b, `\u%04x`, r)
		case hidden(r):
			fmt.Fprintf(b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteRune(quote)
}
