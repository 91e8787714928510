package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// readmeBlocks returns the fenced blocks of the README in one language.
func readmeBlocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) == 0 {
		t.Fatalf("the README has no %s block", language)
	}
	return blocks
}

// readmeHome is a home with the servers the README speaks of in ~/MCPs, and the
// environment of a shell in it that finds mcp-bridge.
func readmeHome(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "MCPs"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := setup{dir: filepath.Join(home, "MCPs")}
	s.write(t, "servers.json", map[string]definition{
		"everything": everything(t),
		"filesystem": npmServer(t, "server-filesystem", home),
	})
	bin := filepath.Join(home, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(bin, "mcp-bridge")); err != nil {
		t.Fatal(err)
	}
	return append(cleanEnv(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "PATH="+bin+":"+os.Getenv("PATH"))
}

// TestReadmeCommands runs every command line of the README. What make does is
// run by .ci/run; here its targets are looked up. No registry can be reached, so
// images come from one of the test's own, and from the image that is there.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	env := readmeHome(t)
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	h := newHub(t, "readme")
	h.open()
	built := "localhost/e2e-readme:" + itoa(os.Getpid())
	here := strings.NewReplacer("docker.io/library/python:3.14-slim", h.image, "image build", "image build --base "+sandboxImage+" --name "+built)
	t.Cleanup(func() {
		for _, image := range []string{h.image, built} {
			stores()[0].remove(t, image)
		}
	})
	for _, block := range readmeBlocks(t, "sh") {
		for line := range strings.Lines(block) {
			command, _, _ := strings.Cut(line, "  #")
			command = here.Replace(strings.TrimSpace(command))
			if target, ok := strings.CutPrefix(command, "make "); ok {
				if !regexp.MustCompile(`(?m)^` + target + `:`).Match(makefile) {
					t.Errorf("the README says %q, the Makefile has no such target", command)
				}
				continue
			}
			shell := exec.CommandContext(t.Context(), "sh", "-c", command)
			shell.Env = env
			out, err := shell.CombinedOutput()
			if err != nil || len(out) == 0 {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
		}
	}
}

// TestReadmeConfiguration uses the client's entry and the server's definition
// that the README shows, as they stand there.
func TestReadmeConfiguration(t *testing.T) {
	t.Parallel()
	env := readmeHome(t)
	entries := map[string]definition{}
	for _, block := range readmeBlocks(t, "json") {
		var file struct {
			Servers map[string]definition `json:"mcpServers"`
		}
		if err := json.Unmarshal([]byte(block), &file); err != nil {
			t.Fatalf("%v in\n%s", err, block)
		}
		for name, entry := range file.Servers {
			entries[name+" by "+entry.Command] = entry
		}
	}

	entry := entries["bridge by mcp-bridge"]
	client := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `exec "$0" "$@"`, entry.Command}, entry.Args...)...)
	client.Env = env
	session, err := mcp.NewClient(&mcp.Implementation{Name: "readme"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: client}, nil)
	if err != nil {
		t.Fatalf("%v: %v", entry, err)
	}
	defer session.Close()
	bridges.add(client.Process.Pid)
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "run_python", Arguments: map[string]any{"code": `tools.everything.echo(message="hello")`},
	})
	if err != nil || result.IsError || !strings.Contains(result.Content[0].(*mcp.TextContent).Text, "hello") {
		t.Errorf("run_python through the README's entry: %+v, %v", result, err)
	}

	s := setup{servers: map[string]definition{"github": entries["github by npx"]}, env: []string{"GITHUB_TOKEN=x"}}
	list, err := s.command(t, "servers", "list").CombinedOutput()
	if err != nil || !strings.Contains(string(list), "Issues, pull requests and code on GitHub") || strings.Contains(string(list), "warning") {
		t.Errorf("the README's definition of a server: %v\n%s", err, list)
	}
	if entries["bridge by go"].Args == nil {
		t.Error("the README does not show the entry that needs no install; TestGoRunLatest proves it")
	}
}

// TestReadmeSettings has every setting in the table, with its variable.
func TestReadmeSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	help := shell(t, &setup{}, "run", "--help").stdout
	flags := regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`).FindAllStringSubmatch(help, -1)
	if len(flags) < 15 {
		t.Fatalf("found %v in\n%s", flags, help)
	}
	for _, m := range flags {
		if m[1] != "help" {
			contains(t, string(text), "`--"+m[1]+"`", "`MCP_BRIDGE_"+strings.ToUpper(strings.ReplaceAll(m[1], "-", "_"))+"`")
		}
	}
}
