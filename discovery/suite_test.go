package discovery

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The official test suite of JSON Schema comes with jsonschema-go. Nothing that
// it calls valid may be refused; how much of the rest is found is logged.
func TestCheckAgainstTheSuite(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil || len(dir) == 0 {
		t.Skip("the module's source is not at hand")
	}
	for _, draft := range []string{"draft2020-12", "draft7"} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "jsonschema", "testdata", draft, "*.json"))
		if err != nil || len(files) == 0 {
			t.Skip("no suite of " + draft)
		}
		found, wrong := 0, 0
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var groups []struct {
				Description string
				Schema      json.RawMessage
				Tests       []struct {
					Description string
					Data        json.RawMessage
					Valid       bool
				}
			}
			if err := json.Unmarshal(data, &groups); err != nil {
				t.Fatal(err)
			}
			for _, g := range groups {
				root, err := parseJSON(g.Schema, maxSchemaValues)
				if err != nil {
					t.Fatal(err)
				}
				c := &Checker{doc: newSchemaDoc(root)}
				c.doc.draft7 = c.doc.draft7 || draft == "draft7"
				c.patterns.compile(root)
				missed := 0
				for _, test := range g.Tests {
					value, err := parseJSON(test.Data, maxCheckedNodes)
					if err != nil {
						t.Fatal(err)
					}
					k := check{checker: c, steps: maxCheckSteps}
					v := k.value(root, value, 0)
					switch {
					case v != nil && test.Valid:
						t.Errorf("%s: %s: %s: refused: %v", filepath.Base(file), g.Description, test.Description, v.error())
					case v != nil:
						found++
					case !test.Valid:
						wrong++
						missed++
						if !k.unsure {
							t.Errorf("%s: %s: %s: let pass, and sure of it", filepath.Base(file), g.Description, test.Description)
						}
					}
				}
				if missed > 0 {
					t.Log(filepath.Base(file), g.Description, missed)
				}
			}
		}
		t.Logf("%s: %d of %d found", draft, found, found+wrong)
	}
}
