package discovery

import (
	"math"
	"slices"
	"strings"
	"sync"
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
	saturation = 1.5  // BM25's k1: how fast repetition stops counting
	joinedPart = 0.4  // what "createissue" counts beside "create" and "issue"
	rarityCap  = 0.85 // of the rarity of a word that one tool has: the rarest words are names
	maxIndexed = 200_000
)

// An Index finds tools. It is immutable, and safe for concurrent use.
type Index struct {
	servers []IndexedServer // enabled ones
	docs    []indexedTool
	terms   []term
	// serverTerms are the words of each server's name that tell it from others,
	// and inServerName the same for all servers.
	serverTerms  [][]int32
	inServerName map[int32]bool
	ids          map[string]int32 // stem to term
	forms        []form           // all words, in the order in which they came
	speller      func() *speller  // of forms; made when the first unknown word comes
	synonyms     *synonyms
}

// An indexedTool is one thing that can be found: a tool, or, where tool is
// negative, a server not listed yet.
type indexedTool struct {
	server, tool int32
	name         []nameWord // distinct
	intent       intent     // of the verb that the name has first
}

type nameWord struct {
	text string
	term int32
}

// A form is a word as it was written, and the term of its stem.
type form struct {
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
	ix := &Index{ids: make(map[string]int32), inServerName: make(map[int32]bool), synonyms: newSynonyms()}
	size := 0
	for _, s := range servers {
		for i := range s.Tools {
			size += wordsPerTool + len(s.Tools[i].Description)/bytesPerWord
		}
	}
	b := builder{ix: ix, known: make(map[string]int32), counts: make([]termCount, 0, size)}
	for _, s := range servers {
		if !s.Disabled {
			b.addServer(s)
		}
	}
	b.finish()
	ix.speller = sync.OnceValue(func() *speller { return newSpeller(ix.forms) })
	return ix
}

// What is expected of a tool beside its description, and of that, so that room
// is made once.
const (
	wordsPerTool = 40
	bytesPerWord = 9
)

// A builder collects how often terms occur in the fields of each tool, and
// weighs that once the average lengths of fields are known.
type builder struct {
	ix      *Index
	known   map[string]int32 // words to terms
	counts  []termCount      // of all docs, one after the other
	ends    []int            // of each doc in counts
	lengths [][fieldCount]float32
	length  [fieldCount]float32 // of the doc being added
	perTerm []int32             // docs in which a term occurs
	seen    []seenTerm          // by term
	words   []word              // room that is used again
	joined  []byte
}

// A termCount is how much of a term is in one field of a doc.
type termCount struct {
	term  int32
	field textField
	count float32
}

// A seenTerm tells where the doc being added has its count of a term.
type seenTerm struct {
	doc   int32 // one more than its number
	field textField
	at    int32
}

