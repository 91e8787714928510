package discovery_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestSearchBench prints what `make bench-search` shows: recall on a benchmark
// that is not part of the project, beside simple rankers on the same queries,
// and what searching costs. Without MCP_BRIDGE_SEARCH_CATALOG and
// MCP_BRIDGE_SEARCH_QUERIES there is nothing to measure.
func TestSearchBench(t *testing.T) {
	catalog, queries := os.Getenv("MCP_BRIDGE_SEARCH_CATALOG"), os.Getenv("MCP_BRIDGE_SEARCH_QUERIES")
	if catalog == "" || queries == "" {
		t.Log("MCP_BRIDGE_SEARCH_CATALOG and MCP_BRIDGE_SEARCH_QUERIES are not set: nothing measured")
		return
	}
	servers := readCatalog(t, catalog)
	given := readQueries(t, queries)
	ix := discovery.NewIndex(servers)
	ours := func(text string) []string { return toolNames(ix.Search(text, benchDepth).Hits) }
	rankers := []struct {
		name string
		rank func(string) []string
	}{
		{"substring AND", substringRanker(servers)},
		{"BM25", bm25Ranker(servers, false)},
		{"BM25F, camelCase, parameters", bm25Ranker(servers, true)},
		{"mcp-bridge", ours},
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-30s %-6s %4s %8s %6s %6s\n", "ranker", "kind", "n", "recall@1", "@5", "@8")
	for _, r := range rankers {
		table(&b, r.name, r.rank, given)
	}
	made := madeUpQueries(servers, 150)
	b.WriteString("\nqueries made up from the catalog's names and descriptions (seeded)\n")
	table(&b, rankers[2].name, rankers[2].rank, made)
	table(&b, "mcp-bridge", ours, made)
	b.WriteString("\nmcp-bridge by folds of the queries (by task or tool): all @1 @5 @8, step@5, task@8\n")
	folds(&b, ours, given)
	if os.Getenv("MCP_BRIDGE_SEARCH_FAST") == "" {
		costs(t, &b, servers, given)
	}
	t.Log(b.String())
	if file := os.Getenv("MCP_BRIDGE_SEARCH_MISSES"); file != "" {
		writeMisses(t, file, ours, slices.Concat(given, made))
	}
}

const benchDepth = 10

func readCatalog(t *testing.T, path string) []discovery.IndexedServer {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var catalog struct {
		Servers []struct {
			Name, Description string
			Tools             []discovery.Tool
		}
	}
	if err := json.Unmarshal(data, &catalog); err != nil {
		t.Fatal(err)
	}
	var servers []discovery.IndexedServer
	for _, s := range catalog.Servers {
		servers = append(servers, indexed(s.Name, s.Description, s.Tools...))
	}
	return servers
}

// A benchQuery is a request and the names of the tools that serve it.
type benchQuery struct {
	ID, Kind, Query string
	Relevant        []string
	fold            int
}

// readQueries reads one file, or all that a pattern names.
func readQueries(t *testing.T, pattern string) []benchQuery {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no queries in %s (%v)", pattern, err)
	}
	var list []benchQuery
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		group := ""
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			var q benchQuery
			if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
				t.Fatal(err)
			}
			switch q.Kind { // a task's steps follow it
			case "task":
				group = q.ID
			case "step":
			default:
				group = q.Relevant[0]
			}
			h := fnv.New32a()
			h.Write([]byte(group))
			q.fold = int(h.Sum32() % 5)
			list = append(list, q)
		}
	}
	return list
}

type recall struct{ at1, at5, at8, queries float64 }

func (r *recall) add(relevant, names []string) {
	r.at1 += share(relevant, names, 1)
	r.at5 += share(relevant, names, 5)
	r.at8 += share(relevant, names, 8)
	r.queries++
}

// share returns the part of the relevant names among the first k.
func share(relevant, names []string, k int) float64 {
	n := 0.0
	for _, name := range relevant {
		if slices.Contains(names[:min(k, len(names))], name) {
			n++
		}
	}
	return n / float64(len(relevant))
}

