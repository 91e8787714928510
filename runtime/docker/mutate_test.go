//go:build linux

package docker_test

import (
	"reflect"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// hostileImage builds an image that asks for everything, and returns its name.
func hostileImage(t *testing.T) string {
	t.Helper()
	dir, file := runtimetest.HostileImage(t)
	const name = "localhost/mcp-bridge-hostile:docker"
	t.Setenv("DOCKER_BUILDKIT", "0") // the builder that every daemon has
	cli(t, "build", "--quiet", "--build-arg", "BASE="+image(), "--tag", name, "--file", file, dir)
	return name
}

// TestHostileImage holds that a sandbox is the same whatever its image asks for,
// but that what it declares as volumes is hidden under nothing.
func TestHostileImage(t *testing.T) {
	hostile := hostileImage(t)
	engine := open(t, shortDir(t))
	defer engine.Close()
	var seen []map[string]any
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
	for _, s := range seen {
		delete(s, "mounts") // of which attestation has accepted all
	}
	if !reflect.DeepEqual(seen[0], seen[1]) {
		t.Errorf("a sandbox of the hostile image is\n%v\nof the usual one\n%v", seen[1], seen[0])
	}
}

// TestMutations weakens every setting of the create request in turn.
func TestMutations(t *testing.T) {
	hostile := hostileImage(t)
	shown := t.TempDir()
	runtimetest.Mutate(t, runtimetest.MutateOptions{
		Start: func(t *testing.T, change func(map[string]any)) (runtime.Sandbox, error) {
			dir := shortDir(t)
			engine, err := docker.New(docker.Options{Host: interpose(t, dir+"/api", change), RuntimeDir: dir + "/rt"})
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
		"HostConfig.CpuPeriod":          "longer or absent it lowers the limit, or leaves it",
		"HostConfig.Ulimits.[nofile]":   "then the daemon's own holds, which is attested not to be higher",
		"Cmd.[-B]":                      "the spec's own",
		"Cmd.[-I]":                      "the spec's own",
		"Domainname":                    "not set",
		"Env.[HOSTNAME=sandbox]":        "without it Docker sets the same",
		"HostConfig.NetworkMode":        "NetworkDisabled decides",
		"HostConfig.RestartPolicy.Name": "none is the default; another is attested",
		"HostConfig.ShmSize":            "the tmpfs at /dev/shm decides",
		"HostConfig.UsernsMode":         "the test's daemon has no user namespaces; where one has, the namespace is attested",
		"HostConfig.Cgroup":             "not set; for containers that share one",
		"HostConfig.CgroupParent":       "not set; the limits are attested",
		"HostConfig.CpuRealtimePeriod":  "not set; means nothing without a run time",
		"HostConfig.CpusetCpus":         "not set; the processors' time is limited",
		"HostConfig.CpusetMems":         "not set",
		"HostConfig.PublishAllPorts":    "there is no network to publish to",
		"HostConfig.VolumeDriver":       "not set; there are no volumes",
		"HostConfig.ContainerIDFile":    "not set; for the command line",
		"HostConfig.ConsoleSize.[0]":    "for Windows",
		"HostConfig.CpuCount":           "for Windows",
		"HostConfig.CpuPercent":         "for Windows",
		"HostConfig.Isolation":          "for Windows",
		"AttachStderr":                  "for the command line",
		"AttachStdin":                   "for the command line",
		"AttachStdout":                  "for the command line",
		"StdinOnce":                     "stdin is not open",
		"StopSignal":                    "nothing is stopped with it: sandboxes are killed",
		"StopTimeout":                   "nothing is stopped with it: sandboxes are killed",
	}
	for _, label := range []string{"boot", "owner", "pid", "pidns", "sandbox", "start"} {
		m["Labels.io.mcp-bridge."+label] = "for the sweep after a crash, which the contract tests"
		m["HostConfig.Mounts.[/mnt/data].VolumeOptions.Labels.io.mcp-bridge."+label] = "for the sweep after a crash, see TestSweepVolumes"
	}
	for _, point := range []string{"/run/mcp-bridge/files", "/run/mcp-bridge/socket"} {
		m["HostConfig.Mounts.["+point+"].BindOptions.Propagation"] = "private is the default"
	}
	m["HostConfig.Mounts.[/mnt/data].VolumeOptions.DriverConfig.Name"] = "local is the default"
	m["HostConfig.Mounts.[/mnt/data].VolumeOptions.NoCopy"] = "for what the image has there: the volume is read-only"
	for _, point := range []string{"/tmp", "/dev/shm", runtime.Workspace, "/hostile-volume", "/workspace/volume"} {
		m["HostConfig.Tmpfs."+point+".[mode]"] = "who may write there is the sandbox's one user, or nobody for it is read-only"
		m["HostConfig.Tmpfs."+point+".[nr_inodes]"] = "inodes count as the sandbox's memory, which is limited"
		m["HostConfig.Tmpfs."+point+".[rw]"] = "Docker's default for every tmpfs"
	}
	for _, point := range []string{"/hostile-volume", "/workspace/volume"} {
		delete(m, "HostConfig.Tmpfs."+point+".[rw]")
		m["HostConfig.Tmpfs."+point+".[size]"] = "nothing can be written there"
	}
	for _, id := range []string{"uid", "gid"} {
		m["HostConfig.Tmpfs."+runtime.Workspace+".["+id+"]"] = "without it the sandbox cannot write there"
	}
	return m
}
