package bridge_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
)

const stoppedIdle = "Note: the sandbox was stopped after 5m0s without a cell. All variables and files are gone."

func TestIdleSandboxIsStopped(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{IdleTimeout: 5 * time.Minute}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "value 1", "1")
		for range 3 { // each cell begins the time anew
			time.Sleep(299 * time.Second)
			runs(t, b, "value 2", "2")
		}
		wantStarted(t, e, 1, 1)
		time.Sleep(300 * time.Second)
		wantStarted(t, e, 1, 0)
		time.Sleep(time.Hour)
		runs(t, b, "value 3", stoppedIdle+"\n3")
		runs(t, b, "value 4", "4")
		wantStarted(t, e, 2, 1)
		time.Sleep(time.Hour)
		fails(t, b, "raise boom", stoppedIdle+"\nTraceback: boom")
	})
}

func TestIdleNever(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "value 1", "1")
		time.Sleep(1000 * time.Hour)
		runs(t, b, "value 2", "2")
		wantStarted(t, e, 1, 1)
	})
}

// A cell that runs keeps its sandbox, whoever waits for it; what is left of one
// that has ended does not.
func TestIdleMeansNoCell(t *testing.T) {
	e := &engine{}
	opts := bridge.Options{IdleTimeout: 10 * time.Second, Yield: 2 * time.Second}
	inBubble(t, e, opts, func(t *testing.T, b *bridge.Bridge) {
		r := b.Run(t.Context(), bridge.Request{Code: "sleep 100s", Timeout: 120 * time.Second})
		contains(t, r, "still running")
		time.Sleep(97 * time.Second)
		wantStarted(t, e, 1, 1)
		time.Sleep(10 * time.Second)
		wantStarted(t, e, 1, 1)
		time.Sleep(time.Second)
		wantStarted(t, e, 1, 0)
		runs(t, b, "", "Note: the sandbox was stopped after 10s without a cell. All variables and files are gone.\nslept")
		fails(t, b, "", "nothing is running")

		runs(t, b, "then later output late", "(no output)")
		time.Sleep(10 * time.Second)
		wantStarted(t, e, 2, 0)
		r = run(t, b, "value 1")
		contains(t, r, "stopped after 10s", "late", "\n1")
	})
}

// What a cell had to say that nobody has heard survives its sandbox, within
// bounds.
func TestUnheardSurvivesTheSandbox(t *testing.T) {
	e := &engine{script: func(k *kernel) {
		k.hello()
		for {
			c, ok := k.nextCell()
			if !ok {
				return
			}
			data, _ := base64.StdEncoding.DecodeString(onePixel)
			if c.Code == "large" {
				data = noisy(t)
			}
			time.Sleep(5 * time.Second)
			k.print(strings.Repeat("x", 100_000))
			k.answer(c, nil, object{"value": object{"text": "the value"}, "images": []object{{"mime": "image/png", "data": data}}})
		}
	}}
	opts := bridge.Options{IdleTimeout: time.Minute, Yield: time.Second}
	inBubble(t, e, opts, func(t *testing.T, b *bridge.Bridge) {
		for code, images := range map[string]int{"small": 1, "large": 0} {
			contains(t, run(t, b, code), "still running")
			time.Sleep(time.Hour)
			r := run(t, b, "")
			contains(t, r, "stopped after", "xxx", "the value")
			if len(r.Images) != images || len(r.Text) > 25_000 {
				t.Errorf("%s: %d images and %d bytes", code, len(r.Images), len(r.Text))
			}
			if told := strings.Contains(r.Text, "its images, "); told != (images == 0) {
				t.Errorf("%s: told of lost images: %v", code, told)
			}
		}
	})
}

// noisy returns a PNG of more than 2 MiB.
func noisy(t *testing.T) []byte {
	t.Helper()
	p := image.NewGray(image.Rect(0, 0, 1500, 1500))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range p.Pix {
		p.Pix[i] = byte(rng.Uint32())
	}
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestOutputsGoWithTheSandbox(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{IdleTimeout: time.Minute}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "print old", "old")
		time.Sleep(time.Hour)
		contains(t, run(t, b, "print new"), "stopped", "new")
		contains(t, run(t, b, `call output/read {"cell":1}`), "the output of cell 1 is no longer kept; the oldest kept is that of cell 2")
		runs(t, b, `call output/read {"cell":2}`, `{"text":"new"}`)
	})
}

// A sandbox that died before it could be stopped is told as dead.
func TestDeadAndIdle(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{IdleTimeout: time.Minute}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "then later die", "(no output)")
		time.Sleep(time.Hour)
		runs(t, b, "value 1", "Note: the sandbox was replaced: the sandbox ended. All variables and files are gone.\n1")
	})
}

