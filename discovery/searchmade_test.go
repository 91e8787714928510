package discovery_test

import (
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

var nameWord = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]+`)

// madeUpQueries makes n queries of each kind out of the catalog itself, the same
// ones each time: the words of a name with one dropped, with slips, words of the
// description with a parameter's name, and words of the description alone.
func madeUpQueries(servers []discovery.IndexedServer, n int) []benchQuery {
	rng := rand.New(rand.NewPCG(7, 7))
	var tools []discovery.ToolDoc
	for _, s := range servers {
		tools = append(tools, s.Tools...)
	}
	var list []benchQuery
	add := func(kind, query, name string) {
		list = append(list, benchQuery{Kind: kind, Query: query, Relevant: []string{name}})
	}
	for count := 0; count < n; {
		t := tools[rng.IntN(len(tools))]
		words := lowerWords(nameWord.FindAllString(t.Name, -1))
		long := describing(t.Description)
		if len(words) < 2 || len(long) < 6 || len(t.Params) == 0 {
			continue
		}
		count++
		dropped := append([]string(nil), words...)
		if len(dropped) > 2 {
			i := rng.IntN(len(dropped))
			dropped = append(dropped[:i], dropped[i+1:]...)
		}
		add("words", strings.Join(dropped, " "), t.Name)
		slipped := append([]string(nil), words...)
		for range 1 + rng.IntN(2) {
			i := rng.IntN(len(slipped))
			slipped[i] = slip(rng, slipped[i])
		}
		add("typo", strings.Join(slipped, " "), t.Name)
		param := strings.Join(lowerWords(nameWord.FindAllString(t.Params[rng.IntN(len(t.Params))].Name, -1)), " ")
		add("param", strings.Join(sample(rng, long, 3), " ")+" "+param, t.Name)
		add("text", strings.Join(sample(rng, long, 5), " "), t.Name)
	}
	return list
}

func lowerWords(words []string) []string {
	for i, w := range words {
		words[i] = strings.ToLower(w)
	}
	return words
}

// describing returns the longer words of a description, each once.
func describing(s string) []string {
	var words []string
	seen := make(map[string]bool)
	for _, w := range lowerWords(nameWord.FindAllString(s, -1)) {
		if len(w) > 3 && !seen[w] {
			seen[w] = true
			words = append(words, w)
		}
	}
	return words
}

// sample takes some of words, in their order.
func sample(rng *rand.Rand, words []string, n int) []string {
	var taken []string
	for i, w := range words {
		if rng.IntN(len(words)-i) < n-len(taken) {
			taken = append(taken, w)
		}
	}
	return taken
}

// slip drops, doubles, replaces or swaps a letter of a word of four or more.
func slip(rng *rand.Rand, w string) string {
	if len(w) < 4 {
		return w
	}
	i := 1 + rng.IntN(len(w)-2)
	switch rng.IntN(4) {
	case 0:
		return w[:i] + w[i+1:]
	case 1:
		return w[:i] + w[i:i+1] + w[i:]
	case 2:
		return w[:i] + string(rune('a'+rng.IntN(26))) + w[i+1:]
	}
	return w[:i] + w[i+1:i+2] + w[i:i+1] + w[i+2:]
}
