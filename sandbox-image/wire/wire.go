// Package wire is the host's end of the protocol spoken with the kernel, the
// Python program in a sandbox: frames of a 4-byte big-endian length followed by
// one JSON-RPC 2.0 object in UTF-8. The Python end is ../mcpbridge/wire.py; both
// replay the vectors in ../testdata/wire.
//
// Everything the far side sends is hostile. The length is checked before
// anything is allocated, then the envelope. A violation ends the connection,
// for there is no trusting the position of the next frame after it.
package wire

import (
	"errors"
	"io"
	"sync"
)

// MaxFrame is the largest payload of a frame in bytes, in both directions.
const MaxFrame = 64 << 20

var (
	// ErrProtocol is wrapped by every error that a misbehaving peer causes.
	ErrProtocol = errors.New("wire protocol violation")
	// ErrTooLarge is returned by Send for a message over [MaxFrame]. Nothing
	// was sent and the connection stays usable.
	ErrTooLarge = errors.New("message too large for one frame")
)

// keepBuffer is the largest send buffer kept between messages.
const keepBuffer = 64 << 10

// A Conn sends and receives messages over one stream. Send and Close may be
// called concurrently with everything; Receive may not with itself.
type Conn struct {
	rw   io.ReadWriteCloser
	sync *resyncReader
	in   frameReader

	mu  sync.Mutex // guards out and the order of writes
	out []byte
}

// NewConn returns a Conn that owns rw.
func NewConn(rw io.ReadWriteCloser) *Conn {
	sync := &resyncReader{r: rw, lost: make(chan struct{})}
	return &Conn{rw: rw, sync: sync, in: newFrameReader(sync)}
}

// Send writes m as one frame. It blocks while the peer does not read; Close
// unblocks it.
func (c *Conn) Send(m *Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	frame, err := appendFrame(c.out[:0], m)
	if err != nil {
		return err
	}
	if cap(frame) <= keepBuffer {
		c.out = frame
	}
	_, err = c.rw.Write(frame)
	return err
}

// Receive returns the next message. It returns io.EOF when the peer closed the
// stream between two frames, and an error wrapping [ErrProtocol] if it sent
// something else than a message. After any error but [ErrResynced] the Conn is
// of no more use.
func (c *Conn) Receive() (*Message, error) {
	payload, err := c.in.next()
	if errors.Is(err, ErrResynced) {
		c.in = newFrameReader(c.sync)
	}
	if err != nil {
		return nil, err
	}
	return decodeMessage(payload)
}

// ExpectMarker makes Receive drop everything up to marker, an unguessable string
// of bytes that the peer is asked on another way to send, and then return
// [ErrResynced]. It may be called while Receive blocks.
func (c *Conn) ExpectMarker(marker []byte) { c.sync.expect(marker) }

// Expecting returns what ExpectMarker closes: from then on to ErrResynced nobody
// waits for what is sent.
func (c *Conn) Expecting() <-chan struct{} { return c.sync.expecting() }

// Close closes the stream, which unblocks Send and Receive.
func (c *Conn) Close() error { return c.rw.Close() }
