package mux

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	goruntime "runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pair returns two ends that are joined.
func pair(t testing.TB) (a, b *Mux) {
	t.Helper()
	x, y := net.Pipe()
	a, b = New(x), New(y)
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b
}

// raw returns an end whose peer the test plays by hand.
func raw(t testing.TB) (*Mux, net.Conn) {
	t.Helper()
	x, y := net.Pipe()
	m := New(x)
	t.Cleanup(func() {
		m.Close()
		y.Close()
	})
	return m, y
}

func frame(kind byte, n int, data ...byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(n)), data...)
}

func channels(m *Mux) map[string]net.Conn {
	return map[string]net.Conn{"control": m.Control(), "callback": m.Callback()}
}

func TestBothWays(t *testing.T) {
	const size = 64 << 20
	a, b := pair(t)
	data := make([]byte, size)
	rand.Read(data)
	var all sync.WaitGroup
	for name, from := range channels(a) {
		to := channels(b)[name]
		for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
			all.Go(func() {
				if n, err := way[0].Write(data); n != size || err != nil {
					t.Errorf("%s: wrote %d, %v", name, n, err)
				}
			})
			all.Go(func() {
				got := make([]byte, size)
				if _, err := io.ReadFull(way[1], got); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%s: %v, or the bytes have changed", name, err)
				}
			})
		}
	}
	all.Wait()
}

// Frames are as the package's comment says.
func TestFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, peer := raw(t)
		expect := func(want ...byte) {
			t.Helper()
			got := make([]byte, len(want))
			if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %x, %v, want %x", got, err, want)
			}
		}
		go m.Control().Write([]byte("ab"))
		expect(frame(0x01, 2, 'a', 'b')...)
		go m.Callback().Write([]byte("c"))
		expect(frame(0x02, 1, 'c')...)
		m.Callback().(interface{ CloseWrite() error }).CloseWrite()
		expect(frame(0x22, 0)...)
		if _, err := m.Callback().Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after CloseWrite: %v", err)
		}
		peer.Write(frame(0x02, 3, 'x', 'y', 'z'))
		peer.Write(frame(0x22, 0))
		if got, err := io.ReadAll(m.Callback()); string(got) != "xyz" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		go m.Control().Write(make([]byte, maxData+1))
		expect(frame(0x01, maxData, make([]byte, maxData)...)...)
		expect(frame(0x01, 1, 0)...)
		m.Control().Close()
		expect(frame(0x21, 0)...)
	})
}

func TestCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		wrote := make(chan int)
		go func() {
			n, _ := a.Control().Write(make([]byte, 3*window))
			wrote <- n
		}()
		synctest.Wait()
		if got := b.channels[0].in.len(); got != window {
			t.Errorf("unread are %d bytes, want %d", got, window)
		}
		// The one that nobody reads does not keep the other waiting.
		for range 100 {
			go a.Callback().Write([]byte("ping"))
			if _, err := io.ReadFull(b.Callback(), make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
			go b.Callback().Write([]byte("pong"))
			if _, err := io.ReadFull(a.Callback(), make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := io.CopyN(io.Discard, b.Control(), 3*window); n != 3*window || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
		if n := <-wrote; n != 3*window {
			t.Errorf("wrote %d", n)
		}
	})
}

// Both channels get their turn in every write below, however much waits.
func TestFairness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, peer := raw(t)
		go m.Control().Write(make([]byte, window))
		go m.Callback().Write(make([]byte, window))
		synctest.Wait()
		var sent [2]int
		for sent[0] < window/2 {
			h, err := readHeader(peer)
			if err != nil {
				t.Fatal(err)
			}
			io.CopyN(io.Discard, peer, int64(h.n))
			sent[h.channel] += h.n
		}
		if sent[1] < window/2-3*maxData {
			t.Errorf("callback was sent %d bytes, control %d", sent[1], sent[0])
		}
	})
}

