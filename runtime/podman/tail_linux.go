package podman

import (
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"unicode"
)

// tailBytes is how much of a program's last words is kept.
const tailBytes = 4 << 10

// A tail is a writer that keeps the end of what is written. It is safe for
// concurrent use.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-tailBytes):]...)
	if extra := len(t.data) - tailBytes; extra > 0 {
		t.data = append(t.data[:0], t.data[extra:]...)
	}
	return len(p), nil
}

// String returns the text, safe to print on a terminal.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return sanitize(string(t.data))
}

// sanitize removes from text of doubtful origin what could do more than be
// read: control sequences, invisible and direction-changing characters.
func sanitize(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.TrimSpace(text)
}

// copyFrames writes the payload of the engine's attach stream to w until the
// stream ends: frames of one byte for the stream, three of zero, four for the
// length, and as many of payload.
func copyFrames(w io.Writer, r io.Reader) {
	var header [8]byte
	for {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		if _, err := io.CopyN(w, r, int64(binary.BigEndian.Uint32(header[4:]))); err != nil {
			return
		}
	}
}
