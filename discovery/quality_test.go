package discovery_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestSearchQuality prints recall on a benchmark that is not part of the
// project: a folder with catalog.json and queries*.jsonl, named by
// MCP_BRIDGE_SEARCH_BENCH. Without the variable there is nothing to measure.
func TestSearchQuality(t *testing.T) {
	dir := os.Getenv("MCP_BRIDGE_SEARCH_BENCH")
	if dir == "" {
		t.Log("MCP_BRIDGE_SEARCH_BENCH is not set: nothing measured")
		return
	}
	ix := benchIndex(t, dir)
	files, err := filepath.Glob(filepath.Join(dir, "queries*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no queries in %s (%v)", dir, err)
	}
	for _, file := range files {
		measure(t, ix, file)
	}
}

func benchIndex(t *testing.T, dir string) *discovery.Index {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "catalog.json"))
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
		server := discovery.Server{Name: s.Name, Description: s.Description}
		servers = append(servers, discovery.IndexedServer{
			Server: server, Tools: discovery.Document(server, s.Tools), Listed: true,
		})
	}
	return discovery.NewIndex(servers)
}

type recall struct{ at1, at5, at10, queries float64 }

func measure(t *testing.T, ix *discovery.Index, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	verbose := os.Getenv("MCP_BRIDGE_SEARCH_BENCH_MISSES") != ""
	kinds := map[string]*recall{"all": {}}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var q struct {
			ID, Kind, Query string
			Relevant        []string
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		if kinds[q.Kind] == nil {
			kinds[q.Kind] = &recall{}
		}
		var names []string
		for _, h := range ix.Search(q.Query, 10).Hits {
			names = append(names, h.Tool)
		}
		for _, r := range []*recall{kinds[q.Kind], kinds["all"]} {
			r.at1 += share(q.Relevant, names, 1)
			r.at5 += share(q.Relevant, names, 5)
			r.at10 += share(q.Relevant, names, 10)
			r.queries++
		}
		if verbose && share(q.Relevant, names, 5) < 1 {
			t.Logf("%s %q: want %q, got %q", q.Kind, q.Query, q.Relevant, names)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		r := kinds[kind]
		t.Logf("%s %-6s n=%3.0f  recall@1 %.3f  @5 %.3f  @10 %.3f", filepath.Base(file), kind, r.queries,
			r.at1/r.queries, r.at5/r.queries, r.at10/r.queries)
	}
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
