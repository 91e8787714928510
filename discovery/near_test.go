package discovery_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestNearest(t *testing.T) {
	long := strings.Repeat("long", 100)
	names := []string{"create_issue", "list_issues", "getFile", "timeout", "max_timeout", "memory", "pids", "x", "größe", "", long}
	for name, want := range map[string][]string{
		"createissue": {"create_issue"},
		"get_fiel":    {"getFile"},
		"issue":       {"create_issue", "list_issues"},
		"tiemout":     {"timeout"},
		"max-timeout": {"max_timeout"},
		"mem":         {"memory"},
		"PIDS":        {"pids"},
		"grösse":      {"größe"},
		"pid":         {"pids"},
		"y":           nil,
		"":            nil,
		"-":           nil,
		"zzzzzz":      nil,
		"\xff\xff":    nil,
		long:          nil,
	} {
		if got := discovery.Nearest(name, names, 3); !slices.Equal(got, want) {
			t.Errorf("nearest to %.20q: %q, want %q", name, got, want)
		}
	}
	if got := discovery.Nearest("issue", names, 1); !slices.Equal(got, []string{"create_issue"}) {
		t.Errorf("the one nearest: %q", got)
	}
}
