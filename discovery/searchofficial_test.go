package discovery_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestSearchOfficialServers holds what a new user asks of the servers that most
// people begin with: what he wants comes first, and not the opposite of it.
func TestSearchOfficialServers(t *testing.T) {
	servers := readCatalog(t, filepath.Join("testdata", "official.json"))
	ix := discovery.NewIndex(servers)
	for query, want := range map[string][]string{
		"make a new folder": {"filesystem.create_directory"},
		"create a folder":   {"filesystem.create_directory"},
		"remember a fact":   {"memory.create_entities", "memory.add_observations"},
		"store a fact about a person so that I remember it later": {"memory.create_entities", "memory.add_observations"},
		"forget about a person":                                   {"memory.delete_entities"},
		"how big is this file and when was it changed":            {"filesystem.get_file_info"},
		"look for files whose name contains report":               {"filesystem.search_files"},
		"read a file":         {"filesystem.read_file", "filesystem.read_text_file"},
		"change a file":       {"filesystem.edit_file"},
		"rename a file":       {"filesystem.move_file"},
		"what is in a folder": {"filesystem.list_directory", "filesystem.list_directory_with_sizes"},
		"add two numbers":     {"everything.get-sum"},
		"remove a relation":   {"memory.delete_relations"},
	} {
		found := top(ix.Search(query, 8), 8)
		if len(found) == 0 || !slices.Contains(want, found[0]) {
			t.Errorf("%q: %q, want one of %q first", query, found[:min(4, len(found))], want)
		}
	}
}

// TestSearchSaysWhatIsMissing tells words of which no tool speaks, and takes
// none of them for another one.
func TestSearchSaysWhatIsMissing(t *testing.T) {
	ix := discovery.NewIndex(readCatalog(t, filepath.Join("testdata", "official.json")))
	for query, want := range map[string]string{
		"send an email":     `the word "email" is in no tool`,
		"lösche eine Datei": `"lösche", "eine", "datei"`,
		"remember a fact":   `the word "fact" is in no tool`,
	} {
		r := ix.Search(query, 8)
		if !strings.Contains(r.Note, want) {
			t.Errorf("%q: note %q, want %q; %q", query, r.Note, want, top(r, 4))
		}
	}
	if r := ix.Search("lösche eine Datei", 8); len(r.Hits) > 0 {
		t.Errorf("%q", top(r, 8))
	}
}
