package discovery_test

import (
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
