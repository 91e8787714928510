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
	if key == "" || len(key) > longest || unicode.IsDigit(rune(key[0])) || tokenLike(key) {
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

// tokenPrefixes are what keys and tokens of services begin with.
const tokenPrefixes = "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp- sk- sk_live_ sk_test_ " +
	"pk_live_ pk_test_ rk_live_ rk_test_ whsec_ AKIA ASIA AIza eyJ ya29. dop_v1_ shpat_ npm_ pypi- hf_"

// tokenLike reports whether a key looks like a secret: by its beginning, or
// because upper case, lower case and digits are mixed as in no name.
func tokenLike(key string) bool {
	for prefix := range strings.FieldsSeq(tokenPrefixes) {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	for part := range strings.FieldsFuncSeq(key, func(r rune) bool { return strings.ContainsRune("_-.$@", r) }) {
		letters, flips, numbers := 0, 0, 0
		var before rune
		for _, r := range part {
			if unicode.IsLetter(r) {
				letters++
			}
			if unicode.IsLower(before) && unicode.IsUpper(r) {
				flips++
			}
			if unicode.IsDigit(r) && !unicode.IsDigit(before) {
				numbers++
			}
			before = r
		}
		if flips > max(1, letters/4) || flips > 0 && numbers > 1 {
			return true
		}
	}
	return false
}

// dataLike reports whether the fields look like entries of one table, so that
// their names are data though each may be a name: values of one scalar type,
// and many of them, or names that are not the usual ones of fields.
func (s *Shape) dataLike() bool {
	if len(s.Fields) <= 2 || !s.scalars() {
		return false
	}
	loud, odd := 0, false
	for _, f := range s.Fields {
		if strings.ToUpper(f.Name) == f.Name && strings.ToLower(f.Name) != f.Name {
			loud++
		}
		odd = odd || strings.ContainsAny(f.Name, "0123456789-.$@")
	}
	return odd || loud == len(s.Fields) || len(s.Fields) > maxOwnScalars
}

// scalars reports whether the values of all fields are of one scalar type.
func (s *Shape) scalars() bool {
	for _, f := range s.Fields {
		if f.Shape == nil || len(f.Shape.Types) != 1 || f.Shape.List || f.Shape.Object || f.Shape.Map {
			return false
		}
	}
	return s.alike()
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
