package proxy_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

func toolNames(docs []discovery.ToolDoc) (names []string) {
	for _, doc := range docs {
		names = append(names, doc.Name)
	}
	return names
}

func TestTools(t *testing.T) {
	tests := []struct {
		mode  string
		count int
		first string
	}{
		{upstreamtest.Paged, 300, "tool-0"},
		{upstreamtest.Endless, 50, "tool-0"}, // one tool a page, 50 pages
		{upstreamtest.Circular, 9, "weird"},  // the same nine again and again
		{upstreamtest.Duplicate, 2, "twin"},  // twin once, wordy; nothing unusable
		{upstreamtest.Legacy, 9, "weird"},
	}
	for _, test := range tests {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, test.mode)
			docs, err := p.Tools(t.Context(), test.mode)
			if err != nil {
				t.Fatal(err)
			}
			if len(docs) != test.count || docs[0].Name != test.first {
				t.Errorf("got %d tools, want %d from %q: %.200q", len(docs), test.count, test.first, toolNames(docs))
			}
			if info := p.Servers()[0]; info.Tools == nil || *info.Tools != test.count {
				t.Errorf("info is %+v, want %d tools", info, test.count)
			}
		})
	}
}

func TestServerWithoutTools(t *testing.T) {
	p := newProxy(t, upstreamtest.Toolless)
	if docs, err := p.Tools(t.Context(), "toolless"); err != nil || len(docs) != 0 {
		t.Errorf("got %v, %v; want no tools and no error", docs, err)
	}
	_, err := p.Call(t.Context(), "toolless", "x", nil)
	wantError(t, err, proxy.UnknownTool)
}

// A tool that is nested too deep costs no other; it can be called still.
func TestToolsNestedTooDeep(t *testing.T) {
	var log bytes.Buffer
	p := newProxyWith(t, proxy.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, upstreamtest.Deep)
	docs, err := p.Tools(t.Context(), "deep")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(toolNames(docs)); got != "[before after]" {
		t.Errorf("the tools are %s", got)
	}
	call(t, p, "deep", "odd", "")
	_ = p.Close()
	if !strings.Contains(log.String(), "nested too deep") {
		t.Errorf("the log is %s", log.String())
	}
}

