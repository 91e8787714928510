package discovery

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of one query.
const (
	maxQueryLength = 2_000 // characters
	maxConcepts    = 40
	maxWords       = 4 * maxConcepts
	maxCorrected   = 8 // words that are spelt wrong
	longQuery      = 9 // words; more are a text
)

// What a form counts compared with the word that was asked for.
const (
	synonymWeight  = 0.45
	hintWeight     = 0.7 // a word that what was asked for hints at
	hintInText     = 0.9
	compoundWeight = 0.6
	stopWeight     = 0.08
	proseWeight    = 0.5  // of what says little in a longer text
	properWeight   = 0.7  // of a proper name in a longer text
	fileWeight     = 0.7  // of "read" or "write" where there is the path of a file
	dataWeight     = 0.05 // of the words in a path
	pathWeight     = 0.4
	guessInText    = 0.05 // an unknown word in a longer text is rather a name than a slip
)

// A concept is one thing asked for, and the terms that can stand for it.
type concept struct {
	text     string
	weight   float64
	variants []variant
}

type variant struct {
	term   int32
	weight float64 // rarity included
	plain  float64 // how near it is to what was asked, up to 1
}

// A query is a request, taken apart.
type query struct {
	words    []string // as typed, in lower case
	concepts []concept
	long     bool     // a text rather than a few words
	unknown  []string // words that stand for nothing in the index
}

func (ix *Index) parseQuery(text string) query {
	parts := strings.Fields(cleanText(text, maxQueryLength))
	q := queryBuilder{ix: ix, index: make(map[string]int), long: len(parts) >= longQuery}
	var prev string
	starts := true // of a sentence
	for _, part := range parts {
		switch {
		case isPath(part) && !strings.Contains(part, "://"):
			q.path(part)
			prev = ""
		case isPath(part):
			for _, w := range splitWords(part) {
				q.word(w.text, "", pathWeight)
			}
			q.word("url", "", pathWeight)
			prev = ""
		default:
			first, _ := utf8.DecodeRuneInString(strings.TrimLeft(part, "\"'(“‘"))
			proper := q.long && !starts && unicode.IsUpper(first)
			for _, w := range splitWords(part) {
				weight := 1.0
				if st := stem(w.text); proper && len(ix.synonyms.toward[st]) == 0 && !ix.inServerName[ix.id(st)] {
					weight = properWeight
				}
				q.word(w.text, prev, weight)
				prev = w.text
			}
		}
		starts = strings.ContainsAny(part[len(part)-1:], ".!?:")
	}
	return q.finish()
}

// isPath reports a path or an address, whose words are data rather than a
// description of what is wanted.
func isPath(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~/") || strings.Contains(s, "://") || strings.Count(s, "/") > 1
}

// id returns the number of a stem, or -1.
func (ix *Index) id(stem string) int32 {
	if id, ok := ix.ids[stem]; ok {
		return id
	}
	return -1
}

// path adds what a file's path tells: not its name, but that there is a file, of
// which kind, and whether it is read or written.
func (q *queryBuilder) path(path string) {
	extension := ""
	for _, w := range splitWords(path) {
		extension = w.text
	}
	if !strings.HasSuffix(strings.ToLower(strings.TrimRight(path, ".,;:!?\"')")), "."+extension) {
		for _, w := range splitWords(path) {
			q.word(w.text, "", pathWeight)
		}
		q.word("directory", "", pathWeight)
		return
	}
	if q.ix.synonyms.textFiles[extension] {
		q.word("file", "", 1)
		if slices.ContainsFunc(q.words[max(0, len(q.words)-lookBack):], func(w string) bool { return q.ix.synonyms.writing[w] }) {
			q.word("write", "", fileWeight)
		} else {
			q.word("read", "", fileWeight)
		}
		for _, w := range splitWords(path) {
			q.word(w.text, "", dataWeight)
		}
		return
	}
	for _, w := range splitWords(path) {
		q.word(w.text, "", dataWeight)
	}
	q.word(extension, "", 1)
}

const lookBack = 8 // words before a path that tell what is done with it

type queryBuilder struct {
	ix        *Index
	words     []string
	concepts  []concept
	index     map[string]int // stem to concept
	unknown   []string
	corrected int
	long      bool // a text rather than a few words
}

