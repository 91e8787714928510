package bridge

import (
	"encoding/binary"
)

// webpSize returns the width and height of a still WebP image, and whether its
// header is consistent. The pixels are not looked at: decoders have to allocate
// what a few bytes of the file say, without a bound that goes with its size.
func webpSize(data []byte) (width, height int, ok bool) {
	const header, frame = 12, 8 // of the file, and of a chunk
	if len(data) < header || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" ||
		uint64(binary.LittleEndian.Uint32(data[4:]))+frame != uint64(len(data)) {
		return 0, 0, false
	}
	var canvas, found bool
	for rest := data[header:]; len(rest) > 0; {
		if len(rest) < frame {
			return 0, 0, false
		}
		size := uint64(binary.LittleEndian.Uint32(rest[4:]))
		padded := frame + size + size%2
		if padded > uint64(len(rest)) {
			return 0, 0, false
		}
		name, body := string(rest[:4]), rest[frame:frame+size]
		first := len(rest) == len(data)-header
		rest = rest[padded:]
		var w, h int
		switch name {
		case "VP8X":
			const animated = 0x02
			if !first || len(body) != 10 || body[0]&animated != 0 {
				return 0, 0, false
			}
			width, height, canvas = 1+uint24(body[4:]), 1+uint24(body[7:]), true
			continue
		case "VP8 ":
			w, h = vp8Size(body)
		case "VP8L":
			w, h = vp8lSize(body)
		case "ANIM", "ANMF":
			return 0, 0, false
		default:
			continue
		}
		if found || w <= 0 || h <= 0 || !first && !canvas || canvas && (w != width || h != height) {
			return 0, 0, false
		}
		width, height, found = w, h, true
	}
	return width, height, found
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// vp8Size reads the header of a key frame, RFC 6386, section 9.1.
func vp8Size(body []byte) (width, height int) {
	const header = 10
	if len(body) <= header || body[0]&1 != 0 || string(body[3:6]) != "\x9d\x01\x2a" || uint24(body)>>5 > len(body)-header {
		return 0, 0
	}
	return int(binary.LittleEndian.Uint16(body[6:])) & 0x3fff, int(binary.LittleEndian.Uint16(body[8:])) & 0x3fff
}

// vp8lSize reads the header of a lossless image, RFC 9649, section 3.4.
func vp8lSize(body []byte) (width, height int) {
	const header = 5
	if len(body) <= header || body[0] != 0x2f || body[4]>>5 != 0 { // the version is 0
		return 0, 0
	}
	bits := binary.LittleEndian.Uint32(body[1:])
	return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff)
}
