package discovery

import (
	"strings"
	"unicode/utf8"
)

// longestNear bounds the names that are compared, in bytes: they may come from
// anywhere, and nobody mistypes a longer one.
const longestNear = 64

// Nearest returns the names that name was probably meant to be, at most `most`
// of those that are equally near, in their order; none if none is near. Case
// and separators do not count, two neighbours that changed places count once,
// and a name that contains the other is near.
func Nearest(name string, names []string, most int) []string {
	want := squashed(name)
	length := utf8.RuneCountInString(want)
	if length == 0 || len(want) > longestNear {
		return nil
	}
	best := min(max(2, length/3), 4, length-1)
	var near []string
	for _, n := range names {
		have := squashed(n)
		if have == "" || len(have) > longestNear {
			continue
		}
		d := editDistance([]rune(want), []rune(have), best)
		if len(want) >= 3 && len(have) >= 3 && (strings.Contains(have, want) || strings.Contains(want, have)) {
			d = min(d, 1)
		}
		if d > best {
			continue
		}
		if d < best {
			best, near = d, nil
		}
		if len(near) < most {
			near = append(near, n)
		}
	}
	return near
}

// squashed leaves out what people get wrong in names: case and separators.
func squashed(name string) string {
	if len(name) > 2*longestNear {
		return name // too long in any case
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. /", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
}
