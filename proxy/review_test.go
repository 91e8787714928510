package proxy_test

import (
	"os"
	"path/filepath"
	"strings"
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
	if _, err := catalog.Approve(server, nil); err != nil { // as another process does
		t.Fatal(err)
	}
	doc, err := p.Describe(t.Context(), "good", "echo", discovery.Full)
	if err != nil || strings.Contains(doc, "changed since") {
		t.Errorf("after the approval: %q, %v", doc, err)
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
	if _, err := catalog.Approve(server, nil); err != nil {
		t.Fatal(err)
	}
	call(t, p, "good", "echo", `{"text":"x"}`)
}

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