// Calls that come just as the sandbox is stopped run, in the old or a new one,
// and are told if it is new.
func TestIdleStopMeetsCalls(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{IdleTimeout: time.Minute}, func(t *testing.T, b *bridge.Bridge) {
		runs(t, b, "value 0", "0")
		told := 0
		for range 200 {
			time.Sleep(time.Minute) // the timer is due now
			var wg sync.WaitGroup
			var mu sync.Mutex
			for range 3 {
				wg.Go(func() {
					r := run(t, b, "value 1")
					if r.IsError || !strings.HasSuffix(r.Text, "1") {
						t.Errorf("got %q", r.Text)
					}
					mu.Lock()
					defer mu.Unlock()
					told += strings.Count(r.Text, "stopped")
				})
			}
			wg.Wait()
		}
		if all, open := e.started(); all != told+1 || open != 1 {
			t.Errorf("%d sandboxes were started, %d are open, and %d were told to be stopped", all, open, told)
		}
	})
}

const stoppedForRoom = "Note: the sandbox was stopped to make room, as it had been idle longest of the 3 there may be. All variables and files are gone."

func TestIdlestMakesRoom(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{MaxSandboxes: 3}, func(t *testing.T, b *bridge.Bridge) {
		for _, name := range []string{"a", "b", "c", "a"} {
			contains(t, inSession(t, b, name, "value 1"), "1")
			time.Sleep(time.Second)
		}
		contains(t, inSession(t, b, "d", "value 2"), "2")
		wantStarted(t, e, 4, 3)
		for _, name := range []string{"a", "c", "d"} { // b was idle longest
			if r := inSession(t, b, name, "value 3"); r.Text != "3" {
				t.Errorf("session %s got %q", name, r.Text)
			}
			time.Sleep(time.Second)
		}
		if r := inSession(t, b, "b", "value 4"); r.Text != stoppedForRoom+"\n4" {
			t.Errorf("got %q", r.Text)
		}
		if r := inSession(t, b, "a", "value 5"); r.Text != stoppedForRoom+"\n5" {
			t.Errorf("got %q", r.Text)
		}
		if e.most() != 3 {
			t.Errorf("%d sandboxes at a time", e.most())
		}
	})
}

func TestBusyMakesNoRoom(t *testing.T) {
	e := &engine{}
	inBubble(t, e, bridge.Options{MaxSandboxes: 2}, func(t *testing.T, b *bridge.Bridge) {
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			wg.Go(func() { contains(t, inSession(t, b, name, "sleep 10s"), "slept") })
		}
		synctest.Wait()
		took(t, 0, func() {
			r := inSession(t, b, "c", "value 1")
			contains(t, r, "all 2 sandboxes are busy", "try again")
			if !r.IsError {
				t.Errorf("it ran")
			}
		})
		wg.Wait()
		contains(t, inSession(t, b, "c", "value 1"), "1")
	})
}

// Many sessions that want the same few places all get one.
func TestRoomForMany(t *testing.T) {
	e := &engine{start: slowly(time.Second)}
	inWarmBubble(t, e, bridge.Options{MaxSandboxes: 3, MaxSessions: 40}, func(t *testing.T, b *bridge.Bridge) {
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				for range 1000 {
					r := inSession(t, b, fmt.Sprint("s", i), "value 1")
					if !strings.Contains(r.Text, "busy") {
						contains(t, r, "1")
						return
					}
					time.Sleep(time.Second)
				}
				t.Errorf("session %d never got its turn", i)
			})
		}
		wg.Wait()
		if e.most() > 3 {
			t.Errorf("%d sandboxes at a time", e.most())
		}
	})
}

// Sessions are forgotten, the least recently used first, when there are many.
func TestSessionsAreForgotten(t *testing.T) {
	e := &engine{}
	opts := bridge.Options{MaxSessions: 3, IdleTimeout: time.Minute}
	inBubble(t, e, opts, func(t *testing.T, b *bridge.Bridge) {
		for _, name := range []string{"", "b", "c"} {
			contains(t, inSession(t, b, name, "value 1"), "1")
		}
		r := inSession(t, b, "d", "value 1")
		contains(t, r, "3 sessions in use already")
		if !r.IsError {
			t.Error("it ran")
		}
		time.Sleep(30 * time.Second)
		contains(t, inSession(t, b, "", "value 1"), "1")
		time.Sleep(31 * time.Second) // b and c are stopped
		contains(t, inSession(t, b, "d", "value 1"), "1")
		contains(t, inSession(t, b, "e", "value 1"), "1")
		if r := inSession(t, b, "", "value 1"); r.Text != "1" {
			t.Errorf("the session that has a sandbox got %q", r.Text)
		}
		wantStarted(t, e, 5, 3)
	})
}
