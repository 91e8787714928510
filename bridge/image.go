package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif" // decodes what tools send
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"slices"
	"time"
)

const (
	maxImages     = 8        // of a result
	maxImageSide  = 1568     // pixels: models scale down what is larger
	maxImageBytes = 3 << 20  // of one image as it is shown; what clients take is 5 MB in base64
	maxPixels     = 13 << 20 // of an image to be decoded; with it that takes at most some 300 MB

	// A progressive JPEG is made of scans. One takes a few bytes and goes over
	// every pixel.
	maxScans      = 64
	maxScanPixels = 300_000_000 // scans times pixels: some seconds

	decodeTime = 5 * time.Second // of one image
)

// An imager makes images fit to be shown. A client passes them on to its model,
// which may refuse the whole conversation for a wrong or a large one. It works
// on one at a time: an image of a few bytes may take much memory to decode.
type imager struct{ turn chan struct{} }

func newImager() *imager { return &imager{turn: make(chan struct{}, 1)} }

// take adds the images that are what they say to r, and tells of what is not as
// it came. When ctx is done, what is left is not shown.
func (m *imager) take(ctx context.Context, r *Result, images []imageReport) []string {
	var notes []string
	for i, from := range images {
		if i == maxImages {
			return append(notes, fmt.Sprintf("[%d more images not shown: at most %d a cell]", len(images)-i, maxImages))
		}
		shown, change, err := m.fit(ctx, from.Data)
		if from.Note != "" {
			change = note(from.Note)
		}
		switch {
		case err != nil:
			notes = append(notes, fmt.Sprintf("[image %d not shown: %v]", i+1, err))
		case change != "":
			notes = append(notes, fmt.Sprintf("[image %d: %s]", i+1, change))
			fallthrough
		default:
			r.Images = append(r.Images, shown)
		}
	}
	return notes
}

// fit returns an image of bounded size, and what was done to have it. The error
// says why there is none.
func (m *imager) fit(ctx context.Context, data []byte) (shown Image, note string, err error) {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return Image{}, "", errNoTime
	}
	defer func() {
		if recover() != nil { // a decoder met what nobody has thought of
			shown, note, err = Image{}, "", errDamaged
		}
	}()
	kind := http.DetectContentType(data)
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, kind) {
		return Image{}, "", errors.New("it is none of PNG, JPEG, GIF and WebP")
	}
	if kind == "image/webp" {
		return fitWebP(data)
	}
	pixels := essential(data)
	config, _, err := image.DecodeConfig(bytes.NewReader(pixels))
	width, height := config.Width, config.Height
	switch {
	case err != nil || width <= 0 || height <= 0:
		return Image{}, "", errDamaged
	case width > maxPixels || height > maxPixels || width*height > maxPixels: // before anything is allocated
		return Image{}, "", fmt.Errorf("it has %s × %s pixels, more than %d million: scale it down in Python, or save it to a file",
			grouped(width), grouped(height), maxPixels/1_000_000)
	case kind == "image/jpeg" && tooManyScans(data, width*height):
		return Image{}, "", errors.New("it is a progressive JPEG of too many scans: convert it to PNG")
	}
	from := &bounded{ctx: ctx, until: time.Now().Add(decodeTime), in: bytes.NewReader(pixels)}
	decoded, _, err := image.Decode(from)
	switch {
	case err != nil && from.late:
		return Image{}, "", errNoTime
	case err != nil:
		return Image{}, "", errDamaged
	}
	if max(width, height) <= maxImageSide && len(data) <= maxImageBytes {
		return Image{MIMEType: kind, Data: data}, "", nil
	}
	note = fmt.Sprintf("compressed from %s bytes", grouped(len(data)))
	if max(width, height) > maxImageSide {
		decoded = scaleDown(decoded, maxImageSide)
		size := decoded.Bounds().Size()
		note = fmt.Sprintf("scaled down from %s × %s pixels to %s × %s", grouped(width), grouped(height), grouped(size.X), grouped(size.Y))
	}
	shown, err = encode(decoded, kind)
	return shown, note, err
}

