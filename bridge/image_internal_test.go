package bridge

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"testing"
	"time"
)

// picture returns a picture whose left half is red, and whose right half green.
func picture(width, height int) *image.NRGBA {
	p := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.NRGBA{R: 255, A: 255}
			if x >= width/2 {
				c = color.NRGBA{G: 255, A: 255}
			}
			p.SetNRGBA(x, y, c)
		}
	}
	return p
}

// noise returns a picture that cannot be compressed.
func noise(width, height int) *image.NRGBA {
	p := image.NewNRGBA(image.Rect(0, 0, width, height))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range p.Pix {
		p.Pix[i] = byte(rng.Uint32())
		if i%4 == 3 {
			p.Pix[i] = 255
		}
	}
	return p
}

func pngOf(t *testing.T, from image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, from); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFit(t *testing.T) {
	m := newImager()
	small := pngOf(t, picture(40, 30))
	var jpg, gifData bytes.Buffer
	if err := jpeg.Encode(&jpg, picture(3000, 1000), nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&gifData, picture(20, 20), nil); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name          string
		data          []byte
		kind, note    string
		width, height int
	}{
		{"small", small, "image/png", "", 40, 30},
		{"GIF", gifData.Bytes(), "image/gif", "", 20, 20},
		{"wide", pngOf(t, picture(3136, 20)), "image/png", "scaled down from 3,136 × 20 pixels to 1,568 × 10", 1568, 10},
		{"high", pngOf(t, picture(2, 5000)), "image/png", "scaled down from 2 × 5,000 pixels to 1 × 1,568", 1, 1568},
		{"photo", jpg.Bytes(), "image/jpeg", "scaled down from 3,000 × 1,000 pixels to 1,568 × 522", 1568, 522},
		{"many bytes", pngOf(t, noise(1500, 1000)), "image/jpeg", "compressed from 4,5", 1500, 1000},
		{"many of both", pngOf(t, noise(2000, 1900)), "image/jpeg", "scaled down from 2,000 × 1,900 pixels to 1,568 × 1,489", 1568, 1489},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, note, err := m.fit(t.Context(), test.data)
			if err != nil || got.MIMEType != test.kind || !strings.HasPrefix(note, test.note) || test.note == "" && note != "" {
				t.Fatalf("%s, %q, %v", got.MIMEType, note, err)
			}
			if len(got.Data) > maxImageBytes {
				t.Errorf("%d bytes", len(got.Data))
			}
			decoded, kind, err := image.Decode(bytes.NewReader(got.Data))
			if err != nil || "image/"+kind != test.kind || decoded.Bounds().Dx() != test.width || decoded.Bounds().Dy() != test.height {
				t.Fatalf("%v, %s, %v", err, kind, decoded)
			}
			if strings.Contains(test.name, "many") || test.width < 2 {
				return
			}
			for x, want := range map[int]color.NRGBA{test.width / 4: {R: 255, A: 255}, test.width * 3 / 4: {G: 255, A: 255}} {
				c := color.NRGBAModel.Convert(decoded.At(x, test.height/2)).(color.NRGBA)
				if c.R>>3 != want.R>>3 || c.G>>3 != want.G>>3 || c.A != 255 {
					t.Errorf("at %d: %v, want %v", x, c, want)
				}
			}
		})
	}
}

// claim returns a PNG that says it has so many pixels, and has none.
func claim(width, height uint32) []byte {
	data := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	data = binary.BigEndian.AppendUint32(data, width)
	data = binary.BigEndian.AppendUint32(data, height)
	data = append(data, 8, 6, 0, 0, 0)
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data[12:]))
}

// What claims to be huge is refused before anything is allocated for it.
func TestBombs(t *testing.T) {
	m := newImager()
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	for name, data := range map[string][]byte{
		"64 gigapixels": claim(1<<18, 1<<18),
		"most there is": claim(1<<31-1, 1<<31-1),
		"a line":        claim(1<<31-1, 1),
		"GIF":           append([]byte("GIF89a\xff\xff\xff\xff\x80\x00\x00"), make([]byte, 6)...),
	} {
		if _, _, err := m.fit(t.Context(), data); err == nil || !strings.Contains(err.Error(), "pixels, more than 13 million") && name != "most there is" {
			t.Errorf("%s: %v", name, err)
		}
	}
	goruntime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
	// Five thousand times as many pixels as bytes, but not too many.
	if got, _, err := m.fit(t.Context(), pngOf(t, image.NewGray(image.Rect(0, 0, 3500, 3500)))); err != nil || len(got.Data) > 100_000 {
		t.Errorf("an even image: %v, %d bytes", err, len(got.Data))
	}
}

