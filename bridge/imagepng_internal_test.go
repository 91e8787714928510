package bridge

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"
)

func TestEssential(t *testing.T) {
	palette := image.NewPaletted(image.Rect(0, 0, 3, 2), color.Palette{color.Transparent, color.White})
	palette.SetColorIndex(1, 1, 1)
	var b bytes.Buffer
	if err := png.Encode(&b, palette); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	// After the header a profile with a wrong check sum.
	const header = 8 + 25
	profile := append([]byte{0, 0, 0, 3}, "iCCPabc\x00\x00\x00\x00"...)
	odd := append(append(bytes.Clone(whole[:header]), profile...), whole[header:]...)
	if _, err := png.Decode(bytes.NewReader(odd)); err == nil {
		t.Log("the decoder does not mind any more")
	}
	if got := essential(odd); !bytes.Equal(got, whole) {
		t.Errorf("essential gave %q, want %q", got, whole)
	}
	if got := essential(whole); !bytes.Equal(got, whole) {
		t.Error("an image with transparency was changed")
	}
	for _, data := range [][]byte{nil, []byte("\x89PNG"), whole[:40], whole[:len(whole)-1], append(bytes.Clone(whole[:8]), 255, 255, 255, 255, 'I', 'D', 'A', 'T', 0, 0, 0, 0)} {
		if got := essential(data); !bytes.Equal(got, data) {
			t.Errorf("essential(%q) gave %q", data, got)
		}
	}
	m := newImager()
	shown, note, err := m.fit(t.Context(), odd)
	if err != nil || note != "" || !bytes.Equal(shown.Data, odd) {
		t.Errorf("fit gave %d bytes, %q, %v; want the image as it came", len(shown.Data), note, err)
	}
}
