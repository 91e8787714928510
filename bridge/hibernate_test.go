package bridge_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// keeping are options of a bridge that saves its sessions, and no files.
func keeping(t *testing.T) bridge.Options {
	t.Helper()
	return bridge.Options{
		StateDir: t.TempDir() + "/state", WorkspaceQuota: -1, Hibernate: true, Directory: "/here", IdleTimeout: time.Minute,
	}
}

// inKeepingBubble is inBubble for tests of several bridges: open makes one.
func inKeepingBubble(t *testing.T, e *engine, test func(t *testing.T, open func(bridge.Options) *bridge.Bridge)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tools := proxy.New(proxy.Options{})
		var bridges []*bridge.Bridge
		test(t, func(opts bridge.Options) *bridge.Bridge {
			opts.Engine, opts.Image, opts.Tools = e, "image", tools
			b := bridge.New(opts)
			bridges = append(bridges, b)
			return b
		})
		for _, b := range bridges {
			b.Close()
		}
		if err := tools.Close(); err != nil {
			t.Error(err)
		}
		if _, open := e.started(); open != 0 {
			t.Errorf("%d sandboxes are left", open)
		}
	})
}

const stoppedAndGone = "Note: the sandbox was stopped after 1m0s without a cell. All variables and files are gone."

func TestHibernateIdle(t *testing.T) {
	opts := keeping(t)
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		runs(t, b, "value 1", "1")
		time.Sleep(time.Hour)
		runs(t, b, "set x", stoppedAndGone) // there was nothing to save
		runs(t, b, "set socket", "(no output)")
		time.Sleep(time.Hour)
		r := run(t, b, "vars")
		contains(t, r, "[restored from before the sandbox was stopped after 1m0s without a cell, 59 minutes ago: x]", "\nx")
		if strings.Contains(r.Text, "printed") || strings.Contains(r.Text, "gone") {
			t.Errorf("got %q", r.Text)
		}
		runs(t, b, "vars", "x")
		time.Sleep(time.Hour)
		contains(t, run(t, b, "vars"), "restored", "\nx")
		contains(t, run(t, b, `call output/read {"cell":2}`), "no longer kept")
	})
}

func TestHibernateAcrossBridges(t *testing.T) {
	opts := keeping(t)
	e := &engine{}
	inKeepingBubble(t, e, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		runs(t, b, "set x", "(no output)")
		contains(t, inSession(t, b, "named", "set y"), "(no output)")
		b.Close()
		b = open(opts)
		runs(t, b, "vars", "[restored from before the bridge was restarted: x]\nx")
		runs(t, b, "vars", "x")
		contains(t, run(t, b, `call output/read {"cell":9}`), "there is no cell 9; the latest is 4") // numbers go on
		contains(t, inSession(t, b, "named", "vars"), "[restored", ": y]\ny")
		b.Close()
		saves := 0
		for _, box := range e.all() {
			saves += strings.Count(strings.Join(box.cells(), " "), "save")
		}
		if saves != 4 {
			t.Errorf("%d saves, want one of each session and bridge", saves)
		}
		elsewhere := opts
		elsewhere.Directory = "/there"
		b = open(elsewhere)
		runs(t, b, "vars", "(no output)")
		contains(t, inSession(t, b, "named", "vars"), "(no output)")
	})
}

// What has not changed is not saved again.
func TestHibernateSavesOnce(t *testing.T) {
	opts := keeping(t)
	e := &engine{}
	inKeepingBubble(t, e, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		runs(t, b, "set x", "(no output)")
		time.Sleep(10 * time.Second)
		b.Close()
		if ran := e.all()[0].cells(); !slices.Equal(ran, []string{"set x", "save"}) {
			t.Errorf("it ran %q", ran)
		}
	})
}

// A bridge that is killed loses what came since the last moment of rest.
func TestHibernateCheckpoint(t *testing.T) {
	opts := keeping(t)
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		runs(t, b, "set x", "(no output)")
		time.Sleep(10 * time.Second)
		runs(t, b, "set y", "(no output)")
		// As if killed: its lock is gone, and nothing more was saved.
		entry := savedEntry(t, opts)
		data, err := os.ReadFile(entry)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(data), "\nx") {
			t.Errorf("saved: %q", data)
		}
	})
}

// What was not saved before the bridge was killed is told with the restore, and
// the numbers of cells go on.
func TestRestoreTellsWhatWasNotSaved(t *testing.T) {
	for want, cells := range map[string]int{
		"[restored from before the bridge was restarted: x]\nx":                                                       0,
		"[restored from before the bridge was restarted, as it was after cell 1; cell 2 was not saved: x]\nx":         1,
		"[restored from before the bridge was restarted, as it was after cell 1; cells 2 and 3 were not saved: x]\nx": 2,
		"[restored from before the bridge was restarted, as it was after cell 1; cells 2 to 5 were not saved: x]\nx":  4,
	} {
		opts := keeping(t)
		inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
			b := open(opts)
			runs(t, b, "set x", "(no output)")
			time.Sleep(10 * time.Second)
			for range cells {
				runs(t, b, "set y", "(no output)")
			}
			synctest.Wait()
			killed := opts
			killed.StateDir = t.TempDir() + "/state"
			if err := os.CopyFS(killed.StateDir, os.DirFS(opts.StateDir)); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"", "/sessions", "/began"} {
				if err := os.Chmod(killed.StateDir+dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			b = open(killed)
			runs(t, b, "vars", want)
			contains(t, run(t, b, "call session/info {}"), fmt.Sprintf(`"cells":%d`, 1+cells+2))
		})
	}
}

