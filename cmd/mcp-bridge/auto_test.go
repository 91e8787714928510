package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dockerHost is how the tests' docker is found, as make says it.
func dockerHost() string { return "DOCKER_HOST=" + os.Getenv("DOCKER_HOST") }

// auto is the setup in which no engine is named.
func auto(env ...string) setup {
	return setup{env: append([]string{"MCP_BRIDGE_RUNTIME="}, env...)}
}

// TestAuto takes the first engine that works and says so once.
func TestAuto(t *testing.T) {
	t.Parallel()
	c := connect(t, auto())
	lacks(t, c.stderr.String(), "mcp-bridge: engine: ") // nothing was tried yet
	c.wants(t, "1 + 1", "2")
	if r := c.call(t, arguments{"code": "2 + 2", "session": "another"}); r.text != "4" {
		t.Errorf("another session: %s", r.text)
	}
	if stderr := c.stderr.String(); strings.Count(stderr, "mcp-bridge: engine: podman\n") != 1 {
		t.Errorf("stderr of run:\n%s", stderr)
	}
	s := auto()
	got := shell(t, &s, "exec", "-c", "1")
	if got.code != exitOK || got.stdout != "1\n" || got.stderr != "mcp-bridge: engine: podman\n" {
		t.Errorf("exec: %+v", got)
	}
}

// engineEnv is what a bridge needs to find every engine, as a user has it: the
// binary under test lies where gVisor's helper does not.
func engineEnv(t *testing.T) []string {
	t.Helper()
	return []string{dockerHost(), "PATH=" + os.Getenv("PATH") + ":" + helperDir(t)}
}

// helperDir is where make build leaves gVisor's helper.
func helperDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "bin"))
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "mcp-bridge-runsc"))
	}
	if err != nil {
		t.Fatalf("%v: run make build", err)
	}
	return dir
}

// TestAutoGoesOn has engines that are not there, do not work, or lack the image,
// and takes the next one that works.
func TestAutoGoesOn(t *testing.T) {
	t.Parallel()
	const noDocker = "DOCKER_HOST=unix:///nonexistent/docker.sock"
	nothing := t.TempDir()
	inDocker := "localhost/e2e-in-docker:" + itoa(os.Getpid())
	if out, err := exec.Command("docker", "tag", sandboxImage, inDocker).CombinedOutput(); err != nil {
		t.Fatalf("docker tag: %v\n%s", err, out)
	}
	t.Cleanup(func() { stores()[1].remove(t, inDocker) })
	for _, test := range []struct {
		name, takes string
		auto        setup
		why         []string
	}{
		{"no podman", "docker", auto("PATH="+nothing, dockerHost()), []string{"podman: podman is not installed"}},
		{"podman that fails", "docker", auto("PATH="+failingPodman(t), dockerHost()), []string{"(podman: "}},
		{"no service", "docker", auto("CONTAINER_HOST=unix:///nonexistent/podman.sock", dockerHost()), []string{"(podman: "}},
		{"no image in podman", "docker", auto("MCP_BRIDGE_IMAGE="+inDocker, dockerHost()), []string{"podman: image missing"}},
		{"no engine", "gvisor", auto("PATH="+helperDir(t), noDocker), []string{"(podman: podman is not installed; docker: "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := shell(t, &test.auto, "exec", "-c", "6 * 7")
			if got.code != exitOK || got.stdout != "42\n" || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("%+v", got)
			}
			told := append(test.why, "mcp-bridge: engine: "+test.takes+" (")
			contains(t, got.stderr, told...)
			c := connect(t, test.auto)
			c.run(t, "x = 1")
			c.wants(t, "x + 1", "2")
			contains(t, c.stderr.String(), told...)
		})
	}
}

// TestAutoOfNone has no engine at all, and is told of each what would help.
func TestAutoOfNone(t *testing.T) {
	t.Parallel()
	none := auto("PATH="+t.TempDir(), "DOCKER_HOST=unix:///nonexistent/docker.sock")
	got := shell(t, &none, "exec", "-c", "print('success')")
	if got.code != exitNoEngine || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	contains(t, got.stderr, "mcp-bridge: error: auto: start sandbox: no engine can run sandboxes here: podman: podman is not installed; docker: ", "; gvisor: ",
		"mcp-bridge: hint: podman: ", "apt-get install podman", "; or gvisor: ", "`mcp-bridge doctor` shows more")
	lacks(t, got.stderr, "mcp-bridge: engine: ")
	c := connect(t, none)
	text := c.fails(t, "print('success')")
	contains(t, text, "podman: container engine unavailable; docker: container engine unavailable; gvisor: container engine unavailable", "apt-get install podman")
	lacks(t, text, "success", "/nonexistent")
	c.fails(t, "2") // the same is not told again
	if n := strings.Count(c.stderr.String(), "cell not run"); n != 1 {
		t.Errorf("told %d times:\n%s", n, c.stderr.String())
	}
}
