package bridge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	tellPause = time.Second      // between two looks at what a cell has printed
	heartbeat = 10 * time.Second // between two notifications with nothing new to tell
	lineTail  = 4 << 10          // bytes of output in which the last line is looked for
	lineLimit = 200              // characters of a line that are told
)

// A progress tells a client how far its call is. The numbers grow each time, as
// MCP wants it. Its methods may be called concurrently; a nil progress tells nobody.
type progress struct {
	notify func(number, total float64, message string)

	mu   sync.Mutex
	last float64
}

// progressOf returns the progress of a call, or nil if its client did not ask.
func progressOf(ctx context.Context, req *mcp.CallToolRequest) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return &progress{notify: func(number, total float64, message string) {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // a client that is gone misses nothing
			ProgressToken: token, Progress: number, Total: total, Message: message,
		})
	}}
}

// tell sends a message, with number of total if they are known, and grow.
func (p *progress) tell(message string, number, total float64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = max(p.last+1, number)
	if total < p.last {
		total = 0
	}
	p.notify(p.last, total, message)
}

// pull tells how far the image is that a call waits for.
func (p *progress) pull(now runtime.PullProgress) {
	p.tell("getting the image: "+now.Status, float64(now.Done), float64(now.Total))
}

// line tells what a cell has printed last, or what else there is to say.
func (p *progress) line(text string) { p.tell(text, 0, 0) }

// follow tells a cell's latest line of output as it changes, and now and then
// that the cell still runs, until the returned function is called. That waits
// for the last notification.
func (s *session) follow(e *execution, tell func(line string)) (stop func()) {
	if tell == nil {
		return func() {}
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(tellPause)
		defer tick.Stop()
		begin := time.Now()
		told, when := "", begin
		for {
			select {
			case <-ended:
				return
			case <-e.done:
				return
			case now := <-tick.C:
				s.mu.Lock()
				tail, asking := e.output.last(lineTail), e.asking()
				s.mu.Unlock()
				line := cmp.Or(asking, lastLine(tail))
				if line == told && now.Sub(when) < heartbeat {
					continue
				}
				told, when = line, now
				tell(running(line, now.Sub(begin)))
			}
		}
	})
	return func() {
		close(ended)
		wg.Wait()
	}
}

// running is what is told of a cell that runs for so long.
func running(line string, since time.Duration) string {
	if line == "" {
		return fmt.Sprintf("running for %v", since.Round(time.Second))
	}
	return line
}

// lastLine returns the last line of text with something on it, as a terminal
// would show it, bounded and without control characters.
func lastLine(text string) string {
	for _, line := range slices.Backward(strings.Split(plain(text), "\n")) {
		line = strings.Map(func(r rune) rune {
			switch {
			case r == '\t':
				return ' '
			case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
				return -1
			}
			return r
		}, line)
		if line = strings.TrimSpace(line); line != "" {
			return oneLine(line)
		}
	}
	return ""
}

// note returns text of a sandbox for a note: one line, bounded.
func note(text string) string {
	return lastLine(strings.ReplaceAll(text, "\n", " "))
}

// oneLine cuts the end off a long line.
func oneLine(line string) string {
	end := runeOffset(line, lineLimit)
	if end < len(line) {
		return line[:end] + "…"
	}
	return line
}
