package gvisor

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// Prefixes of image names that are files. A name without one is a registry's.
const (
	ociArchive    = "oci-archive:"
	dockerArchive = "docker-archive:"
)

// platform is that of the images we can run.
func platform() v1.Platform { return v1.Platform{OS: "linux", Architecture: goruntime.GOARCH} }

// archiveOf returns the archive file that an image's name names.
func archiveOf(image string) (file string, isOCI, ok bool) {
	if file, ok = strings.CutPrefix(image, ociArchive); ok {
		return file, true, true
	}
	file, ok = strings.CutPrefix(image, dockerArchive)
	return file, false, ok
}

// checkImage returns nil if the image can be run without asking a registry.
func (e *Engine) checkImage(image string) error {
	if file, _, ok := archiveOf(image); ok {
		info, err := os.Stat(file)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a file", file)
		}
		if err != nil {
			return imageMissing("check", image, err)
		}
		return nil
	}
	if _, there := e.store.byName(canonical(image)); there {
		return nil
	}
	return imageMissing("check", image, errors.New("it is not in the cache"))
}

// imageRootfs returns the root file system made of an image.
func (e *Engine) imageRootfs(ctx context.Context, image string) (string, error) {
	file, isOCI, ok := archiveOf(image)
	if !ok {
		if rootfs, there := e.store.byName(canonical(image)); there {
			return rootfs, nil
		}
		return "", imageMissing("start sandbox", image, errors.New("it is not in the cache"))
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", imageMissing("start sandbox", image, err)
	}
	if file, err = filepath.Abs(file); err != nil {
		return "", err
	}
	// The file's own identity decides, for looking into it takes long.
	key := keyOf("archive", file, fmt.Sprint(info.Size()), info.ModTime().UTC().Format(time.RFC3339Nano))
	if rootfs, there := e.store.lookup(key); there {
		return rootfs, nil
	}
	img, done, err := e.openArchive(file, isOCI)
	if err != nil {
		return "", imageMissing("read image", image, err)
	}
	defer done()
	about, err := noteOf(img, image)
	if err != nil {
		return "", imageMissing("read image", image, err)
	}
	rootfs, err := e.store.make(ctx, key, about, func(b *builder) error {
		if err := verifyLayers(ctx, img); err != nil {
			return err
		}
		return unpack(ctx, b, img, func() {})
	})
	if err != nil {
		return "", failures.New("unpack image", fmt.Errorf("%s: %w", image, err), "")
	}
	return rootfs, nil
}

// canonical is the full name of an image of a registry.
func canonical(image string) string {
	ref, err := name.ParseReference(image)
	if err != nil {
		return image
	}
	return ref.Name()
}

func imageMissing(op, image string, err error) error {
	return failures.New(op, fmt.Errorf("%w: %s: %w", runtime.ErrImageMissing, image, err), missingHint(image))
}

// missingHint says how to get an image.
func missingHint(image string) string {
	called := container.Printable(image)
	const hostPython = "; or name no image to use the host's Python"
	_, _, archive := archiveOf(image)
	switch {
	case archive:
		return "make it with `podman save --format oci-archive -o FILE IMAGE` for " + ociArchive + "FILE, or `podman save -o FILE IMAGE` for " + dockerArchive + "FILE"
	case strings.HasPrefix(image, container.LocalPrefix):
		return "give gVisor the image that podman or docker has built: " + exportHint(called) + hostPython
	}
	return "get it with `mcp-bridge image pull --runtime " + engineName + " " + called + "`, or of podman or docker: " + exportHint(called) + hostPython
}

// exportHint gets an image out of an engine that builds.
func exportHint(image string) string {
	return "`podman save -o image.tar " + image + "` or `docker save -o image.tar " + image + "`, then --image " + dockerArchive + "image.tar"
}

// openArchive opens the image in an archive. done releases it.
func (e *Engine) openArchive(file string, isOCI bool) (img v1.Image, done func(), err error) {
	if !isOCI {
		img, err := tarball.ImageFromPath(file, nil)
		return img, func() {}, err
	}
	if err := e.store.ensure(); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(e.store.dir, tempPrefix)
	if err != nil {
		return nil, nil, err
	}
	done = func() { os.RemoveAll(dir) }
	if err := unpackLayout(file, dir); err != nil {
		done()
		return nil, nil, err
	}
	if img, err = imageOfLayout(dir); err != nil {
		done()
		return nil, nil, err
	}
	return img, done, nil
}

// layoutFile are the names that there may be in an OCI archive.
var layoutFile = regexp.MustCompile(`^(oci-layout|index\.json|blobs/sha256/[0-9a-f]{64})$`)

