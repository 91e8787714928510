package runtimetest

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

//go:embed program.py
var program string

// Options tell [Run] about an engine. Every field is required but those said to
// be for some engines.
type Options struct {
	// Name is the engine's, and of the subtests.
	Name string
	// Open returns a new engine that keeps its files on the host below dir and
	// uses the transport. The suite closes it.
	Open func(t testing.TB, dir string, transport runtime.Transport) runtime.Engine
	// Transports are those to run over.
	Transports []runtime.Transport
	// Image has Python 3.10 or later.
	Image string
	// Seccomp is the profile to run under.
	Seccomp []byte
	// Containers returns the names of all containers, running or not, that have the label.
	Containers func(t testing.TB, label, value string) []string
	// Kill kills the program of the named container behind the engine's back.
	Kill func(t testing.TB, name string)

	// Unisolated is for engines that run programs as they are: the groups on
	// isolation are left out, and nothing below is required.
	Unisolated bool
	// Create creates a container with the labels, running or not.
	Create func(t testing.TB, name string, labels map[string]string)
	// Remove removes the named container if it exists, running or not.
	Remove func(t testing.TB, name string)

	// Unlimited says that this engine on this machine has no limits but rlimits:
	// it must refuse a spec that does not allow for that, and the suite's do.
	Unlimited bool
	// Snapshots is for engines that show folders of the host as they were when
	// the sandbox started, without what cannot be read there.
	Snapshots bool
	// NoPython is for engines with images: one without Python. "" leaves the
	// test of it out.
	NoPython string
	// Instead is for engines with a kernel of their own: by the row's name, what
	// that one answers where Linux answers something else, and nothing is the
	// worse for it.
	Instead map[string]string
	// CPUTime is for engines in whose sandboxes the time that is used cannot be
	// told from the time that passes. It returns what the named sandbox has used.
	CPUTime func(t testing.TB, name string) time.Duration
	// Through is for engines that are reached through a unix socket: it opens an
	// engine like Open, but one that reaches its service at the socket that
	// interpose returns for the service's own.
	Through func(t testing.TB, dir string, transport runtime.Transport, interpose func(socket string) string) runtime.Engine
}

// groups are the parts of the suite, in the order in which they run.
var groups = []struct {
	name     string
	run      func(*testing.T, *suite)
	isolates bool // it is about what keeps the program in
}{
	{"Check", testCheck, false},
	{"Bytes", testBytes, false},
	{"Deadlines", testDeadlines, false},
	{"Independent", testIndependent, false},
	{"Files", testFiles, false},
	{"ReadOnlyFiles", testReadOnlyFiles, true},
	{"Mounts", testMounts, true},
	{"Environment", testEnvironment, true},
	{"SocketIsGone", testSocketIsGone, true},
	{"Identity", testIdentity, true},
	{"Privilege", testPrivilege, true},
	{"Syscalls", testSyscalls, true},
	{"Network", testNetwork, true},
	{"ReadOnly", testReadOnly, true},
	{"Scratch", testScratch, true},
	{"HiddenPaths", testHiddenPaths, true},
	{"Processes", testProcesses, true},
	{"OpenFiles", testOpenFiles, true},
	{"Memory", testMemory, true},
	{"MemoryError", testMemoryError, true},
	{"CPU", testCPU, true},
	{"Unlimited", testUnlimited, true},
	{"Workload", testWorkload, true},
	{"ExitCode", testExitCode, false},
	{"KilledFromOutside", testKilledFromOutside, false},
	{"RemovedFromOutside", testRemovedFromOutside, true},
	{"Close", testClose, false},
	{"BadSpec", testBadSpec, false},
	{"MissingImage", testMissingImage, false},
	{"MissingPython", testMissingPython, true},
	{"MissingProgram", testMissingProgram, false},
	{"ExitsAtOnce", testExitsAtOnce, false},
	{"NeverConnects", testNeverConnects, false},
	{"Cancelled", testCancelled, false},
	{"CancelledRequests", testCancelledRequests, true},
	{"ServiceGone", testServiceGone, true},
	{"FiftyAtOnce", testFiftyAtOnce, false},
	{"Sweep", testSweep, true},
	{"ClosedEngine", testClosedEngine, false},
}

// Run runs the contract suite over every transport, and returns how many of its
// groups have passed.
func Run(t *testing.T, opts Options) int {
	passed := 0
	for _, transport := range opts.Transports {
		t.Run(string(transport), func(t *testing.T) { passed += runOver(t, opts, transport) })
	}
	return passed
}

func runOver(t *testing.T, opts Options, transport runtime.Transport) (passed int) {
	s := &suite{Options: opts, transport: transport, dir: shortTempDir(t)}
	s.engine = opts.Open(t, s.dir, transport)
	t.Cleanup(func() {
		if err := s.engine.Close(); err != nil {
			t.Errorf("close engine: %v", err)
		}
		if left := hostFiles(t, s.dir); len(left) > 0 {
			t.Errorf("closed engine left %v", left)
		}
	})
	// Whatever the engine keeps for itself is there from now on.
	if err := s.engine.Check(t.Context(), s.Image); err != nil {
		t.Fatalf("check: %v (hint: %s)", err, runtime.HintOf(err))
	}
	var times strings.Builder
	for _, group := range groups {
		if group.isolates && s.Unisolated {
			continue
		}
		begin := time.Now()
		ran := false // a -run may leave it out
		ok := t.Run(group.name, func(t *testing.T) {
			ran = true
			before := hostFiles(t, s.dir)
			t.Cleanup(func() { s.requireNothingLeft(t, before) }) // the last of the test's clean-ups
			group.run(t, s)
		})
		if ran {
			fmt.Fprintf(&times, " %s %.1f", group.name, time.Since(begin).Seconds())
		}
		if ok && ran {
			passed++
		}
	}
	t.Logf("seconds:%s", times.String())
	return passed
}

