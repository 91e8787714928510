package proxy

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// One change is followed soon; a server that announces them without end is
// asked ever more rarely, until it has been quiet for a while.
func TestOnChangeBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		changed := make(chan struct{}, 1)
		var lists atomic.Int64
		go onChange(ctx, changed, func() { lists.Add(1) })
		announce := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		}
		want := func(when string, least, most int64) {
			t.Helper()
			synctest.Wait()
			if got := lists.Swap(0); got < least || got > most {
				t.Errorf("%s: %d listings, want %d to %d", when, got, least, most)
			}
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
		want("in a quiet time", 0, 2)
		announce(5 * time.Millisecond)
		time.Sleep(changeDelay)
		want("after a quiet time", 1, 1)
		cancel()
	})
}
