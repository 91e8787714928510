package proxy_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

// seenAs makes the user have approved echo with another description.
func seenAs(t *testing.T, catalog *discovery.Catalog, server discovery.Server) {
	t.Helper()
	if _, err := catalog.Review(server, []discovery.Tool{{Name: "echo", Description: "Was harmless"}}); err != nil {
		t.Fatal(err)
	}
}

func TestChangedToolsAreMarked(t *testing.T) {
	catalog, server := openCatalog(t), testServer(t, upstreamtest.Good)
	seenAs(t, catalog, server)
	p := newProxyWith(t, proxy.Options{Catalog: catalog, Servers: []discovery.Server{server}})
	call(t, p, "good", "echo", `{"text":"x"}`)
	for _, detail := range []discovery.Detail{discovery.Brief, discovery.Help, discovery.Full} {
		doc, err := p.Describe(t.Context(), "good", "echo", detail)
		if err != nil || !strings.Contains(doc, "[changed since 2") || !strings.Contains(doc, "Echoes its text") {
			t.Errorf("%s: %q, %v", detail, doc, err)
		}
	}
	if got := p.Servers()[0].Changed; got != 1 {
		t.Errorf("%d tools changed", got)
	}
	if _, err := catalog.Approve(server, catalog.Changes(server)); err != nil { // as another process does
		t.Fatal(err)
	}
	doc, err := p.Describe(t.Context(), "good", "echo", discovery.Full)
	if err != nil || strings.Contains(doc, "changed since") {
		t.Errorf("after the approval: %q, %v", doc, err)
	}
}

