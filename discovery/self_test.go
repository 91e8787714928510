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
	for path, text := range map[string]string{
		program: "\x7fELF the bridge", other: "\x7fELF another one", filepath.Join(bin, "copy"): "\x7fELF the bridge", filepath.Join(bin, "same-size"): "\x7fELF the brigde",
		filepath.Join(bin, "start.sh"):   "#!/usr/bin/env bash\n# starts it\nset -e\ncd /tmp && FOO='a b' exec mcp-bridge \"$@\" --log-level debug\n",
		filepath.Join(bin, "any.sh"):     "#!/bin/sh\nexec \"$@\"\n",
		filepath.Join(bin, "loop.sh"):    "#!/bin/sh\nexec loop.sh\n",
		filepath.Join(bin, "mention.sh"): "#!/bin/sh\n# mcp-bridge run\necho 'mcp-bridge run' mcp-bridge run\nexec other --of mcp-bridge\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
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
		{"copy", "copy", []string{"run"}, "", true},
		{"of the same size", "same-size", []string{"run"}, "", false},
		{"npx", "npx", []string{"-y", "mcp-bridge@latest", "run"}, "", true},
		{"npx of ours", "/usr/bin/npx", []string{"-y", "--package", "@mcp-bridge/mcp-bridge", "@mcp-bridge/mcp-bridge", "run"}, "", true},
		{"npx.cmd", `C:\nodejs\npx.cmd`, []string{"mcp-bridge"}, "", true},
		{"npx of another's", "npx", []string{"-y", "@acme/mcp-bridge", "run"}, "", false},
		{"npx of a longer name", "npx", []string{"-y", "mcp-bridge-tools", "run"}, "", false},
		{"npx with the name as argument", "npx", []string{"-y", "some-server", "mcp-bridge", "run"}, "", false},
		{"npm exec", "npm", []string{"exec", "-y", "--", "mcp-bridge", "run"}, "", true},
		{"npm install", "npm", []string{"install", "mcp-bridge"}, "", false},
		{"pnpm dlx", "pnpm", []string{"dlx", "mcp-bridge", "run"}, "", true},
		{"uvx", "uvx", []string{"mcp-bridge==1.2", "run"}, "", true},
		{"uvx --from", "uvx", []string{"--from", "git+https://example.com/mcp-bridge", "mcp-bridge", "run"}, "", true},
		{"uvx of another", "uvx", []string{"--with", "mcp-bridge", "mcp-server-fetch"}, "", false},
		{"uv tool run", "uv", []string{"tool", "run", "mcp-bridge", "run"}, "", true},
		{"uv run", "uv", []string{"--directory", "/x", "run", "mcp-bridge", "run"}, "", true},
		{"uv run python", "uv", []string{"--directory", "/src/mcp-bridge", "run", "server.py"}, "", false},
		{"pipx", "pipx", []string{"run", "mcp-bridge", "run"}, "", true},
		{"docker", "docker", []string{"run", "-i", "--rm", "-v", "/x:/y", "--name", "z", "ghcr.io/mcp-bridge/mcp-bridge:latest", "run"}, "", true},
		{"docker of another", "docker", []string{"run", "-i", "--rm", "--name", "mcp-bridge", "-v", "/home/u/mcp-bridge:/w", "mcp/filesystem", "/w"}, "", false},
		{"docker exec", "docker", []string{"exec", "mcp-bridge", "run"}, "", false},
		{"env", "env", []string{"-u", "X", "A=mcp-bridge", "mcp-bridge", "run"}, "", true},
		{"env -S", "/usr/bin/env", []string{"-S", "A=1 mcp-bridge run"}, "", true},
		{"env of another", "env", []string{"A=mcp-bridge", "other", "mcp-bridge"}, "", false},
		{"sudo nice", "sudo", []string{"-u", "me", "nice", "-n", "5", "--", "mcp-bridge", "run"}, "", true},
		{"timeout", "timeout", []string{"-k", "5", "1h", "mcp-bridge"}, "", true},
		{"mise", "mise", []string{"x", "go@1.26", "--", "mcp-bridge", "run"}, "", true},
		{"sh -c", "sh", []string{"-c", "cd /tmp; exec mcp-bridge run"}, "", true},
		{"bash -lc", "/bin/bash", []string{"-lc", "A=1 env B=2 'mcp-bridge' run --timeout 5"}, "", true},
		{"bash with flags", "bash", []string{"--noprofile", "-l", "-c", "mcp-bridge"}, "", true},
		{"sh -c of another", "sh", []string{"-c", "echo mcp-bridge run; other mcp-bridge run # && mcp-bridge run"}, "", false},
		{"sh -c quoted", "sh", []string{"-c", `other "a; mcp-bridge run" 'x && mcp-bridge run'`}, "", false},
		{"cmd /c", "cmd.exe", []string{"/d", "/c", "npx", "-y", "mcp-bridge", "run"}, "", true},
		{"cmd /c text", "cmd", []string{"/c", `C:\bin\mcp-bridge.exe run`}, "", true},
		{"cmd /c of another", "cmd", []string{"/c", "npx", "-y", "server-filesystem", `C:\mcp-bridge`}, "", false},
		{"powershell", "pwsh", []string{"-NoProfile", "-Command", "& mcp-bridge run"}, "", true},
		{"a script", "start.sh", []string{"run"}, "", true},
		{"a script with another command", "start.sh", []string{"version"}, "", false},
		{"sh and a script", "bash", []string{"start.sh", "run"}, bin, true},
		{"a script for anything", "./any.sh", []string{"mcp-bridge", "run"}, bin, true},
		{"a script for another", "./any.sh", []string{"other", "mcp-bridge", "run"}, bin, false},
		{"a script that runs itself", "loop.sh", nil, "", false},
		{"a script that mentions it", "mention.sh", []string{"run"}, "", false},
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
