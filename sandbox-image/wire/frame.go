package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	headerSize = 4
	// firstRead bounds what is allocated on the strength of a length alone. A
	// longer frame grows the buffer only as its bytes arrive.
	firstRead = 1 << 20
)

// frameReader splits a stream into the payloads of its frames.
type frameReader struct {
	r *bufio.Reader
}

func newFrameReader(r io.Reader) frameReader {
	return frameReader{r: bufio.NewReaderSize(r, 64<<10)}
}

// next returns the next payload, which is the caller's to keep. It returns
// io.EOF between frames and io.ErrUnexpectedEOF within one.
func (f frameReader) next() ([]byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(f.r, header[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(header[:]))
	if size < 1 || size > MaxFrame { // < 0 where int has 32 bits
		return nil, fmt.Errorf("%w: frame of %d bytes (allowed are 1 to %d)", ErrProtocol, size, MaxFrame)
	}
	payload := make([]byte, min(size, firstRead))
	for read := 0; ; {
		n, err := io.ReadFull(f.r, payload[read:])
		read += n
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		if read == size {
			return payload, nil
		}
		grown := make([]byte, min(size, 2*len(payload)))
		copy(grown, payload)
		payload = grown
	}
}

// appendFrame appends m as one frame to buf.
func appendFrame(buf []byte, m *Message) ([]byte, error) {
	start := len(buf)
	buf = append(buf, 0, 0, 0, 0)
	buf, err := appendMessage(buf, m)
	if err != nil {
		return nil, err
	}
	size := len(buf) - start - headerSize
	if size > MaxFrame {
		return nil, fmt.Errorf("%w: %d bytes, allowed are %d", ErrTooLarge, size, MaxFrame)
	}
	binary.BigEndian.PutUint32(buf[start:], uint32(size)) //nolint:gosec // size <= MaxFrame
	return buf, nil
}
