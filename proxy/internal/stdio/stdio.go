// Package stdio runs MCP servers as child processes and speaks to them over
// their standard input and output.
//
// It owns processes and framing: how a server is started and ended, with every
// process it started in turn, and how lines become JSON-RPC messages. What the
// messages mean is its caller's business.
//
//	Start ──▶ Process ── Conn() ──▶ mcp.Connection (one line, one message)
//	            │
//	            └── process group, led by a guard that kills it if we die
package stdio

import (
	"errors"
	"fmt"
	"time"
)

// Conditions a caller may branch on with errors.Is.
var (
	// ErrCommand: the program does not exist or cannot be run.
	ErrCommand = errors.New("program not found or not executable")
	// ErrDir: the working directory does not exist.
	ErrDir = errors.New("working directory not found")
	// ErrProtocol: the server sent something from which there is no recovery.
	ErrProtocol = errors.New("invalid message from the server")
	// ErrTooDeep is the Error of a response that is nested over [MaxDepth]
	// levels. Its Result is there for who can take it apart.
	ErrTooDeep = fmt.Errorf("the server's answer is nested over %d levels deep", MaxDepth)
)

const (
	// MaxMessage is the largest message accepted from a server, in bytes.
	MaxMessage = 64 << 20
	// maxSkipped is how much of a longer message is read, and thrown away, in
	// the hope of its end.
	maxSkipped = 1 << 30
	// MaxDepth bounds the nesting of a message: parsers downstream recurse.
	MaxDepth = 512
	// tailBytes is how much of a server's own output is kept.
	tailBytes = 64 << 10

	// closeGrace is the time a server has to exit after its standard input was
	// closed, and termGrace after SIGTERM.
	closeGrace = time.Second
	termGrace  = time.Second
	// drainGrace is the time that killed processes have to let go of their
	// standard error, and reapGrace to vanish.
	drainGrace = 100 * time.Millisecond
	reapGrace  = 500 * time.Millisecond
)

// Options says what to run.
type Options struct {
	Command string            // a name to be found in PATH, or a path
	Args    []string          // without the command itself
	Env     map[string]string // added to what [Environ] inherits
	Dir     string            // working directory; ours if empty
	Unasked *Meter            // counts the lines that are no messages; nil for one of its own
}