func (b *builder) addServer(s IndexedServer) {
	server := int32(len(b.ix.servers)) //nolint:gosec // two thousand million do not fit in memory
	s.Ident = s.ident()
	b.ix.servers = append(b.ix.servers, s)
	shared := serverWords{splitWords(s.Name), splitWords(firstSentence(s.Description))}
	distinctive := b.distinctive(shared.name)
	b.ix.serverTerms = append(b.ix.serverTerms, distinctive)
	for _, t := range distinctive {
		b.ix.inServerName[t] = true
	}
	if !s.Listed {
		b.addDoc(server, -1, ToolDoc{Description: cleanText(s.Description, maxServerDescription)}, shared)
		return
	}
	for i := range s.Tools {
		if len(b.ix.docs) >= maxIndexed {
			return
		}
		b.addDoc(server, int32(i), s.Tools[i], shared)
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
	b.length = [fieldCount]float32{}
	name := splitWords(truncate(t.Name, maxToolName))
	if tool < 0 {
		name = shared.name
	}
	b.addWords(fieldName, name, true)
	nameWords := make([]nameWord, 0, len(name))
	for _, w := range name {
		if nw := (nameWord{w.text, b.term(w.text)}); !slices.Contains(nameWords, nw) {
			nameWords = append(nameWords, nw)
		}
	}
	b.addText(fieldTitle, t.Title, true)
	b.addWords(fieldServer, shared.name, true)
	b.addText(fieldDescription, t.Description, false)
	b.addWords(fieldServerDescription, shared.description, false)
	for i := range t.Params {
		p := &t.Params[i]
		b.addText(fieldParam, p.Name, true)
		b.addText(fieldParamDescription, p.Description, false)
		for _, name := range p.of.fieldNames(nil) {
			b.addText(fieldParamDescription, name, false)
		}
		for _, v := range p.Enum {
			b.addText(fieldEnum, v, false)
		}
	}
	b.ix.docs = append(b.ix.docs, indexedTool{server, tool, nameWords, b.intent(tool, name)})
	b.ends = append(b.ends, len(b.counts))
	b.lengths = append(b.lengths, b.length)
}

// intent is that of the first verb in a tool's name.
func (b *builder) intent(tool int32, name []word) intent {
	if tool < 0 {
		return intentNone
	}
	for _, w := range name {
		if i := b.ix.synonyms.intentOf(w.text); i != intentNone {
			return i
		}
	}
	return intentNone
}

func (b *builder) addText(f textField, text string, isName bool) {
	b.words = appendWords(b.words[:0], text)
	b.addWords(f, b.words, isName)
}

// addWords counts the words of a text. In names every two neighbours are also
// counted as one word, elsewhere only those written as one or known as a pair.
func (b *builder) addWords(f textField, words []word, isName bool) {
	for i, w := range words {
		b.count(f, b.term(w.text), 1)
		if i == 0 {
			continue
		}
		prev := words[i-1].text
		if (isName || w.glued || b.ix.synonyms.isPair(prev, w.text)) && len(prev)+len(w.text) <= maxWordLength {
			b.joined = append(append(b.joined[:0], prev...), w.text...)
			id, ok := b.known[string(b.joined)]
			if !ok {
				id = b.term(string(b.joined))
			}
			b.count(f, id, joinedPart)
		}
	}
	b.length[f] += float32(len(words))
}

func (b *builder) count(f textField, id int32, n float32) {
	doc := int32(len(b.ix.docs)) + 1 //nolint:gosec // at most maxIndexed
	s := &b.seen[id]
	if s.doc == doc && s.field == f {
		b.counts[s.at].count += n
		return
	}
	if s.doc != doc {
		b.perTerm[id]++
	}
	*s = seenTerm{doc, f, int32(len(b.counts))} //nolint:gosec // bounded by maxIndexed and the bounds of texts
	b.counts = append(b.counts, termCount{id, f, n})
}

// term returns the number of a word's stem and makes the word known.
func (b *builder) term(text string) int32 {
	if id, ok := b.known[text]; ok {
		return id
	}
	st := stem(text)
	id, ok := b.ix.ids[st]
	if !ok {
		id = int32(len(b.ix.terms)) //nolint:gosec // as for servers
		st = strings.Clone(st)      // not a part of a whole description
		b.ix.ids[st] = id
		b.ix.terms = append(b.ix.terms, term{})
		b.perTerm = append(b.perTerm, 0)
		b.seen = append(b.seen, seenTerm{})
	}
	if text == st {
		text = st
	} else {
		text = strings.Clone(text)
	}
	b.known[text] = id
	b.ix.forms = append(b.ix.forms, form{text, id})
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
	total := 0
	for _, n := range b.perTerm {
		total += int(n)
	}
	room := make([]posting, total)
	docs := float64(len(b.ix.docs))
	for i := range b.ix.terms {
		n := int(b.perTerm[i])
		t := &b.ix.terms[i]
		t.postings, room = room[:0:n], room[n:]
		t.rarity = min(rarity(docs, float64(n)), rarityCap*rarity(docs, 1))
	}
	models := fieldModels()
	sums := make([]float32, len(b.ix.terms)) // of the terms of one doc
	start := 0
	for doc, end := range b.ends {
		var factor [fieldCount]float32
		for f, m := range models {
			relative := 1.0
			if average[f] > 0 {
				relative = float64(b.lengths[doc][f]) / average[f]
			}
			factor[f] = float32(m.weight / (1 - m.lengthEffect + m.lengthEffect*relative))
		}
		counts := b.counts[start:end]
		for _, c := range counts {
			sums[c.term] += c.count * factor[c.field]
		}
		for _, c := range counts {
			if sum := sums[c.term]; sum > 0 {
				t := &b.ix.terms[c.term]
				t.postings = append(t.postings, posting{int32(doc), sum * (saturation + 1) / (sum + saturation)})
				sums[c.term] = 0
			}
		}
		start = end
	}
}

// rarity tells how much a word that n of total docs have says of a doc.
func rarity(total, n float64) float64 { return math.Log(1 + (total-n+0.5)/(n+0.5)) }