type suite struct {
	Options
	transport runtime.Transport
	engine    runtime.Engine
	dir       string
}

// Spec is a spec whose program is the suite's.
func Spec(image string, seccomp []byte, args ...string) runtime.Spec {
	return runtime.Spec{
		Image:   image,
		Command: append([]string{"python3", "-I", "-B", "-c", program, runtime.FilesDir}, args...),
		Files:   fstest.MapFS{"a/b.txt": {Data: []byte("nested")}},
		Seccomp: seccomp,
	}
}

// want is what the row's call should give on this engine.
func (s *suite) want(row, everywhere string) string {
	if other, ok := s.Instead[row]; ok {
		return other
	}
	return everywhere
}

func (s *suite) spec() runtime.Spec {
	spec := Spec(s.Image, s.Seccomp)
	spec.AllowUnlimited = s.Unlimited
	return spec
}

// start returns a sandbox that is closed with the test.
func (s *suite) start(t *testing.T, spec runtime.Spec) *Peer {
	t.Helper()
	sandbox, err := s.engine.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("start: %v (hint: %s)", err, runtime.HintOf(err))
	}
	p := NewPeer(sandbox)
	t.Cleanup(func() {
		if err := sandbox.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		s.requireGone(t, sandbox.ID())
	})
	return p
}

// fail starts a sandbox and returns the error there must be.
func (s *suite) fail(t *testing.T, spec runtime.Spec) error {
	t.Helper()
	sandbox, err := s.engine.Start(t.Context(), spec)
	if err == nil {
		sandbox.Close()
		t.Fatal("start succeeded, want an error")
	}
	return err
}

// requireGone fails if the sandbox's container or host files are there.
func (s *suite) requireGone(t *testing.T, id string) {
	t.Helper()
	if c := s.Containers(t, "io.mcp-bridge.sandbox", id); len(c) > 0 {
		t.Errorf("container %s is still there", id)
	}
	for _, f := range hostFiles(t, s.dir) {
		if filepath.Base(filepath.Dir(f)) == id || filepath.Base(f) == id {
			t.Errorf("host file %s is still there", f)
		}
	}
}

// requireNothingLeft fails if a container of this process, or a file on the host
// that was not there before, is there.
func (s *suite) requireNothingLeft(t *testing.T, before []string) {
	t.Helper()
	if c := s.Containers(t, "io.mcp-bridge.pid", strconv.Itoa(os.Getpid())); len(c) > 0 {
		t.Errorf("containers left: %v", c)
	}
	for _, f := range hostFiles(t, s.dir) {
		if !slices.Contains(before, f) {
			t.Errorf("host file left: %v", f)
		}
	}
}

// hostFiles returns everything below dir.
func hostFiles(t testing.TB, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != dir {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// shortTempDir is t.TempDir with a path short enough for a socket.
func shortTempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcpb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A Peer talks to the suite's program in a sandbox.
type Peer struct {
	runtime.Sandbox
	lines *bufio.Reader
}

// NewPeer returns the peer of a sandbox whose spec is [Spec]'s.
func NewPeer(s runtime.Sandbox) *Peer {
	return &Peer{Sandbox: s, lines: bufio.NewReader(s.Control())}
}

const answerTimeout = 60 * time.Second

// Try runs code in the sandbox and returns its result, or what it raised.
func (p *Peer) Try(code string) (result any, raised string, err error) {
	line, err := json.Marshal(code)
	if err != nil {
		return nil, "", err
	}
	p.Control().SetDeadline(time.Now().Add(answerTimeout))
	if _, err := p.Control().Write(append(line, '\n')); err != nil {
		return nil, "", err
	}
	answer, err := p.lines.ReadBytes('\n')
	if err != nil {
		return nil, "", err
	}
	var reply struct {
		Result any
		Error  string
	}
	err = json.Unmarshal(answer, &reply)
	return reply.Result, reply.Error, err
}

// Eval runs code that must not raise, and returns its result.
func (p *Peer) Eval(t testing.TB, code string) any {
	t.Helper()
	result, raised, err := p.Try(code)
	if err != nil {
		t.Fatalf("run %q: %v", code, err)
	}
	if raised != "" {
		t.Fatalf("run %q: raised %s", code, raised)
	}
	return result
}

// text is Eval for a string.
func (p *Peer) text(t testing.TB, code string) string {
	t.Helper()
	s, ok := p.Eval(t, code).(string)
	if !ok {
		t.Fatalf("run %q: result is not a string", code)
	}
	return s
}

// number is Eval for a number.
func (p *Peer) number(t testing.TB, code string) float64 {
	t.Helper()
	n, ok := p.Eval(t, code).(float64)
	if !ok {
		t.Fatalf("run %q: result is not a number", code)
	}
	return n
}

// list is Eval for a list of strings, which it sorts.
func (p *Peer) list(t testing.TB, code string) []string {
	t.Helper()
	items, ok := p.Eval(t, code).([]any)
	if !ok {
		t.Fatalf("run %q: result is not a list", code)
	}
	out := []string{}
	for _, item := range items {
		s, ok := item.(string)
		if !ok {
			t.Fatalf("run %q: %v is not a string", code, item)
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

// requireEOF fails unless r ends within a second or two.
func requireEOF(t testing.TB, r interface {
	io.Reader
	SetDeadline(time.Time) error
},
) {
	t.Helper()
	r.SetDeadline(time.Now().Add(5 * time.Second))
	if n, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("read: %d bytes, %v, want EOF", n, err)
	}
}

// within returns a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
