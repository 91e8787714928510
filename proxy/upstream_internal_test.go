package proxy

import (
	"testing"
	"time"
)

// A server that has just failed rests, which listings over all servers do not
// wait for; one that failed long ago is started at once.
func TestRest(t *testing.T) {
	failed := &Error{Message: "it exited"}
	u := &upstream{running: &running{failures: 9, failed: failed, failedAt: time.Now()}}
	if got := u.resting(); got != failed {
		t.Errorf("just failed: %v", got)
	}
	if rest := u.backoff(); rest <= 0 || rest > maxBackoff {
		t.Errorf("just failed: it rests for %v", rest)
	}
	u.failedAt = time.Now().Add(-time.Hour)
	if got, rest := u.resting(), u.backoff(); got != nil || rest != 0 {
		t.Errorf("failed long ago: %v, rests for %v", got, rest)
	}
	u.failed = nil // it started, and ended early
	if got, rest := u.resting(), u.backoff(); got != nil || rest != maxBackoff {
		t.Errorf("ended early: %v, rests for %v", got, rest)
	}
}
