package main

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
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
