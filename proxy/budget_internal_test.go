package proxy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func newTestShare(ctx context.Context, a *account) *share {
	return &share{account: a, done: ctx.Done()}
}

// One connection gets its part, all together the whole; who waits gets what is
// given back, or gives up with its context.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(maxAllUnread, maxUnread)
		var shares []*share
		for range maxAllUnread / maxUnread {
			s := newTestShare(t.Context(), b.account())
			if err := s.resize(t.Context(), maxUnread); err != nil {
				t.Fatal(err)
			}
			shares = append(shares, s)
			if ok, _ := newTestShare(t.Context(), s.account).try(1); ok {
				t.Error("a connection has more than its part")
			}
		}
		late := newTestShare(t.Context(), b.account())
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := late.resize(short, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("all have more than the whole: %v", err)
		}
		time.AfterFunc(time.Minute, shares[0].release)
		if err := late.resize(t.Context(), maxUnread); err != nil {
			t.Error(err)
		}
		shares[0].release()
		if ok, _ := shares[0].try(1); ok {
			t.Error("a released share can be used")
		}
		for _, s := range append(shares, late) {
			s.release()
		}
		if b.left != maxAllUnread || shares[0].account.left != maxUnread {
			t.Errorf("%d and %d bytes are left in the end", b.left, shares[0].account.left)
		}
	})
}

// A result that has come waits for room while its sandbox reads, not for one
// that does not, and not when nobody waits for it.
func TestBudgetGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newBudget(maxAllUnread, maxUnread).account()
		unread, result := newTestShare(t.Context(), a), newTestShare(t.Context(), a)
		unread.try(maxUnread)
		took := func(s *share) (bool, time.Duration) {
			begun := time.Now()
			return s.grow(1 << 20), time.Since(begun)
		}
		if ok, d := took(result); ok || d != patience {
			t.Errorf("the first: %v after %v", ok, d)
		}
		if ok, d := took(result); ok || d != 0 {
			t.Errorf("the next: %v after %v", ok, d)
		}
		unread.try(maxUnread - 1) // it reads again
		time.AfterFunc(time.Second, func() { unread.try(maxUnread - 1<<20) })
		if ok, d := took(result); !ok || d != time.Second {
			t.Errorf("while it reads: %v after %v", ok, d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if ok, d := took(newTestShare(ctx, a)); ok || d != time.Second {
			t.Errorf("cancelled: %v after %v", ok, d)
		}
		if ok, _ := took(nil); !ok {
			t.Error("a call that is not a sandbox's has no room")
		}
	})
}
