package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of arguments as a person is shown them, in characters.
const (
	maxArgumentsShown = 1_500
	maxStringShown    = 400
)

// arguments writes a JSON object for a person who is to decide about it, on one
// line: strings as they are meant, however they were escaped, with everything
// that is not seen, or that changes what is, escaped; without secrets. Of a long
// string both ends are shown, for neither may hide behind the other.
func (r *redactor) arguments(args json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, args) != nil {
		return "{}" // it was checked
	}
	text := compact.Bytes()
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if b.Len() > 4*maxArgumentsShown || utf8.RuneCountInString(b.String()) > maxArgumentsShown {
			fmt.Fprintf(&b, " [… %d more bytes of arguments are not shown]", len(text)-i)
			return b.String()
		}
		switch c := text[i]; c {
		case '"':
			end := stringEnd(text, i)
			var s string
			if json.Unmarshal(text[i:end+1], &s) != nil {
				s = "?"
			}
			r.writeString(&b, s)
			i = end
		case ':', ',':
			b.WriteByte(c)
			b.WriteByte(' ')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (r *redactor) writeString(b *strings.Builder, s string) {
	head, missing, tail := s, 0, ""
	if len(s) > 64<<10 { // secrets are looked for in what is shown, and a little more
		missing = len(s) - 64<<10
		head, tail = s[:32<<10], s[len(s)-32<<10:]
	}
	// What looks like the password of a URL was chosen by the cell, and may be what does harm.
	head, tail = r.hideOwn(strings.ToValidUTF8(head, "\uFFFD")), r.hideOwn(strings.ToValidUTF8(tail, "\uFFFD"))
	all := []rune(head + tail)
	if len(all) > maxStringShown {
		const each = maxStringShown / 2
		missing += len(string(all[each : len(all)-each]))
		head, tail = string(all[:each]), string(all[len(all)-each:])
	}
	b.WriteByte('"')
	escapeInto(b, head)
	if missing > 0 {
		fmt.Fprintf(b, `" [… %d more bytes …] "`, missing)
	}
	escapeInto(b, tail)
	b.WriteByte('"')
}

func escapeInto(b *strings.Builder, s string) {
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == ' ' || unicode.IsPrint(c) && !unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) && c != '\u2800':
			b.WriteRune(c)
		default:
			fmt.Fprintf(b, `\u{%x}`, c) // no half of a pair to be read alone
		}
	}
}

// stringEnd returns the index of the quote that closes the string opened at i,
// in valid JSON.
func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
