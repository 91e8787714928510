package mux

import (
	"encoding/binary"
	"fmt"
	"io"
)

// A frame is a kind, a number N, and for data N bytes. The kind is an operation
// and a channel.
const (
	headerSize = 5
	maxData    = 64 << 10
	// window is what a side may send on a channel before the other has asked
	// for more.
	window = 1 << 20
)

// An op is what a frame does, the upper half of its kind.
type op byte

const (
	opData   op = 0x00 // N bytes follow
	opCredit op = 0x10 // the receiver of this frame may send N more bytes
	opEnd    op = 0x20 // nothing further follows on the channel from this side
)

type header struct {
	op      op
	channel int // 0 or 1
	n       int
}

// readHeader reads and checks the next header. It returns io.EOF between frames.
func readHeader(r io.Reader) (header, error) {
	var b [headerSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	h := header{op: op(b[0] &^ 0x0f), channel: int(b[0]&0x0f) - 1}
	n := binary.BigEndian.Uint32(b[1:])
	low, high := uint32(1), uint32(0)
	switch h.op {
	case opData:
		high = maxData
	case opCredit:
		high = window
	case opEnd:
		low = 0
	default:
		h.channel = -1
	}
	if h.channel != 0 && h.channel != 1 {
		return header{}, fmt.Errorf("%w: frame of kind %#02x", ErrProtocol, b[0])
	}
	if n < low || n > high {
		return header{}, fmt.Errorf("%w: frame of kind %#02x with number %d", ErrProtocol, b[0], n)
	}
	h.n = int(n)
	return h, nil
}

func appendHeader(b []byte, h header) []byte {
	b = append(b, byte(h.op)|byte(h.channel+1))          //nolint:gosec // 1 or 2
	return binary.BigEndian.AppendUint32(b, uint32(h.n)) //nolint:gosec // never more than window
}
