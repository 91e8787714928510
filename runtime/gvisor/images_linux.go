package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

var _ runtime.ImageStore = (*Engine)(nil)

// Pull implements [runtime.ImageStore]: it makes a root file system of a
// registry's image, and keeps it in the cache.
func (e *Engine) Pull(ctx context.Context, image string, progress func(runtime.PullProgress)) error {
	const op = "pull image"
	if _, _, archive := archiveOf(image); archive {
		_, err := e.rootfs(ctx, image)
		return failures.Wrap(op, err)
	}
	if strings.HasPrefix(image, container.LocalPrefix) {
		return imageMissing(op, image, errors.New("no registry has it"))
	}
	ref, err := name.ParseReference(image)
	if err != nil {
		return imageMissing(op, image, err)
	}
	if progress == nil {
		progress = func(runtime.PullProgress) {}
	}
	progress(runtime.PullProgress{Status: "asking " + ref.Context().RegistryStr()})
	counted := &countingTransport{next: remote.DefaultTransport}
	img, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(platform()),
		remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(counted))
	if err != nil {
		return pullFailed(ctx, image, err)
	}
	digest, err := img.Digest()
	if err != nil {
		return pullFailed(ctx, image, err)
	}
	about, err := noteOf(img, ref.Name())
	if err != nil {
		return pullFailed(ctx, image, err)
	}
	total := sizeOf(img)
	counted.bytes.Store(0)
	e.making.Lock()
	defer e.making.Unlock()
	if _, err := e.store.make(ctx, keyOf("image", digest.String()), about, func(b *builder) error {
		return unpack(ctx, b, img, func() {
			progress(runtime.PullProgress{Status: "unpacking", Done: min(counted.bytes.Load(), total), Total: total})
		})
	}); err != nil {
		return pullFailed(ctx, image, err)
	}
	progress(runtime.PullProgress{Status: "done", Done: total, Total: total})
	return nil
}

// Images implements [runtime.ImageStore].
func (e *Engine) Images(context.Context) ([]runtime.Image, error) {
	images, err := e.store.list()
	return images, failures.Wrap("list images", err)
}

// Build implements [runtime.ImageStore]: building runs programs as root in a
// container, for which an engine is needed.
func (*Engine) Build(context.Context, runtime.BuildOptions, func(string)) error {
	return failures.New("build image", fmt.Errorf("%w: gVisor alone builds no images", errors.ErrUnsupported),
		"build it with podman or docker (`mcp-bridge image build --runtime podman`), then give gVisor the archive: "+exportHint("NAME")+"; or name an image of a registry")
}

// sizeOf is how much of an image there is to get.
func sizeOf(img v1.Image) int64 {
	manifest, err := img.Manifest()
	if err != nil {
		return 0
	}
	var total int64
	for _, l := range manifest.Layers {
		total += max(0, l.Size)
	}
	return total
}

func pullFailed(ctx context.Context, image string, err error) error {
	if ctx.Err() != nil {
		return failures.Wrap("pull image", context.Cause(ctx))
	}
	return failures.New("pull image", fmt.Errorf("%w: %s: %w", runtime.ErrImageMissing, image, err),
		"check the name, and whether the registry answers; an image of podman or docker: "+exportHint(container.Printable(image)))
}

// A countingTransport counts the bytes of answers.
type countingTransport struct {
	next  http.RoundTripper
	bytes atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (t *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = &countingBody{ReadCloser: response.Body, bytes: &t.bytes}
	}
	return response, err
}

type countingBody struct {
	io.ReadCloser
	bytes *atomic.Int64
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(int64(n))
	return n, err
}
