package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n"

// serving has the bridge serve a client, which is there when it says hello.
func serving(t *testing.T, b *bridge.Bridge) (hello, hangUp func()) {
	t.Helper()
	in, client := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- b.Serve(t.Context(), in, io.Discard) }()
	hello = func() {
		if _, err := io.WriteString(client, greeting); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	}
	return hello, func() {
		_ = client.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	}
}

// inWarmBubble is inBubble with a client that has just said hello.
func inWarmBubble(t *testing.T, e *engine, opts bridge.Options, test func(t *testing.T, b *bridge.Bridge)) {
	t.Helper()
	if opts.Warm == 0 {
		opts.Warm = 1
	}
	inBubble(t, e, opts, func(t *testing.T, b *bridge.Bridge) {
		hello, hangUp := serving(t, b)
		hello()
		test(t, b)
		hangUp()
	})
}

// slowly has every sandbox take so long to start.
func slowly(d time.Duration) func(context.Context, runtime.Spec) error {
	return func(ctx context.Context, _ runtime.Spec) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wantStarted compares how many sandboxes there have been, and are.
func wantStarted(t *testing.T, e *engine, all, open int) {
	t.Helper()
	synctest.Wait()
	if gotAll, gotOpen := e.started(); gotAll != all || gotOpen != open {
		t.Errorf("%d sandboxes were started and %d are open, want %d and %d", gotAll, gotOpen, all, open)
	}
}

// took checks how long f takes.
func took(t *testing.T, want time.Duration, f func()) {
	t.Helper()
	begin := time.Now()
	f()
	if got := time.Since(begin); got != want {
		t.Errorf("it took %v, want %v", got, want)
	}
}

func inSession(t *testing.T, b *bridge.Bridge, session, code string) bridge.Result {
	t.Helper()
	return b.Run(t.Context(), bridge.Request{Session: session, Code: code})
}

func TestSpareIsStartedForAClient(t *testing.T) {
	e := &engine{start: slowly(time.Second)}
	inBubble(t, e, bridge.Options{Warm: 1}, func(t *testing.T, b *bridge.Bridge) {
		hello, hangUp := serving(t, b)
		time.Sleep(time.Minute)
		wantStarted(t, e, 0, 0) // nobody is there
		hello()
		time.Sleep(time.Second)
		wantStarted(t, e, 1, 1)
		took(t, 0, func() { runs(t, b, "value 1", "1") })
		time.Sleep(time.Second)
		wantStarted(t, e, 2, 2) // the pool is full again
		took(t, 0, func() { runs(t, b, "value 2", "2") })
		took(t, 0, func() { contains(t, inSession(t, b, "other", "value 3"), "3") })
		took(t, time.Second, func() { contains(t, inSession(t, b, "third", "value 4"), "4") })
		hangUp()
	})
}

func TestNoSpares(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		hello, hangUp := serving(t, b)
		hello()
		time.Sleep(time.Hour)
		wantStarted(t, e, 0, 0)
		runs(t, b, "value 1", "1")
		wantStarted(t, e, 1, 1)
		hangUp()
	})
}

func TestSeveralSpares(t *testing.T) {
	e := &engine{start: slowly(time.Second)}
	inWarmBubble(t, e, bridge.Options{Warm: 3}, func(t *testing.T, b *bridge.Bridge) {
		time.Sleep(time.Minute)
		wantStarted(t, e, 3, 3)
		took(t, 0, func() {
			for i := range 3 {
				contains(t, inSession(t, b, fmt.Sprint("s", i), "value 1"), "1")
			}
		})
		time.Sleep(time.Minute)
		wantStarted(t, e, 6, 6)
	})
}

// A call that comes while the spare is on its way takes that one.
func TestSpareOnItsWay(t *testing.T) {
	e := &engine{start: slowly(time.Second)}
	inWarmBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		time.Sleep(700 * time.Millisecond)
		took(t, 300*time.Millisecond, func() { runs(t, b, "value 1", "1") })
		if e.attempts() > 2 { // the second is the next spare
			t.Errorf("%d starts for one session and a spare", e.attempts())
		}
	})
}

// A call that gives up leaves the spare it waited for to the next.
func TestSpareIsPutBack(t *testing.T) {
	e := &engine{start: slowly(time.Second)}
	inWarmBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		took(t, 100*time.Millisecond, func() {
			if r := b.Run(ctx, bridge.Request{Code: "value never"}); !r.IsError {
				t.Errorf("got %q", r.Text)
			}
		})
		time.Sleep(time.Minute)
		wantStarted(t, e, 1, 1)
		took(t, 0, func() { runs(t, b, "value 1", "1") })
	})
}

