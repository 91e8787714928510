package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

// FuzzReceive feeds any bytes, cut in two anywhere: nothing panics, the error
// is one of the three documented ones, little is allocated on a mere claim, and
// what was received is what is sent when it is sent again.
func FuzzReceive(f *testing.F) {
	for _, v := range vectors[[]frameVector](f, "frames.json") {
		data, err := hex.DecodeString(v.Stream)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint16(len(data)/2))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		before := allocated()
		whole, err := receiveAll(receiving(bytes.NewReader(data)))
		const perMessage, perByte = 4 << 20, 64 // a claim costs 1 MiB; the rest is other goroutines
		if got := allocated() - before; got > perMessage+uint64(perByte*len(data)) {
			t.Errorf("%d bytes allocated %d", len(data), got)
		}
		if endOf(err) == "" {
			t.Errorf("undocumented error: %v", err)
		}
		at := min(int(cut), len(data))
		pieces, pieceErr := receiveAll(receiving(io.MultiReader(bytes.NewReader(data[:at]), bytes.NewReader(data[at:]))))
		if !reflect.DeepEqual(whole, pieces) || endOf(err) != endOf(pieceErr) {
			t.Errorf("cut at %d: got %v, %v; whole: %v, %v", at, pieces, pieceErr, whole, err)
		}
		for _, m := range whole {
			checkMessage(t, m)
		}
	})
}

// endOf returns which of the documented errors err is.
func endOf(err error) string {
	for name, end := range ends {
		if errors.Is(err, end) {
			return name
		}
	}
	return ""
}

// FuzzEnvelope feeds any payload in a good frame and holds what is accepted
// against a second reading, by tokens.
func FuzzEnvelope(f *testing.F) {
	all := vectors[envelopes](f, "envelopes.json")
	for _, v := range append(all.Good, all.Bad...) {
		f.Add(v.payload(f))
	}
	f.Fuzz(func(t *testing.T, payload string) {
		m, err := receiving(bytes.NewReader([]byte(frame(payload)))).Receive()
		if err != nil {
			if !errors.Is(err, wire.ErrProtocol) {
				t.Errorf("undocumented error: %v", err)
			}
			return
		}
		if !utf8.ValidString(payload) {
			t.Error("invalid UTF-8 was accepted")
		}
		checkKeys(t, payload)
		checkMessage(t, m)
	})
}

// checkKeys fails unless the object has known keys, each at most once.
func checkKeys(t *testing.T, payload string) {
	t.Helper()
	known := map[string]bool{"jsonrpc": true, "id": true, "method": true, "params": true, "result": true, "error": true}
	d := json.NewDecoder(bytes.NewReader([]byte(payload)))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		t.Fatalf("not an object: %v, %v", open, err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		name, _ := key.(string)
		if !known[name] {
			t.Errorf("unknown or repeated key %q", name)
		}
		delete(known, name)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
}

// checkMessage fails unless m is exactly one kind of message and survives
// another trip.
func checkMessage(t *testing.T, m *wire.Message) {
	t.Helper()
	isResponse := (m.Result != nil) != (m.Error != nil)
	if isResponse == (m.Method != "") || m.ID < 0 || m.ID > 1<<53 || isResponse && m.ID == 0 {
		t.Errorf("neither a request nor a response: %+v", m)
	}
	again, err := receiving(bytes.NewReader([]byte(encode(t, m)))).Receive()
	if err != nil {
		t.Fatalf("%+v came back as %v", m, err)
	}
	if !reflect.DeepEqual(m, again) {
		t.Errorf("%+v came back as %+v", m, again)
	}
}
