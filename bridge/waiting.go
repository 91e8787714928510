package bridge

import (
	"fmt"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A waiting tells a client now and then what its call waits for before its cell
// starts: clients give up on calls of which they hear nothing.
type waiting struct {
	tell  func(line string) // nil if the client did not ask
	ended chan struct{}
	wg    sync.WaitGroup

	mu    sync.Mutex
	what  func() string
	since time.Time // what it waits for has been that since
	told  time.Time // when it was last told
}

// startWaiting begins to tell what a call waits for, a second from now, whenever
// that changes, and every heartbeat. The caller must stop it.
func startWaiting(tell func(string), what func() string) *waiting {
	w := &waiting{tell: tell, ended: make(chan struct{}), what: what, since: time.Now()}
	if tell != nil {
		w.wg.Go(w.run)
	}
	return w
}

func (w *waiting) run() {
	tick := time.NewTicker(tellPause)
	defer tick.Stop()
	for {
		select {
		case <-w.ended:
			return
		case now := <-tick.C:
			if line := w.due(now); line != "" {
				w.tell(line)
			}
		}
	}
}

func (w *waiting) due(now time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.told) < heartbeat {
		return ""
	}
	w.told = now
	return fmt.Sprintf("%s, for %s now", w.what(), inSeconds(now.Sub(w.since).Round(time.Second)))
}

// next says that the call waits for something else now.
func (w *waiting) next(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.what, w.since, w.told = func() string { return what }, time.Now(), time.Time{}
}

// pulling returns progress such that nothing else is told as long as it tells
// something.
func (w *waiting) pulling(progress func(runtime.PullProgress)) func(runtime.PullProgress) {
	if progress == nil {
		return nil
	}
	return func(p runtime.PullProgress) {
		w.mu.Lock()
		w.what, w.told = func() string { return "getting the image" + soFar(p) }, time.Now()
		w.mu.Unlock()
		progress(p)
	}
}

// stop waits for the last notification.
func (w *waiting) stop() {
	close(w.ended)
	w.wg.Wait()
}

// turnText is what a call waits for that has not had its turn.
func (s *session) turnText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return "waiting for the session"
	}
	return fmt.Sprintf("waiting for cell %d to end", s.running.cell)
}
