package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A conn is an mcp.Connection over a server's standard input and output. It
// stands in for mcp.IOTransport, which ends the connection at the first line
// that is no message, ignores ctx while the server does not read, and decodes
// every message three times.
type conn struct {
	stdin  *os.File
	stdout *os.File
	in     *bufio.Reader
	noise  io.Writer         // gets the lines that are no messages
	meter  *Meter            // counts them; used by Read alone
	queue  []jsonrpc.Message // the rest of a batch; used by Read alone

	writing chan struct{} // holds a token while somebody writes
	once    sync.Once
	closed  chan struct{}
}

var _ mcp.Connection = (*conn)(nil)

func newConn(stdin, stdout *os.File, noise io.Writer, meter *Meter) *conn {
	return &conn{
		stdin:   stdin,
		stdout:  stdout,
		in:      bufio.NewReaderSize(stdout, 64<<10),
		noise:   noise,
		meter:   meter,
		writing: make(chan struct{}, 1),
		closed:  make(chan struct{}),
	}
}

// SessionID is part of mcp.Connection; there is none over stdio.
func (c *conn) SessionID() string { return "" }

// Close closes both streams, which unblocks Read and Write, and waits for a
// message that is still being written.
func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		_ = c.stdin.Close()
		_ = c.stdout.Close()
		c.writing <- struct{}{} // waits for the last writer, and lets none follow
	})
	return nil
}

// closeInput tells the server that nothing more will come.
func (c *conn) closeInput() { _ = c.stdin.Close() }

// Read returns the server's next message, or ErrFlood if there is too much else. Close unblocks it; ctx does not, and
// need not: go-sdk reads with a context that is never done.
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for len(c.queue) == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		if c.queue, err = decode(line); err != nil {
			n := min(len(line), 1024)
			_, _ = c.noise.Write(append(line[:n:n], '\n'))
			return nil, err
		}
		if len(c.queue) > 0 {
			break
		}
		if err := c.meter.Count(len(line)); err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			_, _ = c.noise.Write(append(line, '\n'))
		}
	}
	msg := c.queue[0]
	c.queue = c.queue[1:]
	return msg, nil
}

// line returns the next line without its end, in memory of its own. Of a line
// over MaxMessage it returns the answer "too large" to the request it answers.
func (c *conn) line() ([]byte, error) {
	var line []byte
	for {
		chunk, err := c.in.ReadSlice('\n')
		if err == nil {
			line = append(line, chunk...)
			return line[:len(line)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, c.readError(err)
		}
		if len(line)+len(chunk) > MaxMessage {
			return c.tooLarge(line[:1024])
		}
		line = append(line, chunk...)
	}
}

func (c *conn) readError(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return io.EOF
	}
	return err
}

// tooLarge skips the rest of a line and makes up an error response in its place.
func (c *conn) tooLarge(head []byte) ([]byte, error) {
	var end []byte
	for skipped := MaxMessage; skipped < maxSkipped; {
		chunk, err := c.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, c.readError(err)
		}
		skipped += len(chunk)
		end = append(end[:0], chunk...)
		if err != nil {
			continue
		}
		id, ok := recoverID(head, end)
		if !ok || !id.IsValid() {
			return nil, fmt.Errorf("%w: over %d MiB", ErrProtocol, MaxMessage>>20)
		}
		return jsonrpc.EncodeMessage(failed(id, fmt.Sprintf("the server's answer is over %d MiB", MaxMessage>>20)))
	}
	return nil, fmt.Errorf("%w: over %d MiB without an end", ErrProtocol, maxSkipped>>20)
}

// Write sends msg as one line. If ctx ends first, because the server does not
// read, Write returns ctx's error; a message that is partly sent by then is
// finished in the background, so that the next one begins on its own line.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	data = append(data, '\n')
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return io.ErrClosedPipe
	}
	n, err := c.send(ctx, data)
	switch {
	case err == nil || !errors.Is(err, os.ErrDeadlineExceeded):
	case n == 0:
		err = ctx.Err()
	default:
		err = ctx.Err()
		go func() { // Close waits for it by taking the token
			_, _ = c.stdin.Write(data[n:])
			<-c.writing
		}()
		return err
	}
	<-c.writing
	return err
}

// send writes data until ctx is done, and leaves the deadline cleared. It
// returns os.ErrDeadlineExceeded only if ctx is done.
func (c *conn) send(ctx context.Context, data []byte) (int, error) {
	if ctx.Done() == nil {
		return c.stdin.Write(data)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.stdin.SetWriteDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	n, err := c.stdin.Write(data)
	if !stop() {
		<-interrupted
		_ = c.stdin.SetWriteDeadline(time.Time{})
	}
	return n, err
}
