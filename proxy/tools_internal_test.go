package proxy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// One change is followed soon; a server that announces them without end is
// asked ever more rarely, until it has been quiet for a while.
func TestOnChangeBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		changed, lists := make(chan struct{}, 1), 0
		go onChange(ctx, changed, func() { lists++ })
		announce := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
		want := func(when string, least, most int) {
			t.Helper()
			synctest.Wait()
			if lists < least || lists > most {
				t.Errorf("%s: %d listings, want %d to %d", when, lists, least, most)
			}
			lists = 0
		}
		want("at first", 1, 1)
		announce(5 * time.Millisecond)
		time.Sleep(changeDelay)
		want("after a change", 1, 1)
		announce(time.Minute)
		want("in a minute of changes", 5, 12)
		announce(time.Minute)
		want("in another", 5, 7)
		time.Sleep(3 * maxChangeDelay)
		lists = 0
		announce(5 * time.Millisecond)
		time.Sleep(changeDelay)
		want("after a quiet time", 1, 1)
		cancel()
	})
}
