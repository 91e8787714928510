package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// wasHarmless has special.same be as if the server had said something else of it before.
func wasHarmless(t *testing.T, s *setup) {
	t.Helper()
	if got := shell(t, s, "tools", "list", "special"); got.code != 0 {
		t.Fatal(got.stderr)
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "catalog", "approved-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var approved map[string]any
	if err := json.Unmarshal(data, &approved); err != nil {
		t.Fatal(err)
	}
	approved["tools"].(map[string]any)["same"] = map[string]any{"digest": "0", "since": "2026-01-02T00:00:00Z", "description": "Was harmless", "params": []string{"gone"}}
	if data, err = json.Marshal(approved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestApprove has a tool change behind the user's back, and then approves it.
func TestApprove(t *testing.T) {
	t.Parallel()
	s := special(t)
	wasHarmless(t, &s)
	contains(t, shell(t, &s, "tools", "describe", "special.same").stdout, "[changed since 2", "Gives back its arguments")
	contains(t, shell(t, &s, "servers", "list").stdout, "1 of its tools changed since", "mcp-bridge servers approve")
	blocked := shell(t, &s, "tools", "call", "special.same", "value:=1", "--on-change=block")
	if blocked.code == 0 || !strings.Contains(blocked.stderr, "is not what the user approved") {
		t.Errorf("blocked: %+v", blocked)
	}
	if got := shell(t, &s, "tools", "call", "special.same", "value:=1"); got.code != 0 {
		t.Errorf("flagged: %+v", got)
	}
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"--dry-run"}, 0, ""},
		{nil, 2, "mcp-bridge servers approve special --yes"}, // nobody can be asked
		{[]string{"--yes"}, 0, "approved: 1 of special"},
	} {
		got := shell(t, &s, append([]string{"servers", "approve", "special"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.stderr) {
			t.Errorf("%q: %+v", c.args, got)
		}
		contains(t, got.stdout, "same, changed since 2", "- Was harmless", "+ Gives back its arguments", "- parameters: gone")
	}
	if got := shell(t, &s, "servers", "approve", "special"); got.code != 0 || !strings.Contains(got.stderr, "no tool of special changed") {
		t.Errorf("once more: %+v", got)
	}
	lacks(t, shell(t, &s, "tools", "describe", "special.same").stdout, "changed since")
	if got := shell(t, &s, "servers", "approve", "special", "sme"); got.code != 2 {
		t.Errorf("of no tool: %+v", got)
	}
}
