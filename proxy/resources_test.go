package proxy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

func TestResourcesAndPrompts(t *testing.T) {
	p := newProxy(t, upstreamtest.Good, upstreamtest.Library, upstreamtest.Legacy)
	s := serve(t, p, nil)
	for _, test := range []struct {
		method, params string
		want           []string // parts of the result
	}{
		{"resources/list", `{"server":"good"}`, []string{`"uri":"note://1"`, `"uri":"note://3"`}},
		{"resources/templates", `{"server":"good"}`, []string{`{"items":[{`, `"uriTemplate":"note://{n}"`}},
		{"resources/read", `{"server":"good","uri":"note://2"}`, []string{`"text":"the text of note://2"`}},
		{"resources/read", `{"uri":"note://2"}`, []string{`"text":"the text of note://2"`}},
		{"resources/read", `{"uri":"note://42"}`, []string{`"text":"the text of note://42"`}},
		{"prompts/list", `{"server":"good"}`, []string{`"name":"greet"`, `"required":true`}},
		{"prompts/get", `{"server":"good","name":"greet","arguments":{"who":"Ada"}}`, []string{`"Greet Ada"`}},
		// What a server sends is passed on as it came, and what is of no use is left out.
		{"resources/read", `{"server":"library","uri":"raw://x"}`, []string{upstreamtest.RawResource}},
		{"resources/list", `{"server":"library"}`, []string{`{"items":[{"uri":"raw://1","name":"one","size":12345678901234567890},{"uri":"note://1"}]}`}},
		{"resources/templates", `{"server":"library"}`, []string{`"note":"the server's list does not end`}},
	} {
		got := s.ask(test.method, test.params)
		for _, want := range test.want {
			if !strings.Contains(string(got.Result), want) {
				t.Errorf("%s %s gave %s, %v; want %s", test.method, test.params, got.Result, got.Error, want)
			}
		}
	}
	for _, test := range []struct {
		method, params string
		kind           proxy.Kind
		text           string
	}{
		{"resources/list", `{"server":"legacy"}`, proxy.Unsupported, `server "legacy" offers no resources`},
		{"resources/templates", `{"server":"legacy"}`, proxy.Unsupported, `offers no resource templates`},
		{"resources/read", `{"server":"legacy","uri":"a://b"}`, proxy.Unsupported, `offers no resources`},
		{"prompts/list", `{"server":"legacy"}`, proxy.Unsupported, `offers no prompts`},
		{"prompts/get", `{"server":"legacy","name":"x"}`, proxy.Unsupported, `offers no prompts`},
		{"prompts/list", `{"server":"library"}`, proxy.Refused, `in a form that MCP does not know`},
		{"prompts/get", `{"server":"library","name":"x"}`, proxy.Refused, `prompt "x" of server "library" failed: `},
		{"resources/read", `{"server":"good","uri":"note://none"}`, proxy.Refused, `resource "note://none" of server "good" failed: `},
		{"resources/read", `{"uri":"note://1"}`, proxy.Invalid, `several servers have a resource "note://1": "good", "library"`},
		{"resources/read", `{"uri":"else://1"}`, proxy.NotFound, `no server lists a resource "else://1"`},
		{"resources/read", `{"server":"library","uri":"raw://exit"}`, proxy.ServerFailed, `exited (exit status 4)`},
		{"resources/read", `{"server":"nope","uri":"a:b"}`, proxy.UnknownServer, `"nope"`},
		{"resources/read", `{"server":"good"}`, proxy.Invalid, "is given by its URI"},
		{"resources/read", fmt.Sprintf(`{"server":"good","uri":%q}`, strings.Repeat("x", 9000)), proxy.Invalid, "is given by its URI"},
		{"resources/read", `{"uri":7}`, proxy.Invalid, "malformed"},
		{"resources/list", `{}`, proxy.UnknownServer, `""`},
		{"resources/list", `[]`, proxy.Invalid, "malformed"},
		{"prompts/get", `{"server":"good","name":"greet","arguments":{"who":1}}`, proxy.Invalid, "malformed"},
		{"prompts/get", `{"server":"good","name":""}`, proxy.Invalid, "is given by its name"},
	} {
		got := s.ask(test.method, test.params)
		var data struct{ Kind proxy.Kind }
		if got.Error == nil || json.Unmarshal(got.Error.Data, &data) != nil {
			t.Errorf("%s %.100s gave %s, want an error", test.method, test.params, got.Result)
			continue
		}
		if data.Kind != test.kind || !strings.Contains(got.Error.Message, test.text) {
			t.Errorf("%s %.100s gave %s %q; want %s %q", test.method, test.params, data.Kind, got.Error.Message, test.kind, test.text)
		}
	}
}

