package discovery_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func openCatalog(t *testing.T, dir string) *discovery.Catalog {
	t.Helper()
	c, err := discovery.OpenCatalog(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func put(t *testing.T, c *discovery.Catalog, s discovery.Server, tools ...discovery.Tool) {
	t.Helper()
	if err := c.Put(s, tools); err != nil {
		t.Fatal(err)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestCatalogRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	c := openCatalog(t, dir)
	s := discovery.Server{Name: "../x/日本", Command: "c", Env: map[string]string{"T": "s3cret-value"}}
	tool := discovery.Tool{
		Name: "t", Title: "T", Description: "d <b>", InputSchema: json.RawMessage(`{"z":1.0,"a":[12345678901234567890]}`),
		OutputSchema: json.RawMessage(`{}`), Annotations: json.RawMessage(`{"readOnlyHint":true}`),
	}
	if _, ok := c.Get(s); ok {
		t.Error("found before it was put")
	}
	put(t, c, s, tool)
	e, ok := openCatalog(t, dir).Get(s)
	if !ok || e.Fingerprint != s.Fingerprint() || !reflect.DeepEqual(e.Tools, []discovery.Tool{tool}) || time.Since(e.Fetched) > time.Minute {
		t.Errorf("got %v %+v", ok, e)
	}
	list := files(t, dir)
	if len(list) != 1 {
		t.Fatalf("files %q", list)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, list[0]: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	data, err := os.ReadFile(list[0])
	if err != nil || strings.Contains(string(data), "s3cret") {
		t.Errorf("%s, %v", data, err)
	}
}

func TestCatalogForgetsOtherDefinitions(t *testing.T) {
	dir := t.TempDir()
	c := openCatalog(t, dir)
	old, changed := discovery.Server{Name: "s", Command: "a"}, discovery.Server{Name: "s", Command: "b"}
	neighbour := discovery.Server{Name: "s2", Command: "a"}
	put(t, c, neighbour)
	put(t, c, old)
	put(t, c, changed)
	if _, ok := c.Get(old); ok {
		t.Error("the old definition is still there")
	}
	if _, ok := c.Get(changed); !ok {
		t.Error("the new definition is missing")
	}
	if _, ok := c.Get(neighbour); !ok {
		t.Error("another server's entry was removed")
	}
	if list := files(t, dir); len(list) != 2 {
		t.Errorf("files %q", list)
	}
}

func TestCatalogIgnoresDamage(t *testing.T) {
	s := discovery.Server{Name: "s", Command: "c"}
	for name, damage := range map[string]func(string) string{
		"empty":         func(string) string { return "" },
		"cut off":       func(d string) string { return d[:len(d)/2] },
		"not JSON":      func(string) string { return "\x00\x01" },
		"other version": func(d string) string { return strings.Replace(d, `"version":1`, `"version":2`, 1) },
		"no version":    func(d string) string { return strings.Replace(d, `"version":1,`, ``, 1) },
		"other server":  func(d string) string { return strings.Replace(d, `"server":"s"`, `"server":"x"`, 1) },
		"other print":   func(d string) string { return strings.Replace(d, s.Fingerprint(), strings.Repeat("0", 64), 1) },
		"wrong type":    func(d string) string { return strings.Replace(d, `"tools":[`, `"tools":3,"x":[`, 1) },
		"too large":     func(d string) string { return d + strings.Repeat(" ", 17<<20) },
		"array":         func(string) string { return "[]" },
		"too many tools": func(d string) string {
			return strings.Replace(d, `"tools":[`, `"tools":[`+strings.Repeat("{},", 20_001), 1)
		},
		"future contents": func(string) string { return `{"version":9,"server":{"a":1}}` },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := openCatalog(t, dir)
			put(t, c, s, discovery.Tool{Name: "t"})
			path := files(t, dir)[0]
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(damage(string(data))), 0o600); err != nil {
				t.Fatal(err)
			}
			if e, ok := c.Get(s); ok {
				t.Fatalf("got %+v", e)
			}
			put(t, c, s, discovery.Tool{Name: "t"})
			if _, ok := c.Get(s); !ok {
				t.Error("not overwritten")
			}
		})
	}
}

func TestCatalogPutRefuses(t *testing.T) {
	dir := t.TempDir()
	c := openCatalog(t, dir)
	s := discovery.Server{Name: "s"}
	for name, tools := range map[string][]discovery.Tool{
		"too many":  make([]discovery.Tool, 20_001),
		"too large": {{Description: strings.Repeat("x", 17<<20)}},
		"not JSON":  {{InputSchema: json.RawMessage("{")}},
	} {
		if err := c.Put(s, tools); err == nil || !strings.HasPrefix(err.Error(), "catalog s: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list := files(t, dir); len(list) != 0 {
		t.Errorf("left behind: %q", list)
	}
}

func TestOpenCatalog(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-100 * 24 * time.Hour)
	for name, age := range map[string]time.Time{
		".new-1": old, ".new-2": time.Now(), "gone.json": old, "fresh.json": time.Now(), "notes.txt": old,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, age, age); err != nil {
			t.Fatal(err)
		}
	}
	openCatalog(t, dir)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for name, want := range map[string]bool{".new-1": false, ".new-2": true, "gone.json": false, "fresh.json": true, "notes.txt": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := discovery.OpenCatalog(filepath.Join(dir, "notes.txt")); err == nil {
		t.Error("opened a file")
	}
}

// hammer writes and reads one server's entry and fails on anything but a whole
// entry or none.
func hammer(dir string, id, rounds int) error {
	c, err := discovery.OpenCatalog(dir)
	if err != nil {
		return err
	}
	for i := range rounds {
		s := discovery.Server{Name: "s", Command: fmt.Sprint(i % 2)}
		tools := make([]discovery.Tool, 50+id)
		for j := range tools {
			tools[j] = discovery.Tool{Name: fmt.Sprint("tool", id), Description: strings.Repeat("x", 1000)}
		}
		if err := c.Put(s, tools); err != nil {
			return err
		}
		if e, ok := c.Get(s); ok && e.Tools[0].Name != fmt.Sprint("tool", len(e.Tools)-50) {
			return fmt.Errorf("%d tools of %s", len(e.Tools), e.Tools[0].Name)
		}
	}
	return nil
}

// TestCatalogProcesses runs this test binary several times over one folder.
func TestCatalogProcesses(t *testing.T) {
	const variable = "MCP_BRIDGE_TEST_CATALOG"
	if dir := os.Getenv(variable); dir != "" {
		if err := hammer(dir, os.Getpid()%50, 100); err != nil {
			t.Fatal(err)
		}
		return
	}
	dir := t.TempDir()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCatalogProcesses$")
			cmd.Env = append(os.Environ(), variable+"="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
		group.Go(func() {
			if err := hammer(dir, 7, 100); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	put(t, openCatalog(t, dir), discovery.Server{Name: "s"})
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