// unpackLayout unpacks an OCI archive, which is a tar of an OCI layout. Nothing
// but regular files with the names of a layout gets out of it, below dir.
func unpackLayout(file, dir string) error {
	f, err := os.Open(file) //nolint:gosec // the user names it
	if err != nil {
		return err
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll("blobs/sha256", 0o700); err != nil {
		return err
	}
	left := int64(maxImageBytes)
	archive := tar.NewReader(f)
	for range maxEntries {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(header.Name)
		if header.Typeflag != tar.TypeReg || !layoutFile.MatchString(name) {
			continue
		}
		if left -= header.Size; left < 0 {
			return fmt.Errorf("more than %d bytes", int64(maxImageBytes))
		}
		out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.CopyN(out, archive, header.Size)
		if err := errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
	return errors.New("too many files")
}

// imageOfLayout returns the image for our platform in an OCI layout.
func imageOfLayout(dir string) (v1.Image, error) {
	l, err := layout.FromPath(dir)
	if err != nil {
		return nil, err
	}
	index, err := l.ImageIndex()
	if err != nil {
		return nil, err
	}
	return imageOfIndex(index, 0)
}

func imageOfIndex(index v1.ImageIndex, depth int) (v1.Image, error) {
	const deepest = 3
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		switch {
		case d.Platform != nil && !d.Platform.Satisfies(platform()):
		case d.MediaType.IsImage():
			return index.Image(d.Digest)
		case d.MediaType.IsIndex() && depth < deepest:
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, err
			}
			return imageOfIndex(inner, depth+1)
		}
	}
	return nil, fmt.Errorf("it has no image for %s", platform())
}

// noteOf is what the store is to know of an image.
func noteOf(img v1.Image, image string) (note, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return note{}, err
	}
	if p := config.Platform(); p != nil && (p.OS != "linux" || p.Architecture != goruntime.GOARCH) {
		return note{}, fmt.Errorf("it is for %s, not %s", p, platform())
	}
	return note{Names: []string{image}, Created: config.Created.Time, Labels: config.Config.Labels}, nil
}

// verifyLayers makes sure that an archive's layers are those its configuration
// speaks of. A registry's are verified as they are read.
func verifyLayers(ctx context.Context, img v1.Image) error {
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	if len(layers) != len(config.RootFS.DiffIDs) {
		return fmt.Errorf("it has %d layers, and its configuration %d", len(layers), len(config.RootFS.DiffIDs))
	}
	for i, l := range layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		content, err := l.Uncompressed()
		if err != nil {
			return err
		}
		sum := sha256.New()
		n, err := io.Copy(sum, io.LimitReader(content, maxImageBytes+1))
		if err := errors.Join(err, content.Close()); err != nil {
			return err
		}
		want := config.RootFS.DiffIDs[i]
		if got := hex.EncodeToString(sum.Sum(nil)); n > maxImageBytes || want.Algorithm != "sha256" || got != want.Hex {
			return fmt.Errorf("layer %d is not what the image's configuration says (%s)", i+1, want)
		}
	}
	return nil
}

// unpack writes the files of an image: its layers, one over the other. step is
// called after each.
func unpack(ctx context.Context, b *builder, img v1.Image, step func()) error {
	flat := mutate.Extract(img)
	defer flat.Close()
	archive := tar.NewReader(flat)
	var linked []*tar.Header // hard links, which may come before what they link to
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if header.Typeflag == tar.TypeLink {
			if len(linked) >= b.maxEntries {
				return fmt.Errorf("more than %d hard links", b.maxEntries)
			}
			linked = append(linked, header)
			continue
		}
		if err := unpackEntry(b, header, archive); err != nil {
			return fmt.Errorf("%.200q: %w", header.Name, err)
		}
		step()
	}
	for _, header := range linked {
		if err := b.copyOf(header.Linkname, header.Name, header.FileInfo().Mode(), header.ModTime); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%.200q: %w", header.Name, err)
		}
	}
	return nil
}

// unpackEntry writes one entry. Devices, pipes and sockets are left out. Of two
// with one name the first counts: it is of the upper layer.
func unpackEntry(b *builder, header *tar.Header, content io.Reader) error {
	mode := header.FileInfo().Mode()
	var err error
	switch header.Typeflag {
	case tar.TypeDir:
		err = b.mkdir(header.Name, mode)
	case tar.TypeReg:
		err = b.file(header.Name, mode, header.ModTime, content)
	case tar.TypeSymlink:
		err = b.symlink(header.Linkname, header.Name)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