// A cell that runs as the bridge ends is interrupted, and the next bridge says so.
func TestRestoreTellsOfAnInterruptedCell(t *testing.T) {
	opts := keeping(t)
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		runs(t, b, "set x", "(no output)")
		go b.Run(t.Context(), bridge.Request{Code: "sleep 1h", Timeout: time.Hour})
		synctest.Wait()
		b.Close()
		b = open(opts)
		runs(t, b, "vars", "[restored from before the bridge was restarted, as it was after cell 2; cell 2 was interrupted then: x]\nx")
		b.Close()
		b = open(opts)
		runs(t, b, "vars", "[restored from before the bridge was restarted: x]\nx")
	})
}

func savedEntry(t *testing.T, opts bridge.Options) string {
	t.Helper()
	entries, err := filepath.Glob(opts.StateDir + "/sessions/*.entry")
	if err != nil || len(entries) != 1 {
		t.Fatalf("saved: %v, %v", entries, err)
	}
	return entries[0]
}

// A call that comes in the middle of a checkpoint ends it, and is not kept
// waiting; what was saved before stays.
func TestCheckpointMakesWay(t *testing.T) {
	opts := keeping(t)
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		runs(t, b, "set x", "(no output)")
		time.Sleep(10 * time.Second)
		runs(t, b, "set slow", "(no output)")
		time.Sleep(2*time.Second + time.Millisecond) // it has begun, and would take a second
		took(t, 0, func() { runs(t, b, "value 1", "1") })
		data, err := os.ReadFile(savedEntry(t, opts))
		if err != nil || !strings.HasSuffix(string(data), "\nx") {
			t.Errorf("saved: %q, %v", data, err)
		}
	})
}

// What a checkpoint leaves out for its size does not take the place of a whole
// state.
func TestCheckpointOfMuch(t *testing.T) {
	opts := keeping(t)
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		runs(t, b, "set x", "(no output)")
		time.Sleep(10 * time.Second)
		runs(t, b, "set huge", "(no output)")
		time.Sleep(10 * time.Second)
		if data, err := os.ReadFile(savedEntry(t, opts)); err != nil || !strings.HasSuffix(string(data), "\nx") {
			t.Errorf("saved: %q, %v", data, err)
		}
		time.Sleep(30 * time.Second) // a longer rest saves it whole
		if data, err := os.ReadFile(savedEntry(t, opts)); err != nil || !strings.HasSuffix(string(data), "\nx huge") {
			t.Errorf("saved: %q, %v", data, err)
		}
		time.Sleep(time.Hour)
		contains(t, run(t, b, "vars"), ": x, huge]\nx huge")
	})
}

// A save that fails, in whatever way, costs the variables of a sandbox that is
// stopped, and says so. One that nobody asked for costs nothing but the REPL if
// that ends.
func TestHibernateFails(t *testing.T) {
	for name, words := range map[string][]string{
		"fails":  {stoppedAndGone, "could not be saved: E: no way."},
		"flood":  {stoppedAndGone, "could not be saved"},
		"socket": {stoppedAndGone, "These could not be saved: socket (socket: cannot be kept)."},
		"exits":  {"The next call starts afresh"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := keeping(t)
			opts.StateLimit = 8 << 20
			inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
				b := open(opts)
				runs(t, b, "set "+name, "(no output)")
				if name == "exits" {
					time.Sleep(10 * time.Second)
					contains(t, run(t, b, "value 1"), "the Python process ended since the last cell: it exited. All variables are gone")
					return
				}
				time.Sleep(time.Hour)
				contains(t, run(t, b, "value 1"), words...)
				runs(t, b, "value 2", "2")
			})
		})
	}
}

// One that takes too long is bounded when the sandbox is stopped, and more so at
// the bridge's end.
func TestHibernateIsBounded(t *testing.T) {
	for _, name := range []string{"slow", "deaf"} {
		t.Run(name, func(t *testing.T) {
			opts := keeping(t)
			inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
				b := open(opts)
				runs(t, b, "set "+name, "(no output)")
				begin := time.Now()
				b.Close()
				if took := time.Since(begin); took > 3*time.Second {
					t.Errorf("Close took %v", took)
				}
			})
		})
	}
}

