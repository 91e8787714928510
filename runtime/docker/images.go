package docker

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	imagetypes "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	dockerclient "github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

var _ runtime.ImageStore = (*Engine)(nil)

// Pull implements [runtime.ImageStore].
func (e *Engine) Pull(ctx context.Context, image string, progress func(runtime.PullProgress)) error {
	const op = "pull image"
	return e.withDocker(ctx, op, func(c *dockerclient.Client) error {
		stream, err := c.ImagePull(ctx, image, imagetypes.PullOptions{})
		if err == nil {
			defer stream.Close()
			layers := layers{}
			err = container.ReadMessages(stream, func(m container.Message) {
				layers.add(m)
				if progress != nil {
					progress(layers.progress(m.Status))
				}
			})
		}
		if err == nil || ctx.Err() != nil || dockerclient.IsErrConnectionFailed(err) {
			return err
		}
		return failures.New(op, fmt.Errorf("%w: %s: %s", runtime.ErrImageMissing, image, container.Sanitize(err.Error())),
			container.PullHint(name, image))
	})
}

// Images implements [runtime.ImageStore].
func (e *Engine) Images(ctx context.Context) ([]runtime.Image, error) {
	var images []runtime.Image
	err := e.withDocker(ctx, "list images", func(c *dockerclient.Client) error {
		found, err := c.ImageList(ctx, imagetypes.ListOptions{})
		for _, f := range found {
			names := slices.DeleteFunc(f.RepoTags, func(name string) bool { return name == "<none>:<none>" })
			images = append(images, runtime.Image{
				ID: f.ID, Names: names, Bytes: f.Size, Created: time.Unix(f.Created, 0), Labels: f.Labels,
			})
		}
		return err
	})
	slices.SortStableFunc(images, func(a, b runtime.Image) int { return b.Created.Compare(a.Created) })
	return images, err
}

// Build implements [runtime.ImageStore].
func (e *Engine) Build(ctx context.Context, opts runtime.BuildOptions, log func(string)) error {
	return e.withDocker(ctx, "build image", func(c *dockerclient.Client) error {
		networkMode, err := buildNetwork(ctx, c)
		if err != nil {
			return err
		}
		args := map[string]*string{}
		for name, value := range opts.Args {
			args[name] = &value
		}
		reader, writer := io.Pipe()
		defer reader.Close() // ends the goroutine, should the daemon not read all
		go func() { writer.CloseWithError(container.WriteContext(writer, opts)) }()
		answer, err := c.ImageBuild(ctx, reader, build.ImageBuildOptions{
			Tags: []string{opts.Name}, Dockerfile: container.DockerfileName, Target: opts.Target, BuildArgs: args,
			NetworkMode: networkMode, Remove: true, ForceRemove: true, Version: build.BuilderV1,
		})
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		return container.ReadMessages(answer.Body, func(m container.Message) {
			for line := range strings.Lines(m.Stream + m.Status) {
				if line = container.Sanitize(line); line != "" && log != nil {
					log(line)
				}
			}
		})
	})
}

// buildNetwork is the daemon's default, or none where it has no default.
func buildNetwork(ctx context.Context, c *dockerclient.Client) (string, error) {
	_, err := c.NetworkInspect(ctx, "bridge", network.InspectOptions{})
	if errdefs.IsNotFound(err) {
		return "none", nil
	}
	return "", err
}

// layers are how far the layers of an image have been downloaded.
type layers map[string]struct{ done, total int64 }

// maxLayers bounds what is remembered; Docker's own limit is 127.
const maxLayers = 1024

func (l layers) add(m container.Message) {
	known, ok := l[m.ID]
	if m.ID == "" || !ok && len(l) == maxLayers {
		return
	}
	switch m.Status {
	case "Downloading":
		known.done, known.total = m.Progress.Current, cmp.Or(m.Progress.Total, known.total)
	case "Download complete", "Pull complete", "Already exists":
		known.done = known.total
	default:
		return
	}
	l[m.ID] = known
}

func (l layers) progress(status string) runtime.PullProgress {
	p := runtime.PullProgress{Status: container.Sanitize(status)}
	for _, layer := range l {
		p.Done += layer.done
		p.Total += layer.total
	}
	return p
}
