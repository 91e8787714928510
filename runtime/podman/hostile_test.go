//go:build linux

package podman_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// A hostileConfig is configuration of Podman's that weakens every container.
type hostileConfig struct {
	file   string // containers.conf
	hooked string // exists once a hook has run
}

// newHostileConfig writes one below dir.
func newHostileConfig(t *testing.T, dir string) hostileConfig {
	t.Helper()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	c := hostileConfig{hooked: filepath.Join(dir, "hooked")}
	hook := write("hooks/hostile.json", fmt.Sprintf(
		`{"version": "1.0.0", "hook": {"path": "/bin/sh", "args": ["sh", "-c", "touch %s"]}, "when": {"always": true}, "stages": ["prestart"]}`, c.hooked))
	c.file = write("containers.conf", fmt.Sprintf(`
[containers]
env = ["HOSTILE=variable"]
volumes = ["/etc:/hostile-volume:ro"]
seccomp_profile = "unconfined"
default_capabilities = ["SYS_ADMIN", "NET_RAW"]
log_driver = "k8s-file"
http_proxy = true
[engine]
hooks_dir = [%q]
`, filepath.Dir(hook)))
	if os.Geteuid() != 0 { // root's is the machine's, which is not ours to change
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("HOME", dir)
		write(".config/containers/mounts.conf", dir+":/run/hostile-secrets\n")
		write(".config/containers/storage.conf", fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\n", home+"/.local/share/containers/storage"))
	}
	return c
}

// harm is what a container shows of a hostile configuration.
const harm = `
import os
status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
result = [
    "variable" if "HOSTILE" in os.environ else "",
    "proxy" if "HTTP_PROXY" in os.environ else "",
    "volume" if os.path.exists("/hostile-volume") else "",
    "secrets" if os.path.exists("/run/hostile-secrets") else "",
    "no seccomp" if status["Seccomp"].strip() != "2" else "",
]
result = [r for r in result if r]
`

// TestHostileConfiguration puts a configuration before Podman that weakens every
// container, and wants nothing of it in a sandbox.
func TestHostileConfiguration(t *testing.T) {
	c := newHostileConfig(t, shortDir(t))
	t.Setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:1")
	t.Setenv("CONTAINERS_CONF", c.file)

	// It works, or the test proves nothing.
	args := []string{"run", "--rm", "--network", "none", "--ulimit", "nofile=64:64", "--ulimit", "nproc=64:64", image(), "python3", "-c", harm + "print(*result)"}
	if oci := ociRuntime(); oci != "" {
		args = append([]string{"--runtime", oci}, args...)
	}
	facts := []string{"mount /hostile-volume"} // our request alone clears the environment
	want := "variable proxy volume no seccomp"
	if os.Geteuid() != 0 {
		facts, want = append(facts, "mount /run/hostile-secrets"), "variable proxy volume secrets no seccomp"
	}
	if got := strings.TrimSpace(cli(t, args...)); got != want {
		t.Fatalf("podman run shows %q, want %q", got, want)
	}
	if err := os.Remove(c.hooked); err != nil {
		t.Fatalf("the hook did not run: %v", err)
	}

	t.Run("own service", func(t *testing.T) {
		engine := openWith(t, podman.Options{RuntimeDir: shortDir(t), AllowUnlimited: true})
		defer engine.Close()
		spec := runtimetest.Spec(image(), seccomp(t))
		spec.AllowUnlimited = os.Geteuid() != 0
		sandbox, err := engine.Start(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		defer sandbox.Close()
		if got := runtimetest.NewPeer(sandbox).Eval(t, harm); len(got.([]any)) > 0 {
			t.Errorf("in a sandbox: %v", got)
		}
		if _, err := os.Stat(c.hooked); err == nil {
			t.Error("the hook ran")
		}
	})

	t.Run("service of another", func(t *testing.T) {
		dir := shortDir(t)
		engine := openWith(t, podman.Options{RuntimeDir: dir + "/rt", URI: "unix://" + startService(t, dir+"/s")})
		defer engine.Close()
		spec := runtimetest.Spec(image(), seccomp(t))
		spec.AllowUnlimited = os.Geteuid() != 0
		sandbox, err := engine.Start(t.Context(), spec)
		if err == nil {
			sandbox.Close()
			t.Fatal("started with a hostile configuration")
		}
		t.Log(err)
		for _, fact := range facts {
			if !strings.Contains(err.Error(), fact) {
				t.Errorf("it does not say %q", fact)
			}
		}
	})
}

// ociRuntime is a runtime that starts containers here, or "" for Podman's own.
func ociRuntime() string {
	if controllers, _ := os.ReadFile("/sys/fs/cgroup/unified/cgroup.controllers"); len(strings.TrimSpace(string(controllers))) > 0 {
		if path, err := exec.LookPath("runc"); err == nil {
			return path
		}
	}
	return ""
}

// TestRootlessHostileConfiguration is the same with an ordinary user.
func TestRootlessHostileConfiguration(t *testing.T) {
	if os.Geteuid() == 0 {
		asUser(t)
		return
	}
	t.Run("Hostile", TestHostileConfiguration)
}
