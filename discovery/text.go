package discovery

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of what is kept of texts from outside, in characters.
const (
	maxServerName        = 128
	maxPathShown         = 1024
	maxServerDescription = 1000
	maxToolName          = 256
	maxTitle             = 200
	maxToolDescription   = 4000
	maxParamDescription  = 500
	maxSentence          = 120
)

// Clean makes a text from outside safe to show to a model and in a terminal, as
// at most limit characters: see cleanText.
func Clean(text string, limit int) string { return cleanText(text, limit) }

// HidesText reports whether there is something in a text that Clean takes out
// because it is not seen, or changes what is.
func HidesText(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && hidden(r) })
}

// cleanText makes a text from outside safe to show to a model and in a
// terminal: escape sequences, control characters and characters that are
// invisible or reorder their surroundings are removed, and at most limit
// characters are kept. Line breaks stay.
func cleanText(s string, limit int) string {
	if longest := 8*limit + 1024; len(s) > longest { // look at no more than could matter
		s = s[:longest]
	}
	var b strings.Builder
	count := 0
	b.Grow(min(len(s), limit))
	for s != "" && count < limit {
		if c := s[0]; c >= ' ' && c <= '~' || c == '\n' { // nearly all there is
			b.WriteByte(c)
			s = s[1:]
			count++
			continue
		}
		if n := escapeLen(s); n > 0 {
			s = s[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(s)
		s = s[size:]
		switch {
		case r == utf8.RuneError && size <= 1:
			continue
		case r == '\u2028' || r == '\u2029' || r == '\u0085':
			r = '\n'
		case r == '\t' || unicode.Is(unicode.Zs, r):
			r = ' '
		case r != '\n' && hidden(r):
			continue
		}
		b.WriteRune(r)
		count++
	}
	return strings.TrimSpace(b.String())
}

// cleanLine is cleanText with everything on one line and single spaces.
func cleanLine(s string, limit int) string {
	return truncate(strings.Join(strings.Fields(cleanText(s, 2*limit)), " "), limit)
}

// hidden reports characters that a reader does not see or that change how
// others are shown: controls, formats (bidi, zero width, tags), private use
// and unassigned ones, variation selectors, fillers.
func hidden(r rune) bool {
	switch {
	case !unicode.IsGraphic(r):
		return true
	case unicode.Is(unicode.Variation_Selector, r):
		return true
	case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	}
	return r == '\u2800' // the blank Braille pattern
}

// escapeLen returns the length of the terminal escape sequence s begins with,
// or 0. An unfinished sequence reaches to the end of the line.
func escapeLen(s string) int {
	switch {
	case strings.HasPrefix(s, "\x1b["):
		return 2 + sequenceLen(s[2:])
	case strings.HasPrefix(s, "\u009b"):
		return 2 + sequenceLen(s[2:])
	case len(s) >= 2 && s[0] == 0x1b && strings.IndexByte("]PX^_", s[1]) >= 0:
		return 2 + stringLen(s[2:])
	case len(s) >= 2 && s[0] == 0x1b && s[1] >= ' ' && s[1] <= '~':
		return 2
	case s[0] == 0x1b:
		return 1
	}
	return 0
}

// sequenceLen measures the parameters and the final byte of a CSI sequence.
func sequenceLen(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '@' && c <= '~':
			return i + 1
		case c < ' ' || c > '~':
			return i
		}
	}
	return len(s)
}

// stringLen measures a control string up to its terminator, BEL or ESC \.
func stringLen(s string) int {
	for i := range len(s) {
		switch {
		case s[i] == '\a':
			return i + 1
		case strings.HasPrefix(s[i:], "\x1b\\"):
			return i + 2
		case s[i] == '\n':
			return i
		}
	}
	return len(s)
}

// truncate cuts s to at most limit characters, the last one then being "…".
func truncate(s string, limit int) string {
	if len(s) <= limit || utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)[:limit-1]
	for i := len(runes) - 1; i > limit*2/3; i-- { // at a word's end if one is near
		if runes[i] == ' ' {
			runes = runes[:i]
			break
		}
	}
	return strings.TrimRight(string(runes), " ,;:") + "…"
}

// firstSentence returns the first sentence of a text in one short line.
func firstSentence(s string) string {
	s = cleanText(s, 4*maxSentence)
	s, _, _ = strings.Cut(s, "\n\n")
	s = strings.Join(strings.Fields(s), " ")
	for i, r := range s {
		rest := s[i+utf8.RuneLen(r):]
		if r == '。' || (r == '.' && i >= 8 && sentenceEnds(s[:i], rest)) {
			s = s[:i]
			break
		}
	}
	return truncate(s, maxSentence)
}

// sentenceEnds tells a full stop from the one in "e.g. this".
func sentenceEnds(before, rest string) bool {
	if rest == "" {
		return true
	}
	word := before[strings.LastIndexByte(before, ' ')+1:]
	return rest[0] == ' ' && !strings.Contains(word, ".") && word != "etc" && word != "vs"
}

// cleanEscapes takes out of a JSON text the escapes \uXXXX of what cleanText takes
// out as it is.
func cleanEscapes(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	var b strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			break
		}
		b.WriteString(text[:i])
		text = text[i:]
		r, size := escapedRune(text)
		if size == 0 { // another escape
			b.WriteString(text[:2])
			text = text[2:]
			continue
		}
		escape := text[:size]
		text = text[size:]
		switch {
		case r == 0x1b && strings.HasPrefix(text, "["):
			text = text[1+sequenceLen(text[1:]):]
		case r == '\n' || r == '\t' || !hidden(r):
			b.WriteString(escape)
		}
	}
	b.WriteString(text)
	return b.String()
}

// escapedRune decodes the \uXXXX, or the two of a pair, that text begins with.
func escapedRune(text string) (r rune, size int) {
	first, ok := hexRune(text)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(first) {
		if second, ok := hexRune(text[6:]); ok {
			if both := utf16.DecodeRune(first, second); both != unicode.ReplacementChar {
				return both, 12
			}
		}
	}
	return first, 6
}

func hexRune(text string) (rune, bool) {
	if len(text) < 6 || text[:2] != `\u` {
		return 0, false
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(n), err == nil
}
