package discovery_test

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// substringRanker finds the tools that contain every word of the query, in the
// order of the catalog.
func substringRanker(servers []discovery.IndexedServer) func(string) []string {
	var names, texts []string
	for _, s := range servers {
		for _, t := range s.Tools {
			names = append(names, t.Name)
			texts = append(texts, strings.ToLower(s.Name+" "+t.Name+" "+t.Description))
		}
	}
	return func(query string) []string {
		words := strings.Fields(strings.ToLower(query))
		var found []string
		for i, text := range texts {
			if len(found) < benchDepth && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
				found = append(found, names[i])
			}
		}
		return found
	}
}

var plainWord = regexp.MustCompile(`[a-z0-9]+`)

// bm25Ranker is BM25 with k1 1.5 and b 0.75 over name, description and the names of
// parameters; or, by fields, BM25F over what camelCase splits too.
func bm25Ranker(servers []discovery.IndexedServer, byFields bool) func(string) []string {
	split := func(s string) []string { return plainWord.FindAllString(strings.ToLower(s), -1) }
	weights := []float64{1, 1, 1, 0}
	if byFields {
		split = func(s string) []string { return lowerWords(nameWord.FindAllString(s, -1)) }
		weights = []float64{3, 1, 1, 1.5}
	}
	type doc struct {
		name  string
		count map[string]float64
		size  float64
	}
	var docs []doc
	frequency := make(map[string]float64)
	total := 0.0
	for _, s := range servers {
		for _, t := range s.Tools {
			params := ""
			for _, p := range t.Params {
				params += " " + p.Name
			}
			d := doc{t.Name, make(map[string]float64), 0}
			for f, text := range []string{t.Name, t.Description, params, s.Name} {
				for _, w := range split(text) {
					d.count[w] += weights[f]
					d.size++
				}
			}
			for w := range d.count {
				frequency[w]++
			}
			total += d.size
			docs = append(docs, d)
		}
	}
	average := total / float64(len(docs))
	return func(query string) []string {
		words := split(query)
		type scored struct {
			name  string
			score float64
		}
		var found []scored
		for _, d := range docs {
			score := 0.0
			for _, w := range words {
				n, df := d.count[w], frequency[w]
				if n > 0 {
					score += math.Log(1+(float64(len(docs))-df+0.5)/(df+0.5)) * n * 2.5 / (n + 1.5*(0.25+0.75*d.size/average))
				}
			}
			if score > 0 {
				found = append(found, scored{d.name, score})
			}
		}
		slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		var names []string
		for _, f := range found[:min(len(found), benchDepth)] {
			names = append(names, f.name)
		}
		return names
	}
}
