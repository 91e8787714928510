package stdio

import "sync"

// A tail keeps the last [tailBytes] bytes written to it. It is safe for
// concurrent use.
type tail struct {
	mu   sync.Mutex
	buf  []byte // a ring once it has grown to tailBytes
	next int    // where the next byte goes in the full ring
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	p = p[max(0, n-tailBytes):]
	if room := tailBytes - len(t.buf); room > 0 {
		k := min(room, len(p))
		t.buf = append(t.buf, p[:k]...)
		p = p[k:]
	}
	for len(p) > 0 {
		k := copy(t.buf[t.next:], p)
		t.next = (t.next + k) % tailBytes
		p = p[k:]
	}
	return n, nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[t.next:]) + string(t.buf[:t.next])
}
