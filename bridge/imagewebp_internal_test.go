package bridge

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

// webpChunk returns a chunk of a WebP file.
func webpChunk(name string, body ...byte) []byte {
	chunk := binary.LittleEndian.AppendUint32([]byte(name), uint32(len(body)))
	chunk = append(chunk, body...)
	return append(chunk, make([]byte, len(body)%2)...)
}

func webpOf(chunks ...[]byte) []byte {
	body := append([]byte("WEBP"), bytes.Join(chunks, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// lossless returns the chunk of a lossless image without pixels.
func lossless(width, height int) []byte {
	head := binary.LittleEndian.AppendUint32([]byte{0x2f}, uint32(width-1|(height-1)<<14))
	return webpChunk("VP8L", append(head, make([]byte, 9)...)...)
}

// WebP is not decoded: it is shown as it is, or not.
func TestWebP(t *testing.T) {
	lossy := webpChunk("VP8 ", 0x10, 0, 0, 0x9d, 1, 0x2a, 40, 0, 30, 0, 1, 2)
	extended := func(flags, width, height byte) []byte {
		return webpChunk("VP8X", flags, 0, 0, 0, width-1, 0, 0, height-1, 0, 0)
	}
	m := newImager()
	for _, test := range []struct {
		name string
		data []byte
		want string // of the error
	}{
		{"lossless", webpOf(lossless(40, 30)), ""},
		{"lossy", webpOf(lossy), ""},
		{"extended", webpOf(extended(0, 40, 30), webpChunk("ICCP", 1, 2, 3), lossy, webpChunk("EXIF", 1)), ""},
		{"as wide as may be", webpOf(lossless(maxImageSide, 1)), ""},
		{"too wide", webpOf(lossless(maxImageSide+1, 1)), "1,569 × 1 pixels"},
		{"too many bytes", webpOf(lossless(40, 30), webpChunk("XXXX", make([]byte, maxImageBytes)...)), "convert it to PNG"},
		{"animated", webpOf(extended(2, 40, 30), lossy), "convert it to PNG"},
		{"another canvas", webpOf(extended(0, 40, 31), lossy), "convert it to PNG"},
		{"two images", webpOf(extended(0, 40, 30), lossy, lossy), "convert it to PNG"},
		{"no image", webpOf(extended(0, 40, 30)), "convert it to PNG"},
		{"cut", webpOf(lossy)[:30], "convert it to PNG"},
		{"more behind it", append(webpOf(lossy), 0), "convert it to PNG"},
		{"a chunk too long", webpOf(lossless(40, 30)[:12]), "convert it to PNG"},
		{"no key frame", webpOf(webpChunk("VP8 ", 0x11, 0, 0, 0x9d, 1, 0x2a, 40, 0, 30, 0, 1, 2)), "convert it to PNG"},
	} {
		got, note, err := m.fit(t.Context(), test.data)
		switch {
		case test.want == "":
			if err != nil || note != "" || got.MIMEType != "image/webp" || !bytes.Equal(got.Data, test.data) {
				t.Errorf("%s: %v, %q", test.name, err, note)
			}
		case err == nil || !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
