package wire

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// ErrResynced is returned by Receive once the marker given to
// [Conn.ExpectMarker] has come: what was on the stream before it is gone, and
// the Conn is usable again.
var ErrResynced = errors.New("stream resynchronised")

// A resyncReader passes a stream through until it is told to expect a marker;
// then it swallows everything up to and including the marker.
//
// It exists for the callback stream of a kernel whose REPL process died, maybe
// in the middle of a frame. The supervisor, once no other process can write,
// writes the marker that the host chose, and both ends know where they are.
type resyncReader struct {
	r io.Reader

	mu     sync.Mutex
	marker []byte
	lost   chan struct{} // closed while a marker is expected
	seen   []byte        // the end of what was swallowed, shorter than marker
}

func (s *resyncReader) expect(marker []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marker == nil {
		close(s.lost)
	}
	s.marker, s.seen = bytes.Clone(marker), nil
}

func (s *resyncReader) expecting() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

func (s *resyncReader) Read(p []byte) (int, error) {
	for {
		n, err := s.r.Read(p)
		swallowed, found := s.swallow(p[:n])
		switch {
		case found:
			return 0, ErrResynced
		case !swallowed:
			return n, err
		case err != nil:
			return 0, err
		}
	}
}

// swallow looks for the expected marker in data, which continues what was
// swallowed before. It reports false if none is expected.
func (s *resyncReader) swallow(data []byte) (swallowed, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marker == nil {
		return false, false
	}
	s.seen = append(s.seen, data...)
	if bytes.HasSuffix(s.seen, s.marker) { // the supervisor writes nothing after it
		s.marker, s.seen, s.lost = nil, nil, make(chan struct{})
		return true, true
	}
	keep := min(len(s.seen), len(s.marker)-1)
	s.seen = append(s.seen[:0], s.seen[len(s.seen)-keep:]...)
	return true, false
}
