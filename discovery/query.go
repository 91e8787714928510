package discovery

import (
	"slices"
	"strings"
)

// Bounds of one query.
const (
	maxQueryLength = 2_000 // characters
	maxConcepts    = 40
	maxCorrected   = 8 // words that are spelt wrong
	longQuery      = 9 // words; more are a text
)

// What a form counts compared with the word that was asked for.
const (
	synonymWeight  = 0.45
	compoundWeight = 0.6
	stopWeight     = 0.08
	pathWeight     = 0.4
	guessInText    = 0.15 // an unknown word in a longer text is rather a name than a slip
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
	for _, part := range parts {
		weight := 1.0
		if isPath(part) {
			weight = pathWeight
		}
		words := splitWords(part)
		for i, w := range words {
			if wordWeight := weight; len(q.words) < 4*maxConcepts {
				if i == len(words)-1 && weight < 1 && strings.HasSuffix(strings.ToLower(part), "."+w.text) {
					wordWeight = 1 // the extension tells what kind of file it is
				}
				q.word(w.text, prev, wordWeight)
				prev = w.text
			}
		}
	}
	return q.finish()
}

// isPath reports a path or an address, whose words are data rather than a
// description of what is wanted.
func isPath(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~/") || strings.Contains(s, "://") || strings.Count(s, "/") > 1
}

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
	q.words = append(q.words, text)
	if q.ix.synonyms.stop[text] {
		weight *= stopWeight
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

// guess finds what an unknown word may be: two words written as one, a slip,
// or an abbreviation.
func (q *queryBuilder) guess(c *concept) {
	if q.corrected >= maxCorrected {
		return
	}
	q.corrected++
	if a, b, ok := q.split(c.text); ok {
		c.add(a, q.ix.terms[a].rarity, compoundWeight, 0)
		c.add(b, q.ix.terms[b].rarity, compoundWeight, 0)
		return
	}
	for _, s := range q.ix.speller.suggest(c.text) {
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
