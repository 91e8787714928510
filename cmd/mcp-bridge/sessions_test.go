package main_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSessionsAreSeparate(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--warm=0", "--workspace-quota=0"}})
	const facts = "import os\nprint(os.getuid(), os.stat('/proc/self/ns/pid').st_ino, os.stat('/proc/self/ns/net').st_ino)"
	seen := map[string]string{}
	for _, session := range []string{"", "a", "B-2.x_y"} {
		c.runIn(t, session, fmt.Sprintf("name = %q; n = open('/workspace/name', 'w').write(name); n = open('/tmp/name', 'w').write(name)", session))
	}
	for _, session := range []string{"", "a", "B-2.x_y"} {
		if got, want := c.runIn(t, session, "print(name, open('/workspace/name').read(), open('/tmp/name').read())"), strings.TrimSpace(session+" "+session+" "+session); strings.TrimSpace(got) != want {
			t.Errorf("session %q sees %q", session, got)
		}
		for i, fact := range strings.Fields(c.runIn(t, session, facts)) {
			key := fmt.Sprint(i, " ", fact)
			if other, taken := seen[key]; taken {
				t.Errorf("sessions %q and %q share uid or namespace: %s", session, other, fact)
			}
			seen[key] = session
		}
	}
	if n := len(containersOf(t, c.cmd.Process.Pid)); n != 3 {
		t.Errorf("%d containers for three sessions", n)
	}
}

// TestCallsTakeTurns sends many calls to one session at once. Each waits for
// the one before, and sees its own output only.
func TestCallsTakeTurns(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	c.run(t, "import time\nrunning = most = total = 0")
	const calls = 12
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			r, err := c.try(t.Context(), arguments{"code": fmt.Sprintf(`
running += 1; most = max(most, running); total += 1
for _ in range(20):
    print("call %[1]d")
    time.sleep(0.005)
running -= 1
"end of %[1]d"`, i)})
			want := strings.Repeat(fmt.Sprintf("call %d\n", i), 20) + fmt.Sprintf("'end of %d'", i)
			if err != nil || r.isError || r.text != want {
				t.Errorf("call %d saw %q, %v", i, r.text, err)
			}
		})
	}
	wg.Wait()
	c.wants(t, "running, most, total", fmt.Sprintf("(0, 1, %d)", calls))
}

// TestCallsInTwoSessionsOverlap shows that only one session's calls wait for each other.
func TestCallsInTwoSessionsOverlap(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	c.runIn(t, "a", "tools.special.stats()")
	c.runIn(t, "b", "tools.special.stats()")
	var wg sync.WaitGroup
	for _, session := range []string{"a", "b"} {
		wg.Go(func() {
			r, err := c.try(t.Context(), arguments{"session": session, "code": "print('" + session + "')\ntools.special.sleep(ms=2000)"})
			if err != nil || r.text != session+"\n'slept'" {
				t.Errorf("session %s saw %q, %v", session, r.text, err)
			}
		})
	}
	wg.Wait()
	c.wants(t, "tools.special.stats().most", "2")
}

// TestCancel has the client give up. The cell is interrupted, its variables stay.
func TestCancel(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	c.run(t, "kept = 'kept'; count = 0")
	for _, code := range []string{"while True: count += 1", "tools.special.sleep(ms=100_000)", "await tools.special.sleep.aio(ms=100_000)"} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := c.try(ctx, arguments{"code": "started = True\n" + code, "timeout": 100})
			ended <- err
		}()
		if strings.Contains(code, "special") {
			eventually(t, patience, "the call has arrived upstream", func() bool {
				return c.runIn(t, "watch", "tools.special.stats().running") == "1"
			})
		} else {
			time.Sleep(500 * time.Millisecond) // nothing to see from outside
		}
		cancel()
		if err := <-ended; err == nil {
			t.Errorf("%s: the cancelled call succeeded", code)
		}
		begin := time.Now()
		c.wants(t, "kept, started", "('kept', True)")
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s: the next call had to wait %v", code, took)
		}
	}
	c.wants(t, "tools.special.stats().running", "0")
	c.wants(t, "tools.special.stats().cancelled", "2")
}

// TestCancelWhileWaiting gives up a call that has not had its turn: it never runs.
func TestCancelWhileWaiting(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t))
	c.run(t, "ran = []")
	c.runIn(t, "watch", "tools.special.stats()") // ready before there is something to see
	first := make(chan reply, 1)
	go func() {
		r, _ := c.try(t.Context(), arguments{"code": "ran.append('first'); tools.special.sleep(ms=3000)"})
		first <- r
	}()
	eventually(t, patience, "the first call runs", func() bool {
		return c.runIn(t, "watch", "tools.special.stats().running") == "1"
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.try(ctx, arguments{"code": "ran.append('second')"}); err == nil {
		t.Error("the cancelled call succeeded")
	}
	if r := <-first; r.text != "'slept'" {
		t.Errorf("the running call was disturbed: %s", r.text)
	}
	c.wants(t, "ran", "['first']")
}

// TestLongRun outlasts a client's patience: the call answers with what there is,
// and an empty code waits on.
func TestLongRun(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--yield", "2"}})
	c.run(t, "import time")
	r := c.call(t, arguments{"code": "print('early')\ntime.sleep(3)\nprint('late')\n'value'", "timeout": 100})
	if r.isError {
		t.Errorf("still running is an error: %s", r.text)
	}
	contains(t, r.text, "early", "still running", "empty `code`")
	lacks(t, r.text, "late")
	r = c.call(t, arguments{"code": ""})
	if r.isError || r.text != "late\n'value'" {
		t.Errorf("waiting on gave %q", r.text)
	}
	r = c.call(t, arguments{"code": ""})
	if !r.isError {
		t.Errorf("waiting for nothing succeeded: %s", r.text)
	}
	contains(t, r.text, "nothing is running")
}

// TestManySessions has more sessions than there may be sandboxes.
func TestManySessions(t *testing.T) {
	t.Parallel()
	c := connect(t, special(t, "--max-sandboxes=3"))
	most := 0
	for round := range 2 {
		for i := range 5 {
			text := c.runIn(t, fmt.Sprint("s", i), "print('here')")
			if !strings.HasSuffix(text, "here") || strings.Contains(text, "to make room") != (round == 1) {
				t.Errorf("round %d, session %d: %s", round, i, text)
			}
			most = max(most, len(containersOf(t, c.cmd.Process.Pid)))
		}
	}
	if most != 3 {
		t.Errorf("there were %d containers, want at most 3", most)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range 3 {
		wg.Go(func() {
			for ctx.Err() == nil { // it may find the others at work itself
				_, _ = c.try(ctx, arguments{"session": fmt.Sprint("s", i), "timeout": 100, "code": "tools.special.sleep(ms=100_000)"})
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	eventually(t, patience, "a session is refused", func() bool {
		r := c.call(t, arguments{"session": "s4", "code": "1"})
		return r.isError && strings.Contains(r.text, "all 3 sandboxes are busy")
	})
}
