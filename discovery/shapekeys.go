package discovery

import (
	"strings"
	"unicode"
)

// fieldLike reports whether a key looks like the name of a field, which somebody
// has thought of, and not like data: an id, a date, an address, a token. Only
// what is like a name is ever stored.
func fieldLike(key string) bool {
	const longest, longestWord, mostDigits = 40, 20, 4
	if key == "" || len(key) > longest || unicode.IsDigit(rune(key[0])) {
		return false
	}
	digits, word, changes, flips := 0, 0, 0, 0
	var before rune
	for i, r := range key {
		letter, digit := unicode.IsLetter(r), r >= '0' && r <= '9'
		switch {
		case !letter && !digit && !strings.ContainsRune("_-.$@", r):
			return false
		case r == '@' && i > 0: // an address
			return false
		case digit:
			digits++
		}
		if i > 0 {
			if (unicode.IsLetter(before) && digit) || (before >= '0' && before <= '9' && letter) {
				changes++
			}
			if unicode.IsLower(before) && unicode.IsUpper(r) {
				flips++
			}
		}
		if letter && (i == 0 || !unicode.IsUpper(r) || unicode.IsUpper(before)) {
			if word++; word > longestWord {
				return false
			}
		} else {
			word = 0
		}
		before = r
	}
	switch {
	case digits > mostDigits && !numberedField(key):
		return false
	case changes > 3 || flips > 1+len(key)/4:
		return false
	case digits > 0 && len(key) >= 12 && !strings.ContainsAny(key, "_-.") && strings.ToUpper(key) == key:
		return false
	case digits > 0 && len(key) >= 7 && hexadecimal(key):
		return false
	}
	return true
}

// numberedField reports whether a key is a word and a number, like Jira's
// customfield_10010.
func numberedField(key string) bool {
	number := strings.TrimLeftFunc(key, func(r rune) bool { return unicode.IsLetter(r) || r == '_' })
	return len(number) <= 6 && len(key)-len(number) >= 6 && strings.Trim(number, "0123456789") == ""
}

func hexadecimal(key string) bool {
	return strings.Trim(key, "0123456789abcdefABCDEF-") == ""
}
