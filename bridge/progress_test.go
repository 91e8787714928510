package bridge_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
)

// told runs a cell and returns what was told of it meanwhile.
func told(t *testing.T, b *bridge.Bridge, code string) (lines []string, r bridge.Result) {
	t.Helper()
	r = b.Run(t.Context(), bridge.Request{
		Code: code, Timeout: 100 * time.Second,
		Working: func(line string) { lines = append(lines, line) },
	})
	return lines, r
}

func TestWorking(t *testing.T) {
	inBubble(t, &engine{}, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		lines, r := told(t, b, "sleep 35s")
		// A new line is told at once, an old one as a sign of life.
		if !slices.Equal(lines, []string{"asleep", "asleep", "asleep", "asleep"}) || !strings.Contains(r.Text, "slept") {
			t.Errorf("%q, then %q", lines, r.Text)
		}
		if lines, _ := told(t, b, "print quick"); len(lines) > 0 {
			t.Errorf("of a quick cell: %q", lines)
		}
	})
}

// A bar that is drawn a thousand times is told once a second, as it is then.
func TestWorkingOnABar(t *testing.T) {
	e := &engine{script: func(k *kernel) {
		k.hello()
		for {
			c, ok := k.nextCell()
			if !ok {
				return
			}
			k.print("start\n")
			for i := range 50 {
				for range 20 {
					k.print("\r\x1b[32m" + strings.Repeat("#", i) + "\x1b[0m\a")
				}
				time.Sleep(100 * time.Millisecond)
			}
			k.answer(c, nil, object{})
		}
	}}
	inBubble(t, e, bridge.Options{}, func(t *testing.T, b *bridge.Bridge) {
		lines, r := told(t, b, "bar")
		if len(lines) < 3 || len(lines) > 6 {
			t.Errorf("%d lines were told: %q", len(lines), lines)
		}
		for i, line := range lines {
			if strings.Trim(line, "#") != "" || i > 0 && len(line) <= len(lines[i-1]) {
				t.Errorf("line %d is %q", i, line)
			}
		}
		if r.Text != "start\n"+strings.Repeat("#", 49)+"\a" {
			t.Errorf("shown: %q", r.Text)
		}
	})
}

// Of silence only its length is told, and nothing after the call's end.
func TestWorkingInSilence(t *testing.T) {
	e := &engine{script: func(k *kernel) {
		k.hello()
		for {
			c, ok := k.nextCell()
			if !ok {
				return
			}
			time.Sleep(25 * time.Second)
			k.answer(c, nil, object{})
		}
	}}
	inBubble(t, e, bridge.Options{Yield: 12 * time.Second}, func(t *testing.T, b *bridge.Bridge) {
		lines, r := told(t, b, "wait")
		if !slices.Equal(lines, []string{"running for 10s"}) || !strings.Contains(r.Text, "still running") {
			t.Errorf("%q, then %q", lines, r.Text)
		}
		time.Sleep(time.Minute)
		if len(lines) != 1 {
			t.Errorf("told after the end: %q", lines)
		}
	})
}

// What one call shows of a line that is being drawn, the next one completes.
func TestPiecesOfABar(t *testing.T) {
	e := &engine{script: func(k *kernel) {
		k.hello()
		for {
			c, ok := k.nextCell()
			if !ok {
				return
			}
			k.print("a\r\x1b[3")
			time.Sleep(20 * time.Second)
			k.print("1mb")
			k.answer(c, nil, object{})
		}
	}}
	inBubble(t, e, bridge.Options{Yield: 12 * time.Second}, func(t *testing.T, b *bridge.Bridge) {
		if r := run(t, b, "draw"); !strings.HasPrefix(r.Text, "a\n[cell 1 is still running") {
			t.Errorf("first %q", r.Text)
		}
		if r := run(t, b, ""); r.Text != "b" {
			t.Errorf("then %q", r.Text)
		}
	})
}
