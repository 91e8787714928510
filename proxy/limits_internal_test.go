package proxy

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestUsageClosesWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, begun := newUsage(), time.Now()
		closed := make(chan time.Duration, 1)
		go func() {
			if u.closeAfter(t.Context(), time.Minute) {
				closed <- time.Since(begun)
			}
		}()
		time.Sleep(50 * time.Second)
		if !u.begin() {
			t.Fatal("it was closed before its time")
		}
		time.Sleep(10 * time.Minute) // a call that takes long is no rest
		u.end()
		if got, want := <-closed, 11*time.Minute+50*time.Second; got != want {
			t.Errorf("closed after %v, want %v", got, want)
		}
		if u.begin() || u.hold() {
			t.Error("a request began after the end")
		}
	})
}

func TestUsageDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUsage()
		u.begin()
		idle, busy := u.close()
		if !busy || u.begin() {
			t.Error("a closed session took a call, or was not busy")
		}
		go func() {
			time.Sleep(time.Second)
			u.end()
		}()
		<-idle
		if u.closeUnused() {
			t.Error("it was closed twice")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if newUsage().closeAfter(ctx, time.Minute) {
			t.Error("it was closed though nobody looks after it")
		}
	})
}

func TestLimiterQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(2)
		for range 2 {
			if err := l.enter(t.Context(), "it"); err != nil {
				t.Fatal(err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.enter(short, "it"); err == nil || err.Kind != Timeout {
			t.Errorf("one that waited too long got %v", err)
		}
		results := make(chan *Error, maxQueued)
		for range maxQueued {
			go func() { results <- l.enter(t.Context(), "it") }()
		}
		synctest.Wait()
		if err := l.enter(t.Context(), "it"); err == nil || err.Kind != Busy {
			t.Errorf("one too many got %v", err)
		}
		l.leave()
		if err := <-results; err != nil {
			t.Error(err)
		}
		for range maxQueued + 1 {
			l.leave()
		}
		for range maxQueued - 1 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
	var none *limiter
	if err := none.enter(t.Context(), "it"); err != nil {
		t.Error(err)
	}
	none.leave()
}

// A call's clock starts when it is sent: one that queues has all of it.
func TestQueueCostsNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{
			server:  discovery.Server{Name: "x", Timeout: time.Minute},
			limit:   newLimiter(1),
			running: newRunning(),
		}
		s := &session{usage: newUsage(), gate: newGate(nil, nil, slog.New(slog.DiscardHandler), nil)}
		if err := u.limit.enter(t.Context(), "another"); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Hour)
			u.limit.leave()
		}()
		begun := time.Now()
		_, err := u.send(t.Context(), s, request{method: "x", send: func(ctx context.Context, _ *mcp.ClientSession) error {
			until, ok := ctx.Deadline()
			if got, want := until.Sub(begun), time.Hour+time.Minute; !ok || got != want {
				t.Errorf("the clock of the call ends after %v, want %v", got, want)
			}
			ctx.Value(sinkKey{}).(*sink).outcome.raw = json.RawMessage("{}")
			return nil
		}})
		if err != nil {
			t.Error(err)
		}
	})
}
