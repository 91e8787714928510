package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

const missingImage = "localhost/mcp-bridge-no-such-image:none"

// testExitCode has the program end in ways that engines use for their own ends:
// 125 to 127 are what command lines say when a container did not start.
func testExitCode(t *testing.T, s *suite) {
	for _, code := range []int{0, 1, 7, 125, 126, 127, 255} {
		p := s.start(t, s.spec())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("wait with cancelled context: %v", err)
		}
		p.Try(fmt.Sprintf("import os; os._exit(%d)", code))
		exit, err := p.Wait(within(t, 10*time.Second))
		if want := (runtime.Exit{Code: code}); err != nil || exit != want {
			t.Errorf("exit is %+v, %v, want %+v", exit, err, want)
		}
		requireEOF(t, p.Control())
		requireEOF(t, p.Callback())
	}
}

func testKilledFromOutside(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	p.Eval(t, "pass")
	s.Kill(t, p.ID())
	requireEOF(t, p.Control())
	requireEOF(t, p.Callback())
	exit, err := p.Wait(within(t, 10*time.Second))
	if want := (runtime.Exit{Code: 137}); err != nil || exit != want {
		t.Errorf("exit is %+v, %v, want %+v", exit, err, want)
	}
}

func testClose(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	ended := make(chan error, 2)
	for _, r := range []io.Reader{p.Control(), p.Callback()} {
		go func() {
			_, err := r.Read(make([]byte, 1))
			ended <- err
		}()
	}
	var closers sync.WaitGroup
	for range 8 {
		closers.Go(func() {
			if err := p.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			s.requireGone(t, p.ID()) // whichever call returns first
		})
	}
	closers.Wait()
	for range 2 {
		select {
		case err := <-ended:
			if err == nil {
				t.Error("read returned data")
			}
		case <-time.After(5 * time.Second):
			t.Fatal("close did not unblock a reader")
		}
	}
	if err := p.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
	if _, err := p.Wait(within(t, time.Second)); err != nil {
		t.Errorf("wait after close: %v", err)
	}
}

func testBadSpec(t *testing.T, s *suite) {
	for name, spoil := range map[string]func(*runtime.Spec){
		"no command":    func(spec *runtime.Spec) { spec.Command = nil },
		"no seccomp":    func(spec *runtime.Spec) { spec.Seccomp = nil },
		"bad seccomp":   func(spec *runtime.Spec) { spec.Seccomp = []byte("{") },
		"bad variable":  func(spec *runtime.Spec) { spec.Env = []string{"A"} },
		"same variable": func(spec *runtime.Spec) { spec.Env = []string{"A=1", "A=2"} },
		"no memory":     func(spec *runtime.Spec) { spec.Limits.MemoryBytes = 1 },
		"negative PIDs": func(spec *runtime.Spec) { spec.Limits.PIDs = -1 },
		"negative CPUs": func(spec *runtime.Spec) { spec.Limits.CPUs = -1 },
		"symlink": func(spec *runtime.Spec) {
			spec.Files = fstest.MapFS{"x": {Data: []byte("/etc/shadow"), Mode: 0o777 | 1<<27}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := s.spec()
			spoil(&spec)
			t.Log(s.fail(t, spec))
		})
	}
}

func testMissingImage(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Image = missingImage
	requireError(t, s.fail(t, spec), runtime.ErrImageMissing)
}

func testMissingProgram(t *testing.T, s *suite) {
	for _, command := range []string{"no-such-program", "/no/such/program", "/etc/passwd"} {
		spec := s.spec()
		spec.Command = []string{command}
		requireError(t, s.fail(t, spec), runtime.ErrNoProgram)
	}
}

// requireError fails unless err is the sentinel and has a hint.
func requireError(t *testing.T, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) || runtime.HintOf(err) == "" {
		t.Errorf("error %q (hint %q), want one that is %q with a hint", err, runtime.HintOf(err), sentinel)
	}
}

