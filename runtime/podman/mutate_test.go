//go:build linux

package podman_test

import (
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// hostileImage builds an image that asks for everything, and returns its name.
func hostileImage(t *testing.T) string {
	t.Helper()
	dir, file := runtimetest.HostileImage(t)
	const name = "localhost/mcp-bridge-hostile:podman"
	cli(t, "build", "--quiet", "--format", "docker", "--pull=never", "--build-arg", "BASE="+image(), "--tag", name, "--file", file, dir)
	return name
}

// TestHostileImage holds that a sandbox is the same whatever its image asks for.
func TestHostileImage(t *testing.T) {
	hostile := hostileImage(t)
	engine := open(t, shortDir(t))
	defer engine.Close()
	var seen []any
	for _, image := range []string{image(), hostile} {
		sandbox, err := engine.Start(t.Context(), runtimetest.Spec(image, seccomp(t)))
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, runtimetest.Observe(t, runtimetest.NewPeer(sandbox)))
		if err := sandbox.Close(); err != nil {
			t.Error(err)
		}
	}
	if !reflect.DeepEqual(seen[0], seen[1]) {
		t.Errorf("a sandbox of the hostile image is\n%v\nof the usual one\n%v", seen[1], seen[0])
	}
}

// TestMutations weakens every setting of the create request in turn.
func TestMutations(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9") // of the service, for it to hand on
	hostile := hostileImage(t)
	dir := shortDir(t)
	real := startService(t, dir+"/real")
	t.Cleanup(func() { // a container that was given another name than the engine knows
		for _, name := range containers(t, "io.mcp-bridge.pid", strconv.Itoa(os.Getpid())) {
			cli(t, "rm", "--force", "--time", "0", name)
		}
	})
	shown := t.TempDir()
	runtimetest.Mutate(t, runtimetest.MutateOptions{
		Start: func(t *testing.T, change func(map[string]any)) (runtime.Sandbox, error) {
			engine, err := podman.New(podman.Options{URI: interpose(t, shortDir(t)+"/api", real, change), RuntimeDir: dir + "/rt"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { engine.Close() })
			spec := runtimetest.Spec(hostile, seccomp(t))
			spec.Binds = []runtime.Bind{{Source: shown, Target: "/mnt/data"}}
			return engine.Start(t.Context(), spec)
		},
		Unnoticed: unnoticed(),
	})
}

// unnoticed are the settings of which a sandbox shows nothing when they are
// weakened, and why that is no harm.
func unnoticed() map[string]string {
	m := map[string]string{
		"cgroups_mode":               "enabled is the default; the limits are attested",
		"command.[-B]":               "the spec's own",
		"command.[-I]":               "the spec's own",
		"env.HOME":                   "without it Podman sets the same",
		"procfs_opts.[hidepid]":      "all processes in a sandbox have one uid",
		"read_write_tmpfs":           "for Podman 4.6 and later; what it adds is attested to be absent",
		"resource_limits.cpu.period": "longer or absent it lowers the limit, or leaves it",
		"stop_signal":                "nothing is stopped with it: sandboxes are killed",
		"stop_timeout":               "nothing is stopped with it: sandboxes are killed",
		"systemd":                    "only for programs that are systemd",
		"use_image_resolve_conf":     "without a network there is nothing to write",
	}
	for _, label := range []string{"boot", "owner", "pid", "pidns", "sandbox", "start"} {
		m["labels.io.mcp-bridge."+label] = "for the sweep after a crash, which the contract tests"
	}
	for _, point := range []string{"/run/mcp-bridge/files", "/run/mcp-bridge/socket", "/mnt/data"} {
		m["mounts.["+point+"].options.[bind]"] = "said by the type already"
		m["mounts.["+point+"].options.[private]"] = "the default for binds"
		m["mounts.["+point+"].type"] = "the default for what has a source"
	}
	m["mounts.[/mnt/data].source"] = "which folder it is nobody in the sandbox knows"
	for _, point := range []string{"/tmp", "/workspace"} {
		for _, option := range []string{"mode", "notmpcopyup", "rw"} {
			m["mounts.["+point+"].options.["+option+"]"] = "Podman's default for every tmpfs"
		}
		m["mounts.["+point+"].source"] = "a tmpfs has none"
	}
	return m
}
