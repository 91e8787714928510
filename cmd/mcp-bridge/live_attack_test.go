package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// liveSubjects are the files whose attacks the host judges. Each attack gets a
// sandbox of its own, for it may not outlast it.
var liveSubjects = []string{"channel", "cells", "exhaustion"}

const (
	liveAtOnce  = 4
	liveTimeout = 1.5 // seconds; attacks that need more say so
	// backWithin is how soon a session is of use again after an attack.
	backWithin = 15 * time.Second
	// most that a reply may be: what models are shown is shortened.
	mostShown = 100_000
)

// A liveAttack is what a file says of one.
type liveAttack struct {
	Subject, Name string
	Seconds       float64
	Spoils        bool
}

// TestLiveAttacks runs what may end a sandbox, or the bridge, on each engine. A
// sandbox may suffer by it; another session, the servers and the bridge must not.
func TestLiveAttacks(t *testing.T) {
	for _, engine := range attackedEngines() {
		t.Run(engine, func(t *testing.T) {
			s := special(t, "--memory=256m", "--pids=64", "--workspace-quota=0") // sessions share files: each attack begins with none
			s.servers["disabled"] = s.servers["special"]
			disabled := s.servers["disabled"]
			disabled.Disabled = true
			s.servers["disabled"] = disabled
			c := connectOn(t, engine, &s)
			other := watchBystander(t, c)
			memory := residentMiB(t, c.cmd.Process.Pid)

			outcomes := c.attackAll(t, liveAttacks(t, c))
			judge(t, engine, outcomes)

			other.unharmed(t)
			after := residentMiB(t, c.cmd.Process.Pid)
			t.Logf("the bridge had %d MiB before and has %d MiB after", memory, after)
			if after > memory+400 {
				t.Errorf("the bridge has grown from %d to %d MiB", memory, after)
			}
		})
	}
}

// liveAttacks are those of all liveSubjects.
func liveAttacks(t *testing.T, c *client) []liveAttack {
	t.Helper()
	var all []liveAttack
	for _, subject := range liveSubjects {
		text := c.runIn(t, "list", liveLoader(t, subject, "{}")+fmt.Sprintf(`
import json
print(json.dumps([dict(Subject=%[1]q, Name=n, Seconds=a.seconds, Spoils=a.spoils) for n, a in harness.ATTACKS[%[1]q].items()]))`, subject))
		var some []liveAttack
		if err := json.Unmarshal([]byte(text), &some); err != nil {
			t.Fatalf("%v in %.500s", err, text)
		}
		all = append(all, some...)
	}
	return all
}

func liveLoader(t *testing.T, subject, context string) string {
	t.Helper()
	return fmt.Sprintf(`
import sys, types
def load(name, source):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name + ".py", "exec"), module.__dict__)
    return module
harness = load("harness", %s)
harness.CONTEXT.update(__import__("json").loads(%s))
load(%q, %s)
`, pythonString(attackSource(t, "harness")), pythonString(context), subject, pythonString(attackSource(t, subject)))
}

// attackAll runs attacks, some at a time, and returns their outcomes.
func (c *client) attackAll(t *testing.T, attacks []liveAttack) map[string]string {
	t.Helper()
	known, err := json.Marshal(map[string]any{"canaries": canaries()})
	if err != nil {
		t.Fatal(err)
	}
	loaders := map[string]string{}
	for _, subject := range liveSubjects {
		loaders[subject] = liveLoader(t, subject, string(known))
	}
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		outcomes = map[string]string{}
		queue    = make(chan liveAttack)
	)
	for n := range liveAtOnce {
		wg.Go(func() {
			for a := range queue {
				outcome := c.attack(t, fmt.Sprint("attacker-", n), a, loaders[a.Subject])
				mu.Lock()
				outcomes[a.Subject+"/"+a.Name] = outcome
				mu.Unlock()
			}
		})
	}
	for _, a := range attacks {
		queue <- a
	}
	close(queue)
	wg.Wait()
	return maps.Clone(outcomes)
}

