package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// npmServer defines a server of @modelcontextprotocol from npm.
func npmServer(t testing.TB, name string, args ...string) discovery.Server {
	t.Helper()
	cache := os.Getenv("MCP_BRIDGE_DEV_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache", "mcp-bridge-dev")
	}
	script := filepath.Join(cache, "npm", "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("MCP servers from npm are missing (%v); run: .ci/provision servers", err)
	}
	return discovery.Server{Name: name, Command: "node", Args: append([]string{script}, args...)}
}

func TestRealServers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProxyWith(t, proxy.Options{Catalog: openCatalog(t), Servers: []discovery.Server{
		npmServer(t, "everything", "stdio"), npmServer(t, "filesystem", dir),
	}})
	found, err := p.Search(t.Context(), "read a file", 5)
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Hits) == 0 || found.Hits[0].Server != "filesystem" {
		t.Errorf("search found %+v", found)
	}
	if got := call(t, p, "everything", "echo", `{"message":"hi"}`).text(); got != "Echo: hi" {
		t.Errorf("echo returned %q", got)
	}
	args := fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "hello.txt"))
	if got := call(t, p, "filesystem", "read_text_file", args).text(); got != "hello from a file\n" {
		t.Errorf("read_text_file returned %q", got)
	}
	if res := call(t, p, "filesystem", "read_text_file", `{"path":"/etc/hostname"}`); !res.IsError {
		t.Errorf("reading elsewhere returned %+v, want isError", res)
	}
	for _, info := range p.Servers() {
		if info.State != "ready" || info.Tools == nil || *info.Tools < 5 {
			t.Errorf("info is %+v", info)
		}
	}
}

// A call that takes long is given up at once, and the server goes on.
func TestRealServerCancel(t *testing.T) {
	p := newProxyWith(t, proxy.Options{Servers: []discovery.Server{npmServer(t, "everything", "stdio")}})
	docs, err := p.Tools(t.Context(), "everything")
	if err != nil {
		t.Fatal(err)
	}
	slow := ""
	for _, doc := range docs {
		if strings.Contains(doc.Name, "long-running") || strings.Contains(doc.Name, "longRunning") {
			slow = doc.Name
		}
	}
	if slow == "" {
		t.Fatalf("no slow tool in %q", toolNames(docs))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err = p.Call(ctx, "everything", slow, json.RawMessage(`{"duration":60,"steps":60}`))
	wantError(t, err, proxy.Timeout)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			raw, err := p.Call(t.Context(), "everything", "echo", json.RawMessage(fmt.Sprintf(`{"message":"%d"}`, i)))
			if err != nil || !strings.Contains(string(raw), fmt.Sprintf("Echo: %d", i)) {
				t.Errorf("echo gave %s, %v", raw, err)
			}
		})
	}
	wg.Wait()
}