func TestViolations(t *testing.T) {
	full := bytes.Repeat(frame(0x01, maxData, make([]byte, maxData)...), window/maxData)
	for name, stream := range map[string][]byte{
		"kind 0":                frame(0x00, 1, 'x'),
		"kind 3":                frame(0x03, 1, 'x'),
		"kind 0x31":             frame(0x31, 1),
		"kind 0xff":             frame(0xff, 1),
		"text":                  []byte("Traceback (most recent call last):"),
		"empty data":            frame(0x01, 0),
		"large data":            frame(0x01, maxData+1),
		"huge data":             frame(0x02, 0xffffffff),
		"no credit":             frame(0x11, 0),
		"credit for nothing":    frame(0x11, 1),
		"huge credit":           frame(0x12, 0xffffffff),
		"end with a number":     frame(0x21, 1),
		"data after the end":    append(frame(0x22, 0), frame(0x02, 1, 'x')...),
		"two ends":              append(frame(0x22, 0), frame(0x22, 0)...),
		"more than the window":  append(full, frame(0x01, 1, 'x')...),
		"much more than it can": bytes.Repeat(full, 3),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, peer := raw(t)
				peer.Write(stream) // fails when it is refused
				synctest.Wait()    // for what is read below makes room
				for name, c := range channels(m) {
					if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, ErrProtocol) {
						t.Errorf("%s: read: %v", name, err)
					}
					if _, err := c.Write([]byte("x")); !errors.Is(err, ErrProtocol) {
						t.Errorf("%s: write: %v", name, err)
					}
				}
				if _, err := peer.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
					t.Errorf("the stream is still open: %v", err)
				}
			})
		})
	}
}

func TestPeerGoes(t *testing.T) {
	for name, last := range map[string][]byte{
		"between frames": frame(0x01, 2, 'o', 'k'),
		"in a header":    append(frame(0x01, 2, 'o', 'k'), 0x01, 0),
		"in data":        append(frame(0x01, 2, 'o', 'k'), frame(0x02, 9)...),
	} {
		t.Run(name, func(t *testing.T) {
			m, peer := raw(t)
			blocked := make(chan error)
			go func() {
				_, err := m.Callback().Write(make([]byte, 2*window)) // nobody takes it
				blocked <- err
			}()
			go io.CopyN(io.Discard, peer, maxData)
			peer.Write(last)
			peer.Close()
			if got, err := io.ReadAll(m.Control()); string(got) != "ok" || err != nil {
				t.Errorf("control: %q, %v", got, err)
			}
			if got, err := io.ReadAll(m.Callback()); len(got) > 0 || err != nil {
				t.Errorf("callback: %q, %v", got, err)
			}
			if err := <-blocked; err == nil {
				t.Error("write to nobody succeeded")
			}
		})
	}
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		begin := time.Now()
		c := a.Control()
		c.SetDeadline(begin.Add(time.Second))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if d := time.Since(begin); d != time.Second {
			t.Errorf("read took %v", d)
		}
		var timeout net.Error
		n, err := c.Write([]byte("x"))
		if n != 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("write: %d, %v", n, err)
		}

		c.SetWriteDeadline(time.Now().Add(time.Second))
		n, err = c.Write(make([]byte, 2*window))
		if n != window || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write that nobody reads: %d, %v", n, err)
		}

		c.SetDeadline(time.Time{})
		read := make(chan error)
		go func() {
			_, err := c.Read(make([]byte, 1))
			read <- err
		}()
		synctest.Wait()
		c.SetReadDeadline(time.Now().Add(time.Hour))
		c.SetReadDeadline(time.Now().Add(-time.Hour)) // the way to unblock a reader
		if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		c.SetReadDeadline(time.Now().Add(time.Hour))
		time.Sleep(time.Minute) // the first one's timer is of no effect
		go b.Control().Write([]byte("x"))
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("read after the deadline was moved: %v", err)
		}
	})
}

