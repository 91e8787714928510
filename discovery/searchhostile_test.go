package discovery_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// stuffed is a tool that says every word there is, again and again.
func stuffed(name string) discovery.Tool {
	words := map[string]bool{}
	for _, s := range workshop() {
		for _, t := range s.Tools {
			for _, w := range lowerWords(nameWord.FindAllString(t.Name+" "+t.Description, -1)) {
				words[w] = true
			}
		}
	}
	all := slices.Sorted(maps.Keys(words))
	text := strings.Repeat(strings.Join(all, " ")+" ", 20)
	var params []string
	for _, w := range all[:100] {
		params = append(params, fmt.Sprintf(`%q:{"enum":[%q],"description":%q}`, w, w, w+" "+w+" "+w))
	}
	return tool(name, text, strings.Join(params, ","))
}

// Whoever writes every word into a tool does not win every search.
func TestSearchResistsStuffing(t *testing.T) {
	servers := append(workshop(),
		indexed("best", "create list get read write send search file issue message", stuffed("do_anything"),
			stuffed("create_issue_list_issues_read_file_write_file_send_message_search_web_get_weather_query_calculate")),
		indexed("create issue read file send message", "", stuffed("x")))
	ix := discovery.NewIndex(servers)
	for query, want := range map[string]string{
		"create issue":            "github.create_issue",
		"read a file":             "disk.read_file",
		"delete file":             "disk.delete_file",
		"post a message":          "slack.post_message",
		"send email":              "mail.send_email",
		"weather forecast":        "weather.forecast",
		"search the web":          "search.web_search",
		"take a screenshot":       "browser.screenshot",
		"list tables":             "postgres.list_tables",
		"directions to a place":   "maps.directions",
		"merge pull request":      "github.merge_pull_request",
		"calculate an expression": "calc.calculate",
	} {
		if got := top(ix.Search(query, 3), 3); len(got) == 0 || got[0] != want {
			t.Errorf("%q: %q, want %q first", query, got, want)
		}
	}
}

// Texts of any length cost no more than the part of them that is looked at.
func TestSearchBoundsTexts(t *testing.T) {
	huge := strings.Repeat("needle haystack ", 10<<20/16)
	s := indexed("s", huge, tool(strings.Repeat("n", 1<<20), huge, fmt.Sprintf(`"p":{"description":%q,"enum":[%q]}`, huge[:1<<19], huge[:1<<18])),
		tool("needle", "Find it", ""))
	for _, doc := range s.Tools {
		if n := len(doc.Description) + len(doc.Signature); n > 8_000 {
			t.Errorf("%d bytes of documentation", n)
		}
	}
	r := discovery.NewIndex([]discovery.IndexedServer{s}).Search("needle", 5)
	if len(r.Hits) != 2 || r.Hits[0].Tool != "needle" {
		t.Errorf("%d hits, first %.40q", len(r.Hits), top(r, 1))
	}
}

func TestSearchOverManyTools(t *testing.T) {
	var servers []discovery.IndexedServer
	for i := range 100 {
		s := discovery.IndexedServer{Server: discovery.Server{Name: fmt.Sprint("s", i), Ident: fmt.Sprint("s", i)}, Listed: true}
		for j := range 1_000 {
			name := invented(i*1_000+j) + "_thing"
			s.Tools = append(s.Tools, discovery.ToolDoc{Name: name, Ident: name, Signature: name + "()", Description: "Does the thing"})
		}
		servers = append(servers, s)
	}
	ix := discovery.NewIndex(servers)
	if r := ix.Search(invented(77_123)+" thing", 3); len(r.Hits) == 0 || r.Hits[0].Tool != invented(77_123)+"_thing" {
		t.Errorf("%q", top(r, 3))
	}
	if r := ix.Search("thing", 1_000_000); len(r.Hits) != 1_000 {
		t.Errorf("%d hits", len(r.Hits))
	}
}

// Ten hits cost no more than 600 tokens, however long signatures are.
func TestSearchHitsAreShort(t *testing.T) {
	var tools []discovery.Tool
	for i := range 20 {
		var params []string
		for j := range 30 {
			params = append(params, fmt.Sprintf(`"a_long_name_of_parameter_%d":{"type":"string","enum":["first choice","second choice"]}`, j))
		}
		tools = append(tools, tool(fmt.Sprintf("convert_document_%d", i),
			"Converts a document of any kind into a document of any other kind, and keeps the layout where that can be done at all", strings.Join(params, ",")))
	}
	ix := discovery.NewIndex([]discovery.IndexedServer{indexed("converter", "", tools...)})
	var lines strings.Builder
	hits := ix.Search("convert document", 10).Hits
	for _, h := range hits {
		if !strings.HasSuffix(h.Signature, ", ...)") {
			t.Errorf("signature %q", h.Signature)
		}
		lines.WriteString(h.Signature + "   " + h.Description + "\n")
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := codec.Count(lines.String()); err != nil || n > 600 || len(hits) != 10 {
		t.Errorf("%d hits of %d tokens, %v", len(hits), n, err)
	}
}
