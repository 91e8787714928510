package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

func TestProgress(t *testing.T) {
	states := []struct {
		after time.Duration
		runtime.PullProgress
	}{
		{0, runtime.PullProgress{Status: "resolving"}},
		{time.Second, runtime.PullProgress{Status: "layer 1", Done: 5 << 20, Total: 50 << 20}},
		{10 * time.Millisecond, runtime.PullProgress{Status: "too soon", Done: 6 << 20, Total: 50 << 20}},
		{6 * time.Second, runtime.PullProgress{Status: "odd\x1b[2J\nlines", Done: 60 << 20, Total: 50 << 20}},
		{6 * time.Second, runtime.PullProgress{Done: 70 << 20}},
	}
	for _, test := range []struct {
		terminal bool
		want     string
	}{
		{false, "x resolving\nx 100 %, 60 MiB of 50 MiB odd�[2J lines\nx 70 MiB\n"},
		{true, "\rx resolving\rx 10 %, 5 MiB of 50 MiB layer 1\rx 100 %, 60 MiB of 50 MiB odd�[2J lines\rx 70 MiB                               \r        \r"},
	} {
		var out bytes.Buffer
		p := newProgress(&out, "x")
		if test.terminal {
			p = newProgress(terminal{&out}, "x")
		}
		now := time.Unix(1e9, 0)
		p.now = func() time.Time { return now }
		for _, s := range states {
			now = now.Add(s.after)
			p.update(s.PullProgress)
		}
		p.end()
		if out.String() != test.want {
			t.Errorf("got  %q\nwant %q", out.String(), test.want)
		}
	}
}
