//go:build linux

package podman_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
)

func TestDiagnose(t *testing.T) {
	levels := func(found []runtime.Finding) map[string]runtime.Level {
		all := map[string]runtime.Level{}
		for _, f := range found {
			t.Logf("%-15s %-5s %s (%s)", f.Name, f.Level, f.Detail, f.Fix)
			if all[f.Name] = f.Level; f.Detail == "" || f.Level != runtime.LevelOK && f.Fix == "" {
				t.Errorf("%s lacks a detail or a fix", f.Name)
			}
		}
		return all
	}
	limits := runtime.LevelOK
	if os.Geteuid() != 0 {
		limits = runtime.LevelFail // on cgroup v1; elsewhere it depends on what is delegated
	}
	engine := open(t, shortDir(t))
	defer engine.Close()
	found := levels(engine.(runtime.Diagnoser).Diagnose(t.Context(), image()))
	for _, name := range []string{"service", "rootless", "transport", "seccomp", "user namespace", "image"} {
		if found[name] != runtime.LevelOK {
			t.Errorf("%s is %q", name, found[name])
		}
	}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil && found["cgroup limits"] != limits {
		t.Errorf("cgroup limits are %q, want %q", found["cgroup limits"], limits)
	}
	found = levels(engine.(runtime.Diagnoser).Diagnose(t.Context(), "localhost/mcp-bridge-no-such-image:none"))
	if found["image"] != runtime.LevelFail {
		t.Errorf("missing image is %q", found["image"])
	}
	for _, image := range []string{"docker-archive:/home/someone/image.tar", "oci-archive:/home/someone/image.tar:name"} {
		archive := engine.(runtime.Diagnoser).Diagnose(t.Context(), image)
		last := archive[len(archive)-1]
		if last.Name != "image" || !strings.Contains(last.Detail, "image missing") || !strings.Contains(last.Fix, "podman load -i FILE") {
			t.Errorf("an archive: %+v", last)
		}
	}

	none := openWith(t, podman.Options{RuntimeDir: shortDir(t), URI: "unix:///nonexistent/podman.sock"})
	defer none.Close()
	if found := levels(none.(runtime.Diagnoser).Diagnose(t.Context(), image())); len(found) != 1 || found["service"] != runtime.LevelFail {
		t.Errorf("without a service: %v", found)
	}
}

// TestRootlessDiagnose says what an ordinary user's service cannot do.
func TestRootlessDiagnose(t *testing.T) {
	if os.Geteuid() == 0 {
		asUser(t)
		return
	}
	t.Run("Diagnose", TestDiagnose)
}
