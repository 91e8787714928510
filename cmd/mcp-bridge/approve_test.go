package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestApprove has a tool change behind the user's back, and then approves it.
func TestApprove(t *testing.T) {
	t.Parallel()
	s := special(t)
	if got := shell(t, &s, "tools", "list", "special"); got.code != 0 {
		t.Fatal(got.stderr)
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "catalog", "approved-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files: %v, %v", files, err)
	}
	// As if the server had said something else before.
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var approved map[string]any
	if err := json.Unmarshal(data, &approved); err != nil {
		t.Fatal(err)
	}
	approved["tools"].(map[string]any)["same"] = map[string]any{"digest": "0", "since": "2026-01-02T00:00:00Z", "description": "Was harmless"}
	if data, err = json.Marshal(approved); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, shell(t, &s, "tools", "describe", "special.same").stdout, "[changed since 2", "Gives back its arguments")
	contains(t, shell(t, &s, "servers", "list").stdout, "1 of its tools changed since", "mcp-bridge servers approve")
	blocked := shell(t, &s, "tools", "call", "special.same", "value:=1", "--on-change=block")
	if blocked.code == 0 || !strings.Contains(blocked.stderr, "is not what the user approved") {
		t.Errorf("blocked: %+v", blocked)
	}
	if got := shell(t, &s, "tools", "call", "special.same", "value:=1"); got.code != 0 {
		t.Errorf("flagged: %+v", got)
	}
	for _, args := range [][]string{{"--dry-run"}, nil} {
		contains(t, shell(t, &s, append([]string{"servers", "approve", "special"}, args...)...).stdout, "same, changed since 2", "- Was harmless", "+ Gives back its arguments")
	}
	if got := shell(t, &s, "servers", "approve", "special"); got.code != 0 || !strings.Contains(got.stderr, "no tool of special changed") {
		t.Errorf("once more: %+v", got)
	}
	lacks(t, shell(t, &s, "tools", "describe", "special.same").stdout, "changed since")
	if got := shell(t, &s, "servers", "approve", "special", "sme"); got.code != 2 {
		t.Errorf("of no tool: %+v", got)
	}
}