// fitWebP is fit for WebP, which is shown as it is or not at all.
func fitWebP(data []byte) (Image, string, error) {
	width, height, ok := webpSize(data)
	switch {
	case !ok:
		return Image{}, "", errors.New("it is damaged or animated WebP: convert it to PNG")
	case max(width, height) > maxImageSide || len(data) > maxImageBytes:
		return Image{}, "", fmt.Errorf("it is WebP of %s × %s pixels and %s bytes, and WebP is not scaled down: convert it to PNG",
			grouped(width), grouped(height), grouped(len(data)))
	}
	return Image{MIMEType: "image/webp", Data: data}, "", nil
}

var (
	errDamaged = errors.New("it is damaged")
	errNoTime  = errors.New("there was no time to decode it")
)

// tooManyScans reports whether decoding a JPEG would take long. It counts the
// markers where a scan begins wherever they may stand, as no two readers agree
// on what is between segments: in the pixels themselves there is none.
func tooManyScans(data []byte, pixels int) bool {
	scans := bytes.Count(data, []byte{0xff, 0xda})
	return scans > maxScans || scans*pixels > maxScanPixels
}

// A bounded reader fails when its time is over, and gives decoders little at a
// time, as they do not ask while they have something.
type bounded struct {
	ctx   context.Context //nolint:containedctx // of one call
	until time.Time
	in    io.Reader
	late  bool // it has failed
}

func (b *bounded) Read(p []byte) (int, error) {
	const piece = 512
	if b.ctx.Err() != nil || time.Now().After(b.until) {
		b.late = true
		return 0, errNoTime
	}
	return b.in.Read(p[:min(len(p), piece)])
}

// encode writes an image in a way that fits what it was.
func encode(from image.Image, kind string) (Image, error) {
	var b bytes.Buffer
	if kind != "image/jpeg" {
		if err := png.Encode(&b, from); err != nil {
			return Image{}, fmt.Errorf("it cannot be encoded: %w", err)
		}
		if b.Len() <= maxImageBytes {
			return Image{MIMEType: "image/png", Data: b.Bytes()}, nil
		}
		b.Reset()
	}
	opaque := image.NewRGBA(from.Bounds()) // JPEG has no transparency
	draw.Draw(opaque, opaque.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(opaque, opaque.Bounds(), from, from.Bounds().Min, draw.Over)
	for quality := 85; ; quality -= 25 {
		if err := jpeg.Encode(&b, opaque, &jpeg.Options{Quality: quality}); err != nil {
			return Image{}, fmt.Errorf("it cannot be encoded: %w", err)
		}
		if b.Len() <= maxImageBytes || quality < 30 {
			return Image{MIMEType: "image/jpeg", Data: b.Bytes()}, nil
		}
		b.Reset()
	}
}

// scaleDown returns from with at most side pixels on each side: each pixel is
// the mean of those that it stands for. Beside the result it needs a row.
func scaleDown(from image.Image, side int) image.Image {
	bounds := from.Bounds()
	width, height := bounds.Dx(), bounds.Dy()
	longest := max(width, height)
	w, h := max(1, width*side/longest), max(1, height*side/longest)
	to := image.NewRGBA(image.Rect(0, 0, w, h))
	row := image.NewRGBA(image.Rect(0, 0, width, 1))
	sums := make([][4]int, w)
	for y := range h {
		clear(sums)
		top, bottom := y*height/h, (y+1)*height/h
		for sy := top; sy < max(bottom, top+1); sy++ {
			draw.Draw(row, row.Bounds(), from, image.Pt(bounds.Min.X, bounds.Min.Y+sy), draw.Src)
			for x := range w {
				left, right := x*width/w, (x+1)*width/w
				for sx := left; sx < max(right, left+1); sx++ {
					for c := range 4 {
						sums[x][c] += int(row.Pix[4*sx+c])
					}
				}
			}
		}
		rows := max(bottom, top+1) - top
		for x := range w {
			left, right := x*width/w, (x+1)*width/w
			count := rows * (max(right, left+1) - left)
			to.SetRGBA(x, y, color.RGBA{
				R: mean(sums[x][0], count), G: mean(sums[x][1], count), B: mean(sums[x][2], count), A: mean(sums[x][3], count),
			})
		}
	}
	return to
}

func mean(sum, count int) uint8 { return uint8((sum + count/2) / count) } //nolint:gosec // a mean of bytes is one
