package discovery_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestDenied(t *testing.T) {
	tests := []struct {
		allow, deny, tool, want string
	}{
		{"", "", "x", ""},
		{"", "x", "x", "tools.deny"},
		{"", "x", "xy", ""},
		{"", "x*", "xy", "tools.deny"},
		{"", "*", "anything at all", "tools.deny"},
		{"", "d?l", "del", "tools.deny"},
		{"", "d?l", "dl", ""},
		{"", "*_a_*b", "x_a_bb", "tools.deny"},
		{"", "*a", "aab", ""},
		{"", "", "", ""},
		{"x", "", "x", ""},
		{"x", "", "y", "tools.allow"},
		{"get_* list_*", "*_secret", "get_secret", "tools.deny"},
		{"get_* list_*", "*_secret", "list_all", ""},
		{"", "delete_repo", "delete-repo", "tools.deny"}, // as listings show it
		{"", "delete-repo", "delete-repo", "tools.deny"},
		{"", "create_issue", "createIssue", "tools.deny"},
		{"", "[ab]", "a", ""}, // nothing else is special
		{"", "[ab]", "[ab]", "tools.deny"},
		{"", "a/*", "a/b/c", "tools.deny"},
		{"", "GET-SUM", "get-sum", "tools.deny"}, // a slip must not let it pass
		{"", "get_*", "GetSum", "tools.deny"},
		{"GET-SUM", "", "get-sum", "tools.allow"},
		{"", "löschen?", "löschenß", "tools.deny"},
	}
	for _, test := range tests {
		s := discovery.Server{AllowTools: strings.Fields(test.allow), DenyTools: strings.Fields(test.deny)}
		if got := s.Denied(test.tool); got != test.want {
			t.Errorf("allow %q, deny %q: %q is denied by %q, want %q", test.allow, test.deny, test.tool, got, test.want)
		}
	}
}

func TestNeedsApproval(t *testing.T) {
	s := discovery.Server{Approve: []string{"delete_*", "send"}, AutoApprove: []string{"delete_draft"}}
	for tool, want := range map[string]bool{"delete_all": true, "delete-all": true, "send": true, "delete_draft": false, "delete-draft": false, "get": false} {
		if got := s.NeedsApproval(tool); got != want {
			t.Errorf("%q needs approval: %v, want %v", tool, got, want)
		}
	}
	if (discovery.Server{AutoApprove: []string{"*"}}).NeedsApproval("x") {
		t.Error("nothing was to be approved")
	}
}

// A pattern that is meant to take long does not.
func TestPatternsOfManyStars(t *testing.T) {
	s := discovery.Server{DenyTools: []string{strings.Repeat("a*", 200) + "b"}}
	if s.Denied(strings.Repeat("a", 5000)) != "" {
		t.Error("it matches")
	}
}

func TestPatternsOfAnotherCase(t *testing.T) {
	s := discovery.Server{Approve: []string{"GET-*"}, AutoApprove: []string{"GET-SUM"}}
	if !s.NeedsApproval("get-sum") {
		t.Error("it needs no approval")
	}
}

func TestUnusedPatterns(t *testing.T) {
	s := discovery.Server{AllowTools: []string{"get_*", "Put"}, DenyTools: []string{"DEL*", "gone"}, Approve: []string{"*", "send"}}
	got := s.UnusedPatterns([]string{"get-sum", "delete", "put"})
	if want := []string{`tools.allow "Put"`, `tools.deny "gone"`, `approve "send"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A pattern that would match nothing for how it is written is an error, and says
// where it is.
func TestBrokenPatterns(t *testing.T) {
	for definition, want := range map[string]string{
		`"tools": {"deny": ["x", "[e"]}`:      `tools.deny[1] at 1:63: "[e" has a "["`,
		`"tools": {"allow": ["{a,b}"]}`:       `tools.allow[0] at 1:59: "{a,b}" has a "{"`,
		`"tools": ["a\\*"]`:                   `tools[0] at 1:49: `,
		`"approve": ["x "]`:                   `approve[0] at 1:51: "x " is empty, or has spaces`,
		`"excludeTools": [""]`:                `excludeTools[0] at 1:56: "" is empty`,
		`"autoApprove": ["Bash({x})", "[e-"]`: "",
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "a.json")
		if err := os.WriteFile(file, []byte(`{"mcpServers": {"s": {"command": "x", `+definition+`}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		config := discovery.Load(discovery.LoadOptions{Dirs: []string{dir}})
		said := ""
		for _, problem := range config.Problems {
			said += problem.String()
		}
		if (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%s: %q, want %q", definition, said, want)
		}
	}
}
