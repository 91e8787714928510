//go:build linux

package docker_test

import (
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// TestSweepVolumes sweeps what a daemon has left that died between making a
// sandbox's volume and its container: only what belongs to the dead.
func TestSweepVolumes(t *testing.T) {
	self, err := local.Self()
	if err != nil {
		t.Fatal(err)
	}
	dead := self
	dead.Start++ // another process had this id
	volume := func(labels map[string]string) string {
		args := []string{"volume", "create"}
		for k, v := range labels {
			args = append(args, "--label", k+"="+v)
		}
		name := strings.TrimSpace(cli(t, args...))
		t.Cleanup(func() { cli(t, "volume", "rm", "--force", name) })
		return name
	}
	orphan, ours, foreign := volume(dead.Labels()), volume(self.Labels()), volume(map[string]string{local.LabelOwner: dead.Labels()[local.LabelOwner]})
	engine := open(t, shortDir(t))
	defer engine.Close()
	spec := runtimetest.Spec(image(), seccomp(t))
	spec.Binds = []runtime.Bind{{Source: t.TempDir(), Target: "/mnt/data"}}
	sandbox, err := engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Close()
	used := strings.Fields(cli(t, "volume", "ls", "--quiet", "--filter", "label="+local.LabelSandbox+"="+sandbox.ID()))
	if len(used) != 1 {
		t.Errorf("a sandbox with a folder has the volumes %v", used)
	}
	if n, err := engine.Sweep(t.Context()); err != nil || n < 1 {
		t.Errorf("swept %d, %v", n, err)
	}
	left := strings.Fields(cli(t, "volume", "ls", "--quiet"))
	for name, want := range map[string]bool{orphan: false, ours: true, foreign: true, strings.Join(used, " "): true} {
		there := false
		for _, l := range left {
			there = there || l == name
		}
		if there != want {
			t.Errorf("volume %s (orphan %s, ours %s, foreign %s): there is %v, want %v", name, orphan, ours, foreign, there, want)
		}
	}
	if err := sandbox.Close(); err != nil {
		t.Error(err)
	}
	if left := cli(t, "volume", "ls", "--quiet", "--filter", "label="+local.LabelSandbox+"="+sandbox.ID()); left != "" {
		t.Errorf("volumes left: %s", left)
	}
}
