package podman

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestRecordedExit asks for the exit code of a container that is gone.
func TestRecordedExit(t *testing.T) {
	dir, err := os.MkdirTemp("", "mcpb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	service, err := startService(t.Context(), dir, pickOCIRuntime())
	if err != nil {
		t.Fatal(err)
	}
	defer service.stop()
	c, err := newClient(t.Context(), connection{URI: service.uri})
	if err != nil {
		t.Fatal(err)
	}
	image := os.Getenv("MCP_BRIDGE_TEST_IMAGE")
	if image == "" {
		image = "localhost/mcp-bridge-sandbox:dev"
	}
	begin := time.Now()
	name := "mcpb-exit-" + time.Now().Format("150405.000000")
	run := exec.CommandContext(t.Context(), "podman", "--runtime", "runc", "run", "--rm", "--name", name, "--network", "none",
		"--ulimit", "nofile=64:64", "--ulimit", "nproc=64:64", image, "sh", "-c", "exit 7")
	if out, err := run.CombinedOutput(); run.ProcessState.ExitCode() != 7 {
		t.Fatalf("run: %v\n%s", err, out)
	}
	if code, err := c.Wait(t.Context(), name, begin); err != nil || code != 7 {
		t.Errorf("exit code %d, %v, want 7", code, err)
	}
	if code, err := c.Wait(t.Context(), name+"x", begin); err == nil {
		t.Errorf("exit code %d of a container that never was", code)
	}
}
