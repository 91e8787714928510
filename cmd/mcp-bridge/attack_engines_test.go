package main_test

import (
	"cmp"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// attackedEngines are those that the environment names; Podman if it names none.
// One that is named and does not work fails. The contract suite's fake is no
// sandbox.
func attackedEngines() []string {
	names := strings.Split(cmp.Or(os.Getenv("MCP_BRIDGE_TEST_RUNTIMES"), "podman"), ",")
	return slices.DeleteFunc(names, func(name string) bool { return name == "fake" })
}

// rootlessPodman is Podman as the ordinary user that .ci/provision makes, who need
// not have the right to limits.
const (
	rootlessPodman = "podman-rootless"
	ordinaryUser   = "mcp-bridge-test"
)

// connectOn is connect to a bridge that uses an engine.
func connectOn(t *testing.T, engine string, s *setup) *client {
	t.Helper()
	if engine == rootlessPodman && os.Geteuid() == 0 {
		return connectAs(t, ordinaryUser, s)
	}
	s.args = append(s.args, "--runtime="+strings.TrimSuffix(engine, "-rootless"))
	s.env = append(s.env, engineEnv(t)...)
	s.command(t) // makes its folder, for the attacker to be told
	return connect(t, *s)
}

// connectAs is connect to a bridge of another user's, with everything it needs
// where that one can get at it.
func connectAs(t *testing.T, name string, s *setup) *client {
	t.Helper()
	account, err := user.Lookup(name)
	if err != nil {
		t.Fatalf("%v: run .ci/provision rootless", err)
	}
	uid, gid := number32(t, account.Uid), number32(t, account.Gid)
	dir, err := os.MkdirTemp("", "mcp-bridge-attack-") // the go command's own folders are for one user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for server, d := range s.servers {
		d.Command = copyTo(t, filepath.Join(dir, "upstream"), d.Command)
		s.servers[server] = d
	}
	s.args = append(s.args, "--runtime=podman", "--allow-unlimited")
	s.dir = filepath.Join(dir, "servers")
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.write(t, "servers.json", s.servers)
	cmd := s.command(t, "run")
	cmd.Dir = filepath.Join(dir, "empty") // nothing is to be written there
	if err := os.Mkdir(cmd.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd.Path = copyTo(t, filepath.Join(dir, "mcp-bridge"), binary)
	runtimeDir := "/run/user/" + account.Uid // of a machine that has just booted it may be missing
	if err := os.MkdirAll(runtimeDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, s.dir, filepath.Join(s.dir, "servers.json"), runtimeDir} {
		if err := os.Chown(path, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = append([]string{"HOME=" + account.HomeDir, "USER=" + name, "XDG_RUNTIME_DIR=" + runtimeDir, "PATH=" + os.Getenv("PATH")}, s.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return connectBy(t, cmd, &mcp.CommandTransport{Command: cmd, TerminateDuration: 20 * time.Second})
}

func number32(t *testing.T, text string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// copyTo makes a program that everybody may run, and returns its path.
func copyTo(t *testing.T, target, program string) string {
	t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(target, 0o755); err != nil {
		t.Fatal(err)
	}
	return target
}

// expectation is what should come of an attack on an engine, and why if it is
// not what it is elsewhere.
func expectation(engine, attack string) (verdict, why string) {
	for _, a := range answers {
		if (a.engine == "" || a.engine == engine) && slices.Contains(strings.Fields(a.attacks), attack) {
			return "open", a.why
		}
	}
	return "denied", ""
}

// An answer is attacks that do get somewhere, and where that is.
type answer struct{ engine, why, attacks string }

var answers = []answer{
	{
		"", "noexec keeps out programs by accident, not by intent: a memfd can always be run, with no more rights than the cell has",
		`filesystem/program_in_memory`,
	},
	{
		"docker", "Docker cannot hide processes in /proc: of PID 1 a cell sees what the kernel shows of any process, which is what it sees of itself",
		publicOfPID1 + " supervisor/read_wchan",
	},
	{"gvisor", "gVisor hides no processes, and names descriptors and namespaces besides; it opens none of them", publicOfPID1 + `
		supervisor/follow_ns_mnt supervisor/follow_ns_user supervisor/list_descriptors supervisor/robust_list`},
	{
		"gvisor", "these are devices of gVisor's own kernel, with nothing of the host behind them; to use them takes a capability",
		`filesystem/device_fuse network/tun_device`,
	},
	{
		"gvisor", "descriptors under way are entries in its own kernel's memory, which the limit counts, and no descriptors of the host",
		`exhaustion/descriptors_in_flight`,
	},
	{
		"gvisor", "its own kernel keeps this for the sandbox alone; the host knows one process of one priority, and its memory limit",
		`filesystem/safe_from_the_oom_killer privileges/be_nicer_to_oneself privileges/huge_pages`,
	},
}

const publicOfPID1 = `supervisor/list_threads supervisor/read_cgroup supervisor/read_cmdline supervisor/read_limits
	supervisor/read_mountinfo supervisor/read_net_unix supervisor/read_stat supervisor/read_status`
