package discovery_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func tool(name, description, properties string) discovery.Tool {
	return discovery.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"properties":{` + properties + `}}`)}
}

func indexed(name, description string, tools ...discovery.Tool) discovery.IndexedServer {
	s := discovery.Server{Name: name, Ident: discovery.ServerIdents([]string{name})[0], Description: description}
	return discovery.IndexedServer{Server: s, Tools: discovery.Document(s, tools), Listed: true}
}

// fixture is a handful of servers of the kinds people have.
func fixture() []discovery.IndexedServer {
	off := indexed("off", "Never shown", tool("create_teapot", "Make a teapot", ""))
	off.Disabled = true
	return []discovery.IndexedServer{
		indexed("github", "GitHub repositories",
			tool("create_issue", "Create an issue in a repository. More text.", `"title":{"type":"string"},"labels":{"type":"array"}`),
			tool("list_issues", "List the issues of a repository", `"state":{"enum":["open","closed"]}`),
			tool("createPullRequest", "Open a pull request", `"head":{},"base":{}`),
			tool("search_code", "Search code", `"q":{"description":"GitHub search syntax"}`),
			tool("get_webpage", "", ``)),
		indexed("gitlab", "GitLab projects",
			tool("create_issue", "Create an issue in a project", `"title":{"type":"string"}`),
			tool("create_merge_request", "Open a merge request", ``)),
		indexed("filesystem", "Local files",
			tool("read_file", "Read the content of a file", `"path":{}`),
			tool("write_file", "Write a file", `"path":{},"content":{}`),
			tool("list_directory", "Entries of a directory", `"path":{}`),
			tool("delete_file", "Remove a file for good", `"path":{}`)),
		indexed("slack", "Messages",
			tool("post_message", "Post to a channel", `"channelId":{"description":"where to"},"text":{}`),
			tool("list_channels", "Channels of the workspace", ``)),
		indexed("weather", "Forecasts", tool("get_forecast", "Forecast for a place", `"units":{"enum":["celsius","fahrenheit"]}`)),
		indexed("cjk", "", tool("bing_search", "使用必应搜索指定的关键词，并返回搜索结果列表", "")),
		{Server: discovery.Server{Name: "jira", Ident: "jira", Description: "Tickets and sprints. Needs a token."}},
		off,
	}
}

func top(r discovery.Result, n int) []string {
	var list []string
	for _, h := range r.Hits[:min(n, len(r.Hits))] {
		list = append(list, strings.TrimSuffix(h.Server+"."+h.Tool, "."))
	}
	return list
}

func TestSearchFindsFirst(t *testing.T) {
	ix := discovery.NewIndex(fixture())
	for query, want := range map[string]string{ // how the first hit ends
		"create issue":              ".create_issue",
		"createIssue":               ".create_issue",
		"create-issue":              ".create_issue",
		"github.create_issue":       "github.create_issue",
		"gitlab create issue":       "gitlab.create_issue", // a server that is named
		"create an issue on GitLab": "gitlab.create_issue",
		"CREATING ISSUES":           ".create_issue",       // stems
		"file a bug github":         "github.create_issue", // synonyms
		"pull request":              "github.createPullRequest",
		"pr":                        "github.createPullRequest",
		"gitlab pr":                 "gitlab.create_merge_request",
		"remove file":               "filesystem.delete_file",
		"folder":                    "filesystem.list_directory",
		"dir":                       "filesystem.list_directory",
		"send a message":            "slack.post_message",
		"channel id":                "slack.post_message",   // parameters
		"fahrenheit":                "weather.get_forecast", // enum values
		"web page":                  "github.get_webpage",
		"webpages":                  "github.get_webpage",
		"crate isue":                ".create_issue", // slips
		"wirte fiel":                "filesystem.write_file",
		"forcast":                   "weather.get_forecast",
		"frcst":                     "weather.get_forecast", // abbreviations
		"listdirectory":             "filesystem.list_directory",
		"搜索":                        "cjk.bing_search",
		"关键词":                       "cjk.bing_search",
		"jira":                      "jira", // not listed yet
		"sprint":                    "jira",
		"What's in /home/u/x/read.me? read a file please": "filesystem.read_file",
	} {
		r := ix.Search(query, 3)
		if got := top(r, 1); len(got) == 0 || !strings.HasSuffix(got[0], want) {
			t.Errorf("%q: got %q, want %q first", query, top(r, 3), want)
		}
	}
}

func TestSearchHit(t *testing.T) {
	ix := discovery.NewIndex(fixture())
	r := ix.Search("create issue github", 1)
	if len(r.Hits) != 1 || r.Note != "" {
		t.Fatalf("%+v", r)
	}
	want := discovery.Hit{
		Server: "github", Tool: "create_issue", Signature: "github.create_issue(title: str = None, labels: list = None)",
		Description: "Create an issue in a repository", Score: r.Hits[0].Score,
	}
	if r.Hits[0] != want || want.Score <= 0 {
		t.Errorf("got %+v\nwant %+v", r.Hits[0], want)
	}
	r = ix.Search("jira", 1)
	want = discovery.Hit{
		Server: "jira", Signature: "tools.jira  # not listed yet: dir(tools.jira) starts the server and lists its tools",
		Description: "Tickets and sprints", Score: r.Hits[0].Score,
	}
	if r.Hits[0] != want {
		t.Errorf("got %+v\nwant %+v", r.Hits[0], want)
	}
}

func TestSearchLimits(t *testing.T) {
	ix := discovery.NewIndex(fixture())
	for limit, want := range map[int]int{-1: 8, 0: 8, 1: 1, 2: 2, 1 << 40: 16} {
		if got := len(ix.Search("file issue message list", limit).Hits); got > want || got == 0 {
			t.Errorf("limit %d: %d hits, want at most %d", limit, got, want)
		}
	}
}

func TestSearchNotes(t *testing.T) {
	ix := discovery.NewIndex(fixture())
	for query, want := range map[string]string{
		"":                  "the query has no words; servers: github, gitlab, filesystem, slack, weather, cjk, jira",
		" ?! ":              "the query has no words; servers: github,",
		"qqqqqq":            `no tool matches "qqqqqq"; servers: github,`,
		"xyzzyx frobnicate": `no tool matches "xyzzyx", "frobnicate"; servers:`,
		"teapot":            `no tool matches "teapot"; servers:`, // of a disabled server
	} {
		r := ix.Search(query, 5)
		if len(r.Hits) != 0 || r.Hits == nil || !strings.HasPrefix(r.Note, want) {
			t.Errorf("%q: %q %q, want %q", query, top(r, 5), r.Note, want)
		}
	}
	if r := ix.Search("zzqqzz file", 5); len(r.Hits) == 0 || r.Note != `the word "zzqqzz" is in no tool` {
		t.Errorf("partial: %q, %q", top(r, 3), r.Note)
	}
	if r := discovery.NewIndex(nil).Search("x", 5); r.Note != "no servers are configured" {
		t.Errorf("%q", r.Note)
	}
}

func TestSearchNamesNearServers(t *testing.T) {
	// A server that is listed and has no tools can be found by no word.
	ix := discovery.NewIndex([]discovery.IndexedServer{indexed("kubernetes", ""), indexed("postgres", "")})
	want := `no tool matches "kbrnts"; nearest servers: kubernetes`
	if r := ix.Search("kbrnts", 5); r.Note != want {
		t.Errorf("%q, want %q", r.Note, want)
	}
}

// A server that is named wins over one whose tools merely mention the name.
func TestSearchPrefersNamedServers(t *testing.T) {
	ix := discovery.NewIndex([]discovery.IndexedServer{
		indexed("importer", "", tool("report_sender_acme", "Reports for everyone", ""), tool("other", "", "")),
		indexed("acme", "", tool("report_get", "One of many reports", ""), tool("drop", "", "")),
	})
	if got := top(ix.Search("acme reports", 3), 1); !slices.Equal(got, []string{"acme.report_get"}) {
		t.Errorf("got %q", top(ix.Search("acme reports", 3), 3))
	}
}

func TestSearchTiesAreInOrder(t *testing.T) {
	var servers []discovery.IndexedServer
	for i := range 200 {
		description := []string{"alpha", "beta", "alpha beta"}[i%3]
		servers = append(servers, indexed(fmt.Sprintf("s%03d", i), "", tool("t", description, "")))
	}
	hits := discovery.NewIndex(servers).Search("alpha beta", 200).Hits
	if len(hits) < 100 {
		t.Fatalf("%d hits", len(hits))
	}
	for i := 1; i < len(hits); i++ {
		a, b := hits[i-1], hits[i]
		if a.Score < b.Score || a.Score == b.Score && a.Server > b.Server {
			t.Fatalf("%s (%v) before %s (%v)", a.Server, a.Score, b.Server, b.Score)
		}
	}
}

func TestSearchIsDeterministic(t *testing.T) {
	var servers []discovery.IndexedServer
	for i := range 20 {
		servers = append(servers, indexed(fmt.Sprintf("s%02d", i), "same", tool("same_tool", "The same text", `"a":{},"b":{}`)))
	}
	first := discovery.NewIndex(servers).Search("same tool text, please", 20)
	if !slices.IsSortedFunc(first.Hits, func(a, b discovery.Hit) int { return strings.Compare(a.Server, b.Server) }) {
		t.Errorf("ties are not in the order of servers: %q", top(first, 20))
	}
	ix := discovery.NewIndex(servers)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if again := ix.Search("same tool text, please", 20); !reflect.DeepEqual(first, again) {
				t.Errorf("got %q, then %q", top(first, 20), top(again, 20))
			}
		})
	}
	group.Wait()
}

func TestSearchBoundsQueries(t *testing.T) {
	ix := discovery.NewIndex(synthetic(500))
	for name, query := range map[string]string{
		"long word":   strings.Repeat("x", 1<<20),
		"many words":  strings.Repeat("creat issu ", 1<<17),
		"many typos":  strings.Repeat("isseu isuse sisue crtaee ", 1<<16),
		"controls":    strings.Repeat("\x1b[31m\u202e\x00", 1<<18) + "create issue",
		"invalid":     "\xff\xfe create \xc3",
		"capitals":    strings.Repeat("aB", 1<<18),
		"scripts":     strings.Repeat("搜a索", 1<<17),
		"punctuation": strings.Repeat("/'.’", 1<<18),
	} {
		r := ix.Search(query, 5)
		if len(r.Hits) > 5 || len(r.Note) > 1000 || strings.ContainsAny(r.Note, "\x1b\u202e\x00") {
			t.Errorf("%s: %d hits, note %q", name, len(r.Hits), r.Note)
		}
	}
}

func TestIndexHostileTools(t *testing.T) {
	s := discovery.Server{Name: "s"}
	huge := discovery.Tool{Name: strings.Repeat("aB_", 1<<18), Description: strings.Repeat("word ", 1<<18), Title: strings.Repeat("T", 1<<18)}
	ix := discovery.NewIndex([]discovery.IndexedServer{{Server: s, Tools: discovery.Document(s, []discovery.Tool{huge, {}}), Listed: true}})
	if r := ix.Search("word", 5); len(r.Hits) != 1 || len(r.Hits[0].Description) > 200 || len(r.Hits[0].Signature) > 1400 {
		t.Errorf("%d hits", len(r.Hits))
	}
}
