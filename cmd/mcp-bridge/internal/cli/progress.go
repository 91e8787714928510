package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	progressLine  = 5 * time.Second        // at least, between two lines
	progressFrame = 100 * time.Millisecond // at least, between two states of a line on a terminal
	progressWidth = 76                     // characters of a line on a terminal
)

// A progress shows how far a pull is: one line that changes on a terminal, and
// otherwise a line now and then.
type progress struct {
	w        io.Writer
	terminal bool
	what     string
	now      func() time.Time

	mu    sync.Mutex
	shown time.Time // when something was last written; zero for never
	width int       // of what stands on the terminal's line
}

func newProgress(w io.Writer, what string) *progress {
	p := &progress{w: w, what: what, now: time.Now}
	if t, ok := w.(terminal); ok { // what is written then has gone through printable
		p.w, p.terminal = t.w, true
	}
	return p
}

// update shows a new state, unless the last is too recent.
func (p *progress) update(state runtime.PullProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := progressLine
	if p.terminal {
		pause = progressFrame
	}
	if now := p.now(); p.shown.IsZero() || now.Sub(p.shown) >= pause {
		p.shown = now
		p.write(progressText(p.what, state))
	}
}

// end clears the terminal's line.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal && p.width > 0 {
		fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
		p.width = 0
	}
}

func (p *progress) write(text string) {
	text = oneLined(text)
	if !p.terminal {
		fmt.Fprintln(p.w, text)
		return
	}
	runes := []rune(text)
	text = string(runes[:min(len(runes), progressWidth)])
	width := min(len(runes), progressWidth)
	fmt.Fprintf(p.w, "\r%s%*s", text, max(p.width-width, 0), "")
	p.width = width
}

func progressText(what string, state runtime.PullProgress) string {
	parts := []string{what}
	switch {
	case state.Total > 0:
		parts = append(parts, fmt.Sprintf("%d %%, %s of %s", min(state.Done*100/state.Total, 100), bridge.Size(state.Done), bridge.Size(state.Total)))
	case state.Done > 0:
		parts = append(parts, bridge.Size(state.Done))
	}
	if state.Status != "" {
		parts = append(parts, state.Status)
	}
	return strings.Join(parts, " ")
}
