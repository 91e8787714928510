package wire_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

// stream is a connection that is only read.
type stream struct{ io.Reader }

func (stream) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (stream) Close() error              { return nil }

// sink is a connection that is only written.
type sink struct{ strings.Builder }

func (*sink) Read([]byte) (int, error) { return 0, io.EOF }
func (*sink) Close() error             { return nil }

func receiving(r io.Reader) *wire.Conn { return wire.NewConn(stream{r}) }

// receiveAll returns what arrives before the error that ends it.
func receiveAll(c *wire.Conn) (messages []*wire.Message, err error) {
	for {
		m, err := c.Receive()
		if err != nil {
			return messages, err
		}
		messages = append(messages, m)
	}
}

// encode returns m as it is sent.
func encode(tb testing.TB, m *wire.Message) string {
	tb.Helper()
	var out sink
	if err := wire.NewConn(&out).Send(m); err != nil {
		tb.Fatalf("Send: %v", err)
	}
	return out.String()
}

// frame puts the header before a payload.
func frame(payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + payload
}

func vectors[T any](tb testing.TB, name string) T {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "wire", name))
	if err != nil {
		tb.Fatal(err)
	}
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return v
}

type frameVector struct {
	Name   string
	Stream string // hex
	Frames []string
	End    string // "eof", "truncated" or "protocol"
}

var ends = map[string]error{"eof": io.EOF, "truncated": io.ErrUnexpectedEOF, "protocol": wire.ErrProtocol}

func TestReceiveFrames(t *testing.T) {
	for _, v := range vectors[[]frameVector](t, "frames.json") {
		t.Run(v.Name, func(t *testing.T) {
			data, err := hex.DecodeString(v.Stream)
			if err != nil {
				t.Fatal(err)
			}
			readers := map[string]io.Reader{
				"whole":               strings.NewReader(string(data)),
				"one byte at a time":  iotest.OneByteReader(strings.NewReader(string(data))),
				"error with the data": iotest.DataErrReader(strings.NewReader(string(data))),
				"halves":              iotest.HalfReader(strings.NewReader(string(data))),
			}
			for i := range data {
				readers[fmt.Sprint("split at ", i)] = io.MultiReader(
					strings.NewReader(string(data[:i])), strings.NewReader(string(data[i:])))
			}
			for how, r := range readers {
				checkFrames(t, how, r, v)
			}
		})
	}
}

func checkFrames(t *testing.T, how string, r io.Reader, v frameVector) {
	t.Helper()
	messages, err := receiveAll(receiving(r))
	if !errors.Is(err, ends[v.End]) {
		t.Errorf("%s: ended with %v, want %v", how, err, ends[v.End])
	}
	if len(messages) != len(v.Frames) {
		t.Fatalf("%s: got %d messages, want %d", how, len(messages), len(v.Frames))
	}
	for i, m := range messages {
		if got := encode(t, m); got != frame(v.Frames[i]) {
			t.Errorf("%s: message %d is %s, want %s", how, i, got[4:], v.Frames[i])
		}
	}
}

type envelope struct {
	Name    string
	Payload string
	Hex     string
	Message struct {
		ID             int64
		Method         string
		Params, Result *string
		Error          *struct {
			Code    int
			Message string
			Data    *string
		}
	}
}

func (e envelope) payload(tb testing.TB) string {
	tb.Helper()
	if e.Hex == "" {
		return e.Payload
	}
	data, err := hex.DecodeString(e.Hex)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

func (e envelope) check(t *testing.T, m *wire.Message) {
	t.Helper()
	want := e.Message
	if m.Method != want.Method || m.ID != want.ID {
		t.Errorf("got method %q, id %d; want %q, %d", m.Method, m.ID, want.Method, want.ID)
	}
	if got := (m.Error != nil); got != (want.Error != nil) {
		t.Fatalf("got error %v", m.Error)
	}
	checkRaw(t, "params", m.Params, want.Params)
	checkRaw(t, "result", m.Result, want.Result)
	if m.Error != nil {
		if m.Error.Code != want.Error.Code || m.Error.Message != want.Error.Message {
			t.Errorf("got error %d %q", m.Error.Code, m.Error.Message)
		}
		checkRaw(t, "error data", m.Error.Data, want.Error.Data)
	}
}

func checkRaw(t *testing.T, what string, got json.RawMessage, want *string) {
	t.Helper()
	if (got == nil) != (want == nil) || want != nil && string(got) != *want {
		t.Errorf("%s is %s, want %v", what, got, want)
	}
}

type envelopes struct{ Good, Bad []envelope }

func TestReceiveEnvelopes(t *testing.T) {
	all := vectors[envelopes](t, "envelopes.json")
	for _, v := range all.Good {
		t.Run("good/"+v.Name, func(t *testing.T) {
			m, err := receiving(strings.NewReader(frame(v.payload(t)))).Receive()
			if err != nil {
				t.Fatal(err)
			}
			v.check(t, m)
		})
	}
	for _, v := range all.Bad {
		t.Run("bad/"+v.Name, func(t *testing.T) {
			m, err := receiving(strings.NewReader(frame(v.payload(t)))).Receive()
			if !errors.Is(err, wire.ErrProtocol) {
				t.Errorf("got %+v, %v; want a protocol violation", m, err)
			}
			if m != nil && err != nil {
				t.Errorf("got a message along with the error: %+v", m)
			}
		})
	}
}

func TestReceiveDeepNesting(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 1<<20),
		strings.Repeat(`{"a":`, 1<<20),
		strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20),
	} {
		payload := `{"jsonrpc":"2.0","method":"m","params":` + text + `}`
		if _, err := receiving(strings.NewReader(frame(payload))).Receive(); !errors.Is(err, wire.ErrProtocol) {
			t.Errorf("got %v, want a protocol violation", err)
		}
	}
}

