package discovery_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestServerIdents(t *testing.T) {
	for _, tt := range []struct{ in, want []string }{
		{[]string{"github", "myServer", "a_b"}, []string{"github", "myServer", "a_b"}},
		{[]string{"a-b", "a.b", "a b", "a_b"}, []string{"a_b", "a_b_2", "a_b_3", "a_b_4"}},
		{[]string{"a", "a_2", "a!", "a?"}, []string{"a", "a_2", "a_", "a__2"}},
		{[]string{"x", "x"}, []string{"x", "x_2"}},
		{[]string{"x", "x_2", "x"}, []string{"x", "x_2", "x_3"}},
		{[]string{"class", "None", "match"}, []string{"class_", "None_", "match"}},
		{[]string{"search", "servers", "call", "map", "read", "prompt", "Search"}, []string{"search_", "servers_", "call_", "map_", "read_", "prompt_", "Search"}},
		{[]string{"search_", "search"}, []string{"search_", "search__2"}},
		{[]string{"9to5", "", "💥", "-"}, []string{"_9to5", "_", "__2", "__3"}},
		{[]string{"__class__", "__x"}, []string{"__class___", "__x"}},
		{[]string{"café", "日本語", "сервер", "cafe\u0301", "ﬁle", "x²", "ℌ"}, []string{"café", "日本語", "сервер", "cafe_", "_le", "x_", "_"}},
		{[]string{"a\u200bb", "a\x00c", "a\xffd"}, []string{"a_b", "a_c", "a_d"}},
	} {
		if got := discovery.ServerIdents(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestServerIdentsAreStable(t *testing.T) {
	names := []string{"a-b", "a b", "search", "a_b", "a_b_2"}
	all := discovery.ServerIdents(names)
	for n := range names {
		if got := discovery.ServerIdents(names[:n]); !slices.Equal(got, all[:n]) {
			t.Errorf("with %d names: %q, with all: %q", n, got, all[:n])
		}
	}
}

func TestServerIdentsMany(t *testing.T) {
	idents := discovery.ServerIdents(slices.Repeat([]string{strings.Repeat("é-", 5000)}, 10_000))
	seen := make(map[string]bool)
	for _, ident := range idents {
		if seen[ident] || len(ident) > 250 {
			t.Fatalf("%q: repeated or too long", ident)
		}
		seen[ident] = true
	}
}

// A name that is an identifier is its own; camelCase stays, and is also found
// in snake_case where that leads to nothing else.
func TestMemberNames(t *testing.T) {
	for _, tt := range []struct {
		names, idents []string
		aliases       string
	}{
		{[]string{"a-b", "a_b", "a b", "a_b"}, []string{"a_b_2", "a_b", "a_b_3", "a_b_4"}, "[[] [] [] []]"},
		{[]string{"createIssue", "getURLOf", "HTMLPage", "ID", "x2Y", "plain"}, []string{"createIssue", "getURLOf", "HTMLPage", "ID", "x2Y", "plain"}, "[[create_issue] [get_url_of] [html_page] [id] [x2_y] []]"},
		{[]string{"createIssue", "create_issue"}, []string{"createIssue", "create_issue"}, "[[] []]"},
		{[]string{"createIssue", "CreateIssue"}, []string{"createIssue", "CreateIssue"}, "[[] []]"},
		{[]string{"create-Issue", "create issue"}, []string{"create_Issue", "create_issue"}, "[[] []]"},
		{[]string{"Import", "class", "from"}, []string{"Import", "class_", "from_"}, "[[] [] []]"},
		{[]string{"get.Value"}, []string{"get_Value"}, "[[get_value]]"},
	} {
		var tools []discovery.Tool
		for _, name := range tt.names {
			tools = append(tools, discovery.Tool{Name: name})
		}
		var idents []string
		var aliases [][]string
		for _, doc := range discovery.Document(discovery.Server{Name: "s"}, tools) {
			idents, aliases = append(idents, doc.Ident), append(aliases, doc.Aliases)
		}
		if !slices.Equal(idents, tt.idents) || fmt.Sprint(aliases) != tt.aliases {
			t.Errorf("%q: %q with %v, want %q with %s", tt.names, idents, aliases, tt.idents, tt.aliases)
		}
	}
}
