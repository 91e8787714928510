package discovery

import (
	"math"
	"slices"
)

// An IndexedServer is a server and what is known of its tools.
type IndexedServer struct {
	Server
	Tools  []ToolDoc
	Listed bool // Tools is what the server offers; otherwise it has not been asked yet
}

// A textField is a part of a tool's documentation that is searched.
type textField int

const (
	fieldName textField = iota
	fieldTitle
	fieldServer
	fieldParam
	fieldEnum
	fieldDescription
	fieldParamDescription
	fieldServerDescription
	fieldCount
)

// A fieldModel says how much a word in a field counts, and how much less the
// longer the field is.
type fieldModel struct{ weight, lengthEffect float64 }

func fieldModels() [fieldCount]fieldModel {
	return [fieldCount]fieldModel{
		fieldName:              {4.5, 0.5},
		fieldTitle:             {2.0, 0.5},
		fieldServer:            {2.0, 0.2},
		fieldParam:             {1.2, 0.4},
		fieldEnum:              {0.5, 0.4},
		fieldDescription:       {1.2, 0.5},
		fieldParamDescription:  {0.4, 0.5},
		fieldServerDescription: {0.4, 0.5},
	}
}

const (
	saturation = 1.5 // BM25's k1: how fast repetition stops counting
	joinedPart = 0.4 // what "createissue" counts beside "create" and "issue"
	maxIndexed = 200_000
)

// An Index finds tools. It is immutable, and safe for concurrent use.
type Index struct {
	servers []IndexedServer // enabled ones
	docs    []indexedTool
	terms   []term
	// serverTerms are the words of each server's name that tell it from others.
	serverTerms [][]int32
	ids         map[string]int32 // stem to term
	speller     *speller
	synonyms    *synonyms
}

// An indexedTool is one thing that can be found: a tool, or, where tool is
// negative, a server not listed yet.
type indexedTool struct {
	server, tool int32
	name         []nameWord // distinct
}

type nameWord struct {
	text string
	term int32
}

// A term is a stem and where it occurs.
type term struct {
	postings []posting // by doc
	rarity   float64   // inverse document frequency
}

type posting struct {
	doc    int32
	weight float32 // saturated and weighted by field, below saturation+1
}

// NewIndex builds the index over servers, in their order. Disabled servers are
// left out.
func NewIndex(servers []IndexedServer) *Index {
	b := builder{
		ix: &Index{ids: make(map[string]int32), speller: newSpeller(), synonyms: newSynonyms()},
	}
	for _, s := range servers {
		if !s.Disabled {
			b.addServer(s)
		}
	}
	b.finish()
	return b.ix
}

// A builder collects how often terms occur in the fields of each tool, and
// weighs that once the average lengths of fields are known.
type builder struct {
	ix      *Index
	counts  [][]termCount // by doc
	lengths [][fieldCount]float32
	forms   map[string]bool // added to the speller
	slots   map[int32]int   // of the doc being added: term to index in current
	current []termCount
	length  [fieldCount]float32
}

type termCount struct {
	term  int32
	count [fieldCount]float32
}

func (b *builder) addServer(s IndexedServer) {
	if b.forms == nil {
		b.forms = make(map[string]bool)
	}
	server := int32(len(b.ix.servers)) //nolint:gosec // two thousand million do not fit in memory
	s.Ident = s.ident()
	b.ix.servers = append(b.ix.servers, s)
	shared := serverWords{splitWords(s.Name), splitWords(firstSentence(s.Description))}
	b.ix.serverTerms = append(b.ix.serverTerms, b.distinctive(shared.name))
	if !s.Listed {
		b.addDoc(server, -1, ToolDoc{Description: cleanText(s.Description, maxServerDescription)}, shared)
		return
	}
	for i, t := range s.Tools {
		if len(b.ix.docs) >= maxIndexed {
			return
		}
		b.addDoc(server, int32(i), t, shared)
	}
}

// distinctive returns the terms of a server's name but "mcp", "server" and such.
func (b *builder) distinctive(name []word) []int32 {
	var terms []int32
	for _, w := range name {
		if !b.ix.synonyms.stop[w.text] {
			terms = append(terms, b.term(w.text))
		}
	}
	return terms
}

