package bridge_test

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

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A registry is an engine without images that can get one.
type registry struct {
	engine

	pull    func(ctx context.Context, progress func(runtime.PullProgress)) error
	pulls   atomic.Int32
	present atomic.Bool
}

func newRegistry(pull func(ctx context.Context, progress func(runtime.PullProgress)) error) *registry {
	r := &registry{pull: pull}
	r.start = func(context.Context, runtime.Spec) error {
		if !r.present.Load() {
			return &runtime.Error{Engine: "fake", Op: "start", Err: runtime.ErrImageMissing, Hint: "get it"}
		}
		return nil
	}
	return r
}

func (r *registry) Pull(ctx context.Context, image string, progress func(runtime.PullProgress)) error {
	if image != "image" {
		return fmt.Errorf("pulling %q", image)
	}
	r.pulls.Add(1)
	err := r.pull(ctx, progress)
	r.present.Store(err == nil)
	return err
}

// withRegistry is inBubble for an engine that can pull.
func withRegistry(t *testing.T, r *registry, opts bridge.Options, test func(t *testing.T, b *bridge.Bridge)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tools := proxy.New(proxy.Options{})
		opts := opts
		opts.Engine, opts.Tools = r, tools
		if opts.Image == "" {
			opts.Image = "image"
		}
		b := bridge.New(opts)
		test(t, b)
		b.Close()
		if err := tools.Close(); err != nil {
			t.Error(err)
		}
		if _, open := r.started(); open != 0 {
			t.Errorf("%d sandboxes are left", open)
		}
	})
}

// inPieces takes a second for each of n megabytes.
func inPieces(n int64) func(context.Context, func(runtime.PullProgress)) error {
	return func(ctx context.Context, progress func(runtime.PullProgress)) error {
		for i := range n {
			progress(runtime.PullProgress{Status: "layer", Done: i << 20, Total: n << 20})
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
}

// TestPull gets a missing image once for all who wait, whatever time that takes
// beyond the cell's own, and tells each how far it is.
func TestPull(t *testing.T) {
	r := newRegistry(inPieces(20))
	withRegistry(t, r, bridge.Options{Timeout: time.Second}, func(t *testing.T, b *bridge.Bridge) {
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				var told []int64
				got := b.Run(t.Context(), bridge.Request{
					Code: "value 1", Session: fmt.Sprint(i),
					Progress: func(p runtime.PullProgress) { told = append(told, p.Done>>20) },
				})
				if got.Text != "1" || got.IsError {
					t.Errorf("got %q", got.Text)
				}
				if len(told) != 20 || !slices.IsSorted(told) {
					t.Errorf("told of %v", told)
				}
			})
		}
		wg.Wait()
		runs(t, b, "value 2", "2")
	})
	if n := r.pulls.Load(); n != 1 {
		t.Errorf("pulled %d times", n)
	}
}

// TestPullOutlastsPatience answers while the image is on its way, and runs the
// cell when it is there. Whoever leaves does not end the pull.
func TestPullOutlastsPatience(t *testing.T) {
	r := newRegistry(inPieces(100))
	withRegistry(t, r, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if got := b.Run(ctx, bridge.Request{Code: "value 1"}); !got.IsError {
			t.Errorf("got %q", got.Text)
		}
		begin := time.Now()
		fails(t, b, "value 1", "still being downloaded (45 of 100 MiB so far)", "Nothing was run")
		if took := time.Since(begin); took != 45*time.Second {
			t.Errorf("answered after %v", took)
		}
		fails(t, b, "value 1", "(90 of 100 MiB so far)")
		runs(t, b, "value 1", "1")
	})
	if n := r.pulls.Load(); n != 1 {
		t.Errorf("pulled %d times", n)
	}
}

// TestPullTimesOut gives up a pull, and begins a new one with the next call.
func TestPullTimesOut(t *testing.T) {
	r := newRegistry(inPieces(100))
	withRegistry(t, r, bridge.Options{PullTimeout: 10 * time.Second}, func(t *testing.T, b *bridge.Bridge) {
		fails(t, b, "value 1", "image missing", "mcp-bridge image pull image", "--pull-timeout")
		r.pull = inPieces(1)
		runs(t, b, "value 1", "1")
	})
	if n := r.pulls.Load(); n != 2 {
		t.Errorf("pulled %d times", n)
	}
}

func TestPullFails(t *testing.T) {
	r := newRegistry(func(context.Context, func(runtime.PullProgress)) error {
		return &runtime.Error{Engine: "fake", Op: "pull", Err: fmt.Errorf("%w: no route to 10.1.2.3", runtime.ErrImageMissing), Hint: "podman login"}
	})
	withRegistry(t, r, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		got := run(t, b, "value 1")
		if got.Text != "The sandbox cannot be started (fake): image missing. To mend it on the host: podman login" {
			t.Errorf("got %q", got.Text)
		}
	})
}

// TestPullStillMissing has an engine that says it got the image and then does
// not have it: one pull a call, and no loop.
func TestPullStillMissing(t *testing.T) {
	r := newRegistry(inPieces(1))
	r.start = func(context.Context, runtime.Spec) error {
		return &runtime.Error{Engine: "fake", Err: runtime.ErrImageMissing}
	}
	withRegistry(t, r, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) { fails(t, b, "value 1", "image missing") })
	if n := r.pulls.Load(); n != 1 {
		t.Errorf("pulled %d times", n)
	}
}

// TestNothingToPull has images that are in no registry, and other failures.
func TestNothingToPull(t *testing.T) {
	for _, image := range []string{"localhost/mcp-bridge-sandbox:latest", "localhost/x"} {
		r := newRegistry(inPieces(1))
		withRegistry(t, r, bridge.Options{Image: image}, func(t *testing.T, b *bridge.Bridge) { fails(t, b, "value 1", "image missing") })
		if r.pulls.Load() != 0 {
			t.Errorf("pulled %s", image)
		}
	}
	r := newRegistry(inPieces(1))
	r.start = func(context.Context, runtime.Spec) error {
		return &runtime.Error{Engine: "fake", Err: runtime.ErrUnavailable}
	}
	withRegistry(t, r, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) { fails(t, b, "value 1", "unavailable") })
	if r.pulls.Load() != 0 {
		t.Error("pulled though the engine is not there")
	}
}

// TestCloseDuringPull ends the pull and who waits for it.
func TestCloseDuringPull(t *testing.T) {
	r := newRegistry(inPieces(1000))
	withRegistry(t, r, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		var wg sync.WaitGroup
		wg.Go(func() {
			got := run(t, b, "value 1")
			if !got.IsError || strings.Contains(got.Text, "image missing") {
				t.Errorf("got %q", got.Text)
			}
		})
		synctest.Wait()
		b.Close()
		wg.Wait()
		if err := run(t, b, "value 1").Err; err == nil || errors.Is(err, runtime.ErrImageMissing) {
			t.Errorf("after Close: %v", err)
		}
	})
}
