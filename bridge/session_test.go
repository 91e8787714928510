package bridge_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

func TestRun(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "print hello\n", "hello")
		runs(t, b, "print \n\nhello\n\n", "\n\nhello\n")
		runs(t, b, "value 5", "5")
		runs(t, b, "pass", "(no output)")
		fails(t, b, "raise boom", "Traceback: boom")
		fails(t, b, "timeout", "KeyboardInterrupt", "Timed out", "Variables are kept")
		if all, _ := e.started(); all != 1 {
			t.Errorf("%d sandboxes were started", all)
		}
	})
}

func TestCellsOfASessionTakeTurns(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "pass", "(no output)")
		begin := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { runs(t, b, "sleep 1s", "asleep\nslept") })
		}
		wg.Wait()
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("five cells of 1s took %v", took)
		}
	})
}

func TestSessionsRunBesideEachOther(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		begin := time.Now()
		var wg sync.WaitGroup
		for _, name := range []string{"", "a", "b"} {
			wg.Go(func() { b.Run(t.Context(), bridge.Request{Code: "sleep 1s", Session: name}) })
		}
		wg.Wait()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("three sessions took %v", took)
		}
		if all, _ := e.started(); all != 3 {
			t.Errorf("%d sandboxes were started", all)
		}
	})
}

func TestWaitingIsBounded(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{MaxWaiting: 2}, func(t *testing.T, b *bridge.Bridge) {
		var wg sync.WaitGroup
		for range 3 { // one runs, two wait
			wg.Go(func() { runs(t, b, "sleep 1s", "asleep\nslept") })
		}
		synctest.Wait()
		fails(t, b, "pass", "busy", "2 calls wait")
		wg.Wait()
		runs(t, b, "pass", "(no output)")
	})
}

func TestCancelWhileWaiting(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		var wg sync.WaitGroup
		wg.Go(func() { runs(t, b, "sleep 1s", "asleep\nslept") })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r := b.Run(ctx, bridge.Request{Code: "print never"})
		contains(t, r, "cancelled while waiting")
		wg.Wait()
		runs(t, b, "value 1", "1")
	})
}

func TestCancelInterrupts(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := b.Run(ctx, bridge.Request{Code: "sleep 20s"})
		contains(t, r, "asleep", "KeyboardInterrupt", "the client cancelled the call. Variables are kept.")
		if !r.IsError {
			t.Error("is no error")
		}
		runs(t, b, "value 1", "1")
	})
}

func TestYield(t *testing.T) {
	opts := bridge.Options{Yield: 2 * time.Second}
	inBubble(t, &engine{}, opts, func(t *testing.T, b *bridge.Bridge) {
		r := run(t, b, "sleep 5s")
		contains(t, r, "asleep\n[cell 1 is still running, for 2 s now of at most 30 s", "empty `code`", "`session.interrupt()`")
		if r.IsError {
			t.Error("a cell that still runs is an error")
		}
		r = run(t, b, "")
		if strings.Contains(r.Text, "asleep") {
			t.Errorf("output was shown twice: %q", r.Text)
		}
		contains(t, r, "still running")
		runs(t, b, "", "slept")
		fails(t, b, "", "nothing is running")
	})
}

// What a cell that yielded had to say is told when it is asked for, even if the
// cell has ended meanwhile.
func TestYieldThenEnd(t *testing.T) {
	opts := bridge.Options{Yield: 2 * time.Second}
	inBubble(t, &engine{}, opts, func(t *testing.T, b *bridge.Bridge) {
		contains(t, run(t, b, "sleep 5s"), "still running")
		time.Sleep(time.Minute)
		runs(t, b, "", "slept")
		fails(t, b, "", "nothing is running")
	})
}

// A mark of an image comes before its image does: that is said.
func TestYieldWithImages(t *testing.T) {
	opts := bridge.Options{Yield: 2 * time.Second}
	inBubble(t, &engine{}, opts, func(t *testing.T, b *bridge.Bridge) {
		contains(t, run(t, b, "draw [image 1]"), "[image 1]\n[cell 1 is still running", "[its images come when it has ended]")
	})
}

