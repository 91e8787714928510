//go:build linux

package runtime_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	sandboximage "github.com/mcp-bridge/mcp-bridge/sandbox-image"
)

// contracts run the contract on an engine, and return how many of its groups
// have passed.
var contracts = map[string]func(*testing.T) int{
	"fake": func(t *testing.T) int {
		return runtimetest.Run(t, runtimetest.FakeOptions(sandboximage.Seccomp()))
	},
	"podman": func(t *testing.T) int {
		return runtimetest.Run(t, podmanOptions(t))
	},
	"podman-rootless": rootlessContract,
	"docker": func(t *testing.T) int {
		return runtimetest.Run(t, dockerOptions(t))
	},
	"gvisor": func(t *testing.T) int {
		return runtimetest.Run(t, gvisorOptions(t))
	},
}

// TestContract runs the contract on every engine that MCP_BRIDGE_TEST_RUNTIMES
// names, separated by commas; on all that there are if it is empty. It fails if
// one of them did not really run.
func TestContract(t *testing.T) {
	named := slices.Sorted(maps.Keys(contracts))
	if list := os.Getenv("MCP_BRIDGE_TEST_RUNTIMES"); list != "" {
		named = strings.Split(list, ",")
	}
	passed := map[string]int{}
	for _, name := range named {
		run, known := contracts[name]
		if !known {
			t.Errorf("MCP_BRIDGE_TEST_RUNTIMES names %q; there are %v", name, slices.Sorted(maps.Keys(contracts)))
			continue
		}
		t.Run(name, func(t *testing.T) { passed[name] = run(t) })
	}
	for _, name := range named { // the last act
		if passed[name] == 0 {
			t.Errorf("of %s no group has run and passed", name)
		} else {
			t.Logf("%s: %d groups passed", name, passed[name])
		}
	}
}

// commandLine runs an engine's, which shares nothing with our engine but the
// containers.
type commandLine struct {
	name  string
	first []string // arguments before all others
	quiet []string // of rm, to say nothing of what is not there
}

func (c commandLine) run(t testing.TB, stdin []byte, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.name, append(slices.Clone(c.first), args...)...)
	cmd.Env = localEnvironment()
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return string(out)
}

// localEnvironment is ours, without what makes podman's command line a remote one.
func localEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CONTAINER_HOST=") })
}

// options are what all engines with such a command line have in common.
func (c commandLine) options(t *testing.T) runtimetest.Options {
	return runtimetest.Options{
		Name:       c.name,
		Transports: []runtime.Transport{runtime.TransportSocket, runtime.TransportStdio},
		Image:      testImage(),
		NoPython:   c.emptyImage(t),
		Seccomp:    sandboximage.Seccomp(),
		Containers: func(t testing.TB, label, value string) []string {
			return strings.Fields(c.run(t, nil, "ps", "--all", "--format", "{{.Names}}", "--filter", "label="+label+"="+value))
		},
		Kill: func(t testing.TB, name string) { c.run(t, nil, "kill", name) },
		Create: func(t testing.TB, name string, labels map[string]string) {
			args := []string{"create", "--name", name, "--network", "none"}
			for k, v := range labels {
				args = append(args, "--label", k+"="+v)
			}
			c.run(t, nil, append(args, testImage(), "true")...)
		},
		Remove: func(t testing.TB, name string) {
			c.run(t, nil, append(append([]string{"rm", "--force"}, c.quiet...), name)...)
		},
	}
}

// emptyImage makes an image with nothing to run.
func (c commandLine) emptyImage(t *testing.T) string {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	name := fmt.Sprintf("localhost/mcp-bridge-test-empty:%d", os.Getpid())
	c.run(t, archive.Bytes(), "import", "-", name)
	t.Cleanup(func() { c.run(t, nil, "rmi", "--force", name) })
	return name
}

func logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func podmanOptions(t *testing.T) runtimetest.Options {
	cli := commandLine{name: "podman", first: []string{"--runtime", "runc"}, quiet: []string{"--ignore", "--time", "0"}}
	opts := cli.options(t)
	open := func(t testing.TB, o podman.Options) runtime.Engine {
		t.Helper()
		t.Setenv("CONTAINER_HOST", "")
		o.Logger = logger(t)
		engine, err := podman.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return engine
	}
	opts.Open = func(t testing.TB, dir string, transport runtime.Transport) runtime.Engine {
		return open(t, podman.Options{RuntimeDir: dir, Transport: transport, AllowUnlimited: opts.Unlimited})
	}
	opts.Through = func(t testing.TB, dir string, transport runtime.Transport, interpose func(string) string) runtime.Engine {
		uri := "unix://" + interpose(startService(t))
		return open(t, podman.Options{URI: uri, RuntimeDir: dir, Transport: transport, AllowUnlimited: opts.Unlimited})
	}
	// Asked before a limit is missed, an engine tells.
	engine := open(t, podman.Options{RuntimeDir: shortDir(t)})
	defer engine.Close()
	if err := engine.Check(t.Context(), testImage()); errors.Is(err, runtime.ErrUnsupported) {
		t.Logf("%v (hint: %s)", err, runtime.HintOf(err))
		opts.Unlimited = true
	}
	return opts
}

// startService starts a service of podman's for the test, and returns its socket.
func startService(t testing.TB) string {
	t.Helper()
	socket := shortDir(t) + "/s"
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "podman", "--runtime", "runc", "system", "service", "--time", "0", "unix://"+socket)
	cmd.Env = localEnvironment()
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 1000 {
		if _, err := os.Stat(socket); err == nil {
			return socket
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("podman's service does not listen")
	return ""
}

// rootlessContract runs the contract of podman as the user that
// .ci/provision rootless makes.
func rootlessContract(t *testing.T) int {
	if os.Geteuid() == 0 {
		return runtimetest.RunAs(t, "mcp-bridge-test", "MCP_BRIDGE_TEST_IMAGE="+testImage(), "MCP_BRIDGE_TEST_RUNTIMES=podman-rootless")
	}
	return runtimetest.Run(t, podmanOptions(t))
}

// dockerOptions are for the daemon that DOCKER_HOST names, see .ci/provision
// docker-host.
func dockerOptions(t *testing.T) runtimetest.Options {
	cli := commandLine{name: "docker"}
	opts := cli.options(t)
	containers := opts.Containers
	opts.Containers = func(t testing.TB, label, value string) []string { // and what they have beside them
		return append(containers(t, label, value), strings.Fields(cli.run(t, nil, "volume", "ls", "--quiet", "--filter", "label="+label+"="+value))...)
	}
	open := func(t testing.TB, o docker.Options) runtime.Engine {
		t.Helper()
		o.Logger = logger(t)
		engine, err := docker.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return engine
	}
	opts.Open = func(t testing.TB, dir string, transport runtime.Transport) runtime.Engine {
		return open(t, docker.Options{RuntimeDir: dir, Transport: transport})
	}
	opts.Through = func(t testing.TB, dir string, transport runtime.Transport, interpose func(string) string) runtime.Engine {
		socket := strings.TrimPrefix(cmp.Or(os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock"), "unix://")
		return open(t, docker.Options{Host: "unix://" + interpose(socket), RuntimeDir: dir, Transport: transport})
	}
	return opts
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