// Of a change is told once, however often it is met; of another one again.
func TestAChangeIsLoggedOnce(t *testing.T) {
	catalog, server := openCatalog(t), testServer(t, upstreamtest.Listed)
	file := filepath.Join(t.TempDir(), "list.json")
	server.Env["LISTED"] = file
	if err := os.WriteFile(file, []byte(`{"tools": [{"name": "a", "description": "<new>"}, {"name": "b", "description": "new"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	was := []discovery.Tool{{Name: "a", Description: "old"}, {Name: "b", Description: "old"}}
	if _, err := catalog.Review(server, was); err != nil {
		t.Fatal(err)
	}
	now := discovery.Tool{Name: "a", Description: "<new>"}
	if err := catalog.Put(server, []discovery.Tool{now, was[1]}); err != nil {
		t.Fatal(err)
	}
	var log syncBuffer
	p := newProxyWith(t, proxy.Options{Catalog: catalog, Servers: []discovery.Server{server}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	p.Servers() // as the catalog has it: a changed
	call(t, p, "listed", "a", "")
	eventually(t, "it was listed", func() bool { return p.Servers()[0].Changed == 2 }) // b did, too
	if _, err := catalog.Approve(server, catalog.Changes(server)[1:]); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the approval counts", func() bool { return p.Servers()[0].Changed == 1 })
	if all, one := log.count("tools are not what"), log.count("tools=1 blocked=false"); all != 2 || one != 2 {
		t.Errorf("logged: %s", log.String())
	}
}

func TestChangedToolsAreBlocked(t *testing.T) {
	catalog, server := openCatalog(t), testServer(t, upstreamtest.Good)
	seenAs(t, catalog, server)
	p := newProxyWith(t, proxy.Options{Catalog: catalog, BlockChanged: true, Servers: []discovery.Server{server}})
	_, err := p.Call(t.Context(), "good", "echo", []byte(`{"text":"x"}`))
	wantError(t, err, proxy.Policy, "is not what the user approved since 2", `mcp-bridge servers approve "good"`)
	call(t, p, "good", "stats", "")
	result, err := p.Search(t.Context(), "echo", 8)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{result.Note}
	for _, hit := range result.Hits {
		shown = append(shown, hit.Signature, hit.Description)
	}
	doc, err := p.Describe(t.Context(), "good", "echo", discovery.Full)
	if err != nil || !strings.Contains(doc, "cannot be called until") {
		t.Errorf("it is described as %q, %v", doc, err)
	}
	for _, text := range append(shown, doc) {
		if strings.Contains(text, "Echoes its") || strings.Contains(text, "echo(text") {
			t.Errorf("shown is %q", text)
		}
	}
	if _, err := catalog.Approve(server, catalog.Changes(server)); err != nil {
		t.Fatal(err)
	}
	call(t, p, "good", "echo", `{"text":"x"}`)
}

// A server may write its JSON as it likes: what is the same is no change, whether it
// comes from the server or from the catalog, and what is another is one in both ways.
func TestToolsThatAreWrittenOddlyAreNotChanged(t *testing.T) {
	const list = `{"tools": [{"name": "odd", "description": "a <b> & \u003cc\u003e \u2028", "outputSchema": null, "annotations": {"title": "<x>" },` +
		` "inputSchema": {"type": "object", "properties": {"n": {"type": "number", "default": 1.0, "maximum": 12345678901234567890, "minimum": 1E400},` +
		` "é<&>\u2028": {"description": "less < more > and & \u003c \ud83d\ude00 \ud800", "type": "string"}, "n": {"const": 1}}}}, {"name": "z"}]}`
	catalog, server := openCatalog(t), testServer(t, upstreamtest.Listed)
	file := filepath.Join(t.TempDir(), "list.json")
	server.Env["LISTED"] = file
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log syncBuffer
	open := func() *proxy.Proxy {
		return newProxyWith(t, proxy.Options{
			Catalog: catalog, BlockChanged: true, Servers: []discovery.Server{server}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
	}
	described := func(p *proxy.Proxy) string {
		t.Helper()
		doc, err := p.Describe(t.Context(), "listed", "odd", discovery.Full)
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	write(list)
	for range 3 { // the first time it is listed before it is called, then it is known
		p := open()
		if doc := described(p); strings.Contains(doc, "changed") {
			t.Errorf("it is described as %q", doc)
		}
		call(t, p, "listed", "odd", "")
		if doc := described(p); strings.Contains(doc, "changed") || p.Servers()[0].Changed != 0 || len(catalog.Changes(server)) != 0 {
			t.Errorf("then as %q, changes are %v", doc, catalog.Changes(server))
		}
		_ = p.Close()
	}
	write(strings.Replace(list, "less < more", "less << more", 1))
	for _, way := range []string{"live", "known"} {
		p := open()
		if way == "live" {
			_, err := p.Call(t.Context(), "listed", "odd", nil)
			wantError(t, err, proxy.Policy, "is not what the user approved since 2")
		}
		if doc := described(p); !strings.Contains(doc, "changed since 2") {
			t.Errorf("%s: %q", way, doc)
		}
		_ = p.Close()
	}
	if got := log.count("tools are not what they were"); got != 2 {
		t.Errorf("%d warnings of two proxies: %s", got, log.String())
	}
	if n, err := catalog.Approve(server, catalog.Changes(server)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	p := open()
	if doc := described(p); strings.Contains(doc, "changed") { // known
		t.Errorf("after the approval: %q", doc)
	}
	call(t, p, "listed", "odd", "") // live
	if len(catalog.Changes(server)) != 0 || p.Servers()[0].Changed != 0 {
		t.Errorf("after the approval: %v", catalog.Changes(server))
	}
}

// A syncBuffer is a log that tests look at.
type syncBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *syncBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *syncBuffer) count(text string) int { return strings.Count(b.String(), text) }

// Only what is not known is asked, and nothing goes on running.
func TestFill(t *testing.T) {
	catalog := openCatalog(t)
	known, unknown, off := goodAs(t, "known", "1"), goodAs(t, "unknown", "1"), goodAs(t, "off", "1")
	off.Disabled = true
	if err := catalog.Put(known, []discovery.Tool{{Name: "x"}}); err != nil {
		t.Fatal(err)
	}
	broken := discovery.Server{Name: "broken", Command: "no-such-command-anywhere"}
	p := newProxyWith(t, proxy.Options{Catalog: catalog, Servers: []discovery.Server{broken, known, unknown, off}})
	p.FillSoon(t.Context())
	eventually(t, "the catalog knows it, and it is stopped", func() bool {
		_, ok := catalog.Get(unknown)
		return ok && p.Servers()[2].State == "idle"
	})
	if state := p.Servers()[1].State; state != "idle" {
		t.Errorf("the known one is %s", state)
	}
	if entry, ok := catalog.Get(known); !ok || len(entry.Tools) != 1 {
		t.Error("the known one was asked")
	}
	p.Reload([]discovery.Server{broken, known, goodAs(t, "added", "1")})
	eventually(t, "the added one is known", func() bool {
		_, ok := catalog.Get(goodAs(t, "added", "1"))
		return ok
	})
}

// What was listed long ago is listed again, however long the proxy runs.
func TestFillAgain(t *testing.T) {
	dir := t.TempDir()
	catalog, err := discovery.OpenCatalog(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := goodAs(t, "good", "1")
	p := newProxyWith(t, proxy.Options{Catalog: catalog, CatalogAge: time.Millisecond, Servers: []discovery.Server{server}})
	p.FillSoon(t.Context())
	eventually(t, "it is known, and stopped", func() bool {
		_, ok := catalog.Age(server)
		return ok && p.Servers()[0].State == "idle"
	})
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(files[0], old, old); err != nil {
		t.Fatal(err)
	}
	server.Description = "has it look again"
	p.Reload([]discovery.Server{server})
	eventually(t, "it is listed again", func() bool {
		age, ok := catalog.Age(server)
		return ok && age < time.Hour
	})
}
