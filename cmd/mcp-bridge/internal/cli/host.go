package cli

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// diagnoseHost looks at what every engine needs of this machine.
func (r *root) diagnoseHost() []runtime.Finding {
	found := []runtime.Finding{kernelFinding(), clockFinding(newClock(), time.Sleep, builtAt())}
	found = append(found, r.memoryFindings()...)
	found = append(found, r.diskFindings()...)
	if r.settings.allowUnlimited {
		found = append(found, runtime.Finding{
			Name: "allow-unlimited", Level: runtime.LevelWarn,
			Detail: "where an engine cannot limit memory, processes and processors, cells have no such limits",
			Fix:    "leave out --allow-unlimited (MCP_BRIDGE_ALLOW_UNLIMITED, allow_unlimited in config.toml)",
		})
	}
	return found
}

// A clockReading is the time by the clock that people set, and by the one that
// nothing sets.
type clockReading struct {
	wall      time.Time
	monotonic time.Duration
}

func newClock() func() clockReading {
	start := time.Now()
	return func() clockReading {
		now := time.Now()
		return clockReading{wall: now.Round(0), monotonic: now.Sub(start)}
	}
}

// builtAt is when this program was built, before which no clock can be right.
func builtAt() time.Time {
	earliest := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if t, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil && t.After(earliest) {
				return t
			}
		}
	}
	return earliest
}

// clockFinding looks whether time passes: every deadline rests on it.
func clockFinding(read func() clockReading, sleep func(time.Duration), earliest time.Time) runtime.Finding {
	const pause = 20 * time.Millisecond
	first := read()
	sleep(pause)
	second := read()
	f := runtime.Finding{Name: "clock", Level: runtime.LevelOK}
	passed, shown := second.monotonic-first.monotonic, second.wall.Sub(first.wall)
	switch {
	case passed < pause/2:
		f.Level, f.Detail = runtime.LevelFail, fmt.Sprintf("the monotonic clock stands still: %v in a pause of %v", passed, pause)
		f.Fix = "restart this machine: no deadline can be kept"
	case shown < 0 || shown > passed+time.Second:
		f.Level, f.Detail = runtime.LevelWarn, fmt.Sprintf("the time of day went %v in %v", shown, passed)
		f.Fix = "timedatectl set-ntp true"
	case second.wall.Before(earliest.Add(-24 * time.Hour)):
		f.Level, f.Detail = runtime.LevelWarn, fmt.Sprintf("it is %s, before this program was built", second.wall.Format(time.DateTime))
		f.Fix = "timedatectl set-ntp true"
	default:
		f.Detail = second.wall.Format(time.DateTime) + ", monotonic"
	}
	return f
}

func platform() string { return goruntime.GOOS + "/" + goruntime.GOARCH }