func measure(rank func(string) []string, queries []benchQuery) map[string]*recall {
	kinds := map[string]*recall{"all": {}}
	for _, q := range queries {
		if kinds[q.Kind] == nil {
			kinds[q.Kind] = &recall{}
		}
		names := rank(q.Query)
		kinds[q.Kind].add(q.Relevant, names)
		kinds["all"].add(q.Relevant, names)
	}
	return kinds
}

func table(b *strings.Builder, name string, rank func(string) []string, queries []benchQuery) {
	kinds := measure(rank, queries)
	for _, kind := range []string{"step", "task", "words", "typo", "param", "text", "all"} {
		if r := kinds[kind]; r != nil {
			fmt.Fprintf(b, "%-30s %-6s %4.0f %8.3f %6.3f %6.3f\n", name, kind, r.queries, r.at1/r.queries, r.at5/r.queries, r.at8/r.queries)
		}
	}
}

func folds(b *strings.Builder, rank func(string) []string, queries []benchQuery) {
	for fold := range 5 {
		kinds := measure(rank, slices.DeleteFunc(slices.Clone(queries), func(q benchQuery) bool { return q.fold != fold }))
		all, step, task := kinds["all"], cmp.Or(kinds["step"], &recall{}), cmp.Or(kinds["task"], &recall{})
		fmt.Fprintf(b, "fold %d n=%3.0f  %.3f %.3f %.3f  %.3f  %.3f\n", fold, all.queries, all.at1/all.queries, all.at5/all.queries,
			all.at8/all.queries, step.at5/step.queries, task.at8/task.queries)
	}
}

// costs prints times and sizes: of the catalog as it is, and of one of 10,000
// tools made of copies under other names.
func costs(t *testing.T, b *strings.Builder, servers []discovery.IndexedServer, queries []benchQuery) {
	t.Helper()
	many := multiplied(servers, 10_000)
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	large := discovery.NewIndex(many)
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	build := time.Hour
	for range 5 {
		start := time.Now()
		discovery.NewIndex(many)
		build = min(build, time.Since(start))
	}
	fmt.Fprintf(b, "\nindex of 10,000 tools: built in %v, %.1f MB\n", build.Round(time.Millisecond), float64(after.HeapAlloc-before.HeapAlloc)/1e6)
	small := discovery.NewIndex(servers)
	for _, s := range []struct {
		name  string
		index *discovery.Index
	}{{"the catalog", small}, {"10,000 tools", large}} {
		var times []time.Duration
		for _, q := range queries {
			start := time.Now()
			s.index.Search(q.Query, 8)
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		fmt.Fprintf(b, "search over %s: p50 %v, p95 %v\n", s.name, times[len(times)/2], times[len(times)*95/100])
	}
	goruntime.KeepAlive(many)
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	var tokens []int
	for _, q := range queries {
		var lines strings.Builder
		for _, h := range small.Search(q.Query, 10).Hits {
			lines.WriteString(h.Signature + "   " + h.Description + "\n")
		}
		n, err := codec.Count(lines.String())
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, n)
	}
	slices.Sort(tokens)
	fmt.Fprintf(b, "10 hits: p50 %d tokens, p95 %d, most %d\n", tokens[len(tokens)/2], tokens[len(tokens)*95/100], tokens[len(tokens)-1])
}

// multiplied returns n tools: the servers again and again, each time under other
// names, and with a word in each tool that no other copy has.
func multiplied(servers []discovery.IndexedServer, n int) []discovery.IndexedServer {
	var list []discovery.IndexedServer
	for copied := 0; ; copied++ {
		for _, s := range servers {
			s.Name += " " + invented(copied)
			tools := slices.Clone(s.Tools[:min(len(s.Tools), n)])
			for i := range tools {
				tools[i].Name += "_" + invented(copied*31+i)
			}
			s.Tools = tools
			list = append(list, s)
			if n -= len(tools); n == 0 {
				return list
			}
		}
	}
}

func toolNames(hits []discovery.Hit) []string {
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = h.Tool
	}
	return names
}

func writeMisses(t *testing.T, file string, rank func(string) []string, queries []benchQuery) {
	t.Helper()
	var b strings.Builder
	for _, q := range queries {
		if names := rank(q.Query); share(q.Relevant, names, 5) < 1 {
			fmt.Fprintf(&b, "%s %q: want %q, got %q\n", q.Kind, q.Query, q.Relevant, names)
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