// What had nothing to say takes one line.
func TestYieldThenEndWithoutOutput(t *testing.T) {
	opts := bridge.Options{Yield: 2 * time.Second}
	inBubble(t, &engine{}, opts, func(t *testing.T, b *bridge.Bridge) {
		contains(t, run(t, b, "draw "), "still running")
		runs(t, b, "value 2", "[cell 1, which was still running, has ended]\n2")
	})
}

// A person reads notes apart, and has no next call.
func TestNotesApart(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{NotesApart: true}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "pass", "")
		fails(t, b, "timeout", "KeyboardInterrupt", "Timed out")
		r := run(t, b, "exit a note")
		if want := []string{"[a note]", "Note: a hint"}; r.Text != "The cell ended with sys.exit(7)." || !slices.Equal(r.Notes, want) {
			t.Errorf("%q, notes %q", r.Text, r.Notes)
		}
		if r := run(t, b, "timeout"); strings.Contains(r.Text, "Variables") || len(r.Notes) > 0 {
			t.Errorf("%q, notes %q", r.Text, r.Notes)
		}
	})
}

// If the next call is another cell, it is told along with that.
func TestYieldThenEndThenAnotherCell(t *testing.T) {
	opts := bridge.Options{Yield: 2 * time.Second}
	inBubble(t, &engine{}, opts, func(t *testing.T, b *bridge.Bridge) {
		contains(t, run(t, b, "sleep 3s"), "still running")
		runs(t, b, "value 2", "[cell 1, which was still running, has ended:]\nslept\n[end of cell 1]\n2")
		runs(t, b, "value 3", "3")
	})
}

func TestYieldAtTheVeryEnd(t *testing.T) {
	opts := bridge.Options{Yield: 2 * time.Second}
	inBubble(t, &engine{}, opts, func(t *testing.T, b *bridge.Bridge) {
		for range 50 { // both timers are due at once
			r := run(t, b, "sleep 2s")
			if strings.Contains(r.Text, "still running") {
				r = run(t, b, "")
			}
			contains(t, r, "slept")
		}
	})
}

func TestWaitersShareACell(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{Yield: 2 * time.Second}, func(t *testing.T, b *bridge.Bridge) {
		contains(t, run(t, b, "sleep 3s"), "still running")
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { runs(t, b, "", "slept") })
		}
		wg.Wait()
		fails(t, b, "", "nothing is running")
	})
}

func TestCancelledWaiterDoesNotInterrupt(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{Yield: 2 * time.Second}, func(t *testing.T, b *bridge.Bridge) {
		contains(t, run(t, b, "sleep 5s"), "still running")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		contains(t, b.Run(ctx, bridge.Request{}), "still running")
		time.Sleep(10 * time.Second)
		runs(t, b, "", "slept")
	})
}

func TestLateOutput(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "then later output "+strings.Repeat("é", 100_000), "(no output)")
		time.Sleep(2 * time.Second)
		r := run(t, b, "value 1")
		contains(t, r, "[printed after cell 1 had ended:]\né", "the whole is in out[1]", "more bytes", "[end]\n1")
		if len(r.Text) > 5000 || strings.ContainsRune(r.Text, '\uFFFD') {
			t.Errorf("late output of %d bytes, or cut within a character", len(r.Text))
		}
		runs(t, b, "value 2", "2")
	})
}

func TestOutIsKeptAndBounded(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{OutputLimit: 60}, func(t *testing.T, b *bridge.Bridge) {
		long := strings.Repeat("ü", 1000)
		r := run(t, b, "print "+long)
		contains(t, r, "940 of 1,000 characters cut; the whole is in out[1]")
		if len([]rune(r.Text)) > 200 || strings.ContainsRune(r.Text, '\uFFFD') {
			t.Errorf("shown: %q", r.Text)
		}
		runs(t, b, `call output/read {"cell":2}`, `{"text":""}`)
		contains(t, run(t, b, `call output/read {"cell":9}`), "error: there is no cell 9; the latest is 3")
		contains(t, run(t, b, `call output/read {"cell":"1"}`), "error: out[n] takes the number of a cell")
		contains(t, run(t, b, `call nonsense {}`), "error: unknown method")
	})
	inBubble(t, &engine{}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		run(t, b, "print abc")
		runs(t, b, `call output/read {"cell":1}`, `{"text":"abc"}`)
	})
}

