package proxy_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

// signatureOf returns the signature of a tool as it is now, as a search shows it
// too.
func signatureOf(t *testing.T, p *proxy.Proxy, server, tool string) string {
	t.Helper()
	docs, err := p.Tools(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	found, err := p.Search(t.Context(), tool, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		if doc.Name != tool {
			continue
		}
		for _, hit := range found.Hits {
			if hit.Tool == tool && hit.Signature != doc.Signature {
				t.Errorf("a search shows %s, a list %s", hit.Signature, doc.Signature)
			}
		}
		return doc.Signature
	}
	t.Fatalf("no tool %s", tool)
	return ""
}

// What was seen of results is their type from then on, and after a restart; it
// is forgotten when the tool changes.
func TestShapesAreLearnedAndKept(t *testing.T) {
	dir := t.TempDir()
	open := func(learn bool) *proxy.Proxy {
		catalog, err := discovery.OpenCatalog(dir)
		if err != nil {
			t.Fatal(err)
		}
		return newProxyWith(t, proxy.Options{Catalog: catalog, LearnShapes: learn}, upstreamtest.Legacy)
	}
	p := open(true)
	want := func(p *proxy.Proxy, signature string) {
		t.Helper()
		if got := signatureOf(t, p, "legacy", "args"); got != signature {
			t.Errorf("got %s, want %s", got, signature)
		}
	}
	want(p, "legacy.args()")
	call(t, p, "legacy", "args", `{"number":1,"title":"sEcReT","labels":[{"name":"sEcReT"}]}`)
	want(p, "legacy.args() -> {number: int, title: str, labels: list[{name: str}]}")
	call(t, p, "legacy", "args", `{"number":1.5,"title":null}`)
	want(p, "legacy.args() -> {number: float, title: str | None, labels?: list[{name: str}]}")
	_ = p.Close()

	files, err := filepath.Glob(filepath.Join(dir, "*.shapes.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil || strings.Contains(string(data), "sEcReT") {
		t.Errorf("%v: %s", err, data)
	}
	q := open(true)
	want(q, "legacy.args() -> {number: float, title: str | None, labels?: list[{name: str}]}")
	if state := q.Servers()[0].State; state != "idle" {
		t.Errorf("the server is %s", state)
	}
	call(t, q, "legacy", "args", `{"number":1,"title":"x","more":[]}`)
	want(q, "legacy.args() -> {number: float, title: str | None, labels?: list[{name: str}], more?: list}")
	_ = q.Close()

	want(open(false), "legacy.args()")

	catalog, err := discovery.OpenCatalog(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := testServer(t, upstreamtest.Legacy)
	changed := discovery.Tool{Name: "args", Description: "Now it is something else"}
	if err := catalog.Put(server, []discovery.Tool{changed}); err != nil {
		t.Fatal(err)
	}
	want(open(true), "legacy.args()")
}

func TestTextsAreLearnedAsWhatTheySay(t *testing.T) {
	p := newProxyWith(t, proxy.Options{LearnShapes: true}, upstreamtest.Good)
	call(t, p, "good", "echo", `{"text":"[{\"a\": 1}]"}`)
	if got := signatureOf(t, p, "good", "echo"); got != "good.echo(text: str) -> list[{a: int}]" {
		t.Error(got)
	}
	call(t, p, "good", "echo", `{"text":"plain"}`)
	if got := signatureOf(t, p, "good", "echo"); got != "good.echo(text: str) -> list[{a: int}] | str" {
		t.Error(got)
	}
}

// Learning while tools are listed, searched and called.
func TestLearningIsConcurrent(t *testing.T) {
	p := newProxyWith(t, proxy.Options{LearnShapes: true, Catalog: openCatalog(t)}, upstreamtest.Legacy)
	done := make(chan error)
	const callers, calls = 8, 20
	for i := range callers {
		go func() {
			var err error
			for j := 0; j < calls && err == nil; j++ {
				_, err = p.Call(t.Context(), "legacy", "args", json.RawMessage([]string{`{"a":1}`, `{"b":"x"}`, `{"a":null,"c":[1]}`}[(i+j)%3]))
				if err == nil {
					_, err = p.Search(t.Context(), "args", 3)
				}
			}
			done <- err
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := signatureOf(t, p, "legacy", "args"); !strings.Contains(got, "a?: int") {
		t.Error(got)
	}
}

func TestDescribe(t *testing.T) {
	p := newProxyWith(t, proxy.Options{LearnShapes: true}, upstreamtest.Legacy)
	for _, name := range []string{"weird", "args"} {
		call(t, p, "legacy", name, `{"alpha":"a"}`)
	}
	for detail, want := range map[discovery.Detail]string{
		discovery.Brief:         "legacy.args() -> {alpha: str}",
		discovery.SignatureOnly: "legacy.args() -> {alpha: str}",
		discovery.Help:          "legacy.args() -> {alpha: str}",
		discovery.Full:          "legacy.args() -> {alpha: str}\n\nReturns, as seen so far:\n  dict:\n    alpha: str\n\nInput schema:\n  {\"type\":\"object\"}",
	} {
		if got, err := p.Describe(t.Context(), "legacy", "args", detail); err != nil || got != want {
			t.Errorf("%s: got %q, %v", detail, got, err)
		}
	}
	_, err := p.Describe(t.Context(), "legacy", "wierd", "")
	if e := (*proxy.Error)(nil); !errors.As(err, &e) || e.Kind != proxy.UnknownTool || !strings.Contains(e.Hint, `"weird"`) {
		t.Errorf("got %v", err)
	}
	if _, err := p.Describe(t.Context(), "nothing", "weird", ""); err == nil {
		t.Error("an unknown server is described")
	}
}
