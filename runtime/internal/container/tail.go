package container

import "sync"

// tailBytes is how much of a program's last words is kept.
const tailBytes = 4 << 10

// A Tail is a writer that keeps the end of what is written. It is safe for
// concurrent use.
type Tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p[max(0, len(p)-tailBytes):]...)
	if extra := len(t.data) - tailBytes; extra > 0 {
		t.data = append(t.data[:0], t.data[extra:]...)
	}
	return len(p), nil
}

// String returns the text, safe to print on a terminal.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Sanitize(string(t.data))
}