// What cannot be restored is tried once, set aside and told; the session begins
// with nothing.
func TestRestoreFails(t *testing.T) {
	for name, words := range map[string]string{
		"poison":   "could not be restored: the Python process ended: it exited with status 1.",
		"death":    "could not be restored: the sandbox ended.",
		"nonsense": "could not be restored: the kernel did not say how it went.",
	} {
		t.Run(name, func(t *testing.T) {
			opts := keeping(t)
			inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
				b := open(opts)
				runs(t, b, "set "+name, "(no output)")
				b.Close()
				b = open(opts)
				r := run(t, b, "vars")
				contains(t, r, "Note: what was saved of this session before the bridge was restarted "+words, "All variables and files are gone.")
				if r.IsError || strings.Contains(r.Text, name+"\n") {
					t.Errorf("got %q", r.Text)
				}
				runs(t, b, "set x", "(no output)")
				b.Close()
				b = open(opts)
				runs(t, b, "vars", "[restored from before the bridge was restarted: x]\nx")
				if entries, err := filepath.Glob(opts.StateDir + "/sessions/*failed*.entry"); err != nil || len(entries) != 1 {
					t.Errorf("set aside: %v, %v", entries, err)
				}
			})
		})
	}
}

// A file that is not what was written is treated like one that does not work.
func TestRestoreDamaged(t *testing.T) {
	opts := keeping(t)
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		runs(t, b, "set x", "(no output)")
		b.Close()
		if err := os.WriteFile(savedEntry(t, opts), []byte("something"), 0o600); err != nil {
			t.Fatal(err)
		}
		b = open(opts)
		contains(t, run(t, b, "vars"), "could not be restored")
		runs(t, b, "vars", "(no output)")
	})
}

// Of two bridges at the same time only one has what was saved, and the other
// takes nothing from it.
func TestHibernateTwoBridges(t *testing.T) {
	opts := keeping(t)
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		first := open(opts)
		runs(t, first, "set x", "(no output)")
		second := open(opts)
		runs(t, second, "vars", "(no output)")
		runs(t, second, "set y", "(no output)")
		time.Sleep(time.Hour) // both are stopped, and come back
		contains(t, run(t, second, "vars"), "[restored", ": y]\ny")
		contains(t, run(t, first, "vars"), "[restored", ": x]\nx")
		first.Close()
		second.Close()
		third := open(opts)
		runs(t, third, "vars", "[restored from before the bridge was restarted: x]\nx")
		savedEntry(t, opts) // and there is no other
	})
}

func TestHibernateOff(t *testing.T) {
	opts := keeping(t)
	opts.Hibernate = false
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		runs(t, b, "set x", "(no output)")
		time.Sleep(time.Hour)
		runs(t, b, "vars", stoppedAndGone)
		contains(t, run(t, b, `call kernel/save {"offset":0,"data":""}`), "error: only the kernel itself saves")
		contains(t, run(t, b, `call kernel/load {"offset":0}`), "error: only the kernel itself saves")
		if files, err := os.ReadDir(opts.StateDir); err == nil && len(files) > 0 {
			t.Errorf("it left %v", files)
		}
	})
}

// Cells cannot save or load by themselves.
func TestCellsDoNotSave(t *testing.T) {
	opts := keeping(t)
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		contains(t, run(t, b, `call kernel/save {"offset":0,"data":"AAAA"}`), "error: only the kernel itself saves")
		contains(t, run(t, b, `call kernel/load {"offset":0}`), "error: only the kernel itself saves")
	})
}

// Room is made by the sessions that were saved longest ago.
func TestHibernateManySessions(t *testing.T) {
	opts := keeping(t)
	opts.MaxSessions = 100
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		for i := range 70 {
			name := "s" + string(rune('0'+i/10)) + string(rune('0'+i%10))
			inSession(t, b, name, "set "+name)
			time.Sleep(10 * time.Second)
		}
		b.Close()
		b = open(opts)
		contains(t, inSession(t, b, "s69", "vars"), ": s69]")
		if r := inSession(t, b, "s00", "vars"); r.Text != "(no output)" {
			t.Errorf("got %q", r.Text)
		}
	})
}

func TestSessionReset(t *testing.T) {
	opts := keeping(t)
	inKeepingBubble(t, &engine{}, func(t *testing.T, open func(bridge.Options) *bridge.Bridge) {
		b := open(opts)
		runs(t, b, "set x", "(no output)")
		time.Sleep(10 * time.Second)
		savedEntry(t, opts)
		runs(t, b, " session.reset()\n", "[the session was reset, and its sandbox replaced: all variables are gone, and what was saved of them]")
		runs(t, b, "vars", "(no output)")
		if entries, _ := filepath.Glob(opts.StateDir + "/sessions/*.entry"); len(entries) > 0 {
			t.Errorf("saved: %v", entries)
		}
		runs(t, b, "set y", "(no output)")
		time.Sleep(time.Hour)
		// It is not restored first.
		contains(t, run(t, b, "session.reset()"), "the session was reset")
		runs(t, b, "vars", "(no output)")
		runs(t, b, "set z", "(no output)")
		b.Close()
		b = open(opts)
		runs(t, b, "vars", "[restored from before the bridge was restarted: z]\nz")
		contains(t, run(t, b, "call session/forget {}"), "{}")
		b.Close()
		b = open(opts)
		runs(t, b, "vars", "(no output)")
		contains(t, run(t, b, "call session/info {}"), `"cells":2`, `"kept":"yes"`, `"saved":null`)
	})
}
