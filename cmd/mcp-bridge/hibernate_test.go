package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const worldOfCells = `
import json, math
from dataclasses import dataclass
from enum import Enum
@dataclass
class Point:
    x: int
    y: int = 2
class Color(Enum):
    RED = 1
class Base:
    def who(self): return "base"
class Child(Base):
    def who(self): return "child of " + super().who()
def counter():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    return up
up = counter(); up()
points = [Point(1), Point(3)]
shared = {"points": points}
child = Child()
total = lambda: sum(p.x for p in points)
opened = open("/dev/null")
gen = (i for i in "ab")
`

const worldIsThere = "total(), up(), child.who(), shared['points'] is points, type(points[0]) is Point, Color.RED, math.floor(json.loads('2.5'))"

// TestHibernateAcrossStops has variables outlive an idle sandbox, the end of the
// bridge, and its being killed.
func TestHibernateAcrossStops(t *testing.T) {
	t.Parallel()
	s := setup{state: t.TempDir(), work: t.TempDir(), args: []string{"--runtime-idle-timeout=1", "--warm=0"}}
	c := connect(t, s)
	c.run(t, worldOfCells)
	eventually(t, patience, "the sandbox is stopped", func() bool { return len(containersOf(t, c.cmd.Process.Pid)) == 0 })
	text := c.run(t, worldIsThere)
	contains(t, text, "[restored from before the sandbox was stopped after 1s without a cell: json, math, dataclass, Enum, Point, Color,",
		"Not restored: ", "opened (TextIOWrapper: cannot be kept)", "gen (generator: cannot be kept)",
		"]\n(4, 2, 'child of base', True, True, <Color.RED: 1>, 2)")
	lacks(t, text, "gone")
	lacks(t, c.run(t, "up()"), "restored")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}

	c = connect(t, s)
	text = c.run(t, worldIsThere)
	contains(t, text, "[restored from before the bridge was restarted: json, math,", "(4, 4, 'child of base', True, True, <Color.RED: 1>, 2)")
	lacks(t, text, "Not restored")
	text = c.fails(t, "child.who(1)")
	contains(t, text, "child.who(1)", "TypeError")
	text = c.fails(t, "def f(p): return p.who().nothing\nf(child)")
	contains(t, text, "in f", "return p.who().nothing")

	c.run(t, "late = 'late'")
	eventually(t, patience, "it is saved", func() bool {
		return len(containersOf(t, c.cmd.Process.Pid)) == 0
	})
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	c = connect(t, s)
	contains(t, c.run(t, "late, up()"), "('late', 5)")
}

// TestHibernateKeepsFilesApart shows where the state is, and that no other state
// directory, and no other way to keep things, has it.
func TestHibernateFiles(t *testing.T) {
	t.Parallel()
	s := setup{state: t.TempDir(), work: t.TempDir(), args: []string{"--warm=0"}}
	c := connect(t, s)
	c.run(t, "x = 5")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := filepath.Glob(s.state + "/sessions/*.entry")
	if err != nil || len(entries) != 1 {
		t.Fatalf("saved: %v, %v", entries, err)
	}
	if info, err := os.Stat(entries[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	off := s
	off.args = []string{"--warm=0", "--hibernate=false"}
	c = connect(t, off)
	contains(t, c.fails(t, "x"), "NameError")
}

// TestExecSharesNothing has scripts begin with nothing, whatever ran before in
// the same directory.
func TestExecSharesNothing(t *testing.T) {
	t.Parallel()
	s := setup{state: t.TempDir(), work: t.TempDir()}
	for range 2 {
		got := shell(t, &s, "exec", "-c", "there = 'x' in globals()\nx = 1\nthere, session.info().saved")
		if got.code != exitOK || got.stdout != "(False, None)\n" {
			t.Errorf("exit code %d, %q, %q", got.code, got.stdout, got.stderr)
		}
	}
	if saved, err := filepath.Glob(s.state + "/sessions/*"); err != nil || len(saved) > 0 {
		t.Errorf("saved: %v, %v", saved, err)
	}
}

// TestHibernatePoison restores what never ends, and what ends the process.
func TestHibernatePoison(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]string{"exits": "__import__('os')._exit(3)", "raises": "1/0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup{state: t.TempDir(), work: t.TempDir(), args: []string{"--warm=0"}}
			c := connect(t, s)
			c.run(t, fmt.Sprintf("class Poison:\n  def __init__(self): self.x = 1\n  def __setstate__(self, state): %s\nbefore = 1\npoison = Poison()\nbehind = 2", does))
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			c = connect(t, s)
			text := c.run(t, "'before' in globals(), 'poison' in globals()")
			if name == "exits" {
				contains(t, text, "could not be restored: the Python process ended: it exited with status 3", "(False, False)")
			} else {
				contains(t, text, "[restored", "before, behind", "Not restored: poison (ZeroDivisionError: division by zero)", "(True, False)")
			}
			lacks(t, c.run(t, "again = 1"), "restored")
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			c = connect(t, s)
			contains(t, c.run(t, "again"), "restored from before the bridge was restarted", "\n1")
		})
	}
}

// TestSessionReset begins anew, also where the session's own Python cannot.
func TestSessionReset(t *testing.T) {
	t.Parallel()
	s := setup{state: t.TempDir(), work: t.TempDir(), args: []string{"--warm=0"}}
	c := connect(t, s)
	c.run(t, "x = 1; n = open('/tmp/file', 'w').write('kept')")
	for _, code := range []string{"session.reset()", "print('a word'); session.reset(); print('never')", "def f():\n  try: session.reset()\n  except BaseException: pass\nf()"} {
		c.run(t, "x = 1; import builtins; builtins.print_ = 5")
		text := c.run(t, code)
		contains(t, text, "[the session was reset: all variables are gone, and what was saved of them; files are kept]")
		lacks(t, text, "never", "Error")
		if got := strings.Contains(text, "[what stood after session.reset() did not run]"); got != (code != "session.reset()") {
			t.Errorf("got %q", text)
		}
		c.wants(t, "'x' in globals(), hasattr(__import__('builtins'), 'print_'), open('/tmp/file').read()", "(False, False, 'kept')")
	}
	for _, spoil := range []string{"compile = exec = None\nimport builtins\nbuiltins.compile = builtins.exec = builtins.eval = None", "session = 5", "import os; os._exit = lambda status: None"} {
		c.call(t, arguments{"code": spoil})
		contains(t, c.run(t, "session.reset()"), "[the session was reset")
		c.wants(t, "1 + 1", "2")
	}
	text := c.run(t, "session.info()")
	contains(t, text, "name: None", "memory: ", " of 512 MiB", "kept_when_stopped: yes", "saved: None")
	c.wants(t, "session.name", "(no output)")
	if got := strings.TrimSpace(c.runIn(t, "other", "session.name")); got != "'other'" {
		t.Errorf("the name is %s", got)
	}
	c.run(t, "y = 1")
	eventually(t, patience, "it is saved", func() bool { return strings.Contains(c.run(t, "session.info().saved or ''"), "names") || pause() })
	c.run(t, "session.forget(); z = 2")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = connect(t, s)
	contains(t, c.fails(t, "z"), "NameError")
}

// pause lets the bridge find a session idle. It is never true.
func pause() bool {
	time.Sleep(3 * time.Second)
	return false
}
