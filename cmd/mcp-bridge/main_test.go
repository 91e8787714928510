// Package main_test drives the built binary the way its users do: as a client
// over stdio and from a shell, with real containers and real MCP servers.
package main_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// atOnce is how many tests run at the same time: they mostly wait.
const atOnce = "6"

// binary is the path of the mcp-bridge under test, in a folder of its own: without
// gVisor's helper beside it, which tests that want it put on PATH.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(upstreamVar) != "" {
		serveUpstream()
	}
	os.Exit(testAll(m))
}

func testAll(m *testing.M) int {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(atOnce)
	}
	dir, err := os.MkdirTemp("", "mcp-bridge-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "mcp-bridge")
	get := exec.Command("go", "build", "-o", binary, ".")
	if given := os.Getenv("MCP_BRIDGE_TEST_BINARY"); given != "" {
		get = exec.Command("cp", given, binary)
	}
	if out, err := get.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %v\n%s", get.Args, err, out)
		return 1
	}
	code := m.Run()
	if left := bridges.leftovers(); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "FAIL: containers left by the bridges of these tests:", left)
		return max(code, 1)
	}
	return code
}

// bridges are the processes that these tests have started, as the labels of
// their containers name them.
var bridges registry

type registry struct {
	mu   sync.Mutex
	pids map[string]bool
}

func (r *registry) add(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pids == nil {
		r.pids = map[string]bool{}
	}
	r.pids[fmt.Sprint(pid)] = true
}

// leftovers names the containers of all bridges there were.
func (r *registry) leftovers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pids) == 0 {
		return nil
	}
	out, err := exec.Command("podman", "ps", "--all", "--filter", "label="+labelPID,
		"--format", `{{index .Labels "`+labelPID+`"}} {{.Names}}`).Output()
	if err != nil {
		return []string{"unknown: podman ps: " + err.Error()}
	}
	var left []string
	for line := range strings.Lines(string(out)) {
		if pid, name, _ := strings.Cut(strings.TrimSpace(line), " "); r.pids[pid] {
			left = append(left, name)
		}
	}
	return left
}
