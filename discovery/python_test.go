package discovery_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// realTools are the tools of servers in use, of testdata, or of the catalog of a
// search benchmark if MCP_BRIDGE_SEARCH_CATALOG names one.
func realTools(t testing.TB) map[string][]discovery.Tool {
	t.Helper()
	path := filepath.Join("testdata", "tools.json")
	if file := os.Getenv("MCP_BRIDGE_SEARCH_CATALOG"); file != "" {
		path = file
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var catalog struct {
		Servers []struct {
			Name  string
			Tools []discovery.Tool
		}
	}
	if err := json.Unmarshal(data, &catalog); err != nil {
		t.Fatal(err)
	}
	servers := make(map[string][]discovery.Tool)
	for _, s := range catalog.Servers {
		servers[s.Name] = s.Tools
	}
	return servers
}

// Signatures are Python but for two marks: "?" behind a field that may be
// missing, and "..." for what was left out.
var (
	optionalField = regexp.MustCompile(`\?: `)
	leftOut       = regexp.MustCompile(`(, )?\.\.\.([)}])`)
)

func asPython(path, signature string) string {
	call := strings.TrimPrefix(signature, path)
	call = optionalField.ReplaceAllString(call, ": ")
	return "def f" + leftOut.ReplaceAllString(call, "$2") + ": pass"
}

// parsePython fails for lines that Python cannot parse.
func parsePython(t *testing.T, lines []string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on this machine")
	}
	const script = `
import ast, sys
for line in sys.stdin.read().split("\n"):
    try:
        ast.parse(line)
    except SyntaxError as error:
        print(error, line)
`
	cmd := exec.CommandContext(t.Context(), python, "-c", script)
	cmd.Env = append(os.Environ(), "PYTHONUTF8=1")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	out, err := cmd.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRealSignaturesArePython(t *testing.T) {
	var lines []string
	for name, tools := range realTools(t) {
		for _, doc := range discovery.Document(discovery.Server{Name: name, Ident: "srv"}, tools) {
			checkDoc(t, doc)
			t.Log(doc.Signature)
			lines = append(lines, asPython("srv."+doc.Ident, doc.Signature))
		}
	}
	parsePython(t, lines)
}
