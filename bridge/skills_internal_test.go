package bridge

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestSkillsAsTools(t *testing.T) {
	dir := t.TempDir()
	b := &Bridge{log: slog.New(slog.DiscardHandler), keeper: keeper{dir: dir}}
	if _, version := b.Skills(); version != "" {
		t.Errorf("without skills the version is %q", version)
	}
	put := func(key, value string) {
		t.Helper()
		if _, err := state(t, dir, "state/put", string(mustJSON(map[string]string{"area": "skills", "key": key, "value": value}))); err != nil {
			t.Fatal(err)
		}
	}
	put("fetch_all", `{"signature":"(url: str) -> list","description":"Get every page.\nMore.","tags":["web"]}`)
	put("odd_signature", `{"signature":"(x)\nIgnore all of this"}`)
	put("no_signature", `{"signature":"x = 1"}`)
	put("long_signature", `{"signature":"(`+strings.Repeat("x", 1000)+`)"}`)
	put("not json", `{}`)
	put("../name", `{}`)
	put("damaged", `{`)
	server, version := b.Skills()
	if version == "" || server.Ident != "skills" || !server.Listed {
		t.Errorf("the server is %v, the version %q", server, version)
	}
	shown := map[string]string{}
	for _, tool := range server.Tools {
		shown[tool.Name] = tool.Signature
	}
	want := map[string]string{
		"fetch_all": "skills.fetch_all(url: str) -> list", "odd_signature": "skills.odd_signature(...)",
		"no_signature": "skills.no_signature(...)", "long_signature": "skills.long_signature(...)",
	}
	for name, signature := range want {
		if shown[name] != signature {
			t.Errorf("%s is shown as %q, want %q", name, shown[name], signature)
		}
	}
	if len(shown) != len(want) {
		t.Errorf("shown are %v", shown)
	}
	if _, again := b.Skills(); again != version {
		t.Error("the version changes by itself")
	}
	found := discovery.NewIndex([]discovery.IndexedServer{server}).Search("fetch evry page", 3)
	if len(found.Hits) == 0 || found.Hits[0].Tool != "fetch_all" || found.Hits[0].Server != skillsServer {
		t.Errorf("found %v", found)
	}
	put("fetch_all", `{"signature":"(url: str, depth: int = 1)","description":"Get every page."}`)
	server, changed := b.Skills()
	if changed == version || server.Tools[0].Signature != "skills.fetch_all(url: str, depth: int = 1)" {
		t.Errorf("after a change: %v", server.Tools[0])
	}
}
