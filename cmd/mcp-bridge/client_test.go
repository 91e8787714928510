package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience bounds whatever should happen soon. It is long, for slow machines:
// no test passes by waiting for it.
const patience = 60 * time.Second

// A definition is a server's entry in a file in ~/MCPs.
type definition struct {
	Command     string            `json:"command"`
	Args        []string          `json:"args,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	Description string            `json:"description,omitempty"`
	Disabled    bool              `json:"disabled,omitempty"`

	Approve []string            `json:"approve,omitempty"`
	Tools   map[string][]string `json:"tools,omitempty"` // allow and deny
}

// npmServer defines a server of the npm scope @modelcontextprotocol.
func npmServer(t *testing.T, name string, args ...string) definition {
	t.Helper()
	cache := os.Getenv("MCP_BRIDGE_DEV_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(home, ".cache", "mcp-bridge-dev")
	}
	script := filepath.Join(cache, "npm", "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
	if _, err := os.Stat(script); err != nil {
		t.Fatalf("%v: run `make provision` first", err)
	}
	return definition{Command: "node", Args: append([]string{script}, args...)}
}

func everything(t *testing.T) definition { return npmServer(t, "server-everything", "stdio") }

// A setup is how a bridge is started.
type setup struct {
	servers map[string]definition
	dir     string   // of the definitions; made from servers if empty
	state   string   // what is kept across sessions; a new folder if empty
	work    string   // where the bridge is started; a new folder each time if empty
	args    []string // more flags of the command
	env     []string // more variables
}

// special is the setup with nothing but the upstream server of these tests.
func special(t *testing.T, args ...string) setup {
	return setup{servers: map[string]definition{"special": specialServer(t)}, args: args}
}

// command is the binary with args, on the setup's own servers and catalog.
func (s *setup) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if s.dir == "" {
		s.dir = t.TempDir()
		s.write(t, "servers.json", s.servers)
	}
	args = append(args, "--config-dir="+s.dir, "--cache-dir="+filepath.Join(s.dir, "catalog"))
	cmd := exec.Command(binary, append(args, s.args...)...)
	if s.state == "" {
		s.state = t.TempDir()
	}
	// The engine by name, so that no test passes on another one than it means.
	cmd.Env = append(cleanEnv(), "MCP_BRIDGE_RUNTIME=podman", "MCP_BRIDGE_STATE_DIR="+s.state, "MCP_BRIDGE_FILL_CATALOG=false")
	cmd.Env = append(cmd.Env, s.env...)
	cmd.Dir = s.work
	if cmd.Dir == "" {
		cmd.Dir = t.TempDir() // nothing is to be written there
	}
	t.Cleanup(func() { isEmpty(t, cmd.Dir) })
	return cmd
}

// isEmpty checks that no file was left in the working directory of a bridge.
func isEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("the bridge left %v in its working directory (%v)", entries, err)
	}
}

// write adds a file of definitions.
func (s *setup) write(t *testing.T, name string, servers map[string]definition) {
	t.Helper()
	if servers == nil {
		servers = map[string]definition{}
	}
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// cleanEnv is the environment without settings of the person who runs the tests.
func cleanEnv() []string {
	env := []string{"XDG_CONFIG_HOME=/nonexistent"}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case strings.HasPrefix(name, "MCP_BRIDGE_"), strings.HasPrefix(name, "DOCKER_"), name == "CONTAINER_HOST",
			name == "XDG_CONFIG_HOME", name == "XDG_STATE_HOME", name == "MCP_SERVERS_CONFIG":
		default:
			env = append(env, kv)
		}
	}
	return env
}

// A client is connected to a running bridge.
type client struct {
	*mcp.ClientSession

	cmd    *exec.Cmd
	stderr *buffer
}

// connect starts `mcp-bridge run` and ends it with the test.
func connect(t *testing.T, s setup) *client {
	t.Helper()
	return connectHearing(t, s, nil)
}

// connectHearing is connect for a client with handlers of its own.
func connectHearing(t *testing.T, s setup, opts *mcp.ClientOptions) *client {
	t.Helper()
	cmd := s.command(t, "run")
	return connectWith(t, cmd, &mcp.CommandTransport{Command: cmd, TerminateDuration: 20 * time.Second}, opts)
}

// connectBy is connect over a transport to cmd.
func connectBy(t *testing.T, cmd *exec.Cmd, transport mcp.Transport) *client {
	t.Helper()
	return connectWith(t, cmd, transport, nil)
}

func connectWith(t *testing.T, cmd *exec.Cmd, transport mcp.Transport, opts *mcp.ClientOptions) *client {
	t.Helper()
	c := &client{cmd: cmd, stderr: &buffer{}}
	c.cmd.Stderr = c.stderr
	var err error
	c.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, opts).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, c.stderr)
	}
	bridges.add(c.cmd.Process.Pid)
	t.Cleanup(func() {
		_ = c.Close()
		if t.Failed() {
			t.Logf("stderr of the bridge:\n%s", c.stderr)
		}
	})
	return c
}

// A reply is what a model sees of a call.
type reply struct {
	text    string
	images  []*mcp.ImageContent
	isError bool
}

// arguments of run_python.
type arguments map[string]any

// call calls run_python.
func (c *client) call(t *testing.T, args arguments) reply {
	t.Helper()
	return c.send(t, args)
}

// send is call with anything for arguments. A json.RawMessage is sent byte for
// byte.
func (c *client) send(t *testing.T, args any) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	r, err := c.try(ctx, args)
	if err != nil {
		t.Fatalf("run_python(%.200v): %v", args, err)
	}
	return r
}

// try is send that can fail, from any goroutine.
func (c *client) try(ctx context.Context, args any) (reply, error) {
	result, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: args})
	if err != nil {
		return reply{}, err
	}
	return replyOf(result), nil
}

func replyOf(result *mcp.CallToolResult) reply {
	r := reply{isError: result.IsError}
	var texts []string
	for _, block := range result.Content {
		switch block := block.(type) {
		case *mcp.TextContent:
			texts = append(texts, block.Text)
		case *mcp.ImageContent:
			r.images = append(r.images, block)
		}
	}
	r.text = strings.Join(texts, "\n")
	return r
}

// run runs code that must not fail, and returns the text.
func (c *client) run(t *testing.T, code string) string {
	t.Helper()
	return c.runIn(t, "", code)
}

// runIn is run in a session of that name.
func (c *client) runIn(t *testing.T, session, code string) string {
	t.Helper()
	args := arguments{"code": code}
	if session != "" {
		args["session"] = session
	}
	r := c.call(t, args)
	if r.isError {
		t.Fatalf("%s\nfailed: %.4000s", code, r.text)
	}
	return r.text
}

// fails runs code that must fail, and returns the text.
func (c *client) fails(t *testing.T, code string) string {
	t.Helper()
	r := c.call(t, arguments{"code": code})
	if !r.isError {
		t.Fatalf("%s\ndid not fail: %.4000s", code, r.text)
	}
	return r.text
}

// wants runs code that must not fail, and compares the text.
func (c *client) wants(t *testing.T, code, want string) {
	t.Helper()
	if got := c.run(t, code); got != want {
		t.Errorf("%s\ngave %.4000q\nwant %.4000q", code, got, want)
	}
}

// contains checks that text has every part in it.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%.4000s", part, text)
		}
	}
}

// lacks checks that text has no part in it.
func lacks(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q in:\n%.4000s", part, text)
		}
	}
}

// eventually polls until condition holds.
func eventually(t *testing.T, within time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// A buffer is a writer that can be read meanwhile.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

func itoa(n int) string { return strconv.Itoa(n) }