func TestCloseUnblocks(t *testing.T) {
	for name, closing := range map[string]func(m *Mux){
		"mux":      func(m *Mux) { m.Close() },
		"channels": func(m *Mux) { m.Control().Close(); m.Callback().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, peer := raw(t) // who never reads
				ended := make(chan error)
				for _, c := range channels(m) {
					for range 2 {
						go func() {
							_, err := c.Read(make([]byte, 1))
							ended <- err
						}()
						go func() {
							_, err := c.Write(make([]byte, 2*window))
							ended <- err
						}()
					}
				}
				synctest.Wait()
				closing(m)
				for range 8 {
					if err := <-ended; !errors.Is(err, net.ErrClosed) {
						t.Errorf("ended with %v", err)
					}
				}
				for _, c := range channels(m) {
					if err := c.SetDeadline(time.Now()); !errors.Is(err, net.ErrClosed) {
						t.Errorf("deadline after close: %v", err)
					}
				}
				peer.Close()
				var closers sync.WaitGroup
				for range 4 {
					closers.Go(func() { m.Close() })
				}
				closers.Wait()
			})
		})
	}
}

// A channel that is closed takes what the peer may still send, and no more.
func TestClosedChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		a.Control().Close()
		if _, err := io.ReadAll(b.Control()); err != nil {
			t.Errorf("the other end: %v", err)
		}
		b.Control().SetDeadline(time.Now().Add(time.Second))
		if n, err := b.Control().Write(make([]byte, 2*window)); n != window || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d, %v", n, err)
		}
		if a.channels[0].in.len() > 0 {
			t.Error("what nobody can read is kept")
		}
		go b.Callback().Write([]byte("x"))
		if _, err := a.Callback().Read(make([]byte, 1)); err != nil {
			t.Errorf("the other channel: %v", err)
		}
	})
}

func TestMemory(t *testing.T) {
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	m, peer := raw(t)
	one := []byte{0x01, 0, 0, 0, 1, 'x', 0x02, 0, 0, 0, 1, 'x'}
	stream := bytes.Repeat(one, 1024)
	for range window / 1024 { // as many frames as there may be
		if _, err := peer.Write(stream); err != nil {
			t.Fatal(err)
		}
	}
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > 3<<20 {
		t.Errorf("%d bytes are held", got)
	}
	for _, c := range channels(m) {
		if _, err := io.CopyN(io.Discard, c, window); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRing(t *testing.T) {
	var r ring
	var want bytes.Buffer
	for i := range 2000 {
		data := make([]byte, i*7919%5000)
		rand.Read(data)
		r.write(data)
		want.Write(data)
		got, expected := make([]byte, i*104729%6000), make([]byte, i*104729%6000)
		n := r.read(got)
		m, _ := want.Read(expected)
		if n != m || !bytes.Equal(got, expected) || r.len() != want.Len() {
			t.Fatalf("step %d: read %d of %d, want %d, or others", i, n, len(got), m)
		}
	}
}

// FuzzReceive feeds any bytes: nothing panics, what ends it is one of two
// errors, and the channels hold no more than was sent.
func FuzzReceive(f *testing.F) {
	f.Add(frame(0x01, 2, 'a', 'b'), uint16(3))
	f.Add(append(frame(0x22, 0), frame(0x11, 9)...), uint16(5))
	f.Add(frame(0x02, maxData+1), uint16(1))
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		at := min(int(cut), len(data))
		var read [2][2][]byte
		for i, r := range []io.Reader{bytes.NewReader(data), io.MultiReader(bytes.NewReader(data[:at]), bytes.NewReader(data[at:]))} {
			m := New(struct {
				io.Reader
				io.WriteCloser
			}{r, discard{}})
			total := 0
			for j, c := range []net.Conn{m.Control(), m.Callback()} {
				got, err := io.ReadAll(c)
				if err != nil && !errors.Is(err, ErrProtocol) {
					t.Errorf("undocumented error: %v", err)
				}
				read[i][j] = got
				total += len(got)
			}
			m.Close()
			if total > len(data) {
				t.Errorf("%d bytes came of %d", total, len(data))
			}
		}
		for j := range 2 {
			if !bytes.Equal(read[0][j], read[1][j]) {
				t.Errorf("cut at %d: channel %d is %q, whole: %q", at, j, read[1][j], read[0][j])
			}
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

func BenchmarkRoundTrip(b *testing.B) {
	x, y := pair(b)
	go io.Copy(y.Callback(), y.Callback())
	message := make([]byte, 200)
	for b.Loop() {
		if _, err := x.Callback().Write(message); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(x.Callback(), message); err != nil {
			b.Fatal(err)
		}
	}
}
