package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// attackDir has the attacks: see harness.py there.
const attackDir = "testdata/attacks"

// attackSubjects are the files whose attacks run in a cell and tell themselves
// what came of them. The host judges those of the other files: see live_attack_test.go.
var attackSubjects = []string{"network", "filesystem", "privileges", "neighbours", "supervisor", "hostsecrets"}

// What the control has to show for the table to prove anything.
const wantOpenInControl = 120

// TestAttacks tries to get out of a sandbox in every way we know of, on each
// engine. Everything must be denied, but for what a row of answers says.
func TestAttacks(t *testing.T) {
	for _, engine := range attackedEngines() {
		t.Run(engine, func(t *testing.T) {
			outside := openOutposts(t)
			s := special(t, "--workspace-quota=0") // sessions share files, which is no attack
			s.env = []string{"E2E_HOST_SECRET=" + hostCanary, "HTTP_PROXY=http://u:" + hostCanary + "@127.0.0.1:1"}
			c := connectOn(t, engine, &s)
			a := newAttacker(t, c, outside, []string{s.dir})

			outcomes := a.runAll(t, attackSubjects)
			judge(t, engine, outcomes)

			for what, n := range outside.visits() {
				t.Errorf("%d visits from the sandbox to the host's %s", n, what)
			}
			if got := c.runIn(t, "neighbour", "neighbours.unharmed()"); got != "True" {
				t.Errorf("the neighbour is unharmed: %s", got)
			}
			if got := c.runIn(t, "attacker", "works()"); got != "['through', 'made', 'xx', [0, 1, 2, 3, 4, 5, 6, 7], (-15, '42')]" {
				t.Errorf("what must work in a sandbox gives %s", got)
			}
			outside.answers(t) // and would have answered all the time
		})
	}
}

// judge compares what came of attacks with what should.
func judge(t *testing.T, engine string, outcomes map[string]string) {
	t.Helper()
	count := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		t.Run(name, func(t *testing.T) {
			verdict, how, _ := strings.Cut(outcomes[name], ": ")
			count[verdict]++
			t.Logf("%s: %s", verdict, how)
			expected, why := expectation(engine, name)
			switch {
			case verdict == "denied" && expected == "open":
				t.Logf("denied, though an engine of this name may leave it open: %s", why)
			case verdict != expected:
				t.Errorf("it is %s: %s; want %s. %s", verdict, how, expected, why)
			}
		})
	}
	t.Logf("attacks on %s: %d in all, %v", engine, len(outcomes), count)
}

// TestAttacksWithoutBridge runs the same attacks in a privileged container on the
// host's network, by runc, which takes control groups as it finds them. Where they
// fail there too they prove nothing.
func TestAttacksWithoutBridge(t *testing.T) {
	outside := openOutposts(t)
	context := outside.context()
	maps.Copy(context, map[string]any{
		"subjects": attackSubjects, "hostname": hostName(t), "homes": []string{"/root"}, "canaries": canaries(), "bridge_pid": 1,
	})
	stdin, err := json.Marshal(context)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(attackDir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("podman", "--runtime=runc", "run", "--rm", "--interactive", "--privileged", "--network=host", "--pull=never",
		"--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--env=E2E_HOST_SECRET="+hostCanary,
		"--volume="+dir+":/attacks:ro", "--volume="+outside.dir+":"+outside.dir+":ro", sandboxImage, "python3", "-B", "/attacks/control.py")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("podman run: %v\n%s", err, stderr.String())
	}
	var outcomes map[string]string
	if err := json.Unmarshal(out, &outcomes); err != nil {
		t.Fatalf("%v in %.1000s\n%s", err, out, stderr.String())
	}
	open := 0
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("%-45s %s", name, outcomes[name])
		switch verdict, how, _ := strings.Cut(outcomes[name], ": "); verdict {
		case "open":
			open++
		case "denied":
		default:
			t.Errorf("%s is %s: %s", name, verdict, how)
		}
	}
	t.Logf("without the bridge %d of %d attacks are open", open, len(outcomes))
	if open < wantOpenInControl {
		t.Errorf("%d attacks are open in a privileged container; want %d for the table to prove anything", open, wantOpenInControl)
	}
}

// An attacker is a bridge's session with the attacks in it, next to another
// session that has things to lose.
type attacker struct{ *client }

