package bench

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An engine is what a benchmark runs sandboxes on.
type engine struct {
	name      string
	transport string
	image     string // "" is the engine's own
	cli       string // the command that lists its containers; "" if they are processes of the bridge
	// floor runs `python3 -c pass` in the same image with the engine's own
	// command line.
	floor func(b *testing.B) *exec.Cmd
	// most is how much of its floor a first call without a spare may take.
	most string
}

// transports are those to measure on each engine, the first of them its choice.
var transports = map[string][]string{
	"podman": {"socket", "stdio"},
	"docker": {"socket", "stdio"},
	"gvisor": {"fd", "stdio"},
}

// engines are those that MCP_BRIDGE_TEST_RUNTIMES names, each with every
// transport that the binary under test has for it.
func engines(b *testing.B) []engine {
	b.Helper()
	image := cmp.Or(os.Getenv("MCP_BRIDGE_TEST_IMAGE"), "localhost/mcp-bridge-sandbox:latest")
	var all []engine
	for name := range strings.SplitSeq(cmp.Or(os.Getenv("MCP_BRIDGE_TEST_RUNTIMES"), "podman"), ",") {
		var e engine
		switch name = strings.TrimSpace(name); name {
		case "podman":
			e = engine{cli: "podman", image: image, most: "0.8", floor: func(b *testing.B) *exec.Cmd { return podmanRun(b, image) }}
		case "docker":
			e = engine{cli: "docker", image: image, most: "1.0", floor: func(b *testing.B) *exec.Cmd { return dockerRun(b, image) }}
		case "gvisor":
			e = engine{most: "1.25", floor: runscRun}
		default:
			continue // the contract suite checks the list
		}
		e.name = name
		for _, e.transport = range transports[name] {
			all = append(all, e)
		}
	}
	return all
}

// onEngines runs measure for each engine and transport.
func onEngines(b *testing.B, measure func(b *testing.B, e engine)) {
	for _, e := range engines(b) {
		b.Run(e.name+"/"+e.transport, func(b *testing.B) {
			if out, err := e.execCommand("1").CombinedOutput(); err != nil {
				b.Skipf("%v: %.300s", err, out)
			}
			measure(b, e)
		})
	}
}

// execCommand is `mcp-bridge exec`.
func (e engine) execCommand(code string) *exec.Cmd {
	path, _ := binary()
	args := []string{"exec", "--runtime", e.name, "--transport", e.transport, "-c", code}
	if e.image != "" {
		args = append(args, "--image", e.image)
	}
	return exec.Command(path, args...)
}

func podmanRun(b *testing.B, image string) *exec.Cmd {
	return exec.CommandContext(b.Context(), "podman", "--runtime", ociRuntime(), "run", "--rm", "--network", "none",
		"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=512:512", image, "python3", "-c", "pass")
}

func dockerRun(b *testing.B, image string) *exec.Cmd {
	return exec.CommandContext(b.Context(), "docker", "run", "--rm", "--network", "none",
		"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=512:512", image, "python3", "-c", "pass")
}

func ociRuntime() string {
	if _, err := os.Stat("/sys/fs/cgroup/unified"); err == nil {
		return "runc" // crun refuses mixed control groups
	}
	return "crun"
}

// runscRun is gVisor's own command line with the host's Python: `do` is a `run`
// that makes the bundle itself.
func runscRun(b *testing.B) *exec.Cmd {
	runsc := filepath.Join(filepath.Dir(mustBinary(b)), "mcp-bridge-runsc")
	return exec.CommandContext(b.Context(), runsc, "--network=none", "--ignore-cgroups", "do", "--quiet", "python3", "-c", "pass")
}
