package bridge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxLine is the largest message a client may send, in bytes.
const maxLine = 16 << 20

// A stdio is the server's end of MCP's stdio transport. It stands in for
// mcp.IOTransport, for which one line that is no message is the end, with every
// session and its variables: here such a line is answered with an error, as
// JSON-RPC 2.0 asks, section 5.1.
type stdio struct {
	in    io.Reader
	out   io.Writer
	drain func() // called once, when in has ended and before the SDK hears of it
}

// Connect implements [mcp.Transport].
func (t stdio) Connect(context.Context) (mcp.Connection, error) {
	c := &stdioConn{
		in:     bufio.NewReaderSize(t.in, 64<<10),
		out:    t.out,
		drain:  sync.OnceFunc(t.drain),
		closed: make(chan struct{}),
	}
	if d, ok := t.in.(deadliner); ok && d.SetReadDeadline(time.Time{}) == nil {
		c.direct = d
		return c, nil
	}
	// Nothing can end a read of such an input, so it is left behind at the end.
	c.lines = make(chan line)
	go c.readLines()
	return c, nil
}

// deadliner is an input whose reads can be cut short, such as a pipe that the
// runtime polls.
type deadliner interface{ SetReadDeadline(time.Time) error }

type stdioConn struct {
	in    *bufio.Reader
	drain func()

	direct deadliner // nil if lines are read by a goroutine
	lines  chan line

	mu  sync.Mutex // one message at a time
	out io.Writer

	once   sync.Once
	closed chan struct{}
}

type line struct {
	text []byte
	err  error
}

// errTooLong is the error of a line over maxLine, which was skipped.
var errTooLong = fmt.Errorf("a message has more than %d MiB", maxLine>>20)

// SessionID is part of mcp.Connection; there is none over stdio.
func (*stdioConn) SessionID() string { return "" }

// Read returns the client's next message, and io.EOF at the end of the input.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		text, err := c.nextLine(ctx)
		switch {
		case errors.Is(err, errTooLong):
			c.refuse(jsonrpc.CodeInvalidRequest, err.Error())
			continue
		case err != nil:
			c.drain()
			return nil, io.EOF
		case len(text) == 0:
			continue
		case text[0] == '[':
			c.refuse(jsonrpc.CodeInvalidRequest, "batches are not part of MCP: send one message a line")
			continue
		}
		msg, err := jsonrpc.DecodeMessage(text)
		if err != nil {
			c.refuse(jsonrpc.CodeParseError, "this line is not a JSON-RPC 2.0 message")
			continue
		}
		return msg, nil
	}
}

func (c *stdioConn) nextLine(ctx context.Context) ([]byte, error) {
	if c.direct != nil {
		return c.readLine()
	}
	select {
	case l := <-c.lines:
		return l.text, l.err
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *stdioConn) readLines() {
	for {
		text, err := c.readLine()
		select {
		case c.lines <- line{text, err}:
		case <-c.closed:
			return
		}
		if err != nil && !errors.Is(err, errTooLong) {
			return
		}
	}
}

// readLine returns the next line without its end and surrounding space, in
// memory of its own.
func (c *stdioConn) readLine() ([]byte, error) {
	var text []byte
	tooLong := false
	for {
		chunk, err := c.in.ReadSlice('\n')
		tooLong = tooLong || len(text)+len(chunk) > maxLine
		if !tooLong {
			text = append(text, chunk...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(text) == 0:
			return nil, err
		case tooLong:
			return nil, errTooLong
		}
		return bytes.TrimSpace(text), nil
	}
}

// refuse answers a line that has no id to answer to.
func (c *stdioConn) refuse(code int, why string) {
	_ = c.write(mustJSON(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why},
	})) // a client that does not listen will not miss it
}

// Write sends a message as one line.
func (c *stdioConn) Write(_ context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	return c.write(data)
}

func (c *stdioConn) write(data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(append(data, '\n'))
	return err
}

// Close unblocks Read. The streams are the caller's.
func (c *stdioConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		if c.direct != nil {
			_ = c.direct.SetReadDeadline(time.Unix(1, 0))
		}
	})
	return nil
}
