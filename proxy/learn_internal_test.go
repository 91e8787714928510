package proxy

import (
	"testing"
	"time"
)

// Learning costs a small share of what calls do: of slow results each is looked
// at, of fast ones only some.
func TestLearningIsASmallShare(t *testing.T) {
	for _, test := range []struct {
		name        string
		call, cost  time.Duration
		least, most int
	}{
		{"cheap", time.Millisecond, time.Microsecond, 1000, 1000},
		{"as dear as the call", time.Millisecond, time.Millisecond, alwaysObserved, 25},
		{"far dearer", time.Millisecond, time.Second, alwaysObserved, alwaysObserved},
	} {
		u := &upstream{running: newRunning()}
		u.lessons.of = make(map[string]*lesson)
		observed := 0
		for range 1000 {
			if u.due("tool", "as it is", test.call) {
				observed++
				u.lessons.of["tool"].spent += test.cost
			}
		}
		if observed < test.least || observed > test.most {
			t.Errorf("%s: %d of 1000 results looked at, want %d to %d", test.name, observed, test.least, test.most)
		}
		if !u.due("tool", "changed", test.call) {
			t.Errorf("%s: what is known of the old tool counts for the new one", test.name)
		}
	}
}
