package discovery

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sahilm/fuzzy"
)

// Bounds of correcting one word.
const (
	maxSuggestions = 6
	minFuzzyLength = 3
	minSlipLength  = 5 // shorter words begin as they should, or have letters that changed places
	maxFuzzyLength = 24
)

// A speller finds the words of a vocabulary that a word may have been meant to
// be. It compares with a part of the vocabulary only: words of about the same
// length for slips, and words with the same first letter for abbreviations.
type speller struct {
	byLength [maxFuzzyLength + 3][]spelling
	byFirst  map[byte][]spelling
}

// A spelling is one form of a term: "issues" of "issu".
type spelling struct {
	text string
	bits uint64 // the set of letters in it
	term int32
	size int32 // in characters
}

// A suggestion is a term and how likely it was meant, up to 1.
type suggestion struct {
	term   int32
	weight float64
}

func newSpeller(forms []form) *speller {
	s := &speller{byFirst: make(map[byte][]spelling)}
	for _, f := range forms {
		size := utf8.RuneCountInString(f.text)
		if size < 2 || size >= len(s.byLength) {
			continue
		}
		p := spelling{f.text, letterBits(f.text), f.term, int32(size)}
		s.byLength[size] = append(s.byLength[size], p)
		s.byFirst[f.text[0]] = append(s.byFirst[f.text[0]], p)
	}
	return s
}

// suggest returns the likeliest terms, best first.
func (s *speller) suggest(text string) []suggestion {
	runes := []rune(text)
	if len(runes) < minFuzzyLength || len(runes) > maxFuzzyLength {
		return nil
	}
	found := s.slips(runes)
	if len(found) == 0 {
		found = s.abbreviations(text, len(runes))
	}
	slices.SortStableFunc(found, func(a, b suggestion) int { return cmp.Compare(b.weight, a.weight) })
	var best []suggestion
	for _, f := range found {
		if len(best) == maxSuggestions {
			break
		}
		if !slices.ContainsFunc(best, func(b suggestion) bool { return b.term == f.term }) {
			best = append(best, f)
		}
	}
	return best
}

// slips finds words within an edit or two, and among them only the nearest.
func (s *speller) slips(runes []rune) []suggestion {
	limit := 1
	if len(runes) >= 6 {
		limit = 2
	}
	bits := letterBits(string(runes))
	var room [maxFuzzyLength + 3]rune
	var found []suggestion
	for length := max(2, len(runes)-limit); length <= len(runes)+limit; length++ {
		for _, f := range s.byLength[length] {
			if differingLetters(bits, f.bits) > 2*limit {
				continue
			}
			other := appendRunes(room[:0], f.text)
			d := editDistance(runes, other, limit)
			if d > limit || len(runes) < minSlipLength && other[0] != runes[0] && bits != f.bits {
				continue
			}
			if d < limit { // farther ones no longer count
				found = slices.DeleteFunc(found, func(o suggestion) bool { return o.weight < slipWeight(d, false) })
				limit = max(1, d)
			}
			found = append(found, suggestion{f.term, slipWeight(d, other[0] == runes[0])})
		}
	}
	return found
}

func slipWeight(distance int, sameFirst bool) float64 {
	w := 0.8
	if distance > 1 {
		w = 0.5
	}
	if sameFirst { // slips at the first letter are rare
		w += 0.1
	}
	return w
}

// abbreviations finds words that contain the letters in order: "crt", "cfg".
func (s *speller) abbreviations(text string, size int) []suggestion {
	candidates := s.byFirst[text[0]]
	matches := fuzzy.FindFrom(text, spellings(candidates))
	var found []suggestion
	for _, m := range matches[:min(len(matches), 4*maxSuggestions)] {
		f := candidates[m.Index]
		if int(f.size) > 5*size {
			continue
		}
		weight := 0.3 + 0.3*float64(size)/float64(f.size)
		if strings.HasPrefix(f.text, text) {
			weight += 0.2
		}
		found = append(found, suggestion{f.term, weight})
	}
	return found
}

// spellings lets fuzzy read forms where they are.
type spellings []spelling

func (s spellings) String(i int) string { return s[i].text }
func (s spellings) Len() int            { return len(s) }

func appendRunes(room []rune, s string) []rune {
	for _, r := range s {
		room = append(room, r)
	}
	return room
}

func letterBits(s string) uint64 {
	var bits uint64
	for _, r := range s {
		bits |= 1 << (r & 63)
	}
	return bits
}

// differingLetters bounds the edits from below: each changes at most two.
func differingLetters(a, b uint64) int {
	n := 0
	for diff := a ^ b; diff != 0; diff &= diff - 1 {
		n++
	}
	return n
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours between two words, or returns limit+1 if there are more than limit.
func editDistance(a, b []rune, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	if len(a) > 3*maxFuzzyLength { // nobody mistypes one word that long
		return limit + 1
	}
	var rows [3][3*maxFuzzyLength + 8]int
	before, prev, row := rows[0][:len(b)+1], rows[1][:len(b)+1], rows[2][:len(b)+1]
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if least > limit {
			return limit + 1
		}
		before, prev, row = prev, row, before
	}
	return min(prev[len(b)], limit+1)
}