func testExitsAtOnce(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Command = []string{"python3", "-I", "-c", `import sys
sys.stderr.write("x" * 100_000 + "\x1b[31mlast words\u202e\n")
sys.exit(3)`}
	var text string
	for range 5 { // dockerd 20.10 may end the streams of a program that ends at once without what it said
		err := s.fail(t, spec)
		if !errors.Is(err, runtime.ErrExited) || !strings.Contains(err.Error(), "code 3") {
			t.Errorf("error %v, want ErrExited with code 3", err)
		}
		if text = err.Error(); strings.Contains(text, "last words") {
			break
		}
	}
	if !strings.Contains(text, "last words") {
		t.Errorf("error lacks the last words: %q", text)
	}
	if len(text) > 8<<10 || strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("error is not bounded and clean: %d bytes, %q…", len(text), text[:200])
	}
	for _, code := range []int{0, 125, 126, 127} {
		spec.Command = []string{"python3", "-I", "-c", fmt.Sprintf("raise SystemExit(%d)", code)}
		err := s.fail(t, spec)
		if !errors.Is(err, runtime.ErrExited) || errors.Is(err, runtime.ErrNoProgram) || !strings.Contains(err.Error(), fmt.Sprintf("code %d", code)) {
			t.Errorf("program that exits with %d: %v", code, err)
		}
	}
}