// The catalog is written when something changed, not at every listing.
func TestCatalogIsWrittenOnChange(t *testing.T) {
	dir := t.TempDir()
	catalog, err := discovery.OpenCatalog(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxyWith(t, proxy.Options{Catalog: catalog}, upstreamtest.Legacy)
	file := func() os.FileInfo {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || len(files) != 1 {
			t.Fatalf("the catalog has %v, %v", files, err)
		}
		info, err := os.Stat(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if _, err := p.Tools(t.Context(), "legacy"); err != nil {
		t.Fatal(err)
	}
	before := file()
	for range 3 {
		_, err := p.Call(t.Context(), "legacy", "unknown", nil) // lists
		wantError(t, err, proxy.UnknownTool)
	}
	if !os.SameFile(before, file()) {
		t.Error("the file was written anew")
	}
}

// Of two tools with one name the first wins; what is too long is cut.
func TestToolsAreBounded(t *testing.T) {
	p := newProxy(t, upstreamtest.Duplicate)
	docs, err := p.Tools(t.Context(), "duplicate")
	if err != nil {
		t.Fatal(err)
	}
	if docs[0].Description != "first" || len(docs[1].Description) > 100_000 {
		t.Errorf("got %q and a description of %d bytes", docs[0].Description, len(docs[1].Description))
	}
}

// Positional arguments depend on the order in which a schema names parameters.
func TestToolsKeepTheOrderOfParameters(t *testing.T) {
	p := newProxy(t, upstreamtest.Legacy)
	docs, err := p.Tools(t.Context(), "legacy")
	if err != nil {
		t.Fatal(err)
	}
	if want := "legacy.weird(zulu: int = None, alpha: str = None)"; docs[0].Signature != want {
		t.Errorf("signature is %q, want %q", docs[0].Signature, want)
	}
}

func TestToolsFollowChanges(t *testing.T) {
	p := newProxy(t, upstreamtest.Good)
	before, err := p.Tools(t.Context(), "good")
	if err != nil {
		t.Fatal(err)
	}
	call(t, p, "good", "grow", "")
	eventually(t, "the new tool is listed and found", func() bool {
		docs, err := p.Tools(t.Context(), "good")
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.Search(t.Context(), "new-tool", 1)
		if err != nil {
			t.Fatal(err)
		}
		return len(docs) == len(before)+1 && len(res.Hits) == 1 && res.Hits[0].Tool == "new-tool"
	})
}

// With a catalog, tools are known without starting the server.
func TestToolsComeFromTheCatalog(t *testing.T) {
	catalog := openCatalog(t)
	p := newProxyWith(t, proxy.Options{Catalog: catalog}, upstreamtest.Legacy)
	want, err := p.Tools(t.Context(), "legacy")
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Close()

	q := newProxyWith(t, proxy.Options{Catalog: catalog}, upstreamtest.Legacy)
	got, err := q.Tools(t.Context(), "legacy")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if res, err := q.Search(t.Context(), "weird", 1); err != nil || len(res.Hits) != 1 {
		t.Errorf("search found %+v, %v", res, err)
	}
	if state := q.Servers()[0].State; state != "idle" {
		t.Errorf("the server is %s, want idle", state)
	}
	// A catalog that lacks a tool is asked about before the tool is called unknown.
	server := testServer(t, upstreamtest.Legacy)
	if err := catalog.Put(server, []discovery.Tool{{Name: "gone"}}); err != nil {
		t.Fatal(err)
	}
	r := newProxyWith(t, proxy.Options{Catalog: catalog}, upstreamtest.Legacy)
	call(t, r, "legacy", "weird", "")
}

func TestSearchListsWhatIsNotKnown(t *testing.T) {
	absent := discovery.Server{Name: "absent", Command: "no-such-command-anywhere"}
	off := testServer(t, upstreamtest.Paged)
	off.Disabled = true
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{absent, off}}, upstreamtest.Good, upstreamtest.Legacy)
	res, err := p.Search(t.Context(), "echo", 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Hits) == 0 || res.Hits[0].Tool != "echo" {
		t.Errorf("found %+v, want echo first", res.Hits)
	}
	if !strings.Contains(res.Note, `"absent"`) || !strings.Contains(res.Note, "failed") {
		t.Errorf("note is %q, want the server that failed", res.Note)
	}
	if info := p.Servers()[1]; info.State != "disabled" || info.Tools != nil {
		t.Errorf("info of the disabled server is %+v", info)
	}
	begun := time.Now()
	if _, err = p.Search(t.Context(), "echo", 3); err != nil || time.Since(begun) > time.Second {
		t.Errorf("the second search took %v, %v", time.Since(begun), err)
	}
}

// A search does not wait for ever, and starting goes on after it.
func TestSearchWaitIsBounded(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	p := newProxyWith(t, proxy.Options{Logger: logger, SearchWait: 500 * time.Millisecond}, upstreamtest.Good, upstreamtest.Mute)
	res, err := p.Search(t.Context(), "echo", 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Hits) == 0 || !strings.Contains(res.Note, `"mute"`) || !strings.Contains(res.Note, "starting") {
		t.Errorf("found %+v", res)
	}
	if _, err := p.Search(t.Context(), strings.Repeat("word ", 1000), 1); err == nil {
		t.Error("an endless query was accepted")
	}
	_ = p.Close()
	if !strings.Contains(log.String(), "server started") {
		t.Errorf("the log is %s", log.String())
	}
}

// Servers that were started to be searched do not all stay.
func TestSearchDoesNotKeepAllServers(t *testing.T) {
	var servers []discovery.Server
	for i := range 12 {
		s := testServer(t, upstreamtest.Legacy)
		s.Name = fmt.Sprintf("s%d", i)
		servers = append(servers, s)
	}
	p := newProxyWith(t, proxy.Options{Servers: servers})
	if _, err := p.Search(t.Context(), "weird", 3); err != nil {
		t.Fatal(err)
	}
	eventually(t, "eight are left", func() bool {
		ready := 0
		for _, info := range p.Servers() {
			if info.State == "ready" {
				ready++
			}
			if info.Tools == nil || *info.Tools != 9 || info.Error != "" {
				t.Fatalf("info is %+v, want nine tools", info)
			}
		}
		return ready == 8
	})
	for _, s := range servers {
		call(t, p, s.Name, "weird", "")
	}
}

// What is included is ranked with the tools, as it is at the time.
func TestSearchIncludes(t *testing.T) {
	p := newProxyWith(t, proxy.Options{}, upstreamtest.Good)
	version, names := "", []string(nil)
	p.Include(func() (discovery.IndexedServer, string) {
		server := discovery.Server{Name: "@kept", Ident: "kept"}
		var tools []discovery.Tool
		for _, name := range names {
			tools = append(tools, discovery.Tool{Name: name})
		}
		return discovery.IndexedServer{Server: server, Tools: discovery.Document(server, tools), Listed: true}, version
	})
	for _, step := range []struct {
		version string
		names   []string
		want    string
	}{
		{"", nil, ""},
		{"1", []string{"harvest_apples"}, "harvest_apples"},
		{"2", []string{"harvest_pears"}, "harvest_pears"},
		{"", nil, ""},
	} {
		version, names = step.version, step.names
		res, err := p.Search(t.Context(), "harvest", 3)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(res.Hits) > 0 {
			got = res.Hits[0].Tool
		}
		if got != step.want {
			t.Errorf("with %q, found %q", step.names, got)
		}
	}
	if res, err := p.Search(t.Context(), "echo", 3); err != nil || len(res.Hits) == 0 || res.Hits[0].Tool != "echo" {
		t.Errorf("found %+v, %v", res, err)
	}
}
