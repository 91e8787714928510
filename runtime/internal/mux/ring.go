package mux

// A ring is a queue of bytes. It grows with what is in it, to at most the next
// power of two, and is freed when it is empty and large.
type ring struct {
	buf   []byte
	start int
	size  int
}

const (
	smallRing = 4 << 10
	keepRing  = 64 << 10
)

func (r *ring) len() int { return r.size }

func (r *ring) write(p []byte) {
	if len(p) == 0 {
		return
	}
	if need := r.size + len(p); need > len(r.buf) {
		r.grow(need)
	}
	end := (r.start + r.size) % len(r.buf)
	n := copy(r.buf[end:], p)
	copy(r.buf, p[n:])
	r.size += len(p)
}

func (r *ring) read(p []byte) int {
	n := 0
	for n < len(p) && r.size > 0 {
		piece := copy(p[n:], r.buf[r.start:min(r.start+r.size, len(r.buf))])
		n += piece
		r.size -= piece
		r.start = (r.start + piece) % len(r.buf)
	}
	if r.size == 0 {
		r.start = 0
		if len(r.buf) > keepRing {
			r.buf = nil
		}
	}
	return n
}

func (r *ring) grow(need int) {
	size := max(smallRing, len(r.buf))
	for size < need {
		size *= 2
	}
	buf, held := make([]byte, size), r.size
	r.read(buf[:held])
	*r = ring{buf: buf, size: held}
}
