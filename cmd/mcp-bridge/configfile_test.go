package main_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConfigFile has settings in the file, and sees flag and environment win.
func TestConfigFile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, file, env string
		args            []string
		code            int
		out, err        string
	}{
		{"a setting", "timeout = 1", "", []string{"exec", "-c", "while True: pass"}, exitFailure, "", "Timed out"},
		{"a flag wins", "image = 'localhost/e2e-none:1'", "", []string{"exec", "--image", sandboxImage, "-c", "1"}, exitOK, "1\n", ""},
		{"the environment wins", "image = 'localhost/e2e-none:1'", "MCP_BRIDGE_IMAGE=" + sandboxImage, []string{"exec", "-c", "1"}, exitOK, "1\n", ""},
		{"a name with an underscore", "max_timeout = 5", "", []string{"exec", "-c", "1"}, exitConfig, "", "config.toml 5"},
		{"a setting of another command", "yield = 5", "", []string{"exec", "-c", "1"}, exitOK, "1\n", ""},
		{"an unknown key", "tiemout = 5", "", []string{"exec", "-c", "1"}, exitConfig, "", `unknown key "tiemout": did you mean timeout?`},
		{"a table", "[timeout]\nx = 1", "", []string{"exec", "-c", "1"}, exitConfig, "", "timeout: want a string"},
		{"a wrong value", "memory = 'lots'", "", []string{"servers", "list"}, exitConfig, "", `memory: "lots" is not a size`},
		{"a value out of range", "pids = 1", "", []string{"exec", "-c", "1"}, exitConfig, "", "config.toml: pids: 1 is too few"},
		{"an unknown engine", "runtime = 'dokcer'", "", []string{"servers", "list"}, exitConfig, "", "config.toml: runtime: dokcer is no container engine"},
		{"two mistakes", "memory = 'lots'\nfoo = 1", "", []string{"exec", "-c", "1"}, exitConfig, "", `unknown key "foo"`},
		{"no TOML", "timeout = ", "", []string{"exec", "-c", "1"}, exitConfig, "", "line 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if err := os.Mkdir(filepath.Join(home, "mcp-bridge"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(home, "mcp-bridge", "config.toml"), []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			got := shell(t, &setup{env: []string{"XDG_CONFIG_HOME=" + home, test.env}}, test.args...)
			if got.code != test.code || got.stdout != test.out {
				t.Errorf("exit code %d and stdout %q, want %d and %q\n%s", got.code, got.stdout, test.code, test.out, got.stderr)
			}
			contains(t, got.stderr, test.err)
		})
	}
}
