package discovery_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestSelfRecognition(t *testing.T) {
	bin := t.TempDir()
	program := filepath.Join(bin, "the-bridge")
	other := filepath.Join(bin, "other")
	for _, path := range []string{program, other} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(program, filepath.Join(bin, "alias")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(program, filepath.Join(bin, "hardlink")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)

	for _, tt := range []struct {
		name, command string
		args          []string
		cwd           string
		self          bool
	}{
		{"this very file", program, []string{"anything"}, "", true},
		{"found in PATH", "the-bridge", nil, "", true},
		{"symbolic link", "alias", nil, "", true},
		{"hard link", filepath.Join(bin, "hardlink"), nil, "", true},
		{"relative to cwd", "./alias", nil, bin, true},
		{"another program", "other", nil, "", false},
		{"missing program", "missing", nil, "", false},
		{"installed name", "mcp-bridge", []string{"run"}, "", true},
		{"installed name with path", "/opt/bin/mcp-bridge", []string{"run", "--runtime", "podman"}, "", true},
		{"on Windows", `C:\Tools\mcp-bridge.EXE`, []string{"run"}, "", true},
		{"without arguments", "mcp-bridge", nil, "", true},
		{"flags first", "mcp-bridge", []string{"--config-dir", "x", "run"}, "", true},
		{"another command of it", "mcp-bridge", []string{"version"}, "", false},
		{"longer name", "mcp-bridge-extra", []string{"run"}, "", false},
		{"go run", "go", []string{"run", "github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge@latest", "run"}, "", true},
		{"go run of a fork", "/usr/lib/go/bin/go", []string{"run", "-tags", "x", "example.com/me/mcp-bridge/cmd/mcp-bridge", "run"}, "", true},
		{"go run in a checkout", "go", []string{"run", "./cmd/mcp-bridge", "run"}, "/src/mcp-bridge", true},
		{"go run elsewhere", "go", []string{"run", "./cmd/mcp-bridge", "run"}, "/src/else", false},
		{"go -C", "go", []string{"-C", "/src/mcp-bridge", "run", "./cmd/mcp-bridge", "run"}, "", true},
		{"go run of another command", "go", []string{"run", "github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge@latest", "version"}, "", false},
		{"go run of another program", "go", []string{"run", "example.com/tool@latest", "/x/mcp-bridge/cmd/mcp-bridge", "run"}, "", false},
		{"go tool", "go", []string{"tool", "mcp-bridge", "run"}, "", false},
		{"file server for its folder", "npx", []string{"-y", "@modelcontextprotocol/server-filesystem", "/home/u/mcp-bridge"}, "", false},
		{"argument is the name", "npx", []string{"mcp-bridge", "run"}, "", false},
		{"argument is the binary", "other", []string{program, "run"}, "", false},
		{"folder of the name", "/home/u/mcp-bridge/server", []string{"run"}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			def, err := json.Marshal(map[string]any{"command": tt.command, "args": append([]string{}, tt.args...), "cwd": tt.cwd})
			if err != nil {
				t.Fatal(err)
			}
			dir := writeFiles(t, map[string]string{"a.json": `{"mcpServers": {"s": ` + string(def) + `, "t": {"command": "x"}}}`})
			for allow, want := range map[bool]int{false: 2, true: 2} {
				if tt.self && !allow {
					want = 1
				}
				c := discovery.Load(discovery.LoadOptions{Dirs: []string{dir}, Executable: program, AllowSelf: allow})
				if len(c.Servers) != want || len(c.Problems) != 2-want || want == 1 && !errors.Is(c.Problems[0].Err, discovery.ErrSelf) {
					t.Errorf("AllowSelf %v: servers %q, problems %v", allow, names(c), c.Problems)
				}
			}
		})
	}
}