// Whatever sessions do, no sandbox runs cells of two of them, and none that ran
// a cell becomes a spare.
func TestNoSandboxChangesHands(t *testing.T) {
	e := &engine{start: slowly(10 * time.Millisecond)}
	opts := bridge.Options{Warm: 2, MaxSandboxes: 8, IdleTimeout: 20 * time.Second}
	inWarmBubble(t, e, opts, func(t *testing.T, b *bridge.Bridge) {
		deeds := []string{"die", "lose it", "then lost it", "then later die", "value 1", "print 1", "sleep 3s", "then later output 1", "timeout"}
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				name := fmt.Sprint("s", i)
				for n := range 60 {
					deed := deeds[(i*7+n*n)%len(deeds)]
					inSession(t, b, name, deed+" #"+name)
					time.Sleep(time.Duration((i*31+n*17)%40) * time.Second)
				}
			})
		}
		wg.Wait()
		synctest.Wait() // the last spares
		used := 0
		for _, box := range e.all() {
			owners := map[string]bool{}
			for _, code := range box.cells() {
				_, owner, _ := strings.Cut(code, "#")
				owners[owner] = true
			}
			if len(owners) > 1 {
				t.Errorf("one sandbox ran %q", box.cells())
			}
			used += len(owners)
		}
		if used < 100 || e.most() > 8 {
			t.Errorf("%d sandboxes were used, %d at a time", used, e.most())
		}
	})
}

// A sandbox that speaks before it has a session is none that we know.
func TestSpareThatSpeaks(t *testing.T) {
	for name, speak := range map[string]func(k *kernel){
		"output":   func(k *kernel) { k.print("I was here before you") },
		"lost":     func(k *kernel) { k.notify("lost", object{"reason": "it fell"}) },
		"response": func(k *kernel) { k.answer(&cell{id: 1}, nil, object{}) },
		"hello":    func(k *kernel) { k.hello() },
		"nonsense": func(k *kernel) { k.notify("nonsense", object{}) },
		"nothing":  func(k *kernel) { k.box.program() },
	} {
		t.Run(name, func(t *testing.T) {
			var first sync.Once
			e := &engine{}
			e.script = func(k *kernel) {
				k.hello()
				first.Do(func() { speak(k) })
				k.loop()
			}
			inWarmBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
				wantStarted(t, e, 1, 0)
				runs(t, b, "value 1", "1") // started for it
				wantStarted(t, e, 3, 2)    // and a spare at once: sandboxes do start
				contains(t, inSession(t, b, "other", "value 2"), "2")
				synctest.Wait() // the next spare
				if ran := e.all()[0].cells(); len(ran) > 0 {
					t.Errorf("it ran %q", ran)
				}
			})
		})
	}
}

func TestDeadSpareIsReplaced(t *testing.T) {
	e := &engine{}
	inWarmBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		wantStarted(t, e, 1, 1)
		time.Sleep(time.Hour)
		e.all()[0].program()
		wantStarted(t, e, 1, 0)
		time.Sleep(time.Second)
		wantStarted(t, e, 2, 1)
		runs(t, b, "value 1", "1")
	})
}

// A spare that dies as it is taken costs a start, not the call.
func TestSpareDiesAsItIsTaken(t *testing.T) {
	e := &engine{}
	inWarmBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		for i := range 50 {
			synctest.Wait()
			boxes := e.all()
			boxes[len(boxes)-1].program() // and nobody has looked since
			r := inSession(t, b, fmt.Sprint("s", i), "value 1")
			if r.Text != "1" && !strings.Contains(r.Text, "the sandbox ended") {
				t.Errorf("got %q", r.Text)
			}
			time.Sleep(time.Minute)
		}
	})
}

// A spare that shows folders as they are no more is replaced as it is taken, and
// so is a session's sandbox when it is reset.
func TestOutdated(t *testing.T) {
	e := &engine{start: slowly(time.Second)}
	outdate := func(i int) {
		b := e.all()[i]
		b.mu.Lock()
		defer b.mu.Unlock()
		b.old = true
	}
	inWarmBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		time.Sleep(time.Minute)
		outdate(0)
		runs(t, b, "value 1", "1")
		time.Sleep(time.Minute)
		wantStarted(t, e, 3, 2)
		outdate(1)
		outdate(2)
		runs(t, b, "value 2", "2") // a session keeps what it has
		wantStarted(t, e, 3, 2)
		b.Run(t.Context(), bridge.Request{Code: "session.reset()"})
		time.Sleep(time.Minute)
		// Neither the session's nor the spare was kept; this Python does not reset
		// itself, for which it lost the sandbox that it then had.
		wantStarted(t, e, 5, 1)
		runs(t, b, "value 3", "3")
	})
}

