package discovery_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// A definition cannot cost much more than its length, whatever it refers to.
func TestExpandBounds(t *testing.T) {
	t.Parallel()
	many := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < 900_000; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for _, test := range []struct{ name, args, says string }{
		{"variables", `"` + many("${V%d}") + `"`, "V9, … are not set"},
		{"inputs", `"` + many("${input:v%d}") + `"`, "inputs v0, v1"},
		{"the same input", `"` + strings.Repeat("${input:v}", 90_000) + `"`, "input v not set"},
		{"long values", strings.Repeat(`"${LONG}",`, 90_000) + `"x"`, "longer than 8192 KiB in all once expanded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "a.json")
			if err := os.WriteFile(file, []byte(`{"mcpServers": {"a": {"command": "x", "args": [`+test.args+`]}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			asked := 0
			c := discovery.Load(discovery.LoadOptions{
				Dirs: []string{t.TempDir()}, Files: []string{file},
				LookupEnv: func(name string) (string, bool) {
					if name != "LONG" {
						return "", false
					}
					return strings.Repeat("x", 50_000), true
				},
				Input: func(string, discovery.Input) (string, bool) {
					asked++
					return "", false
				},
			})
			if len(c.Problems) != 1 || !strings.Contains(c.Problems[0].String(), test.says) {
				t.Errorf("problems: %.500v", c.Problems)
			}
			if asked > 100 {
				t.Errorf("%d inputs were looked for", asked)
			}
		})
	}
}
