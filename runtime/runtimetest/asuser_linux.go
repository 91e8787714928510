package runtimetest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// RunAs runs the calling test once more in a process of the named user, with
// nothing but env and what belongs to the user in its environment, and makes the
// results of its subtests the caller's. The test must be told from the user id
// that it is there already. RunAs returns how many of them have passed.
func RunAs(t *testing.T, name string, env ...string) (passed int) {
	t.Helper()
	account, err := user.Lookup(name)
	if err != nil {
		t.Fatalf("%v: run .ci/provision rootless", err)
	}
	uid, _ := strconv.ParseUint(account.Uid, 10, 32)
	gid, _ := strconv.ParseUint(account.Gid, 10, 32)
	runtimeDir := "/run/user/" + account.Uid // of a machine that has just booted it may be missing
	if err := os.MkdirAll(runtimeDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(runtimeDir, int(uid), int(gid)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), publicCopy(t, os.Args[0]), "-test.v=test2json", "-test.count=1",
		"-test.timeout=9m", "-test.run="+onlyThis(t.Name()))
	cmd.Dir = account.HomeDir
	cmd.Env = append([]string{
		"HOME=" + account.HomeDir, "USER=" + name, "XDG_RUNTIME_DIR=" + runtimeDir, "PATH=" + os.Getenv("PATH"),
	}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)},
		Pdeathsig:  syscall.SIGKILL,
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	results := readResults(t, stdout)
	err = cmd.Wait()
	own, ran := results[t.Name()]
	if !ran || len(own.children) == 0 {
		t.Fatalf("as %s nothing ran: %v\n%s", name, err, own.text())
	}
	own.replay(t)
	if err != nil && !t.Failed() {
		t.Errorf("as %s: %v, though no test failed", name, err)
	}
	return max(0, own.passed()-1)
}

// passed counts the tests that have passed, r's among them.
func (r *result) passed() int {
	n := 0
	if r.verdict == "PASS" {
		n++
	}
	for _, child := range r.children {
		n += child.passed()
	}
	return n
}

// onlyThis is the pattern that matches the test of the name.
func onlyThis(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// publicCopy returns the path of a copy that everybody may run: the go command
// builds tests where others cannot enter.
func publicCopy(t *testing.T, file string) string {
	t.Helper()
	dir := shortTempDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	source, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	target, err := os.OpenFile(filepath.Join(dir, "test"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(target, source)
	if closeErr := target.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	return target.Name()
}

// A result is what a test of another process said.
type result struct {
	begun    bool   // and not only named as a part of another test's name
	verdict  string // PASS, FAIL or SKIP; "" if it did not come to one
	output   []string
	name     string // without its parents'
	children []*result
}

func (r *result) text() string {
	if r == nil {
		return ""
	}
	return strings.Join(r.output, "\n")
}

// event is what a test binary says of a test's course.
var event = regexp.MustCompile(`^\x16 *(?:===|---) (RUN|PAUSE|CONT|NAME|PASS|FAIL|SKIP):? +(\S*)`)

// readResults reads the output of a test binary with -test.v=test2json, up to
// its end.
func readResults(t *testing.T, r io.Reader) map[string]*result {
	t.Helper()
	all := map[string]*result{"": {}}
	current := all[""]
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		found := event.FindStringSubmatch(lines.Text())
		if found == nil {
			current.output = append(current.output, lines.Text())
			continue
		}
		current = find(all, found[2])
		switch kind := found[1]; kind {
		case "RUN":
			current.begun = true
		case "PASS", "FAIL", "SKIP":
			current.verdict = kind
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	return all
}

// find returns the result of the named test, which may be new.
func find(all map[string]*result, name string) *result {
	if r, ok := all[name]; ok {
		return r
	}
	parent, last := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		parent, last = name[:i], name[i+1:]
	}
	r := &result{name: last}
	all[name] = r
	above := find(all, parent)
	above.children = append(above.children, r)
	return r
}

// replay makes r the result of t.
func (r *result) replay(t *testing.T) {
	t.Helper()
	if text := r.text(); text != "" {
		t.Log("\n" + text)
	}
	for _, child := range r.children {
		t.Run(child.name, child.replay)
	}
	switch {
	case r.verdict == "SKIP":
		t.Skip("skipped there")
	case r.verdict == "FAIL":
		t.Fail()
	case r.verdict == "" && r.begun:
		t.Error("it did not come to an end")
	}
}
