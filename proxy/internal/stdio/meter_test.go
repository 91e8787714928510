package stdio_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-bridge/mcp-bridge/proxy/internal/stdio"
)

func TestMeter(t *testing.T) {
	tests := []struct {
		name        string
		bytes       int
		each        time.Duration
		first, last int // of the messages that are too much
	}{
		{"a flood of messages", 10, 0, 20_001, 20_001},
		{"a flood of bytes", 1 << 20, 0, 65, 65},
		{"one huge message", 65 << 20, time.Hour, 1, 1},
		{"too many, for long", 10, 400 * time.Microsecond, 50_000, 100_000},
		{"talkative", 1000, time.Millisecond, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m stdio.Meter
				for i := 1; i <= 100_000; i++ {
					if err := m.Count(test.bytes); err != nil {
						if !errors.Is(err, stdio.ErrFlood) || i < test.first || i > test.last {
							t.Errorf("message %d gives %v", i, err)
						}
						return
					}
					time.Sleep(test.each)
				}
				if test.last > 0 {
					t.Error("nothing was too much")
				}
			})
		})
	}
}
