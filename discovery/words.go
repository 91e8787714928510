package discovery

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxWordLength = 40  // characters of a word that are looked at
	maxTextWords  = 400 // words of one text that are looked at
)

// A word of a text or a name, in lower case.
type word struct {
	text  string
	glued bool // follows the previous word without a separator, as Hub in GitHub
}

// splitWords splits at everything that is not a letter or digit, and where
// camelCase does. Scripts without spaces give overlapping pairs of characters.
func splitWords(s string) []word { return appendWords(nil, s) }

// appendWords appends the words of s, at most maxTextWords.
func appendWords(words []word, s string) []word {
	words, s = appendPlain(words, s)
	start, dense := -1, false
	flush := func(end int) {
		if start < 0 {
			return
		}
		if dense {
			words = appendPairs(words, s[start:end])
		} else {
			words = appendCamel(words, s[start:end])
		}
		start = -1
	}
	for i, r := range s {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			if r != '\'' && r != '’' || start < 0 || dense { // it's one word
				flush(i)
			}
		case start >= 0 && dense == isDense(r):
		default:
			flush(i)
			start, dense = i, isDense(r)
		}
		if len(words) >= maxTextWords {
			return words[:maxTextWords]
		}
	}
	flush(len(s))
	return words[:min(len(words), maxTextWords)]
}

// appendPlain does so for the part of s before the first word with a character
// that is not ASCII, and returns the rest: nearly all text is of this kind.
func appendPlain(words []word, s string) ([]word, string) {
	for start := 0; start < len(s); {
		if !isWordByte(s[start]) {
			if s[start] >= utf8.RuneSelf {
				return words, s[start:]
			}
			start++
			continue
		}
		end, simple := start, true
		for ; end < len(s); end++ {
			c := s[end]
			if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
				continue
			}
			if c >= utf8.RuneSelf {
				return words, s[start:]
			}
			if c != '\'' && !isWordByte(c) {
				break
			}
			simple = false
		}
		if simple && end-start <= maxWordLength {
			words = append(words, word{text: s[start:end]})
		} else {
			words = appendCamel(words, s[start:end])
		}
		if len(words) >= maxTextWords {
			return words[:maxTextWords], ""
		}
		start = end
	}
	return words, ""
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z'
}

// isDense reports scripts that are written without spaces.
func isDense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

func appendPairs(words []word, s string) []word {
	runes := []rune(s)
	if len(runes) == 1 {
		return append(words, word{text: s})
	}
	for i := range min(len(runes)-1, maxTextWords) {
		words = append(words, word{text: string(runes[i : i+2])})
	}
	return words
}

// appendCamel splits one run of letters and digits: HTTPServer → http, server.
func appendCamel(words []word, run string) []word {
	if strings.HasSuffix(run, "'s") || strings.HasSuffix(run, "’s") {
		run = run[:strings.LastIndexAny(run, "'’")]
	}
	start := 0
	prev, before := rune(0), rune(0) // the last two characters
	for i, r := range run {
		cut := -1
		switch {
		case unicode.IsUpper(r) && prev != 0 && !unicode.IsUpper(prev):
			cut = i // a|B, 4|B
		case unicode.IsLower(r) && unicode.IsUpper(prev) && unicode.IsUpper(before) && !pluralOf(run[i:]):
			cut = i - utf8.RuneLen(prev) // AB|Cd
		}
		if cut > start {
			words = appendWord(words, run[start:cut], start > 0)
			start = cut
		}
		before, prev = prev, r
	}
	return appendWord(words, run[start:], start > 0)
}

// pluralOf reports the s in URLs and IDs.
func pluralOf(rest string) bool {
	return rest == "s" || len(rest) > 1 && rest[0] == 's' && rest[1] >= 'A' && rest[1] <= 'Z'
}

func appendWord(words []word, s string, glued bool) []word {
	if strings.ContainsAny(s, "'’") {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "'", ""), "’", "")
	}
	s = strings.ToLower(s)
	if utf8.RuneCountInString(s) > maxWordLength {
		s = string([]rune(s)[:maxWordLength])
	}
	if s == "" {
		return words
	}
	return append(words, word{s, glued})
}

// stem reduces an English word to what its forms share. It is much lighter
// than Porter's: the words of tools are few, and two of them made equal by
// mistake cost more than a form that is missed.
func stem(w string) string {
	if len(w) < 4 || w[0] >= utf8.RuneSelf {
		return w
	}
	w = stemPlural(w)
	switch {
	case suffixed(w, "ization", 3):
		w = w[:len(w)-5]
	case suffixed(w, "ation", 4), suffixed(w, "ition", 4), suffixed(w, "ction", 2):
		w = w[:len(w)-3]
	case suffixed(w, "sion", 4):
		w = w[:len(w)-4]
	case suffixed(w, "ator", 4):
		w = w[:len(w)-2]
	case suffixed(w, "ing", 3) && strings.ContainsAny(w[:len(w)-3], "aeiouy"):
		w = undouble(w[:len(w)-3])
	case suffixed(w, "ied", 2):
		w = w[:len(w)-3] + "y"
	case suffixed(w, "ed", 3) && strings.ContainsAny(w[:len(w)-2], "aeiouy"):
		w = undouble(w[:len(w)-2])
	case suffixed(w, "er", 5):
		w = undouble(w[:len(w)-2])
	}
	if suffixed(w, "e", 3) {
		w = w[:len(w)-1]
	}
	return w
}

func stemPlural(w string) string {
	switch {
	case suffixed(w, "ies", 2):
		return w[:len(w)-3] + "y"
	case suffixed(w, "sses", 1), suffixed(w, "xes", 1), suffixed(w, "ches", 1), suffixed(w, "shes", 1):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
		return w
	case suffixed(w, "s", 3):
		return w[:len(w)-1]
	}
	return w
}

// suffixed reports a suffix with at least so many bytes before it.
func suffixed(w, suffix string, before int) bool {
	return len(w) >= len(suffix)+before && strings.HasSuffix(w, suffix)
}

// undouble turns "gett" into "get", but leaves "call" and "pass" alone.
func undouble(w string) string {
	n := len(w)
	if n > 2 && w[n-1] == w[n-2] && strings.IndexByte("bdgmnprt", w[n-1]) >= 0 {
		return w[:n-1]
	}
	return w
}
