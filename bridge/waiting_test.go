package bridge_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A heard is what a client was told, and when.
type heard struct {
	mu    sync.Mutex
	begin time.Time
	lines []string
	times []time.Duration
}

func (h *heard) tell(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
	h.times = append(h.times, time.Since(h.begin))
}

// silence is the longest time without a word until the call ended.
func (h *heard) silence() time.Duration {
	last, longest := time.Duration(0), time.Duration(0)
	for _, t := range append(slices.Clone(h.times), time.Since(h.begin)) {
		longest = max(longest, t-last)
		last = t
	}
	return longest
}

// Whatever a call waits for, its client hears of it soon and often enough, and
// not too often.
func TestClientHearsWhatACallWaitsFor(t *testing.T) {
	call := func(t *testing.T, b *bridge.Bridge, code string) *heard {
		h := &heard{begin: time.Now()}
		b.Run(t.Context(), bridge.Request{
			Code: code, Working: h.tell, Timeout: 100 * time.Second, Progress: func(runtime.PullProgress) { h.tell("pull") },
		})
		if s := h.silence(); s > 11*time.Second {
			t.Errorf("nothing was told for %v: %q", s, h.lines)
		}
		if most := int(time.Since(h.begin)/(10*time.Second)) + 40; len(h.lines) > most {
			t.Errorf("%d notifications: %q", len(h.lines), h.lines)
		}
		return h
	}
	wants := func(t *testing.T, h *heard, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !slices.Contains(h.lines, line) {
				t.Errorf("no %q in %q", line, h.lines)
			}
		}
	}
	opts := bridge.Options{Yield: 100 * time.Second}
	slow := &engine{start: func(ctx context.Context, _ runtime.Spec) error {
		time.Sleep(25 * time.Second)
		return ctx.Err()
	}}
	inBubble(t, slow, opts, func(t *testing.T, b *bridge.Bridge) {
		wants(t, call(t, b, "value 1"), "starting a sandbox, for 1 s now", "starting a sandbox, for 11 s now", "starting a sandbox, for 21 s now")
		if h := call(t, b, "value 1"); len(h.lines) != 0 {
			t.Errorf("of a call that took no time there was told %q", h.lines)
		}
		var wg sync.WaitGroup
		wg.Go(func() { call(t, b, "sleep 25s") })
		synctest.Wait()
		wants(t, call(t, b, "value 1"), "waiting for cell 3 to end, for 1 s now", "waiting for cell 3 to end, for 21 s now")
		wg.Wait()
	})
	stuck := newRegistry(func(_ context.Context, progress func(runtime.PullProgress)) error {
		progress(runtime.PullProgress{Status: "layer", Done: 3 << 20, Total: 7 << 20})
		time.Sleep(30 * time.Second) // without a word
		return nil
	})
	withRegistry(t, stuck, opts, func(t *testing.T, b *bridge.Bridge) {
		wants(t, call(t, b, "value 1"), "pull", "getting the image (3 of 7 MiB so far), for 11 s now")
	})
}

// A client that leaves while its sandbox starts costs nobody the session.
func TestCancelDuringStart(t *testing.T) {
	e := &engine{start: func(ctx context.Context, _ runtime.Spec) error {
		select {
		case <-time.After(20 * time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(500 * time.Millisecond)
			runs(t, b, "value next", "next")
		})
		r := b.Run(ctx, bridge.Request{Code: "print never"})
		if !r.IsError {
			t.Errorf("the call that was cancelled: %q", r.Text)
		}
		wg.Wait()
		for _, box := range e.all() {
			if slices.Contains(box.cells(), "print never") {
				t.Error("the cancelled cell was run")
			}
		}
	})
}

// What runs on in one session is no other's.
func TestTwoSessionsYieldAtOnce(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{Yield: 2 * time.Second}, func(t *testing.T, b *bridge.Bridge) {
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			wg.Go(func() {
				in := func(code string) bridge.Result {
					return b.Run(t.Context(), bridge.Request{Session: name, Code: code})
				}
				in("value 1")
				if name == "b" {
					in("value 1")
				}
				r := in("sleep 5s")
				want := map[string]string{"a": "asleep\n[cell 2 is still running", "b": "asleep\n[cell 3 is still running"}[name]
				contains(t, r, want)
				if name == "a" {
					contains(t, in("session.interrupt()"), "Interrupted by")
					return
				}
				contains(t, in(""), "still running, for 4 s now of at most 30 s: call run_python with this `session` and empty `code`")
				if r := in(""); r.Text != "slept" {
					t.Errorf("session %s ended with %q", name, r.Text)
				}
			})
		}
		wg.Wait()
	})
}

// A call that has waited for its turn has so much less patience for an image.
func TestQueueAndPullShareTheYieldTime(t *testing.T) {
	opts := bridge.Options{Yield: 10 * time.Second, PullTimeout: time.Minute}
	withRegistry(t, newRegistry(inPieces(30)), opts, func(t *testing.T, b *bridge.Bridge) {
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				time.Sleep(time.Duration(3*i) * time.Second)
				begin := time.Now()
				fails(t, b, "value 1", "still being downloaded")
				if took := time.Since(begin); took > 13*time.Second {
					t.Errorf("call %d took %v", i, took)
				}
			})
		}
		wg.Wait()
	})
}
