package cli

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A sweeper is an engine whose attempts to sweep end with errs, then with success.
type sweeper struct {
	runtime.Engine
	errs     []error
	attempts int
}

func (s *sweeper) Sweep(context.Context) (int, error) {
	s.attempts++
	if s.attempts <= len(s.errs) {
		return 0, s.errs[s.attempts-1]
	}
	return 1, nil
}

func TestSweepIsTriedAgain(t *testing.T) {
	busy, missing := errors.New("the storage is locked"), &runtime.Error{Err: runtime.ErrUnavailable}
	for _, test := range []struct {
		name string
		errs []error
		want int
	}{
		{"at once", nil, 1},
		{"later", []error{busy, busy}, 3},
		{"never", []error{busy, busy, busy, busy, busy, busy, busy}, sweepAttempts},
		{"no engine", []error{missing, missing}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := &sweeper{errs: test.errs}
				s := startSweep(t.Context(), engine, slog.New(slog.DiscardHandler))
				time.Sleep(time.Hour)
				s.end()
				if engine.attempts != test.want {
					t.Errorf("%d attempts, want %d", engine.attempts, test.want)
				}
			})
		})
	}
}

func TestSweepEndsWithTheApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSweep(t.Context(), &sweeper{errs: []error{errors.New("busy")}}, slog.New(slog.DiscardHandler))
		synctest.Wait()
		began := time.Now()
		s.end()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the end waited %v for another attempt", waited)
		}
	})
}