func testNeverConnects(t *testing.T, s *suite) {
	programs := map[string]string{
		"never": "import time; time.sleep(60)",
		"once":  "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[-1].removeprefix('socket:')); time.sleep(60)",
		"by a child": `import os, socket, sys, time
if os.fork() == 0:
    for _ in range(2):
        s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[-1].removeprefix('socket:'))
time.sleep(60)`,
	}
	if s.transport != runtime.TransportSocket {
		programs = map[string]string{
			"never": "import time; time.sleep(60)",
			"half":  "import os, time; os.write(int(__import__('sys').argv[-1][3]) if 'fd:' in __import__('sys').argv[-1] else 1, b'\\0\\0'); time.sleep(60)",
		}
	}
	for name, code := range programs {
		t.Run(name, func(t *testing.T) {
			spec := s.spec()
			spec.Command = []string{"python3", "-I", "-c", code}
			spec.ConnectTimeout = time.Second
			begin := time.Now()
			err := s.fail(t, spec)
			if !strings.Contains(err.Error(), "did not connect") {
				t.Errorf("error %v, want that the program did not connect", err)
			}
			if d := time.Since(begin); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func testCancelled(t *testing.T, s *suite) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.engine.Start(ctx, s.spec()); !errors.Is(err, context.Canceled) {
		t.Errorf("start with cancelled context: %v", err)
	}
	begin := time.Now()
	sandbox, err := s.engine.Start(t.Context(), s.spec())
	whole := time.Since(begin)
	if err != nil {
		t.Fatal(err)
	}
	sandbox.Close()
	started := 0
	for range 20 { // at any time of it
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(whole+whole/8))
		sandbox, err := s.engine.Start(ctx, s.spec())
		cancel()
		switch {
		case err == nil:
			started++
			sandbox.Close()
		case !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("cancelled: %v", err)
		}
	}
	t.Logf("%d of the starts were done before they were cancelled", started)
}

func testFiftyAtOnce(t *testing.T, s *suite) {
	const n = 50
	peers := make([]*Peer, n)
	spec := s.spec()
	spec.ConnectTimeout = answerTimeout // the machine is busy
	var starts sync.WaitGroup
	begin := time.Now()
	for i := range n {
		starts.Go(func() {
			sandbox, err := s.engine.Start(t.Context(), spec)
			if err != nil {
				t.Errorf("start: %v", err)
				return
			}
			peers[i] = NewPeer(sandbox)
		})
	}
	starts.Wait()
	t.Logf("%d sandboxes in %v", n, time.Since(begin).Round(time.Millisecond))
	begin = time.Now()
	var ends sync.WaitGroup
	for i, p := range peers {
		if p == nil {
			continue
		}
		ends.Go(func() {
			result, raised, err := p.Try(fmt.Sprintf("open('mine', 'x').write(str(%d)); result = open('mine').read()", i))
			if result != fmt.Sprint(i) || err != nil {
				t.Errorf("sandbox %d: %v %s %v", i, result, raised, err)
			}
			if err := p.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	ends.Wait()
	t.Logf("used and closed in %v", time.Since(begin).Round(time.Millisecond))
}

// testSweep surrounds the sandboxes of a dead owner with containers that must
// stay.
func testSweep(t *testing.T, s *suite) {
	self, err := local.Self()
	if err != nil {
		t.Fatal(err)
	}
	dead, rebooted := self, self
	dead.PID, dead.Start = deadPID(t), self.Start+1
	rebooted.Boot = "00000000-0000-0000-0000-000000000000"
	reused, alive, stranger, elsewhere := self, self, dead, dead
	reused.Start++ // our pid had another process before
	stranger.UID++
	elsewhere.PIDNS++
	without := func(label string) map[string]string {
		labels := dead.Labels()
		delete(labels, label)
		return labels
	}
	padded := dead.Labels()
	padded[local.LabelPID] = "0" + padded[local.LabelPID]
	prefix := "mcpb-sweep-" + fmt.Sprint(self.PID) + "-"
	for _, c := range []struct {
		name   string
		labels map[string]string
		gone   bool
	}{
		{"dead", dead.Labels(), true},
		{"reused", reused.Labels(), true},
		{"rebooted", rebooted.Labels(), true},
		{"alive", alive.Labels(), false},
		{"stranger", stranger.Labels(), false},
		{"elsewhere", elsewhere.Labels(), false},
		{"unlabelled", nil, false},
		{"no-boot", without(local.LabelBoot), false},
		{"no-pid", without(local.LabelPID), false},
		{"no-start", without(local.LabelStart), false},
		{"no-owner", without(local.LabelOwner), false},
		{"padded", padded, false},
	} {
		labels := map[string]string{"mcpb-sweep-test": prefix + c.name}
		maps.Copy(labels, c.labels)
		s.Create(t, prefix+c.name, labels)
		t.Cleanup(func() { s.Remove(t, prefix+c.name) })
		t.Cleanup(func() {
			left := len(s.Containers(t, "mcpb-sweep-test", prefix+c.name)) > 0
			if left == c.gone {
				t.Errorf("container %q: left %v, want %v", c.name, left, !c.gone)
			}
		})
	}
	live := s.start(t, s.spec())
	removed, err := s.engine.Sweep(t.Context())
	if err != nil {
		t.Errorf("sweep: %v", err)
	}
	// Every bridge that starts on this machine sweeps, too, and may have been
	// faster.
	for try := 0; removed == 0 && try < 5; try++ {
		name := prefix + "again-" + strconv.Itoa(try)
		s.Create(t, name, dead.Labels())
		t.Cleanup(func() { s.Remove(t, name) })
		if removed, err = s.engine.Sweep(t.Context()); err != nil {
			t.Errorf("sweep: %v", err)
		}
	}
	if removed == 0 {
		t.Error("sweep says it removed nothing, time and again")
	}
	live.Eval(t, "pass")
}

// deadPID returns the id of a process that is no more.
func deadPID(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func testClosedEngine(t *testing.T, s *suite) {
	engine := s.Open(t, s.dir, s.transport)
	for range 2 {
		if err := engine.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := engine.Start(t.Context(), s.spec()); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("start after close: %v, want ErrClosed", err)
	}
	if err := engine.Check(t.Context(), s.Image); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("check after close: %v, want ErrClosed", err)
	}
}