func TestLost(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		for range 3 {
			fails(t, b, "lose it exited with status 3", "the Python process ended: it exited with status 3", "variables are gone")
			runs(t, b, `call servers/list {}`, `{"servers":[]}`)
		}
		if all, _ := e.started(); all != 1 {
			t.Errorf("%d sandboxes were started", all)
		}
	})
}

func TestLostWhileIdle(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "then later lost it was killed", "(no output)")
		time.Sleep(2 * time.Second)
		r := run(t, b, "value 1")
		contains(t, r, "Note: the Python process ended since the last cell: it was killed.", "All variables are gone", "\n1")
		runs(t, b, "value 2", "2")
	})
}

// The REPL may be gone right after the end of a cell, before anybody has looked.
func TestLostRightAfterACell(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		for range 100 {
			first := run(t, b, "then lost it was killed")
			second := run(t, b, "value 1")
			if n := strings.Count(first.Text+second.Text, "the Python process ended"); n == 0 {
				t.Errorf("told %q, then %q", first.Text, second.Text)
				break
			}
		}
	})
}

func TestCancelledAndLostIsTold(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "pass", "(no output)")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.Run(ctx, bridge.Request{Code: "lose it ignored the interrupt"})
		contains(t, run(t, b, "value 1"), "Note: the Python process ended since the last cell: it ignored the interrupt")
		runs(t, b, "value 2", "2")
	})
}

func TestDeath(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		fails(t, b, "die", "Error: the sandbox ended. All variables and files are gone; the next call starts a new sandbox.")
		runs(t, b, "value 1", "1")
		runs(t, b, "then later die", "(no output)")
		time.Sleep(2 * time.Second)
		contains(t, run(t, b, "value 2"), "Note: the sandbox was replaced: the sandbox ended. All variables and files are gone.\n2")
		runs(t, b, "value 3", "3")
		if all, open := e.started(); all != 3 || open != 1 {
			t.Errorf("%d sandboxes were started, %d are open", all, open)
		}
	})
}

// A supervisor that does not do its duty is killed in time.
func TestOverdue(t *testing.T) {
	opts := bridge.Options{Timeout: time.Second, Grace: time.Second, Yield: time.Hour}
	inBubble(t, &engine{}, opts, func(t *testing.T, b *bridge.Bridge) {
		begin := time.Now()
		fails(t, b, "deaf", "did not answer when the cell's time was up", "new sandbox")
		if took := time.Since(begin); took < 2*time.Second || took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		runs(t, b, "value 1", "1")
	})
}

func TestCloseWhileACellRuns(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		var wg sync.WaitGroup
		for _, code := range []string{"sleep 20s", "value waits"} {
			wg.Go(func() { fails(t, b, code, "shutting down") })
			synctest.Wait()
		}
		begin := time.Now()
		b.Close()
		b.Close()
		wg.Wait()
		if took := time.Since(begin); took != 0 {
			t.Errorf("Close took %v", took)
		}
		fails(t, b, "pass", "shutting down")
	})
}

func TestCloseWhileAKernelStarts(t *testing.T) {
	for name, e := range map[string]*engine{
		"engine": {start: func(ctx context.Context, _ runtime.Spec) error {
			<-ctx.Done()
			return fmt.Errorf("start: %w", ctx.Err())
		}},
		"silent kernel": {script: func(k *kernel) { _, _ = k.receive() }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
				var wg sync.WaitGroup
				wg.Go(func() { fails(t, b, "pass") })
				synctest.Wait()
				begin := time.Now()
				b.Close()
				wg.Wait()
				if took := time.Since(begin); took != 0 {
					t.Errorf("Close took %v", took)
				}
			})
		})
	}
}

