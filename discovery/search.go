package discovery

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sahilm/fuzzy"
)

// Bounds of what a search returns.
const (
	defaultHits = 8
	maxHits     = 1_000
	maxNamed    = 5 // words or servers a note names

	maxHitSignature = 130 // bytes, about
)

// How a first score is refined.
const (
	otherForm    = 0.95 // what "templates" counts where "template" was asked for
	worthShowing = 0.08 // of the best score; less is noise
	serverBonus  = 0.25 // for a server named in full
	twinShare    = 0.8  // of the score of a tool that another server has, too
)

// bonuses multiply a score, by one more than this at most.
type bonuses struct {
	name     float64 // for a tool all of whose name was asked for
	coverage float64 // for a tool that has all that was asked for
	pull     float64 // for the server with the best tools
}

// bonusesOf returns those of a few words, or of a text: no tool has all that a
// text says, and its tools are rather on one server.
func bonusesOf(long bool) bonuses {
	if long {
		return bonuses{name: 1.8, coverage: 0.8, pull: 0.4}
	}
	return bonuses{name: 0.9, coverage: 2, pull: 0.2}
}

// A Hit is a tool that fits a query, or, with Tool empty, a server that may
// have one but has not been listed yet.
type Hit struct {
	Server      string  `json:"server"`
	Tool        string  `json:"tool"`
	Signature   string  `json:"signature"`
	Description string  `json:"description"` // one short line
	Score       float64 `json:"score"`       // comparable within one Result only
}

// A Result is the answer to a query, best hits first.
type Result struct {
	Hits []Hit  `json:"hits"`
	Note string `json:"note"` // what matched nothing, and what to try instead; or empty
}

// Search returns at most limit tools (8 if limit is not positive) that fit the
// query best, over all servers of the index. Equal indexes give equal answers.
func (ix *Index) Search(text string, limit int) Result {
	if limit <= 0 {
		limit = defaultHits
	}
	limit = min(limit, maxHits)
	q := ix.parseQuery(text)
	ranked := ix.rank(q)
	if len(ranked) == 0 {
		return Result{Hits: []Hit{}, Note: ix.note(q)}
	}
	hits := make([]Hit, 0, min(limit, len(ranked)))
	for _, r := range ranked[:min(limit, len(ranked))] {
		hits = append(hits, ix.hit(r))
	}
	return Result{Hits: hits, Note: ix.missingNote(q, ranked[0].doc)}
}

type ranking struct {
	doc   int32
	score float64
}

// rank scores the tools in which anything asked for occurs.
func (ix *Index) rank(q query) []ranking {
	s := scorer{
		total:   make([]float64, len(ix.docs)),
		covered: make([]float64, len(ix.docs)),
		best:    make([]float64, len(ix.docs)),
		plain:   make([]float64, len(ix.docs)),
	}
	asked := make(map[int32]float64) // terms to how nearly they were asked for
	wanted := 0.0
	for _, c := range q.concepts {
		s.add(ix, c)
		wanted += c.strength()
		for _, v := range c.variants {
			asked[v.term] = max(asked[v.term], v.plain)
		}
	}
	named := ix.namedServers(asked)
	highest := 0.0
	for _, doc := range s.touched {
		highest = max(highest, s.total[doc])
	}
	b := bonusesOf(q.long)
	intents := q.intents(ix.synonyms)
	var list []ranking
	for _, doc := range s.touched {
		if s.total[doc] < worthShowing*highest {
			continue
		}
		score := s.total[doc] * (1 + b.name*ix.nameCoverage(doc, asked, q.words)) * (1 + b.coverage*s.covered[doc]/wanted)
		if named[ix.docs[doc].server] {
			score *= 1 + serverBonus
		}
		list = append(list, ranking{doc, score * agreement(intents, ix.docs[doc].intent, q.long)})
	}
	ix.pull(list, b.pull)
	for i := range list {
		list[i].score = math.Round(list[i].score*1000) / 1000
	}
	sortRanking(list)
	ix.lowerTwins(list[:min(len(list), maxHits)])
	return list
}

func sortRanking(list []ranking) {
	slices.SortFunc(list, func(a, b ranking) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.doc, b.doc))
	})
}

// pull raises the tools of the servers that have several of the best ones: what
// a task is about is rather there.
func (ix *Index) pull(list []ranking, most float64) {
	const looked = 3
	best := make([][looked]float64, len(ix.servers)) // scores, the highest first
	sum := func(server int32) float64 {
		total := 0.0
		for _, score := range best[server] {
			total += score
		}
		return total
	}
	highest := 0.0
	for _, r := range list {
		server, score := ix.docs[r.doc].server, r.score
		for i, other := range best[server] {
			if score > other {
				best[server][i], score = score, other
			}
		}
		highest = max(highest, sum(server))
	}
	for i := range list {
		list[i].score *= 1 + most*sum(ix.docs[list[i].doc].server)/highest
	}
}

// lowerTwins lowers tools that another server has under the same name, and
// better: a task wants it once.
func (ix *Index) lowerTwins(list []ranking) {
	seen := make(map[string]bool)
	for i := range list {
		d := ix.docs[list[i].doc]
		if d.tool < 0 {
			continue
		}
		name := ix.servers[d.server].Tools[d.tool].Name
		if seen[name] {
			list[i].score = math.Round(list[i].score*twinShare*1000) / 1000
		}
		seen[name] = true
	}
	sortRanking(list)
}

// A scorer adds up the concepts of a query.
type scorer struct {
	total   []float64 // by doc
	covered []float64 // strength of the concepts found in it
	touched []int32   // docs with a score
	best    []float64 // of the concept being added, by doc
	plain   []float64
	current []int32 // docs with a best
}

