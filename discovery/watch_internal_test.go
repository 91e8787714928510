package discovery

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

func TestSettle(t *testing.T) {
	for _, test := range []struct {
		name  string
		every time.Duration
		count int
		want  time.Duration
	}{
		{"one", 0, 1, quietTime},
		{"a burst", quietTime / 2, 5, 4*quietTime/2 + quietTime},
		{"no end of it", quietTime / 2, 1000, maxQuiet},
	} {
		synctest.Test(t, func(t *testing.T) {
			changed := make(chan struct{}, 1)
			begun := time.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range test.count {
					select {
					case changed <- struct{}{}:
					case <-t.Context().Done():
						return
					}
					time.Sleep(test.every)
				}
			}()
			if err := settle(t.Context(), changed); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took != test.want {
				t.Errorf("%s: settled after %v, want %v", test.name, took, test.want)
			}
			for {
				select {
				case <-changed: // lets the sender end
				case <-done:
					return
				}
			}
		})
	}
}

// Events that the system has dropped may have been anything.
func TestWatchOverflow(t *testing.T) {
	dir := t.TempDir()
	w := newWatcher(LoadOptions{Dirs: []string{dir}})
	defer w.close()
	go func() { w.system.Errors <- fsnotify.ErrEventOverflow }()
	if err := w.wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// Where the system tells nothing, everything is read now and then.
func TestWatchPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := &watcher{paths: &watchPaths{}, partial: true}
		if err := w.wait(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != pollTime+quietTime {
			t.Errorf("looked after %v", took)
		}
	})
}
