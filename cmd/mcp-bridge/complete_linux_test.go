package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// remembered is a home whose catalog knows the tools of servers that cannot be
// started, and the environment of a shell in it.
func remembered(t *testing.T, tools map[string][]discovery.Tool) []string {
	t.Helper()
	home := t.TempDir()
	servers := map[string]definition{}
	for name := range tools {
		servers[name] = definition{Command: "/nonexistent/server", Description: "of " + name}
	}
	s := setup{dir: filepath.Join(home, "MCPs")}
	for _, dir := range []string{s.dir, filepath.Join(home, "bin"), filepath.Join(home, "work")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, "servers.json", servers)
	if err := os.Symlink(binary, filepath.Join(home, "bin", "mcp-bridge")); err != nil {
		t.Fatal(err)
	}
	catalog, err := discovery.OpenCatalog(filepath.Join(home, ".cache", "mcp-bridge", "catalog"))
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range discovery.Load(discovery.LoadOptions{Dirs: []string{s.dir}}).Servers {
		if tools[server.Name] == nil {
			continue // nothing is known
		}
		if err := catalog.Put(server, tools[server.Name]); err != nil {
			t.Fatal(err)
		}
	}
	return append(cleanEnv(), "HOME="+home, "ZDOTDIR="+home, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "XDG_CONFIG_HOME="+filepath.Join(home, ".config"),
		"XDG_DATA_HOME="+filepath.Join(home, ".local"), "PATH="+filepath.Join(home, "bin")+":"+os.Getenv("PATH"), "TERM=xterm", "LC_ALL=C.UTF-8", "PAGER=", "NO_COLOR=")
}

// evil does something in a shell, and to a terminal.
const evil = "$(touch owned)`touch owned`;touch owned\x1b]0;owned\x07\x1b[2J\u202e"

// github is a server whose tools are worth typing, beside some that are not.
func github() map[string][]discovery.Tool {
	return map[string][]discovery.Tool{
		"github": {
			{
				Name: "create_issue", Description: "Create an issue. " + evil,
				InputSchema: json.RawMessage(`{"properties":{"title":{"type":"string"},"state":{"enum":["open","closed"]},"draft":{"type":"boolean"},"$(touch owned)":{"type":"string"}},"required":["title"]}`),
			},
			{Name: "list_issues", Description: "List issues"},
			{Name: "$(touch owned)", Description: "Does nothing good"},
		},
		"$(touch owned)": {{Name: "x"}},
		"slack":          {{Name: "post"}},
	}
}

// TestCompletionInShells types into real shells. No server can be started.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	for name, shell := range map[string]struct {
		command []string
		load    string
	}{
		"bash": {[]string{"bash", "--noprofile", "--norc", "-i"}, "source /usr/share/bash-completion/bash_completion; source <(mcp-bridge completion bash)"},
		"zsh":  {[]string{"zsh", "-f", "-i"}, "autoload -U compinit; compinit -u -D; source <(mcp-bridge completion zsh)"},
		"fish": {[]string{"fish", "--no-config", "-i"}, "mcp-bridge completion fish | source"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t)
			cmd := exec.Command(shell.command[0], shell.command[1:]...)
			cmd.Env = remembered(t, github())
			for _, kv := range cmd.Env {
				if home, ok := strings.CutPrefix(kv, "HOME="); ok {
					cmd.Dir = filepath.Join(home, "work")
				}
			}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = x.tty, x.tty, x.tty
			x.start(t, cmd)
			x.types(t, shell.load+"; printf '%s-%s\\n' it loaded\r")
			seen := x.waits(t, 0, "it-loaded")
			for typed, want := range map[string]string{
				"mcp-bridge tools desc\tgith\tcr\t":                            "<mcp-bridge><tools><describe><github.create_issue>",
				"mcp-bridge tools list sl\t":                                   "<mcp-bridge><tools><list><slack>",
				"mcp-bridge tools call github.cr\tti\tx sta\tcl\tdr\tt\t":      "<mcp-bridge><tools><call><github.create_issue><title=x><state=closed><draft=true>",
				"mcp-bridge tools describe slack.\t--detail ful\t--col\tnev\t": "<mcp-bridge><tools><describe><slack.post><--detail><full><--color><never>",
			} {
				if name != "bash" {
					typed = strings.ReplaceAll(typed, "--col\tnev\t", "--color nev\t") // one writes --color= there
				}
				x.types(t, typed+"\x01printf '<%s>' \x05; echo END\r")
				seen = x.waits(t, seen, want, "END\r\n")
			}
			x.types(t, "mcp-bridge tools call \t\t\tgithub.\t\t\t\x15echo all\"\"-done\r")
			x.waits(t, seen, "all-done")
			if left, err := os.ReadDir(cmd.Dir); err != nil || len(left) > 0 {
				t.Errorf("completion made %v, %v", left, err)
			}
			x.types(t, "exit\r")
			_ = cmd.Wait() // with what the last command gave
		})
	}
}
