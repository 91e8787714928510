package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestDemo has the session that `make demo` shows, on each engine that it may
// find, and checks what it shows.
func TestDemo(t *testing.T) {
	home, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	opts := options{
		binary: cmp.Or(os.Getenv("MCP_BRIDGE_TEST_BINARY"), filepath.Join(t.TempDir(), "mcp-bridge")),
		npm:    filepath.Join(cmp.Or(os.Getenv("MCP_BRIDGE_DEV_CACHE"), filepath.Join(home, "mcp-bridge-dev")), "npm"),
	}
	if os.Getenv("MCP_BRIDGE_TEST_BINARY") == "" {
		build := exec.Command("go", "build", "-o", opts.binary, "github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	bin, err := filepath.Abs("../../bin") // for gVisor's helper
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, engine := range []string{"podman", "gvisor"} {
		t.Run(engine, func(t *testing.T) {
			opts := opts
			opts.runtime = engine
			showsAll(t, opts)
		})
	}
}

func showsAll(t *testing.T, opts options) {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), &out, opts); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
	for _, want := range []string{
		"filesystem.read_text_file(", "everything.get_sum(", // found by search
		"Grace    ", "The sum of ", // joined over two servers
		"400 orders in memory",  // variables persist
		"[Errno ",               // no network
		"mcp-bridge    1 tool ", // one tool
		"The whole session took ",
		"File \"<cell 3>\", line 3, in <module", // the user's own line
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q", want)
		}
	}
	ratio := regexp.MustCompile(`(\d+) times less`).FindStringSubmatch(out.String())
	if ratio == nil {
		t.Fatal("the demo does not compare the costs")
	}
	if n, err := strconv.Atoi(ratio[1]); err != nil || n < 10 {
		t.Errorf("one tool costs only %s times less than two small servers", ratio[1])
	}
}

// TestDemoWithoutLimits has a bridge that may not limit sandboxes, as an
// ordinary user's without delegated control groups.
func TestDemoWithoutLimits(t *testing.T) {
	for text, want := range map[string]error{
		"The sandbox cannot be started (gvisor): hardening not in force. To mend it on the host: run as root, or --allow-unlimited does without": errNoLimits,
		"The sandbox cannot be started (podman): image missing":                                                                                  nil, // another error
	} {
		server := mcp.NewServer(&mcp.Implementation{Name: "refuses"}, nil)
		server.AddTool(&mcp.Tool{Name: "run_python", InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
			})
		here, there := mcp.NewInMemoryTransports()
		if _, err := server.Connect(t.Context(), there, nil); err != nil {
			t.Fatal(err)
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "demo"}, nil).Connect(t.Context(), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = converse(t.Context(), io.Discard, session, t.TempDir(), func(string) int { return 0 })
		session.Close()
		if err == nil || errors.Is(err, errNoLimits) != (want != nil) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
