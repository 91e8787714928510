package stdio

import (
	"errors"
	"time"
)

// ErrFlood says that the server sends more that nobody asked for than it may.
var ErrFlood = errors.New("it sent a flood of output that nobody asked for")

// What a server may send unasked: so much at once, and so much a second.
const (
	burstMessages, messageRate = 20_000, 2_000
	burstBytes, byteRate       = 64 << 20, 4 << 20
)

// A Meter measures what a server sends unasked. The zero Meter is ready for
// use, by one goroutine.
type Meter struct {
	messages, bytes float64 // above the rate
	last            time.Time
}

// Count adds one message, or a line that is none. It returns [ErrFlood] when
// it is too much.
func (m *Meter) Count(bytes int) error {
	now := time.Now()
	passed := now.Sub(m.last).Seconds()
	m.last = now
	m.messages = max(0, m.messages-passed*messageRate) + 1
	m.bytes = max(0, m.bytes-passed*byteRate) + float64(bytes)
	if m.messages > burstMessages || m.bytes > burstBytes {
		return ErrFlood
	}
	return nil
}
