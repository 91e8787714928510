package discovery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func reviewed(t *testing.T, c *discovery.Catalog, s discovery.Server, tools ...discovery.Tool) map[string]discovery.Change {
	t.Helper()
	changes, err := c.Review(s, tools)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func TestReview(t *testing.T) {
	c, err := discovery.OpenCatalog(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := discovery.Server{Name: "s", Command: "x", Env: map[string]string{"TOKEN": "a"}}
	tool := func(name, description string) discovery.Tool {
		return discovery.Tool{Name: name, Description: description}
	}
	if got := reviewed(t, c, s, tool("a", "one"), tool("b", "one")); len(got) != 0 {
		t.Errorf("at first sight: %v", got)
	}
	got := reviewed(t, c, s, tool("a", "two"), tool("b", "one"), tool("new", "x"))
	if len(got) != 1 || got["a"].Before != "one" || got["a"].Since.IsZero() {
		t.Errorf("after a change: %v", got)
	}
	s.Env = map[string]string{"TOKEN": "b"} // makes no other server
	if again := reviewed(t, c, s, tool("a", "three")); again["a"].Since != got["a"].Since {
		t.Errorf("after another change: %v", again)
	}
	if got := reviewed(t, c, s, tool("a", "one")); len(got) != 0 {
		t.Errorf("after the way back: %v", got)
	}
	reviewed(t, c, s)
	if got := reviewed(t, c, s, tool("a", "two")); len(got) != 1 {
		t.Errorf("after it was away: %v", got)
	}
	for _, change := range []discovery.Tool{
		{Name: "b", Description: "one", Title: "x"},
		{Name: "b", Description: "one", InputSchema: []byte(`{}`)},
		{Name: "b", Description: "one", OutputSchema: []byte(`{}`)},
		{Name: "b", Description: "one", Annotations: []byte(`{"readOnlyHint":true}`)},
	} {
		if got := reviewed(t, c, s, change); len(got) != 1 {
			t.Errorf("%+v is no change", change)
		}
	}
	if n, err := c.Approve(s, c.Changes(s)[:1]); n != 1 || err != nil {
		t.Errorf("approved %d, %v", n, err)
	}
	if got := c.Changes(s); len(got) != 2 || got[0].Tool != "b" || got[0].New || got[1].Tool != "new" || !got[1].New {
		t.Errorf("then there are %v", got)
	}
	if n, err := c.Approve(s, c.Changes(s)); n != 2 || err != nil || len(c.Changes(s)) != 0 {
		t.Errorf("approved %d, %v", n, err)
	}
	if got := reviewed(t, c, s, tool("a", "two")); len(got) != 0 {
		t.Errorf("after the approval: %v", got)
	}
	other := s
	other.Args = []string{"version 2"} // the user starts something else
	if got := reviewed(t, c, other, tool("a", "four")); len(got) != 0 {
		t.Errorf("another server: %v", got)
	}
}

// A tool that came later is new: it is told of, and not flagged. Only what was shown
// is approved.
func TestReviewOfNewTools(t *testing.T) {
	c, err := discovery.OpenCatalog(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := discovery.Server{Name: "s", Command: "x"}
	tool := func(name, schema string) discovery.Tool {
		return discovery.Tool{Name: name, Description: "does " + name, InputSchema: []byte(schema)}
	}
	see := func(tools ...discovery.Tool) []discovery.Change {
		t.Helper()
		reviewed(t, c, s, tools...)
		if err := c.Put(s, tools); err != nil {
			t.Fatal(err)
		}
		return c.Changes(s)
	}
	old := tool("old", `{"properties":{"a":{},"b":{}}}`)
	if got := see(old); len(got) != 0 {
		t.Errorf("at first sight: %+v", got)
	}
	got := see(tool("late", `{"properties":{"x":{}}}`), old)
	if len(got) != 1 || !got[0].New || got[0].Tool != "late" || got[0].Now != "does late" {
		t.Errorf("new: %+v", got)
	}
	if flagged := reviewed(t, c, s, tool("late", `{"properties":{"x":{}}}`)); len(flagged) != 0 {
		t.Errorf("flagged: %+v", flagged)
	}
	if n, err := c.Approve(s, got); n != 1 || err != nil || len(c.Changes(s)) != 0 {
		t.Errorf("approved %d, %v", n, err)
	}
	shown := see(tool("old", `{"properties":{"c\u001b":{},"b":{}}}`))
	if len(shown) != 1 || shown[0].New || fmt.Sprint(shown[0].Added, shown[0].Removed) != "[c] [a]" {
		t.Errorf("changed: %+v", shown)
	}
	see(tool("old", `{"properties":{"d":{}}}`)) // while the user looks at what was shown
	if n, err := c.Approve(s, shown); n != 0 || err != nil || len(c.Changes(s)) != 1 {
		t.Errorf("approved %d, %v", n, err)
	}
}

// The same JSON is the same tool, however it is written; another one is a change.
func TestReviewOfJSON(t *testing.T) {
	dir := t.TempDir()
	s := discovery.Server{Name: "s", Command: "x"}
	tool := func(schema string) discovery.Tool {
		return discovery.Tool{Name: "t", InputSchema: []byte(schema), OutputSchema: []byte(schema), Annotations: []byte(schema)}
	}
	const first = `{"a": [1.0, {"b" : "<&>\u003cé\u2028\ud800x", "c":12345678901234567890}], "twice": 1, "twice": 2, "": null}`
	for name, c := range map[string]struct {
		schema  string
		changed bool
	}{
		"blanks":          {`{"a":[1.0,{"b":"<&>\u003cé\u2028\ud800x","c":12345678901234567890}],"twice":1,"twice":2,"":null}`, false},
		"lines":           {"{\n\t\"a\": [1.0, {\"b\": \"<&><\\u00e9\u2028\ufffdx\", \"c\": 12345678901234567890}],\r\n \"twice\": 1, \"twice\": 2, \"\": null}", false},
		"order":           {`{"":null,"twice":1,"a":[1.0,{"c":12345678901234567890,"\u0062":"\u003c\u0026><é\u2028\ud800x"}],"twice":2}`, false},
		"another number":  {strings.Replace(first, "1.0", "1", 1), true},
		"a large number":  {strings.Replace(first, "67890", "67891", 1), true},
		"another text":    {strings.Replace(first, "<", "", 1), true},
		"the other twice": {strings.Replace(first, `"twice": 1, "twice": 2`, `"twice": 2, "twice": 1`, 1), true},
		"one not twice":   {strings.Replace(first, `"twice": 1, `, "", 1), true},
		"order of a list": {`{"a":[{"b":"<&>\u003cé\u2028\ud800x","c":12345678901234567890},1.0],"twice":1,"twice":2,"":null}`, true},
		"number as text":  {strings.Replace(first, "1.0", `"1.0"`, 1), true},
		"another nesting": {`{"a":[1.0,{"b":"<&>\u003cé\u2028\ud800x"}],"c":12345678901234567890,"twice":1,"twice":2,"":null}`, true},
		"no null":         {strings.Replace(first, `, "": null`, "", 1), true},
	} {
		catalog, err := discovery.OpenCatalog(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		reviewed(t, catalog, s, tool(first), discovery.Tool{Name: "u"})
		if got := reviewed(t, catalog, s, discovery.Tool{Name: "u"}, tool(c.schema)); len(got) != 0 != c.changed {
			t.Errorf("%s: %v", name, got)
		}
		if err := catalog.Put(s, []discovery.Tool{tool(c.schema)}); err != nil {
			t.Fatal(err)
		}
		entry, _ := catalog.Get(s)
		if got := reviewed(t, catalog, s, entry.Tools...); len(got) != 0 != c.changed {
			t.Errorf("%s, as the catalog has it: %v", name, got)
		}
	}
}

// What is damaged is not known; what is approved outlives the catalog's entries.
func TestReviewFiles(t *testing.T) {
	dir := t.TempDir()
	c, err := discovery.OpenCatalog(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := discovery.Server{Name: "s", Command: "x"}
	reviewed(t, c, s, discovery.Tool{Name: "a", Description: "\x1b[31mred\u202e " + strings.Repeat("x", 10_000)})
	if err := c.Put(s, nil); err != nil {
		t.Fatal(err)
	}
	got := reviewed(t, c, s, discovery.Tool{Name: "a"})
	if before := got["a"].Before; !strings.HasPrefix(before, "red x") || len(before) > 600 {
		t.Errorf("it was %q", before)
	}
	files, err := filepath.Glob(filepath.Join(dir, "approved-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, damage := range []string{
		"", "{", `{"version":2,"server":"s","tools":{"a":null}}`, `{"version":9}`,
		`{"version":1,"server":"s","tools":{"a":{"digest":"of another scheme","since":"2026-01-02T00:00:00Z"}}}`,
	} {
		if err := os.WriteFile(files[0], []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := reviewed(t, c, s, discovery.Tool{Name: "a"}); len(got) != 0 {
			t.Errorf("with %q: %v", damage, got)
		}
	}
}

func TestReviewByManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := discovery.Server{Name: "s", Command: "x"}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			c, err := discovery.OpenCatalog(dir)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Review(s, []discovery.Tool{{Name: fmt.Sprint(i), Description: "one"}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c, err := discovery.OpenCatalog(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if got := reviewed(t, c, s, discovery.Tool{Name: fmt.Sprint(i), Description: "two"}); len(got) != 1 {
			t.Errorf("tool %d was forgotten", i)
		}
	}
}