type sendVector struct {
	Name, Method, Stream string
	ID                   int64
	Params               *string
}

func TestSend(t *testing.T) {
	for _, v := range vectors[[]sendVector](t, "send.json") {
		t.Run(v.Name, func(t *testing.T) {
			m := &wire.Message{ID: v.ID, Method: v.Method}
			if v.Params != nil {
				m.Params = json.RawMessage(*v.Params)
			}
			got := encode(t, m)
			if hex.EncodeToString([]byte(got)) != v.Stream {
				want, _ := hex.DecodeString(v.Stream)
				t.Errorf("sent %q, want %q", got, want)
			}
		})
	}
}

func TestSendTooLarge(t *testing.T) {
	var out sink
	c := wire.NewConn(&out)
	const overhead = len(`{"jsonrpc":"2.0","method":"m","params":""}`)
	params := func(size int) json.RawMessage {
		return json.RawMessage(`"` + strings.Repeat("x", size-overhead) + `"`)
	}
	if err := c.Send(&wire.Message{Method: "m", Params: params(wire.MaxFrame + 1)}); !errors.Is(err, wire.ErrTooLarge) {
		t.Fatalf("got %v, want ErrTooLarge", err)
	}
	if out.Len() != 0 {
		t.Fatalf("%d bytes were sent", out.Len())
	}
	if err := c.Send(&wire.Message{Method: "m", Params: params(wire.MaxFrame)}); err != nil {
		t.Fatalf("the largest message: %v", err)
	}
	m, err := receiving(strings.NewReader(out.String())).Receive()
	if err != nil || len(m.Params) != wire.MaxFrame-overhead+2 {
		t.Fatalf("the largest message came back as %v", err)
	}
}

// A length is only a claim: what is allocated follows the bytes that arrive.
func TestReceiveAllocatesWhatArrives(t *testing.T) {
	const bound = 4 << 20
	for _, arrived := range []int{0, 1, 1000, 1 << 20} {
		header := "\x04\x00\x00\x00" // 64 MiB
		r := strings.NewReader(header + strings.Repeat(" ", arrived))
		before := allocated()
		if _, err := receiving(r).Receive(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("got %v, want io.ErrUnexpectedEOF", err)
		}
		if got := allocated() - before; got > bound {
			t.Errorf("a header and %d bytes allocated %d bytes, want at most %d", arrived, got, bound)
		}
	}
}

func allocated() uint64 {
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

func TestMessageKinds(t *testing.T) {
	for payload, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"m"}`: "request",
		`{"jsonrpc":"2.0","method":"m"}`:        "notification",
		`{"jsonrpc":"2.0","id":1,"result":1}`:   "response",
	} {
		m, err := receiving(strings.NewReader(frame(payload))).Receive()
		if err != nil {
			t.Fatal(err)
		}
		kind := "response"
		if m.IsRequest() {
			kind = "request"
		}
		if m.IsNotification() {
			kind = "notification"
		}
		if kind != want {
			t.Errorf("%s is a %s", payload, kind)
		}
	}
}

// A frame full of keys is refused before they are kept.
func TestManyMembers(t *testing.T) {
	payload := `{"jsonrpc":"2.0"` + strings.Repeat(`,"key":1`, 500_000) + "}"
	header := string(binary.BigEndian.AppendUint32(nil, uint32(len(payload))))
	conn := wire.NewConn(stream{strings.NewReader(header + payload)})
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	_, err := conn.Receive()
	goruntime.ReadMemStats(&after)
	if !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("got %v, want wire.ErrProtocol", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > uint64(4*len(payload)) {
		t.Errorf("a frame of %d bytes made us allocate %d", len(payload), grown)
	}
}
