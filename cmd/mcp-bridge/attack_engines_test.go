package main_test

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"
)

// attackedEngines are those that the environment names; Podman if it names none.
// One that is named and does not work fails.
func attackedEngines() []string {
	return strings.Split(cmp.Or(os.Getenv("MCP_BRIDGE_TEST_RUNTIMES"), "podman"), ",")
}

// on has the bridge use an engine, and makes its folder.
func (s *setup) on(t *testing.T, engine string) {
	t.Helper()
	s.args = append(s.args, "--runtime="+engine)
	if host := os.Getenv("DOCKER_HOST"); host != "" && engine == "docker" {
		s.env = append(s.env, "DOCKER_HOST="+host)
	}
	s.command(t)
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
		`supervisor/list_threads supervisor/read_cgroup supervisor/read_cmdline supervisor/read_limits supervisor/read_mountinfo
		supervisor/read_net_unix supervisor/read_stat supervisor/read_status supervisor/read_wchan`,
	},
}