// word adds a word, and the pair it makes with the one before.
func (q *queryBuilder) word(text, prev string, weight float64) {
	if len(q.words) >= maxWords {
		return
	}
	q.words = append(q.words, text)
	if q.ix.synonyms.stop[text] {
		weight *= stopWeight
	} else if q.long && q.ix.synonyms.prose[text] {
		weight *= proseWeight
	}
	if i, ok := q.index[stem(text)]; ok {
		q.concepts[i].weight = max(q.concepts[i].weight, weight)
	} else {
		q.concept(text, weight)
	}
	if prev == "" {
		return
	}
	joined := prev + text
	if _, known := q.ix.ids[stem(joined)]; (known || q.ix.synonyms.isPair(prev, text)) && len(joined) <= maxWordLength {
		if _, ok := q.index[stem(joined)]; !ok {
			q.concept(joined, weight*compoundWeight)
		}
	}
}

// concept adds what one word stands for.
func (q *queryBuilder) concept(text string, weight float64) {
	st := stem(text)
	c := concept{text: text, weight: weight}
	id, known := q.ix.ids[st]
	limit := 0.0
	if known {
		limit = q.ix.terms[id].rarity
		c.variants = append(c.variants, variant{id, limit, 1})
	}
	for _, other := range q.ix.synonyms.of(st) {
		if id, ok := q.ix.ids[other]; ok {
			c.add(id, q.ix.terms[id].rarity, synonymWeight, limit)
		}
	}
	hint := hintWeight
	if q.long {
		hint = hintInText
	}
	for _, other := range q.ix.synonyms.toward[st] {
		if id, ok := q.ix.ids[other]; ok {
			c.hint(id, min(q.ix.terms[id].rarity, cmp.Or(limit, math.Inf(1))), hint)
		}
	}
	if len(c.variants) == 0 {
		q.guess(&c)
	}
	if len(c.variants) == 0 {
		if weight > stopWeight && !slices.Contains(q.unknown, text) {
			q.unknown = append(q.unknown, text)
		}
		return
	}
	q.index[st] = len(q.concepts)
	q.concepts = append(q.concepts, c)
}

// add adds another form. Where the word itself is known, a form that happens
// to be rarer does not count as rarer.
func (c *concept) add(id int32, rarity, weight, limit float64) {
	if limit > 0 {
		rarity = min(rarity, limit)
	}
	for i := range c.variants {
		if v := &c.variants[i]; v.term == id {
			if rarity*weight > v.weight {
				v.weight, v.plain = rarity*weight, weight
			}
			return
		}
	}
	c.variants = append(c.variants, variant{id, rarity * weight, weight})
}

// hint adds a form that what was asked for hints at.
func (c *concept) hint(id int32, rarity, weight float64) {
	for i := range c.variants {
		if v := &c.variants[i]; v.term == id {
			v.weight, v.plain = max(v.weight, rarity*weight), max(v.plain, weight)
			return
		}
	}
	c.variants = append(c.variants, variant{id, rarity * weight, weight})
}

// guess finds what an unknown word may be: two words written as one, a slip,
// or an abbreviation.
func (q *queryBuilder) guess(c *concept) {
	if q.corrected >= maxCorrected || q.ix.synonyms.foreign[c.text] {
		return
	}
	q.corrected++
	suggestions := q.ix.speller().suggest(c.text)
	if a, b, ok := q.split(c.text); ok && (len(suggestions) == 0 || suggestions[0].weight < slipWeight(1, false)) {
		c.add(a, q.ix.terms[a].rarity, compoundWeight, 0)
		c.add(b, q.ix.terms[b].rarity, compoundWeight, 0)
		return
	}
	for _, s := range suggestions {
		c.add(s.term, q.ix.terms[s.term].rarity, s.weight, 0)
	}
	if q.long {
		c.weight *= guessInText
	}
}

func (q *queryBuilder) split(text string) (a, b int32, ok bool) {
	for i := 3; i+3 <= len(text); i++ {
		a, okA := q.ix.ids[stem(text[:i])]
		b, okB := q.ix.ids[stem(text[i:])]
		if okA && okB {
			return a, b, true
		}
	}
	return 0, 0, false
}

// finish keeps the concepts that tell most.
func (q *queryBuilder) finish() query {
	if len(q.concepts) > maxConcepts {
		slices.SortStableFunc(q.concepts, func(a, b concept) int {
			switch x, y := a.strength(), b.strength(); {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return 0
		})
		q.concepts = q.concepts[:maxConcepts]
	}
	return query{q.words, q.concepts, q.long, q.unknown}
}

// strength is the most the concept can add to a score, roughly.
func (c concept) strength() float64 {
	best := 0.0
	for _, v := range c.variants {
		best = max(best, v.weight)
	}
	return best * c.weight
}