// add counts for each tool the best of the concept's forms, not their sum:
// "delete or remove" is one thing.
func (s *scorer) add(ix *Index, c concept) {
	s.current = s.current[:0]
	for _, v := range c.variants {
		for _, p := range ix.terms[v.term].postings {
			score := v.weight * float64(p.weight)
			if s.best[p.doc] == 0 {
				s.current = append(s.current, p.doc)
			}
			s.best[p.doc] = max(s.best[p.doc], score)
			s.plain[p.doc] = max(s.plain[p.doc], v.plain)
		}
	}
	strength := c.strength()
	for _, doc := range s.current {
		if s.total[doc] == 0 {
			s.touched = append(s.touched, doc)
		}
		s.total[doc] += c.weight * s.best[doc]
		s.covered[doc] += strength * s.plain[doc]
		s.best[doc], s.plain[doc] = 0, 0
	}
}

// nameCoverage is the share of a name's words that were asked for, rare words
// counting more, and another form of the same word slightly less.
func (ix *Index) nameCoverage(doc int32, asked map[int32]float64, words []string) float64 {
	have, all := 0.0, 0.0
	for _, w := range ix.docs[doc].name {
		rarity := ix.terms[w.term].rarity
		all += rarity
		if slices.Contains(words, w.text) {
			have += rarity
		} else {
			have += rarity * asked[w.term] * otherForm
		}
	}
	if all == 0 {
		return 0
	}
	share := have / all
	return share * share
}

// namedServers marks the servers all of whose name was asked for.
func (ix *Index) namedServers(asked map[int32]float64) []bool {
	named := make([]bool, len(ix.servers))
	for i, terms := range ix.serverTerms {
		named[i] = len(terms) > 0
		for _, t := range terms {
			named[i] = named[i] && asked[t] > otherForm
		}
	}
	return named
}

func (ix *Index) hit(r ranking) Hit {
	doc := ix.docs[r.doc]
	server := &ix.servers[doc.server]
	if doc.tool < 0 {
		return Hit{
			Server:      server.Name,
			Signature:   fmt.Sprintf("tools.%s  # not listed yet: dir(tools.%[1]s) starts the server and lists its tools", server.Ident),
			Description: firstSentence(server.Description),
			Score:       r.score,
		}
	}
	tool := &server.Tools[doc.tool]
	description := tool.Description
	if description == "" {
		description = tool.Title
	}
	return Hit{
		Server:      server.Name,
		Tool:        tool.Name,
		Signature:   tool.HitSignature(),
		Description: firstSentence(description),
		Score:       r.score,
	}
}

// note says why nothing was found and where to look.
func (ix *Index) note(q query) string {
	what := q.unknownNote()
	switch {
	case len(ix.servers) == 0:
		return "no servers are configured"
	case len(q.words) == 0:
		what = "the query has no words"
	case what == "":
		what = "no tool matches " + quoteWords(q.words)
	}
	near := ix.nearServers(q)
	if len(near) == 0 {
		return fmt.Sprintf("%s; servers: %s", what, ix.someServers())
	}
	return fmt.Sprintf("%s; nearest servers: %s", what, strings.Join(near, ", "))
}

// missingNote names the words that are in no tool: those that matched nothing,
// and where the best tool has not all that was asked for, also those for which
// others stood. In a longer text there always are some, and they say nothing.
func (ix *Index) missingNote(q query, best int32) string {
	if q.long {
		return ""
	}
	missing := slices.Clone(q.unknown)
	if slices.ContainsFunc(q.concepts, func(c concept) bool { return c.weight > stopWeight && !ix.has(best, c) }) {
		for _, c := range q.concepts {
			if _, known := ix.ids[stem(c.text)]; !known && c.weight > stopWeight && !slices.Contains(missing, c.text) && slices.Contains(q.words, c.text) {
				missing = append(missing, c.text)
			}
		}
	}
	switch len(missing) {
	case 0:
		return ""
	case 1:
		return "the word " + quoteWords(missing) + " is in no tool"
	}
	return "the words " + quoteWords(missing) + " are in no tool"
}

// has reports whether anything that stands for the concept is in the tool.
func (ix *Index) has(doc int32, c concept) bool {
	return slices.ContainsFunc(c.variants, func(v variant) bool {
		_, found := slices.BinarySearchFunc(ix.terms[v.term].postings, doc, func(p posting, doc int32) int { return cmp.Compare(p.doc, doc) })
		return found
	})
}

// unknownNote names the words that matched nothing, where nothing was found.
func (q query) unknownNote() string {
	if len(q.unknown) == 0 || (q.long && len(q.concepts) > 0) {
		return ""
	}
	return "no tool matches " + quoteWords(q.unknown)
}

func quoteWords(words []string) string {
	quoted := make([]string, 0, maxNamed)
	for _, w := range words[:min(len(words), maxNamed)] {
		quoted = append(quoted, strconv.Quote(w))
	}
	return strings.Join(quoted, ", ")
}

// nearServers returns identifiers that look like a word of the query.
func (ix *Index) nearServers(q query) []string {
	idents := make([]string, 0, len(ix.servers))
	for _, s := range ix.servers {
		idents = append(idents, s.Ident)
	}
	var near []string
	for _, w := range q.words[:min(len(q.words), maxCorrected)] {
		if len(w) < minFuzzyLength {
			continue
		}
		for _, m := range fuzzy.Find(w, idents) {
			if len(near) == maxNamed {
				return near
			}
			if !slices.Contains(near, m.Str) {
				near = append(near, m.Str)
			}
		}
	}
	return near
}

func (ix *Index) someServers() string {
	var b strings.Builder
	for i, s := range ix.servers {
		if i == 2*maxNamed {
			fmt.Fprintf(&b, " and %d more", len(ix.servers)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(s.Ident)
	}
	return b.String()
}
