package docker

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// TestGone asks for the ends of containers that are gone.
func TestGone(t *testing.T) {
	host := Options{Host: os.Getenv("DOCKER_HOST")}.host()
	c, err := newClient(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.docker.Close()
	image := cmp.Or(os.Getenv("MCP_BRIDGE_TEST_IMAGE"), "localhost/mcp-bridge-sandbox:dev")
	for _, test := range []struct {
		name, code string
		want       int
		oom        bool
	}{
		{"exits", "raise SystemExit(7)", 7, false},
		{"killed", "import os; os.kill(os.getpid(), 9); os._exit(9)", 9, false}, // the first of its namespace is immune to itself
		{"out-of-memory", "x = bytearray(1 << 28)", 137, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			begin := time.Now()
			name := "mcpb-exit-" + test.name + begin.Format("150405.000000")
			run := exec.CommandContext(t.Context(), "docker", "--host", host, "run", "--rm", "--name", name, "--network", "none",
				"--memory", "32m", "--memory-swap", "32m", "--ulimit", "nofile=64:64", "--ulimit", "nproc=64:64", image, "python3", "-c", test.code)
			if out, _ := run.CombinedOutput(); run.ProcessState.ExitCode() != test.want {
				t.Fatalf("run: %v\n%s", run.ProcessState, out)
			}
			if _, err := c.Inspect(t.Context(), name); !errors.Is(err, container.ErrNotFound) {
				t.Fatalf("inspect: %v, want it gone", err)
			}
			if code, err := c.Wait(t.Context(), name, begin); err != nil || code != test.want {
				t.Errorf("exit code %d, %v, want %d", code, err, test.want)
			}
			if oom, err := c.OOMKilled(t.Context(), name, begin); err != nil || oom != test.oom {
				t.Errorf("out of memory %v, %v, want %v", oom, err, test.oom)
			}
			if code, err := c.Wait(t.Context(), name+"x", begin); !errors.Is(err, container.ErrNotFound) {
				t.Errorf("exit code %d, %v of a container that never was", code, err)
			}
		})
	}
}
