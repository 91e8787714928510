package mux

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A conn is one channel. Its fields are guarded by the Mux's mutex.
type conn struct {
	m      *Mux
	number int
	closed bool

	readable     sync.Cond
	readDeadline deadline
	in           ring
	expected     int  // what the peer may still send
	consumed     int  // read, but the peer was not told yet
	ended        bool // the peer has sent all

	writable      sync.Cond
	writeDeadline deadline
	writing       bool   // by a Write, which others wait for
	out           []byte // what is left of it
	credit        int    // what we may still send
	shut, endSent bool   // nothing more is to be written; the peer was told
}

func newConn(m *Mux, number int) *conn {
	c := &conn{m: m, number: number, expected: window, credit: window}
	c.readable.L, c.writable.L = &m.mu, &m.mu
	return c
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.readDeadline.passed():
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case c.in.len() > 0:
			return c.take(p), nil
		case c.ended:
			return 0, io.EOF
		case c.m.readErr != nil:
			return 0, c.m.readErr
		}
		c.readable.Wait()
	}
}

// take reads what is there, and grants the peer as much anew; not for every few
// bytes.
func (c *conn) take(p []byte) int {
	n := c.in.read(p)
	if c.consumed += n; c.consumed >= window/4 && !c.ended {
		c.m.wake.Signal()
	}
	return n
}

// Write implements [net.Conn]. It returns when all of p has been taken for the
// stream below.
func (c *conn) Write(p []byte) (int, error) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	for c.writing && c.writeProblem() == nil {
		c.writable.Wait()
	}
	if err := c.writeProblem(); err != nil {
		return 0, err
	}
	c.writing, c.out = true, p
	c.m.wake.Signal()
	for len(c.out) > 0 && c.writeProblem() == nil {
		c.writable.Wait()
	}
	left := len(c.out)
	c.writing, c.out = false, nil
	c.writable.Broadcast()
	if left > 0 {
		return len(p) - left, c.writeProblem()
	}
	return len(p), nil
}

// writeProblem is why nothing can be written, or nil.
func (c *conn) writeProblem() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.m.writeErr != nil:
		return c.m.writeErr
	case c.shut:
		return syscall.EPIPE
	case c.writeDeadline.passed():
		return os.ErrDeadlineExceeded
	}
	return nil
}

// CloseWrite tells the peer that nothing more follows. Reading goes on.
func (c *conn) CloseWrite() error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.shutWrite()
	return nil
}

func (c *conn) shutWrite() {
	c.shut = true
	c.writable.Broadcast()
	c.m.wake.Signal()
}

// Close implements [net.Conn]. What the peer still sends is dropped, and it is
// granted no more.
func (c *conn) Close() error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.in = ring{}
	c.readDeadline.stop()
	c.writeDeadline.stop()
	c.readable.Broadcast()
	c.shutWrite()
	return nil
}

// The peer's frames.

func (c *conn) receiveData(r *bufio.Reader, n int) error {
	c.m.mu.Lock()
	over, ended := n > c.expected, c.ended
	c.expected -= n
	c.m.mu.Unlock()
	if over || ended {
		return fmt.Errorf("%w: more data than was asked for, or after its end", ErrProtocol)
	}
	for n > 0 {
		if _, err := r.Peek(1); err != nil {
			return err
		}
		piece, err := r.Peek(min(n, r.Buffered()))
		if err != nil {
			return err
		}
		c.m.mu.Lock()
		if !c.closed {
			c.in.write(piece)
			c.readable.Broadcast()
		}
		c.m.mu.Unlock()
		n -= len(piece)
		if _, err := r.Discard(len(piece)); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) receiveCredit(n int) error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.credit += n; c.credit > window {
		return fmt.Errorf("%w: credit for more than was sent", ErrProtocol)
	}
	c.m.wake.Signal()
	return nil
}

func (c *conn) receiveEnd() error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.ended {
		return fmt.Errorf("%w: a second end", ErrProtocol)
	}
	c.ended = true
	c.readable.Broadcast()
	return nil
}

// Our frames.

func (c *conn) appendCredit(frames []byte) []byte {
	if c.consumed < window/4 || c.closed || c.ended {
		return frames
	}
	frames = appendHeader(frames, header{op: opCredit, channel: c.number, n: c.consumed})
	c.expected += c.consumed
	c.consumed = 0
	return frames
}

func (c *conn) appendData(frames []byte) []byte {
	if n := min(len(c.out), c.credit, maxData); n > 0 && c.writeProblem() == nil {
		frames = appendHeader(frames, header{op: opData, channel: c.number, n: n})
		frames = append(frames, c.out[:n]...)
		c.out = c.out[n:]
		c.credit -= n
		if len(c.out) == 0 {
			c.writable.Broadcast()
		}
	}
	if c.shut && !c.endSent {
		c.endSent = true
		frames = appendHeader(frames, header{op: opEnd, channel: c.number})
	}
	return frames
}

// Deadlines.

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	return c.setDeadline(&c.readDeadline, &c.readable, t)
}

// SetWriteDeadline implements [net.Conn].
func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(&c.writeDeadline, &c.writable, t)
}

func (c *conn) setDeadline(d *deadline, waiting *sync.Cond, t time.Time) error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	d.set(t, waiting)
	waiting.Broadcast()
	return nil
}

// A deadline passes at its time, unless it is set anew before.
type deadline struct {
	at    time.Time
	timer *time.Timer
	over  *bool // one of its own for every setting, so that a late timer does no harm
}

func (d *deadline) passed() bool {
	return d.over != nil && (*d.over || !time.Now().Before(d.at)) // the other deadline's timer may be first
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

func (d *deadline) set(t time.Time, waiting *sync.Cond) {
	d.stop()
	*d = deadline{}
	if t.IsZero() {
		return
	}
	over := new(bool)
	d.at, d.over = t, over
	wait := time.Until(t)
	if wait <= 0 {
		*over = true
		return
	}
	d.timer = time.AfterFunc(wait, func() {
		waiting.L.Lock()
		defer waiting.L.Unlock()
		*over = true
		waiting.Broadcast()
	})
}

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr { return addr{} }

// RemoteAddr implements [net.Conn].
func (c *conn) RemoteAddr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "stdio" }
func (addr) String() string  { return "sandbox" }
