//go:build linux

package docker_test

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
)

func image() string {
	return cmp.Or(os.Getenv("MCP_BRIDGE_TEST_IMAGE"), "localhost/mcp-bridge-sandbox:dev")
}

func seccomp(t testing.TB) []byte {
	t.Helper()
	profile, err := os.ReadFile("../../sandbox-image/seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

func open(t testing.TB, dir string) runtime.Engine {
	t.Helper()
	engine, err := docker.New(docker.Options{RuntimeDir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// cli runs docker's command line, which shares nothing with the engine but the
// containers.
func cli(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func containers(t testing.TB, label, value string) []string {
	t.Helper()
	return strings.Fields(cli(t, "ps", "--all", "--format", "{{.Names}}", "--filter", "label="+label+"="+value))
}

// shortDir is t.TempDir with a path short enough for a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcpb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
