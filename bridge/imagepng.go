package bridge

import (
	"encoding/binary"
	"hash/crc32"
)

// essential returns a PNG without the chunks that no pixel needs. Their check
// sums are wrong in some images, one of server-everything for one; Go's decoder
// then gives up, where all who show images do not mind. What is no PNG, or ends in the
// middle of a chunk, comes back as it is.
func essential(data []byte) []byte {
	const signature, frame = "\x89PNG\r\n\x1a\n", 12 // length, type and check sum of a chunk
	if len(data) < len(signature) || string(data[:len(signature)]) != signature {
		return data
	}
	kept := make([]byte, 0, len(data))
	kept = append(kept, signature...)
	for rest := data[len(signature):]; len(rest) > 0; {
		if len(rest) < frame {
			return data
		}
		size := uint64(binary.BigEndian.Uint32(rest)) + frame
		if size > uint64(len(rest)) {
			return data
		}
		chunk := rest[:size]
		rest = rest[size:]
		const ancillary = 0x20 // a lower case letter
		if name := string(chunk[4:8]); chunk[4]&ancillary == 0 || name == "tRNS" && intact(chunk) {
			kept = append(kept, chunk...)
		}
	}
	return kept
}

func intact(chunk []byte) bool {
	end := len(chunk) - 4
	return crc32.ChecksumIEEE(chunk[4:end]) == binary.BigEndian.Uint32(chunk[end:])
}
