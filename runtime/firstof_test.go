package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A scripted engine fails in one way, or starts sandboxes that do nothing.
type scripted struct {
	name   string
	err    error // of Start, Check and Sweep
	swept  int
	delay  time.Duration
	starts atomic.Int32
	pulls  atomic.Int32
	closes atomic.Int32
}

func (e *scripted) Name() string                        { return e.name }
func (e *scripted) Check(context.Context, string) error { return e.err }
func (e *scripted) Sweep(context.Context) (int, error)  { return e.swept, e.err }

func (e *scripted) Close() error {
	e.closes.Add(1)
	return nil
}

func (e *scripted) Start(ctx context.Context, _ runtime.Spec) (runtime.Sandbox, error) {
	e.starts.Add(1)
	select {
	case <-time.After(e.delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if e.err != nil {
		return nil, e.err
	}
	return box{id: e.name}, nil
}

// A store is a scripted engine that keeps images.
type store struct{ scripted }

func (e *store) Pull(context.Context, string, func(runtime.PullProgress)) error {
	e.pulls.Add(1)
	return nil
}

type box struct {
	runtime.Sandbox

	id string
}

func (b box) ID() string { return b.id }

// failing is what an engine says of a condition.
func failing(engine string, sentinel error) error {
	return &runtime.Error{Engine: engine, Op: "start sandbox", Err: fmt.Errorf("%w: here", sentinel), Hint: "mend " + engine}
}

func TestFirstOf(t *testing.T) {
	other := errors.New("something else")
	for _, test := range []struct {
		name    string
		podman  error
		docker  error
		on      string // the engine that starts it, or ""
		wants   []error
		refused []string // engines that were passed over
	}{
		{"the first", nil, nil, "podman", nil, nil},
		{"not installed", runtime.ErrUnavailable, nil, "docker", nil, []string{"podman"}},
		{"no image", runtime.ErrImageMissing, nil, "docker", nil, []string{"podman"}},
		{"no limits", runtime.ErrUnsupported, nil, "docker", nil, []string{"podman"}},
		{"no Python", runtime.ErrNoProgram, nil, "docker", nil, []string{"podman"}},
		{"a failure of the program", runtime.ErrExited, nil, "", []error{runtime.ErrExited}, nil},
		{"an unknown failure", other, nil, "", []error{other}, nil},
		{"none", runtime.ErrUnavailable, runtime.ErrImageMissing, "", []error{runtime.ErrUnavailable, runtime.ErrImageMissing}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			podman, docker := &scripted{name: "podman"}, &scripted{name: "docker"}
			if test.podman != nil {
				podman.err = failing("podman", test.podman)
			}
			if test.docker != nil {
				docker.err = failing("docker", test.docker)
			}
			var refused []string
			told := 0
			f := runtime.NewFirstOf([]runtime.Engine{podman, docker}, func(e runtime.Engine, failed []*runtime.Error) {
				told++
				for _, failure := range failed {
					refused = append(refused, failure.Engine)
				}
				if e.Name() != test.on {
					t.Errorf("told of %s", e.Name())
				}
			})
			for range 2 {
				sandbox, err := f.Start(t.Context(), runtime.Spec{})
				if (err == nil) != (test.on != "") {
					t.Fatalf("Start: %v", err)
				}
				if err == nil && sandbox.ID() != test.on {
					t.Errorf("started on %s, want %s", sandbox.ID(), test.on)
				}
				for _, want := range test.wants {
					if !errors.Is(err, want) {
						t.Errorf("Start: %v, want %v", err, want)
					}
				}
				if check := f.Check(t.Context(), ""); (check == nil) != (err == nil) {
					t.Errorf("Check: %v, Start: %v", check, err)
				}
			}
			if !slices.Equal(refused, test.refused) {
				t.Errorf("told that %v were refused, want %v", refused, test.refused)
			}
			if test.on != "" && told != 1 {
				t.Errorf("told %d times", told)
			}
			// What was refused once is not asked again, and the good path asks one engine once.
			if test.on == "docker" && podman.starts.Load() != 1 || test.on == "podman" && docker.starts.Load() != 0 {
				t.Errorf("podman was asked %d times, docker %d times", podman.starts.Load(), docker.starts.Load())
			}
			if err := f.Close(); err != nil || podman.closes.Load() != 1 || docker.closes.Load() != 1 {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// TestFirstOfNone reads what an operator is told: every engine's reason, and
// the simplest way out, in a line each whatever the engines say.
func TestFirstOfNone(t *testing.T) {
	fails := func(engine string, sentinel error, why, hint string) *scripted {
		return &scripted{name: engine, err: &runtime.Error{Engine: engine, Op: "start sandbox", Err: fmt.Errorf("%w: %s", sentinel, why), Hint: hint}}
	}
	absent := fails("podman", runtime.ErrUnavailable, "podman is not installed", "apt-get install podman")
	unlimited := fails("gvisor", runtime.ErrUnsupported, "memory limit: this user cannot make control groups: "+strings.Repeat("ä", 5000), "be root; --allow-unlimited does without")
	for _, test := range []struct {
		name    string
		engines []*scripted
		text    string
		hint    string // the beginning
	}{
		{
			"limits",
			[]*scripted{absent, unlimited},
			"auto: start sandbox: no engine can run sandboxes here: podman: podman is not installed; gvisor: cannot limit memory, processes and processors here",
			"--allow-unlimited (MCP_BRIDGE_ALLOW_UNLIMITED=1) does without these limits; `mcp-bridge doctor` shows more",
		},
		{
			"image",
			[]*scripted{absent, fails("docker", runtime.ErrImageMissing, "x:1", "pull it")},
			"auto: start sandbox: no engine can run sandboxes here: podman: podman is not installed; docker: image missing: x:1",
			"docker: pull it; `mcp-bridge doctor` shows more",
		},
		{
			"nothing installed",
			[]*scripted{absent, fails("docker", runtime.ErrUnavailable, "no daemon", "start it"), fails("gvisor", runtime.ErrUnavailable, "no runsc", "get it")},
			"auto: start sandbox: no engine can run sandboxes here: podman: podman is not installed; docker: no daemon; gvisor: no runsc",
			"podman: apt-get install podman; or gvisor: get it; `mcp-bridge doctor` shows more",
		},
		{
			"much to say",
			[]*scripted{
				fails("podman", runtime.ErrUnavailable, strings.Repeat("words ", 1000)+"\nmore", strings.Repeat("hints ", 1000)),
				fails("docker", runtime.ErrUnavailable, strings.Repeat("ä", 5000), ""),
			},
			"auto: start sandbox: no engine can run sandboxes here: podman: " + strings.Repeat("words ", 16) + "…; docker: …",
			"podman: " + strings.Repeat("hints ", 40) + "…; `mcp-bridge doctor` shows more",
		},
		{
			"no hints",
			[]*scripted{fails("podman", runtime.ErrUnavailable, "a", ""), fails("docker", runtime.ErrNoProgram, "b", "")},
			"auto: start sandbox: no engine can run sandboxes here: podman: a; docker: program cannot run in the image: b", "`mcp-bridge doctor` shows more",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var engines []runtime.Engine
			for _, e := range test.engines {
				engines = append(engines, e)
			}
			_, err := runtime.NewFirstOf(engines, nil).Start(t.Context(), runtime.Spec{})
			if err.Error() != test.text {
				t.Errorf("error %q\nwant  %q", err, test.text)
			}
			hint := strings.TrimPrefix(runtime.HintOf(err), "run as root, or ") // for other users
			if hint != test.hint {
				t.Errorf("hint %q\nwant %q", hint, test.hint)
			}
			var none *runtime.NoneError
			if !errors.As(err, &none) || len(none.Failures) != len(engines) {
				t.Errorf("%v is not a NoneError of %d", err, len(engines))
			}
		})
	}
}

// TestFirstOfComesBack has no engine at first.
func TestFirstOfComesBack(t *testing.T) {
	podman, docker := &scripted{name: "podman"}, &scripted{name: "docker"}
	podman.err, docker.err = failing("podman", runtime.ErrUnavailable), failing("docker", runtime.ErrUnavailable)
	f := runtime.NewFirstOf([]runtime.Engine{podman, docker}, nil)
	if _, err := f.Start(t.Context(), runtime.Spec{}); err == nil {
		t.Fatal("started on nothing")
	}
	docker.err = nil
	if sandbox, err := f.Start(t.Context(), runtime.Spec{}); err != nil || sandbox.ID() != "docker" {
		t.Fatalf("Start: %v", err)
	}
	// It stays: sandboxes of one bridge do not wander between engines.
	podman.err, docker.err = nil, failing("docker", runtime.ErrUnavailable)
	if _, err := f.Start(t.Context(), runtime.Spec{}); !errors.Is(err, runtime.ErrUnavailable) {
		t.Errorf("Start: %v, want docker's error", err)
	}
}

// TestFirstOfAtOnce starts many sandboxes while none is chosen yet: one probes.
func TestFirstOfAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		podman := &scripted{name: "podman", err: failing("podman", runtime.ErrUnavailable), delay: time.Second}
		docker := &scripted{name: "docker", delay: time.Second}
		f := runtime.NewFirstOf([]runtime.Engine{podman, docker}, nil)
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if _, err := f.Start(t.Context(), runtime.Spec{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if _, err := f.Start(impatient, runtime.Spec{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Start: %v, want the deadline", err)
		}
		wg.Wait()
		if podman.starts.Load() != 1 || docker.starts.Load() != 20 {
			t.Errorf("podman was asked %d times, docker %d times", podman.starts.Load(), docker.starts.Load())
		}
	})
}

// TestFirstOfCancelled does not go on to another engine.
func TestFirstOfCancelled(t *testing.T) {
	podman := &scripted{name: "podman", delay: time.Hour}
	docker := &scripted{name: "docker"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := runtime.NewFirstOf([]runtime.Engine{podman, docker}, nil).Start(ctx, runtime.Spec{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start: %v", err)
	}
	if docker.starts.Load() != 0 {
		t.Error("docker was asked for a start that was given up")
	}
}

func TestFirstOfSweep(t *testing.T) {
	odd := errors.New("odd")
	absent := &scripted{name: "podman", err: failing("podman", runtime.ErrUnavailable)}
	fine, broken := &scripted{name: "docker", swept: 2}, &scripted{name: "gvisor", swept: 1, err: odd}
	if n, err := runtime.NewFirstOf([]runtime.Engine{absent, fine}, nil).Sweep(t.Context()); n != 2 || err != nil {
		t.Errorf("Sweep: %d, %v", n, err)
	}
	if n, err := runtime.NewFirstOf([]runtime.Engine{absent, broken, fine}, nil).Sweep(t.Context()); n != 3 || !errors.Is(err, odd) {
		t.Errorf("Sweep: %d, %v", n, err)
	}
}

// TestFirstOfPull pulls where nothing but the image was missing.
func TestFirstOfPull(t *testing.T) {
	absent := &store{scripted{name: "podman", err: failing("podman", runtime.ErrUnavailable)}}
	empty := &store{scripted{name: "docker", err: failing("docker", runtime.ErrImageMissing)}}
	f := runtime.NewFirstOf([]runtime.Engine{absent, empty}, nil)
	if err := f.Pull(t.Context(), "x", nil); err != nil || absent.pulls.Load() != 1 {
		t.Errorf("Pull before any Start: %v, %d pulls", err, absent.pulls.Load())
	}
	if _, err := f.Start(t.Context(), runtime.Spec{}); !errors.Is(err, runtime.ErrImageMissing) {
		t.Errorf("Start: %v", err)
	}
	if err := f.Pull(t.Context(), "x", nil); err != nil || empty.pulls.Load() != 1 {
		t.Errorf("Pull: %v, %d pulls on docker", err, empty.pulls.Load())
	}
	empty.err = nil
	if sandbox, err := f.Start(t.Context(), runtime.Spec{}); err != nil || sandbox.ID() != "docker" {
		t.Errorf("Start after the pull: %v", err)
	}
	if err := runtime.NewFirstOf([]runtime.Engine{&scripted{name: "gvisor"}}, nil).Pull(t.Context(), "x", nil); err == nil {
		t.Error("pulled on an engine that keeps no images")
	}
}