// A progressive JPEG takes little to have a decoder go over every pixel again
// and again.
func TestScansAreBounded(t *testing.T) {
	m := newImager()
	for name, test := range map[string]struct{ side, scans int }{
		"many scans":            {64, maxScans + 1},
		"many pixels and scans": {3600, 30},
	} {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, test.side, test.side)), nil); err != nil {
			t.Fatal(err)
		}
		data := bytes.TrimSuffix(b.Bytes(), []byte("\xff\xd9"))
		data = append(data, bytes.Repeat([]byte("\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x01\x00"), test.scans)...)
		if _, _, err := m.fit(t.Context(), data); err == nil || !strings.Contains(err.Error(), "too many scans") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestImagesHaveATime(t *testing.T) {
	m := newImager()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	small := pngOf(t, picture(4, 4))
	m.turn <- struct{}{} // by another session
	if _, _, err := m.fit(ctx, small); !errors.Is(err, errNoTime) {
		t.Errorf("waiting: %v", err)
	}
	<-m.turn
	for range 20 { // whichever select takes
		if _, _, err := m.fit(ctx, small); !errors.Is(err, errNoTime) {
			t.Errorf("decoding: %v", err)
		}
	}
	past := &bounded{ctx: t.Context(), until: time.Now().Add(-1), in: bytes.NewReader(small)}
	if _, _, err := image.Decode(past); err == nil || !past.late {
		t.Errorf("after the time: %v", err)
	}
}

// While a cell's images wait for those of another session, the bridge can ask
// the session for its state.
func TestImagesDoNotHoldTheSession(t *testing.T) {
	b := New(Options{})
	defer b.Close()
	s := newSession(b, "")
	e := &execution{cell: 1, done: make(chan struct{}), output: &transcript{}}
	e.output.write("unheard")
	e.outcome.Cell = &report{Status: "ok", Images: []imageReport{{Data: pngOf(t, picture(4, 4))}}}
	close(e.done)
	s.missed = e
	b.images.turn <- struct{}{}
	shrunk := make(chan struct{})
	go func() {
		defer close(shrunk)
		s.shrink()
	}()
	for range 100 {
		asked := make(chan struct{})
		go func() {
			s.state()
			close(asked)
		}()
		select {
		case <-asked:
		case <-time.After(10 * time.Second):
			t.Fatal("the session is held")
		}
		time.Sleep(time.Millisecond) // nothing tells that shrink waits
	}
	<-b.images.turn
	<-shrunk
	if r := s.missed.kept; r == nil || r.Text != "unheard" || len(r.Images) != 1 {
		t.Errorf("kept %+v", r)
	}
}

func FuzzFit(f *testing.F) {
	var b bytes.Buffer
	if err := png.Encode(&b, picture(20, 10)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	var j bytes.Buffer
	if err := jpeg.Encode(&j, picture(20, 10), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(j.Bytes())
	f.Add([]byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"))
	f.Add([]byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"))
	f.Add(claim(100, 100))
	m := newImager()
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _, err := m.fit(t.Context(), data)
		if err != nil {
			return
		}
		if got.MIMEType == "image/webp" {
			if width, height, ok := webpSize(got.Data); !ok || max(width, height) > maxImageSide || len(got.Data) > maxImageBytes {
				t.Errorf("shown: %v, %d × %d", ok, width, height)
			}
			return
		}
		config, _, err := image.DecodeConfig(bytes.NewReader(got.Data))
		if err != nil || config.Width > maxImageSide || config.Height > maxImageSide || len(got.Data) > maxImageBytes {
			t.Errorf("shown: %v, %+v, %d bytes", err, config, len(got.Data))
		}
	})
}

func TestImagesOfAReport(t *testing.T) {
	good, large := pngOf(t, picture(4, 4)), pngOf(t, picture(1600, 4))
	var r Result
	notes := newImager().take(t.Context(), &r, []imageReport{
		{Data: good},
		{Data: []byte("<svg/>")},
		{Data: large},
		{Data: good, Note: "scaled\x1b[1m\ndown"},
		{Data: good[:len(good)-20]},
		{Data: nil},
		{Data: claim(1<<20, 1<<20)},
		{Data: good},
		{Data: good},
		{Data: good},
	})
	want := []string{
		"[image 2 not shown: it is none of PNG, JPEG, GIF and WebP]",
		"[image 3: scaled down from 1,600 × 4 pixels to 1,568 × 3]",
		"[image 4: scaled down]",
		"[image 5 not shown: it is damaged]",
		"[image 6 not shown: it is none of PNG, JPEG, GIF and WebP]",
		"[image 7 not shown: it has 1,048,576 × 1,048,576 pixels, more than 13 million: scale it down in Python, or save it to a file]",
		"[2 more images not shown: at most 8 a cell]",
	}
	if strings.Join(notes, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %s", strings.Join(notes, "\n"))
	}
	if len(r.Images) != 4 {
		t.Errorf("%d images", len(r.Images))
	}
}
