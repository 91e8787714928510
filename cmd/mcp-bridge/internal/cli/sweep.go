package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	// sweepTimeout bounds one attempt to remove what dead bridges left behind.
	sweepTimeout = 30 * time.Second
	// An attempt fails while another program holds the engine's storage: it is
	// made again after a pause, each time a longer one.
	sweepAttempts = 5
	sweepPause    = 5 * time.Second
)

// A sweep removes, in the background, what dead bridges left behind.
type sweep struct {
	last chan struct{} // closed when no further attempt is wanted
	done chan struct{} // closed when it has ended
}

// startSweep starts one; the caller ends it.
func startSweep(ctx context.Context, engine runtime.Engine, log *slog.Logger) *sweep {
	s := &sweep{last: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for n := range sweepAttempts {
			err := sweepOnce(ctx, engine, log)
			if err == nil || errors.Is(err, runtime.ErrUnavailable) || !s.sleep(ctx, sweepPause<<n) {
				return
			}
		}
	}()
	return s
}

func sweepOnce(ctx context.Context, engine runtime.Engine, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	removed, err := engine.Sweep(ctx)
	log.Info("leftovers of dead bridges removed", "count", removed, "error", err)
	return err
}

// sleep reports whether another attempt is wanted after the pause.
func (s *sweep) sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-s.last:
	case <-ctx.Done():
	}
	return false
}

// end waits for the attempt that runs, and makes no other.
func (s *sweep) end() {
	close(s.last)
	<-s.done
}
