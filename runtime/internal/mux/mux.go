// Package mux carries a sandbox's two streams, control and callback, over one:
// the stdin and stdout of a program on a machine that no socket of ours reaches.
//
// A frame is one byte of kind and four bytes of number N, big-endian:
//
//	0x01, 0x02  data on control, on callback: N bytes follow, 1 ≤ N ≤ 65536
//	0x11, 0x12  credit for control, for callback: N more bytes may be sent to me
//	0x21, 0x22  end of control, of callback from this side; N is 0
//
// Each side may at first send 1 MiB on each channel; the other grants more as
// its reader consumes. So whoever does not read one channel does not keep the
// other waiting, and nobody has to hold more than 1 MiB of a channel. More than
// that, any other kind or a number out of range is a violation and ends both.
//
// The Python end is sandbox-image/mcpbridge/mux.py.
package mux

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
)

// ErrProtocol is wrapped by every error that a misbehaving peer causes.
var ErrProtocol = errors.New("stdio protocol violation")

// A Mux is one end of the stream. Everything may be called concurrently.
type Mux struct {
	rw       io.ReadWriter
	closeRW  func() error // once
	channels [2]*conn
	loops    sync.WaitGroup
	closing  func() error

	mu       sync.Mutex // guards what follows, and the channels
	wake     sync.Cond  // there may be something to send
	readErr  error      // why nothing more arrives; io.EOF is the peer's end
	writeErr error      // why nothing more is sent
	first    int        // the channel whose turn it is to go first
}

// New returns a Mux that owns rw, whose Close must unblock its Read and Write.
func New(rw io.ReadWriteCloser) *Mux {
	m := &Mux{rw: rw, closeRW: sync.OnceValue(rw.Close)}
	m.wake.L = &m.mu
	for i := range m.channels {
		m.channels[i] = newConn(m, i)
	}
	m.closing = sync.OnceValue(m.close)
	m.loops.Go(m.receive)
	m.loops.Go(m.send)
	return m
}

// Control returns the first channel. Like the other it is a stream with
// deadlines, and has a CloseWrite. When the peer has gone, what had arrived can
// still be read, and io.EOF after it.
func (m *Mux) Control() net.Conn { return m.channels[0] }

// Callback returns the second channel.
func (m *Mux) Callback() net.Conn { return m.channels[1] }

// Close closes both channels and the stream below, without waiting for what is
// not yet sent. It unblocks all who read and write, and returns when nothing of
// m runs any more. It is idempotent.
func (m *Mux) Close() error { return m.closing() }

func (m *Mux) close() error {
	for _, c := range m.channels {
		_ = c.Close() // fails if it is closed already
	}
	m.fail(net.ErrClosed, net.ErrClosed)
	err := m.closeRW()
	m.loops.Wait()
	return err
}

// fail ends both directions, where they have not ended before, and wakes all
// who wait.
func (m *Mux) fail(readErr, writeErr error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.readErr == nil {
		m.readErr = readErr
	}
	if m.writeErr == nil {
		m.writeErr = writeErr
	}
	m.wake.Broadcast()
	for _, c := range m.channels {
		c.readable.Broadcast()
		c.writable.Broadcast()
	}
}

// receive takes frames in until the stream ends.
func (m *Mux) receive() {
	err := m.readFrames(bufio.NewReaderSize(m.rw, maxData))
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		m.fail(io.EOF, syscall.EPIPE) // a program that is killed may leave half a frame
	case errors.Is(err, ErrProtocol):
		m.fail(err, err)
		_ = m.closeRW() // Close will return its error
	default:
		m.fail(err, err)
	}
}

func (m *Mux) readFrames(r *bufio.Reader) error {
	for {
		h, err := readHeader(r)
		if err != nil {
			return err
		}
		c := m.channels[h.channel]
		switch h.op {
		case opData:
			err = c.receiveData(r, h.n)
		case opCredit:
			err = c.receiveCredit(h.n)
		case opEnd:
			err = c.receiveEnd()
		}
		if err != nil {
			return err
		}
	}
}

// send writes what there is to say until the stream ends.
func (m *Mux) send() {
	buf := make([]byte, 0, 2*(maxData+3*headerSize))
	for {
		frames, err := m.collect(buf)
		if err == nil {
			_, err = m.rw.Write(frames)
		}
		if err != nil {
			m.fail(nil, fmt.Errorf("write to the program: %w", err)) // its last words may be on their way
			return
		}
	}
}

// collect waits until something can be sent, and returns its frames in buf: of
// each channel a piece at most, so that neither keeps the other waiting.
func (m *Mux) collect(buf []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		if m.writeErr != nil {
			return nil, m.writeErr
		}
		frames := buf[:0]
		for _, c := range m.channels {
			frames = c.appendCredit(frames)
		}
		for i := range m.channels {
			frames = m.channels[(m.first+i)%2].appendData(frames)
		}
		if len(frames) > 0 {
			m.first = 1 - m.first
			return frames, nil
		}
		m.wake.Wait()
	}
}