func TestCancelWhileAKernelStarts(t *testing.T) {
	e := &engine{script: func(k *kernel) { _, _ = k.receive() }}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if r := b.Run(ctx, bridge.Request{Code: "pass"}); !r.IsError {
			t.Errorf("got %q", r.Text)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestEngineErrors(t *testing.T) {
	const secret = "/run/user/1000/podman/podman.sock"
	tests := []struct {
		err  error
		want string
	}{
		{
			&runtime.Error{Engine: "podman", Op: "start sandbox", Err: fmt.Errorf("dial %s: %w", secret, runtime.ErrUnavailable), Hint: "run podman info"},
			"The sandbox cannot be started (podman): container engine unavailable. To mend it on the host: run podman info",
		},
		{
			fmt.Errorf("wrapped: %w", &runtime.Error{Engine: "podman", Err: fmt.Errorf("%s: %w", secret, runtime.ErrImageMissing), Hint: "run make image"}),
			"The sandbox cannot be started (podman): image missing. To mend it on the host: run make image",
		},
		{
			&runtime.Error{Engine: "podman", Err: errors.New("read " + secret)},
			"The sandbox cannot be started (podman)",
		},
		{
			&runtime.Error{Engine: "auto", Hint: "podman: install it; or docker: run make image", Err: &runtime.NoneError{Failures: []*runtime.Error{
				{Engine: "podman", Err: fmt.Errorf("dial %s: %w", secret, runtime.ErrUnavailable)},
				{Engine: "docker", Err: fmt.Errorf("%s: %w", secret, runtime.ErrImageMissing)},
			}}},
			"The sandbox cannot be started (podman: container engine unavailable; docker: image missing). " +
				"To mend it on the host: podman: install it; or docker: run make image",
		},
	}
	for _, test := range tests {
		e := &engine{start: func(context.Context, runtime.Spec) error { return test.err }}
		inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
			r := run(t, b, "pass")
			if r.Text != test.want || !r.IsError || !errors.Is(r.Err, test.err) {
				t.Errorf("got %q (%v), want %q", r.Text, r.Err, test.want)
			}
		})
	}
}

func TestEngineThatRecovers(t *testing.T) {
	broken := true
	e := &engine{start: func(context.Context, runtime.Spec) error {
		if broken {
			return &runtime.Error{Engine: "fake", Err: runtime.ErrUnavailable}
		}
		return nil
	}}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		fails(t, b, "pass", "unavailable")
		broken = false
		runs(t, b, "value 1", "1")
	})
}

// A running cell is stopped by a call that queues behind nothing.
func TestInterruptCode(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{Yield: 2 * time.Second}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "session.interrupt()", "Nothing is running in this session.")
		contains(t, run(t, b, "sleep 20s"), "still running")
		var wg sync.WaitGroup
		wg.Go(func() { runs(t, b, "value queued", "queued") })
		synctest.Wait()
		fails(t, b, " session.interrupt()\n", "KeyboardInterrupt\nInterrupted by session.interrupt(). Variables are kept.")
		wg.Wait()
		runs(t, b, "session.interrupt()", "Nothing is running in this session.")
		r := b.Run(t.Context(), bridge.Request{Code: "session.interrupt()", Session: "other"})
		contains(t, r, "Nothing is running")
	})
}

// One that comes while a lost REPL is replaced, before the kernel has the cell, is not forgotten.
func TestInterruptBeforeTheKernelHasTheCell(t *testing.T) {
	e := &engine{script: func(k *kernel) {
		k.hello()
		c, _ := k.nextCell()
		k.lose("gone")
		go k.answer(c, object{"lost": "gone"}, nil) // the host is writing, too
		m, _ := k.receive()                         // resync
		var params struct{ Marker string }
		_ = json.Unmarshal(m.Params, &params)
		marker, _ := hex.DecodeString(params.Marker)
		time.Sleep(5 * time.Second)
		go func() { _, _ = k.raw.Write(marker) }()
		k.loop()
	}}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		fails(t, b, "pass", "gone")
		var wg sync.WaitGroup
		wg.Go(func() { fails(t, b, "sleep 20s", "Interrupted by session.interrupt()") })
		synctest.Wait()
		fails(t, b, "session.interrupt()", "Interrupted by session.interrupt()")
		wg.Wait()
	})
}

