package runtime

import (
	"errors"
	"strings"
)

const (
	longestReason = 100 // bytes of why one engine failed, among several
	longestWay    = 240 // bytes of a way out of it
)

// Reason is the engine and, in a few words, why it failed.
func (e *Error) Reason() string {
	if e.lacksLimits() {
		return e.Engine + ": cannot limit memory, processes and processors here"
	}
	text := strings.TrimPrefix(e.Err.Error(), ErrUnavailable.Error()+": ")
	return e.Engine + ": " + shortened(text, longestReason)
}

// lacksLimits reports whether the limits are all that the engine lacks. It is
// the engine that says so: its hint names the setting that does without them.
func (e *Error) lacksLimits() bool {
	return errors.Is(e.Err, ErrUnsupported) && strings.Contains(e.Hint, "--allow-unlimited")
}

// hint is the simplest way out for what was found: one engine is enough.
func (e *NoneError) hint(root bool) string {
	const more = "; `mcp-bridge doctor` shows more"
	for _, f := range e.Failures {
		if !f.lacksLimits() {
			continue
		}
		way := "--allow-unlimited (MCP_BRIDGE_ALLOW_UNLIMITED=1) does without these limits"
		if !root {
			way = "run as root, or " + way
		}
		return way + more
	}
	for _, f := range e.Failures {
		if errors.Is(f.Err, ErrImageMissing) && f.Hint != "" {
			return f.way() + more
		}
	}
	// The first is the one that is preferred, the last needs least.
	var ways []string
	for i, f := range e.Failures {
		if (i == 0 || i == len(e.Failures)-1) && f.Hint != "" {
			ways = append(ways, f.way())
		}
	}
	if len(ways) == 0 {
		return "`mcp-bridge doctor` shows more"
	}
	return strings.Join(ways, "; or ") + more
}

func (e *Error) way() string { return e.Engine + ": " + shortened(e.Hint, longestWay) }

// shortened is the first line of text, cut between words if it is longer than
// most bytes.
func shortened(text string, most int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if len(text) <= most {
		return text
	}
	end := strings.LastIndexByte(text[:most+1], ' ')
	if end <= 0 { // one word: better without it
		return "…"
	}
	return strings.TrimRight(text[:end], " ,;:(") + " …"
}