// A prompt that is not there is refused by the server; the bridge knows which are.
func TestPromptsThatAreMisspelt(t *testing.T) {
	p := newProxy(t, upstreamtest.Good)
	for _, test := range []struct {
		name string
		args map[string]string
		hint string
	}{
		{"gret", nil, `did you mean "greet"?`},
		{"Greet", nil, `did you mean "greet"?`},
		{"other", nil, "see tools.prompts(server) for what there is"},
	} {
		_, err := p.GetPrompt(t.Context(), "good", test.name, test.args)
		if e := wantError(t, err, proxy.Refused, `prompt "`+test.name+`" of server "good" failed: `); e.Hint != test.hint {
			t.Errorf("%s: the hint is %q, want %q", test.name, e.Hint, test.hint)
		}
	}
	if result, err := p.GetPrompt(t.Context(), "good", "greet", map[string]string{"who": "Ada"}); err != nil || !strings.Contains(string(result), "Greet Ada") {
		t.Errorf("%s, %v", result, err)
	}
}

// A server that cannot be asked is named.
func TestOwnerNamesWhoWasNotAsked(t *testing.T) {
	p := newProxy(t, upstreamtest.Good, upstreamtest.Legacy, upstreamtest.Failing)
	_, err := p.ReadResource(t.Context(), "", "else://1")
	e := wantError(t, err, proxy.NotFound, `no server lists a resource "else://1"; not asked`, `"failing"`)
	if strings.Contains(e.Message, "legacy") {
		t.Errorf("the error is %q; that server has no resources", e.Message)
	}
}

// A server that is started only to be asked whether it has a resource is not
// used by that: one that is looked at first answers, and no other is started.
func TestOwnerPrefersServersThatRun(t *testing.T) {
	p := newProxy(t, upstreamtest.Good, upstreamtest.Library)
	call(t, p, "good", "echo", `{"text":"x"}`)
	if _, err := p.ReadResource(t.Context(), "", "note://1"); err != nil {
		t.Fatal(err)
	}
	for _, info := range p.Servers() {
		if want := map[string]string{"good": "ready", "library": "idle"}[info.Name]; info.State != want {
			t.Errorf("server %s is %s, want %s", info.Name, info.State, want)
		}
	}
}

func TestRealResources(t *testing.T) {
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{npmServer(t, "everything", "stdio")}})
	s := serve(t, p, nil)
	var list struct {
		Items []struct{ URI, Name string }
	}
	got := s.ask("resources/list", `{"server":"everything"}`)
	if err := json.Unmarshal(got.Result, &list); err != nil || len(list.Items) == 0 {
		t.Fatalf("resources/list gave %s, %v", got.Result, got.Error)
	}
	for _, params := range []string{fmt.Sprintf(`{"uri":%q}`, list.Items[0].URI), `{"uri":"demo://resource/dynamic/text/1"}`} {
		if got := s.ask("resources/read", params); !strings.Contains(string(got.Result), `"text":`) {
			t.Errorf("resources/read %s gave %.300s, %v", params, got.Result, got.Error)
		}
	}
	if got := s.ask("prompts/list", `{"server":"everything"}`); !strings.Contains(string(got.Result), `"args-prompt"`) {
		t.Errorf("prompts/list gave %s, %v", got.Result, got.Error)
	}
	if got := s.ask("prompts/get", `{"server":"everything","name":"args-prompt","arguments":{"city":"Bern"}}`); !strings.Contains(string(got.Result), "Bern") {
		t.Errorf("prompts/get gave %s, %v", got.Result, got.Error)
	}
}