// serverWords is what all tools of a server have in common.
type serverWords struct{ name, description []word }

func (b *builder) addDoc(server, tool int32, t ToolDoc, shared serverWords) {
	b.slots, b.current, b.length = make(map[int32]int), nil, [fieldCount]float32{}
	name := splitWords(truncate(t.Name, maxToolName))
	if tool < 0 {
		name = shared.name
	}
	b.addWords(fieldName, name, true)
	var nameWords []nameWord
	for _, w := range name {
		if nw := (nameWord{w.text, b.term(w.text)}); !slices.Contains(nameWords, nw) {
			nameWords = append(nameWords, nw)
		}
	}
	b.addWords(fieldTitle, splitWords(t.Title), true)
	b.addWords(fieldServer, shared.name, true)
	b.addWords(fieldDescription, splitWords(t.Description), false)
	b.addWords(fieldServerDescription, shared.description, false)
	for _, p := range t.Params {
		b.addWords(fieldParam, splitWords(p.Name), true)
		b.addWords(fieldParamDescription, splitWords(p.Description), false)
		for _, name := range p.of.fieldNames(nil) {
			b.addWords(fieldParamDescription, splitWords(name), false)
		}
		for _, v := range p.Enum {
			b.addWords(fieldEnum, splitWords(v), false)
		}
	}
	b.ix.docs = append(b.ix.docs, indexedTool{server, tool, nameWords})
	b.counts = append(b.counts, b.current)
	b.lengths = append(b.lengths, b.length)
}

// addWords counts the words of a text. In names every two neighbours are also
// counted as one word, elsewhere only those written as one or known as a pair.
func (b *builder) addWords(f textField, words []word, isName bool) {
	for i, w := range words {
		b.count(f, w.text, 1)
		if i == 0 {
			continue
		}
		prev := words[i-1].text
		if (isName || w.glued || b.ix.synonyms.isPair(prev, w.text)) && len(prev)+len(w.text) <= maxWordLength {
			b.count(f, prev+w.text, joinedPart)
		}
	}
	b.length[f] += float32(len(words))
}

func (b *builder) count(f textField, text string, n float32) {
	id := b.term(text)
	slot, ok := b.slots[id]
	if !ok {
		slot = len(b.current)
		b.slots[id] = slot
		b.current = append(b.current, termCount{term: id})
	}
	b.current[slot].count[f] += n
}

// term returns the number of a word's stem and makes the word known.
func (b *builder) term(text string) int32 {
	st := stem(text)
	id, ok := b.ix.ids[st]
	if !ok {
		id = int32(len(b.ix.terms)) //nolint:gosec // as for servers
		b.ix.ids[st] = id
		b.ix.terms = append(b.ix.terms, term{})
	}
	if !b.forms[text] {
		b.forms[text] = true
		b.ix.speller.add(text, id)
	}
	return id
}

// finish turns counts into weights.
func (b *builder) finish() {
	var average [fieldCount]float64
	for _, l := range b.lengths {
		for f := range average {
			average[f] += float64(l[f]) / float64(len(b.lengths))
		}
	}
	models := fieldModels()
	for doc, counts := range b.counts {
		var factor [fieldCount]float64
		for f, m := range models {
			relative := 1.0
			if average[f] > 0 {
				relative = float64(b.lengths[doc][f]) / average[f]
			}
			factor[f] = m.weight / (1 - m.lengthEffect + m.lengthEffect*relative)
		}
		for _, c := range counts {
			sum := 0.0
			for f, n := range c.count {
				if n > 0 {
					sum += float64(n) * factor[f]
				}
			}
			weight := sum * (saturation + 1) / (sum + saturation)
			t := &b.ix.terms[c.term]
			t.postings = append(t.postings, posting{int32(doc), float32(weight)})
		}
	}
	total := float64(len(b.ix.docs))
	for i := range b.ix.terms {
		n := float64(len(b.ix.terms[i].postings))
		b.ix.terms[i].rarity = math.Log(1 + (total-n+0.5)/(n+0.5))
	}
}
