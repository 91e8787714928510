package cli

import (
	"encoding/json"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// TestProblemsAboutATool leaves out what is wrong with other servers.
func TestProblemsAboutATool(t *testing.T) {
	config := &discovery.Config{
		Servers:  []discovery.Server{{Name: "t-d", Ident: "t_d"}},
		Problems: []discovery.Problem{{Server: "mydb"}, {Server: "t-d"}, {File: "x"}},
	}
	for tool, want := range map[string]int{"t-d.echo": 1, "tools.t_d.echo": 1, "mydb.query": 3, "": 3} {
		if got := aboutTool(config, tool); len(got) != want {
			t.Errorf("%q: %d problems, want %d", tool, len(got), want)
		}
	}
}

func TestCallResultText(t *testing.T) {
	for result, want := range map[string]string{
		`{"type":"text","text":"hi"}`:                                                                "hi\n",
		`{"type":"image","mimeType":"image/png","data":"AAAA"}`:                                      "[image image/png, 3 bytes; --raw shows it]\n",
		`{"type":"resource","resource":{"uri":"demo://1","text":"inside"}}`:                          "inside\n",
		`{"type":"resource","resource":{"uri":"demo://1","mimeType":"image/png","blob":"AAAAAA=="}}`: "[resource demo://1 image/png, 4 bytes; --raw shows it]\n",
		`{"type":"resource_link","name":"one","uri":"demo://1"}`:                                     "[link one: demo://1]\n",
	} {
		var c callResult
		if err := json.Unmarshal([]byte(`{"content":[`+result+`]}`), &c); err != nil {
			t.Fatal(err)
		}
		if got := c.text(); got != want {
			t.Errorf("%s: %q, want %q", result, got, want)
		}
	}
}