// Folders that change all the time keep nobody from a sandbox.
func TestAlwaysOutdated(t *testing.T) {
	e := &engine{start: slowly(time.Second), old: true, script: func(k *kernel) {
		k.serve()
		time.Sleep(time.Second) // meanwhile the pool is filled again
	}}
	inWarmBubble(t, e, bridge.Options{Warm: 2}, func(t *testing.T, b *bridge.Bridge) {
		time.Sleep(time.Minute)
		begin := time.Now()
		runs(t, b, "value 1", "1")
		if took, n := time.Since(begin), e.attempts(); took > 5*time.Second || n > 6 {
			t.Errorf("it took %v and %d starts", took, n)
		}
	})
}

// A pool whose starts fail tries ever less often and says nothing. The call that
// needs a sandbox hears why.
func TestPoolBacksOff(t *testing.T) {
	var mended atomic.Bool
	e := &engine{start: func(context.Context, runtime.Spec) error {
		if !mended.Load() {
			return &runtime.Error{Engine: "fake", Err: runtime.ErrImageMissing, Hint: "run make image"}
		}
		return nil
	}}
	var log bytes.Buffer
	opts := bridge.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))}
	inWarmBubble(t, e, opts, func(t *testing.T, b *bridge.Bridge) {
		time.Sleep(62 * time.Second) // 1, 2, 4, 8, 16, 32 s after each other
		if e.attempts() != 6 {
			t.Errorf("%d starts in a minute, want 6", e.attempts())
		}
		time.Sleep(time.Hour)
		if e.attempts() > 70 {
			t.Errorf("%d starts in an hour", e.attempts())
		}
		if text := log.String(); strings.Contains(text, "image missing") {
			t.Errorf("the log says\n%s", text)
		}
		fails(t, b, "pass", "image missing", "run make image")
		mended.Store(true)
		before := e.attempts()
		runs(t, b, "value 1", "1")
		synctest.Wait()
		if e.attempts() != before+2 { // its own, and a spare without a pause
			t.Errorf("%d starts", e.attempts()-before)
		}
	})
}

func TestCloseWithSpares(t *testing.T) {
	for name, age := range map[string]time.Duration{"on its way": 500 * time.Millisecond, "ready": time.Minute} {
		for _, waited := range []bool{false, true} {
			t.Run(fmt.Sprint(name, waited), func(t *testing.T) {
				e := &engine{start: slowly(time.Second)}
				inWarmBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
					time.Sleep(age)
					var wg sync.WaitGroup
					if waited {
						wg.Go(func() { run(t, b, "sleep 20s") })
						synctest.Wait()
					}
					took(t, 0, b.Close)
					wg.Wait()
					_, open := e.started()
					if open > 0 {
						t.Errorf("%d sandboxes are left", open)
					}
					fails(t, b, "pass", "shutting down")
					time.Sleep(time.Hour)
					wantStarted(t, e, len(e.all()), 0)
				})
			})
		}
	}
}

// Spares count as sandboxes, and make room for nobody but a session.
func TestSparesHaveNoMoreRoom(t *testing.T) {
	e := &engine{}
	inWarmBubble(t, e, bridge.Options{MaxSandboxes: 2}, func(t *testing.T, b *bridge.Bridge) {
		for i := range 10 {
			if r := inSession(t, b, fmt.Sprint("s", i), "value 1"); !strings.HasSuffix(r.Text, "1") || r.IsError {
				t.Errorf("session %d got %q", i, r.Text)
			}
			synctest.Wait()
		}
		if e.most() != 2 {
			t.Errorf("%d sandboxes at a time, want 2", e.most())
		}
	})
}

func TestEngineErrorIsNotHiddenByASpare(t *testing.T) {
	cause := errors.New("disk full")
	e := &engine{start: func(ctx context.Context, spec runtime.Spec) error {
		if err := slowly(time.Second)(ctx, spec); err != nil {
			return err
		}
		return &runtime.Error{Engine: "fake", Op: "start sandbox", Err: cause}
	}}
	inWarmBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		time.Sleep(500 * time.Millisecond)
		if r := run(t, b, "pass"); !errors.Is(r.Err, cause) {
			t.Errorf("got %q (%v)", r.Text, r.Err)
		}
	})
}