// What a call waits for before its cell starts is in its own time, not in the cell's.
func TestBudgetIsTheCellsOwn(t *testing.T) {
	const slow = 20 * time.Second
	timeouts := make(chan float64, 10)
	script := func(k *kernel) {
		k.hello()
		for {
			c, ok := k.nextCell()
			if !ok {
				return
			}
			timeouts <- c.Timeout
			time.Sleep(time.Duration(c.Timeout*float64(time.Second)) - time.Millisecond)
			k.answer(c, nil, object{"value": object{"text": "in time"}})
		}
	}
	start := func(ctx context.Context, _ runtime.Spec) error {
		time.Sleep(slow)
		return ctx.Err()
	}
	e := &engine{script: script, start: start}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		for range 2 { // the second waits for the first, too
			r := b.Run(t.Context(), bridge.Request{Code: "pass", Timeout: 10 * time.Second})
			contains(t, r, "in time")
		}
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				contains(t, b.Run(t.Context(), bridge.Request{Code: "pass", Timeout: 10 * time.Second}), "in time")
			})
		}
		wg.Wait()
		for range 5 {
			if got := <-timeouts; got != 10 {
				t.Errorf("the cell was given %v s", got)
			}
		}
	})
	r := newRegistry(inPieces(30)) // half a minute of getting the image
	r.script = script
	withRegistry(t, r, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		contains(t, b.Run(t.Context(), bridge.Request{Code: "pass", Timeout: 5 * time.Second}), "in time")
		if got := <-timeouts; got != 5 {
			t.Errorf("the cell was given %v s", got)
		}
	})
}

// No call takes much longer than the yield time, whatever it waits for.
func TestQueueIsLeftAfterTheYieldTime(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{Yield: 10 * time.Second}, func(t *testing.T, b *bridge.Bridge) {
		contains(t, run(t, b, "sleep 25s"), "still running")
		begin := time.Now()
		fails(t, b, "print never", "cell 1 is still running, for 20 s now of at most 30 s", "was not run", "session.interrupt()", "empty `code`")
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		contains(t, run(t, b, "sleep 25s"), "[cell 1, which was still running, has ended:]\nslept\n", "cell 2 is still running")
		if took := time.Since(begin); took != 20*time.Second {
			t.Errorf("both took %v", took)
		}
	})
}

func TestTimeoutTexts(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		fails(t, b, "timeout", "interrupted after 30 s. Pass a larger `timeout` (120 at most)")
		for _, timeout := range []time.Duration{120 * time.Second, time.Hour} {
			r := b.Run(t.Context(), bridge.Request{Code: "timeout", Timeout: timeout})
			contains(t, r, "interrupted after 120 s, the most one may take")
		}
	})
}

// TestSandboxThatEndsAsACellIsSent has it read the beginning of a cell only, so
// that nothing of the cell can have run.
func TestSandboxThatEndsAsACellIsSent(t *testing.T) {
	for name, test := range map[string]struct {
		cells int // that it runs before
		want  string
	}{
		"the first":  {0, "7"},
		"the second": {1, "Note: the sandbox was replaced: the sandbox ended. All variables and files are gone.\n7"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{}
			e.script = func(k *kernel) {
				if all, _ := e.started(); all > 1 {
					k.serve()
					return
				}
				k.hello()
				for range test.cells {
					c, ok := k.nextCell()
					if !ok {
						return
					}
					k.answer(c, nil, object{})
				}
				_, _ = k.below.Read(make([]byte, 1))
			}
			inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
				for range test.cells {
					runs(t, b, "pass", "(no output)")
				}
				runs(t, b, "value 7", test.want)
				if all, _ := e.started(); all != 2 {
					t.Errorf("%d sandboxes were started", all)
				}
			})
		})
	}
}