// attack runs one in a session and looks how the session does afterwards. It leaves
// a sandbox that nothing was done to.
func (c *client) attack(t *testing.T, session string, a liveAttack, loader string) string {
	code := loader + fmt.Sprintf("harness.live(%q, %q)", a.Subject, a.Name)
	timeout := liveTimeout
	if a.Seconds > 4 { // more than what is given to others
		timeout = a.Seconds
	}
	began := time.Now()
	r, err := c.within(t, backWithin+time.Duration(timeout*float64(time.Second)), arguments{"code": code, "session": session, "timeout": timeout})
	took := time.Since(began).Round(time.Millisecond)
	if err != nil {
		return fmt.Sprintf("open: no reply for %v: %v", took, err)
	}
	outcome := liveOutcome(r)
	began = time.Now()
	fresh, last := c.usableAgain(t, session, a.Spoils)
	again := time.Since(began).Round(time.Millisecond)
	if last != "" {
		return "open: the session is of no use afterwards: " + last
	}
	harmless := strings.HasPrefix(outcome, "denied: answered") || strings.HasPrefix(outcome, "denied: ignored")
	if !harmless && (!fresh || a.Subject == "exhaustion") { // which leaves files behind
		_, _ = c.within(t, backWithin, arguments{"code": hangUp, "session": session, "timeout": 2})
		if _, last := c.usableAgain(t, session, true); last != "" {
			return "open: the sandbox cannot be ended afterwards: " + last
		}
	}
	return fmt.Sprintf("%s (%v; again after %v)", outcome, took, again)
}

// within is try with a bound.
func (c *client) within(t *testing.T, d time.Duration, args arguments) (reply, error) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return c.try(ctx, args)
}

// hangUp ends a sandbox from inside.
const hangUp = `
import gc, socket, time
for o in gc.get_objects():
    if type(o).__module__ == "mcpbridge.callback" and type(o).__name__ == "Client":
        o._sock.shutdown(socket.SHUT_RDWR)
time.sleep(1)`

// liveOutcome judges a reply. What an attack says of itself it says on a line.
func liveOutcome(r reply) string {
	if len(r.text) > mostShown {
		return fmt.Sprintf("open: a reply of %d bytes", len(r.text))
	}
	for line := range strings.Lines(r.text) {
		for _, verdict := range []string{"denied: ", "open: ", "broken: "} {
			if strings.HasPrefix(line, verdict) {
				return strings.TrimSpace(line)
			}
		}
	}
	lines := strings.Split(strings.TrimSpace(r.text), "\n")
	told := lines[len(lines)-1]
	for _, line := range lines {
		if strings.HasPrefix(line, "Error:") {
			told = line
		}
	}
	if r.isError {
		return fmt.Sprintf("denied: told %.160q", told)
	}
	return fmt.Sprintf("denied: shown in %d characters", len(r.text))
}

// usableAgain reports whether a session has a new Python process, once it is of
// use, or what it still says after backWithin. It can wait for a new one.
func (c *client) usableAgain(t *testing.T, session string, wantFresh bool) (fresh bool, last string) {
	for deadline := time.Now().Add(backWithin); time.Now().Before(deadline); {
		r, err := c.within(t, backWithin, arguments{"code": `1 + 1, "harness" in __import__("sys").modules`, "session": session, "timeout": 5})
		switch {
		case err != nil:
			return false, err.Error()
		case !r.isError && strings.HasSuffix(r.text, "(2, True)") && !wantFresh:
			return false, ""
		case !r.isError && strings.HasSuffix(r.text, "(2, False)"):
			return true, ""
		}
		last = fmt.Sprintf("%.200q", r.text)
		time.Sleep(50 * time.Millisecond)
	}
	return false, last
}

// A bystander is a session that works all the time.
type bystander struct {
	*client
	stop  chan struct{}
	over  sync.WaitGroup
	took  []time.Duration
	wrong []string
}

func watchBystander(t *testing.T, c *client) *bystander {
	t.Helper()
	b := &bystander{client: c, stop: make(chan struct{})}
	c.runIn(t, "bystander", "kept = 'kept'")
	b.over.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-b.stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			began := time.Now()
			r, err := c.try(t.Context(), arguments{"code": fmt.Sprintf("kept, tools.special.same(value=%d).value", n), "session": "bystander"})
			b.took = append(b.took, time.Since(began))
			if want := fmt.Sprintf("('kept', %d)", n); err != nil || r.text != want {
				b.wrong = append(b.wrong, fmt.Sprintf("call %d: %.200q, %v", n, r.text, err))
			}
		}
	})
	t.Cleanup(b.end)
	return b
}

func (b *bystander) end() {
	select {
	case <-b.stop:
	default:
		close(b.stop)
	}
	b.over.Wait()
}

// unharmed checks that every answer was right, and nothing came to the server that
// should not.
func (b *bystander) unharmed(t *testing.T) {
	t.Helper()
	b.end()
	slices.Sort(b.took)
	if len(b.took) == 0 {
		t.Fatal("the bystander made no call")
	}
	t.Logf("the bystander made %d calls: median %v, slowest %v", len(b.took), b.took[len(b.took)/2], b.took[len(b.took)-1])
	if len(b.wrong) > 0 {
		t.Errorf("%d of the bystander's calls went wrong, the first %s", len(b.wrong), b.wrong[0])
	}
	if got := b.runIn(t, "bystander", "tools.special.stats().touched"); got != "0" {
		t.Errorf("the tool that no attack may reach was called %s times", got)
	}
}
