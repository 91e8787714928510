package proxy

import (
	"slices"
	"strings"
)

// didYouMean returns a hint that names the candidates nearest to name, or
// otherwise if none is near.
func didYouMean(name string, candidates []string, otherwise string) string {
	const shown = 3
	found := nearest(name, candidates)
	if len(found) == 0 {
		return otherwise
	}
	for i, n := range found[:min(shown, len(found))] {
		found[i] = quoteName(n)
	}
	return "did you mean " + strings.Join(found[:min(shown, len(found))], ", ") + "?"
}

// DidYouMean is what to say of a name that is none of candidates: the nearest
// ones, or otherwise if none is near.
func DidYouMean(name string, candidates []string, otherwise string) string {
	return didYouMean(name, candidates, otherwise)
}

// nearest returns the candidates that look like name, the most alike first.
func nearest(name string, candidates []string) []string {
	const longest = 64 // a name from a sandbox may be of any length
	type scored struct {
		name     string
		distance int
	}
	want := squash(name)
	if len(want) == 0 || len(want) > longest {
		return nil
	}
	var near []scored
	for _, c := range candidates {
		have := squash(c)
		if len(have) > longest {
			continue
		}
		d := editDistance(want, have)
		contains := len(want) >= 3 && strings.Contains(have, want) || len(have) >= 3 && strings.Contains(want, have)
		if contains {
			d = min(d, 2)
		}
		if d <= max(2, len(want)/3) && d < len(want) {
			near = append(near, scored{c, d})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return a.distance - b.distance })
	names := make([]string, len(near))
	for i, s := range near {
		names[i] = s.name
	}
	return names
}

// squash removes what people get wrong in names: case and separators.
func squash(name string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune("-_. /", c) {
			return -1
		}
		return c
	}, strings.ToLower(name))
}

// editDistance is the number of bytes to insert, remove or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