// newAttacker settles both.
func newAttacker(t *testing.T, c *client, outside *outposts, paths []string) attacker {
	t.Helper()
	c.runIn(t, "neighbour", attackLoader(t)+`
neighbours.CONTEXT["hostname"] = ""
neighbour = neighbours.settle()`)
	facts := c.runIn(t, "neighbour", "import os, json; json.dumps([neighbour, os.getuid(), os.stat('/tmp/neighbour').st_ino])")
	var pid, uid, inode int
	if _, err := fmt.Sscanf(strings.Trim(facts, "'"), "[%d, %d, %d]", &pid, &uid, &inode); err != nil {
		t.Fatalf("%v in %s", err, facts)
	}
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	home, _ := os.UserHomeDir()
	paths = append(paths, cwd, binary)
	context := outside.context()
	maps.Copy(context, map[string]any{
		"bridge": true, "neighbour": pid, "neighbour_uid": uid, "neighbour_inode": inode, "bridge_pid": c.cmd.Process.Pid,
		"host_pids": hostPIDs(c.cmd.Process.Pid), "neighbour_paths": sandboxPaths(t),
		"canaries": canaries(), "hostname": hostName(t), "homes": []string{home}, "paths": paths,
	})
	data, err := json.Marshal(context)
	if err != nil {
		t.Fatal(err)
	}
	c.runIn(t, "attacker", attackLoader(t)+fmt.Sprintf(`
import json, socket
harness.CONTEXT.update(json.loads(%s))
def works():
    return [network.socketpair_works(), filesystem.fifo_works(), filesystem.files_work(), privileges.threads_work(), privileges.programs_work()]
`, pythonString(string(data))))
	return attacker{c}
}

// runAll runs all attacks of the subjects, by subject and name. In between the
// sandbox must be the one it was.
func (a attacker) runAll(t *testing.T, subjects []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, subject := range subjects {
		var names []string
		a.decode(t, fmt.Sprintf("list(harness.ATTACKS[%q])", subject), &names)
		const atATime = 30 // whose outcomes a result has room for
		for batch := range slices.Chunk(names, atATime) {
			list, err := json.Marshal(batch)
			if err != nil {
				t.Fatal(err)
			}
			var outcomes map[string]string
			a.decode(t, fmt.Sprintf("harness.run(%q, %s)", subject, list), &outcomes)
			for name, outcome := range outcomes {
				all[subject+"/"+name] = outcome
			}
		}
	}
	return all
}

// decode prints an expression as JSON in a cell and decodes it.
func (a attacker) decode(t *testing.T, expression string, into any) {
	t.Helper()
	r := a.call(t, arguments{"code": "print(json.dumps(" + expression + "))", "session": "attacker", "timeout": 100})
	if r.isError {
		t.Fatalf("%s\nfailed: %.4000s", expression, r.text)
	}
	if err := json.Unmarshal([]byte(r.text), into); err != nil {
		t.Fatalf("%s: %v in %.1000s", expression, err, r.text)
	}
}

// attackLoader is code that imports the harness and all subjects.
func attackLoader(t *testing.T) string {
	t.Helper()
	var code strings.Builder
	code.WriteString(`
import sys, types
def load(name, source):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name + ".py", "exec"), module.__dict__)
    return module
`)
	for _, name := range append([]string{"harness"}, attackSubjects...) {
		fmt.Fprintf(&code, "%s = load(%q, %s)\n", name, name, pythonString(attackSource(t, name)))
	}
	return code.String()
}

func attackSource(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(attackDir, name+".py"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// pythonString is a literal of text, which must be ASCII.
func pythonString(text string) string { return strconv.QuoteToASCII(text) }

// hostCanary stands in the bridge's environment, where no cell must find it.
const hostCanary = "e2e-host-secret-4712"

// canaries are the secrets in two halves: a search must not find itself.
func canaries() [][2]string {
	var halves [][2]string
	for _, canary := range []string{secret, hostCanary} {
		halves = append(halves, [2]string{canary[:7], canary[7:]})
	}
	return halves
}

func hostName(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// hostPIDs are those of the bridge and what it has started, of which a
// sandbox must know none.
func hostPIDs(bridge int) []int {
	pids := []int{bridge}
	for _, p := range descendants(bridge) {
		pids = append(pids, p.pid)
	}
	return pids
}

// sandboxPaths are where the host keeps what belongs to sandboxes.
func sandboxPaths(t *testing.T) []string {
	t.Helper()
	paths := []string{"/var/lib/containers", "/var/lib/docker"}
	for _, pattern := range []string{"/run/mcp-bridge/*", "/run/mcp-bridge/*/*", "/run/user/*/mcp-bridge/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			if base := filepath.Base(path); base != "files" && base != "socket" { // their names inside
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// residentMiB is the memory of a process.
func residentMiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
