package proxy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

// unseen finds what must not be shown in a JSON value, or in a text.
func unseen(v any) string {
	switch v := v.(type) {
	case string:
		for _, c := range v {
			if c != '\n' && c != '\t' && (strings.ContainsRune(upstreamtest.Hidden, c) && c > 0x7f || unicode.In(c, unicode.Cc, unicode.Cf)) {
				return fmt.Sprintf("%U in %q", c, v)
			}
		}
		if strings.Contains(v, "[31m") && !strings.Contains(v, `\x1b[31m`) {
			return fmt.Sprintf("the rest of an escape sequence in %q", v)
		}
	case []any:
		for _, item := range v {
			if found := unseen(item); found != "" {
				return found
			}
		}
	case map[string]any:
		for key, item := range v {
			if key == "name" && item != "fine" {
				if _, isParam := v["ident"]; isParam {
					item = "" // the name of a parameter is needed to pass it; what is shown is its ident
				}
			}
			if found := unseen(key) + unseen(item); found != "" {
				return found
			}
		}
	}
	return ""
}

// What a server says comes to a model without what is not seen, on every way.
func TestHostileTexts(t *testing.T) {
	catalog := openCatalog(t)
	p := newProxyWith(t, proxy.Options{Catalog: catalog}, upstreamtest.Hostile)
	s := serve(t, p, nil)
	for _, ask := range [][2]string{
		{"tools/list", `{"server":"hostile"}`},
		{"tools/search", `{"query":"fine","limit":9}`},
		{"tools/describe", `{"server":"hostile","tool":"fine","detail":"brief"}`},
		{"tools/describe", `{"server":"hostile","tool":"fine","detail":"help"}`},
		{"tools/describe", `{"server":"hostile","tool":"fine","detail":"full"}`},
		{"tools/call", `{"server":"hostile","tool":"refused"}`},
		{"tools/call", `{"server":"hostile","tool":"fine","arguments":{"q":5}}`},
		{"tools/call", `{"server":"hostile","tool":"nothing\u202e"}`},
		{"resources/list", `{"server":"hostile"}`},
		{"resources/templates", `{"server":"hostile"}`},
		{"prompts/list", `{"server":"hostile"}`},
		{"resources/read", `{"server":"hostile","uri":"x\u202e"}`},
		{"prompts/get", `{"server":"hostile","name":"x\u202e"}`},
		{"servers/list", `{}`},
	} {
		got := s.ask(ask[0], ask[1])
		var result, data any
		texts := []any{}
		if got.Error != nil {
			texts = append(texts, got.Error.Message)
			if json.Unmarshal(got.Error.Data, &data) == nil {
				texts = append(texts, data)
			}
		} else if err := json.Unmarshal(got.Result, &result); err != nil {
			t.Fatal(err)
		}
		if found := unseen(append(texts, result)); found != "" {
			t.Errorf("%s %s: %s", ask[0], ask[1], found)
		}
		if strings.Contains(string(got.Result), `"bad`) {
			t.Errorf("%s has a name that cannot be shown: %s", ask[0], got.Result)
		}
	}
	tools, err := p.Tools(t.Context(), "hostile")
	if err != nil || len(tools) != 2 || tools[1].Description != "d" || tools[1].Title != "t" {
		t.Errorf("tools are %+v, %v", tools, err)
	}
	if _, err := catalog.Review(testServer(t, upstreamtest.Hostile), []discovery.Tool{{Name: "fine"}}); err != nil {
		t.Fatal(err)
	}
	for _, change := range catalog.Changes(testServer(t, upstreamtest.Hostile)) {
		if found := unseen(change.Before); found != "" {
			t.Error(found)
		}
	}
}
