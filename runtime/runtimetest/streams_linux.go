package runtimetest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// testBytes sends every kind of length there and back, on both streams.
func testBytes(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	if got := p.Transport(); got != s.transport {
		t.Errorf("transport is %q, want %q", got, s.transport)
	}
	for _, size := range []int{1, 2, 4095, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20, 1<<20 + 1, 64 << 20} {
		for _, stream := range []string{"control", "callback"} {
			sent := make([]byte, size)
			rand.Read(sent)
			code := fmt.Sprintf("echo(%s, %d)", stream, size)
			if got := p.echo(t, code, stream, sent); !bytes.Equal(got, sent) {
				t.Errorf("%s: %d bytes came back as %d, or changed", stream, len(sent), len(got))
			}
		}
	}
}

// echo has the sandbox send back data, on the stream.
func (p *Peer) echo(t *testing.T, code, stream string, data []byte) []byte {
	t.Helper()
	got := make([]byte, len(data))
	conn, in := p.Callback(), io.Reader(p.Callback())
	if stream == "control" {
		conn, in = p.Control(), p.lines
	}
	for _, c := range []net.Conn{p.Control(), p.Callback()} {
		c.SetDeadline(time.Now().Add(answerTimeout))
		defer c.SetDeadline(time.Time{})
	}
	if _, err := fmt.Fprintf(p.Control(), "%q\n", code); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(data); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(in, got); err != nil {
		t.Fatal(err)
	}
	if _, err := p.lines.ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	return got
}

// testDeadlines demands that those of the streams unblock, and do no harm.
func testDeadlines(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	c := p.Callback()
	begin := time.Now()
	c.SetReadDeadline(begin.Add(50 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %d, %v", n, err)
	}
	c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	written, err := c.Write(make([]byte, 64<<20)) // nobody reads it
	if !errors.Is(err, os.ErrDeadlineExceeded) || written == 64<<20 {
		t.Errorf("write: %d, %v", written, err)
	}
	read := make(chan error)
	c.SetReadDeadline(time.Time{})
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	time.Sleep(10 * time.Millisecond)
	c.SetReadDeadline(time.Unix(1, 0)) // the way to call off a reader
	if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read that was called off: %v", err)
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	c.SetDeadline(time.Time{})
	code := fmt.Sprintf("data = callback.read(%d); callback.write(b'over'); callback.flush(); result = len(data)", written)
	if got := p.number(t, code); int(got) != written {
		t.Errorf("%v bytes had been written, said the sandbox; Write said %d", got, written)
	}
	over := make([]byte, 4)
	if _, err := io.ReadFull(c, over); err != nil || string(over) != "over" {
		t.Errorf("read after the deadlines: %q, %v", over, err)
	}
}

// testIndependent has each stream stuffed while the other goes on.
func testIndependent(t *testing.T, s *suite) {
	p := s.start(t, s.spec())
	p.Eval(t, `
import threading
stuffer = threading.Thread(target=lambda: (callback.write(b"x" * (8 << 20)), callback.flush()))
stuffer.start()`)
	for range 100 { // nobody reads the callbacks
		p.Eval(t, "pass")
	}
	if n, err := io.CopyN(io.Discard, p.Callback(), 8<<20); err != nil {
		t.Errorf("read %d bytes of callbacks, %v", n, err)
	}
	p.Eval(t, "stuffer.join()")
	sent := make(chan error)
	go func() {
		_, err := p.Callback().Write(make([]byte, 8<<20)) // the program does not read it yet
		sent <- err
	}()
	for range 100 {
		p.Eval(t, "pass")
	}
	if n := p.number(t, "result = len(callback.read(8 << 20))"); n != 8<<20 {
		t.Errorf("the program read %v bytes", n)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
