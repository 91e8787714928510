package wire_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

const (
	marker  = "\x01\x02marker\x01\x02"
	hello   = `{"jsonrpc":"2.0","method":"hello"}`
	goodbye = `{"jsonrpc":"2.0","method":"goodbye"}`
)

// Whatever the dead process left on the stream, the connection is usable after
// the marker, which may come in any pieces.
func TestResync(t *testing.T) {
	tests := map[string]string{
		"nothing before":        "",
		"half a header":         "\x00\x00",
		"half a frame":          frame(hello)[:9],
		"garbage":               strings.Repeat("\xff\x00garbage", 10_000),
		"frames":                strings.Repeat(frame(hello), 3),
		"start of the marker":   marker[:5],
		"nearly the marker":     marker[:len(marker)-1] + "x" + marker[:len(marker)-1],
		"overlapping the start": marker[:8] + marker[:8],
		"long header":           "\x04\x00\x00\x00" + strings.Repeat("z", 200_000),
	}
	for name, left := range tests {
		t.Run(name, func(t *testing.T) {
			text := left + marker
			for _, cut := range []int{0, len(left) / 2, len(left), len(left) + 1, len(text) - 1} {
				resync(t, text[:cut], text[cut:])
			}
		})
	}
}

// resync has c, in the middle of a frame, hear the pieces after ExpectMarker,
// and then two frames.
func resync(t *testing.T, pieces ...string) {
	t.Helper()
	near, far := net.Pipe()
	c := wire.NewConn(near)
	defer c.Close()
	marked := make(chan struct{})
	go func() {
		_, _ = io.WriteString(far, frame(hello)+frame(goodbye)[:7])
		<-marked
		for _, piece := range pieces {
			_, _ = io.WriteString(far, piece)
		}
	}()
	if m, err := c.Receive(); err != nil || m.Method != "hello" {
		t.Fatalf("before: got %+v, %v", m, err)
	}
	c.ExpectMarker([]byte(marker))
	close(marked)
	if m, err := c.Receive(); !errors.Is(err, wire.ErrResynced) {
		t.Fatalf("got %+v, %v; want ErrResynced", m, err)
	}
	go func() { _, _ = io.WriteString(far, frame(hello)+frame(goodbye)) }()
	for _, method := range []string{"hello", "goodbye"} {
		if m, err := c.Receive(); err != nil || m.Method != method {
			t.Fatalf("after: got %+v, %v; want %s", m, err, method)
		}
	}
}

func TestResyncWhileReceiveBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := wire.NewConn(near)
		received := make(chan error, 1)
		go func() {
			_, err := c.Receive()
			received <- err
		}()
		_, _ = io.WriteString(far, frame(hello)[:10])
		synctest.Wait() // Receive waits for the rest
		c.ExpectMarker([]byte("an earlier one, which is given up"))
		c.ExpectMarker([]byte(marker))
		for i := range marker {
			select {
			case err := <-received:
				t.Fatalf("Receive returned %v after %d bytes of the marker", err, i)
			default:
			}
			_, _ = io.WriteString(far, marker[i:i+1])
			synctest.Wait()
		}
		if err := <-received; !errors.Is(err, wire.ErrResynced) {
			t.Fatalf("got %v, want ErrResynced", err)
		}
	})
}

// The stream may end before the marker comes: what was to be dropped must not
// be taken for a frame.
func TestResyncEndOfStream(t *testing.T) {
	near, far := net.Pipe()
	c := wire.NewConn(&endingReader{ReadWriteCloser: near})
	c.ExpectMarker([]byte(marker))
	go func() {
		_, _ = io.WriteString(far, frame(hello))
		far.Close()
	}()
	if m, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %+v, %v; want io.EOF", m, err)
	}
}

// endingReader returns its error along with the data before it, as io.Reader
// allows.
type endingReader struct{ io.ReadWriteCloser }

func (r *endingReader) Read(p []byte) (int, error) {
	n, err := r.ReadWriteCloser.Read(p)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

func TestCloseUnblocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := net.Pipe()
		c := wire.NewConn(near)
		ended := make(chan error, 2)
		go func() {
			_, err := c.Receive()
			ended <- err
		}()
		go func() { ended <- c.Send(&wire.Message{Method: "m"}) }()
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-ended; err == nil {
				t.Error("blocked call returned without an error")
			}
		}
	})
}
