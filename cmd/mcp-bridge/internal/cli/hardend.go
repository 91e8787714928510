package cli

import (
	"log/slog"
	"sync"
	"time"
)

const (
	closeLimit = 40 * time.Second // of removing all sandboxes: an engine takes long where much goes on at once
	endLimit   = 60 * time.Second // of all from a signal on
)

// endWithin has exit called if an end that has begun is not over within limit:
// there is work that cannot be cancelled, and a client or a service manager
// waits. The next start sweeps what is left. The caller calls over; a nil exit
// ends nothing.
func endWithin(limit time.Duration, begun <-chan struct{}, log *slog.Logger, exit func(code int)) (over func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-begun:
		case <-done:
			return
		}
		select {
		case <-time.After(limit):
		case <-done:
			return
		}
		log.Error("the end takes too long; the next start removes what is left", "limit", limit)
		if exit != nil {
			exit(exitFailure)
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// closeWithin calls end, for which it has so long.
func closeWithin(limit time.Duration, end func(), log *slog.Logger, exit func(code int)) {
	now := make(chan struct{})
	close(now)
	defer endWithin(limit, now, log, exit)()
	end()
}
