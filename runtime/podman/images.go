package podman

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

var _ runtime.ImageStore = (*Engine)(nil)

// Pull implements [runtime.ImageStore]. Podman does not tell bytes.
func (e *Engine) Pull(ctx context.Context, image string, progress func(runtime.PullProgress)) error {
	const op = "pull image"
	c, err := e.connectClient(ctx)
	if err != nil {
		return failures.Wrap(op, err)
	}
	query := url.Values{"reference": {image}}
	if onLoopback(image) { // nobody is in between, and nobody has a certificate
		query.Set("tlsVerify", "false")
	}
	err = c.stream(ctx, "/images/pull", query, nil, func(m container.Message) {
		if status := container.Sanitize(m.Stream); status != "" && progress != nil {
			progress(runtime.PullProgress{Status: status})
		}
	})
	if err == nil || ctx.Err() != nil || unanswered(err) {
		return explain(op, image, err)
	}
	return failures.New(op, fmt.Errorf("%w: %s: %s", runtime.ErrImageMissing, image, container.Sanitize(err.Error())),
		container.PullHint(name, image))
}

// onLoopback reports whether the registry that the reference names is this machine.
func onLoopback(image string) bool {
	registry, _, _ := strings.Cut(image, "/")
	host, _, err := net.SplitHostPort(registry)
	if err != nil {
		host = registry
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Images implements [runtime.ImageStore].
func (e *Engine) Images(ctx context.Context) ([]runtime.Image, error) {
	const op = "list images"
	c, err := e.connectClient(ctx)
	if err != nil {
		return nil, failures.Wrap(op, err)
	}
	var found []struct {
		ID          string `json:"Id"`
		RepoTags    []string
		RepoDigests []string
		Size        int64
		Created     int64
		Labels      map[string]string
	}
	if err := c.call(ctx, http.MethodGet, "/images/json", nil, nil, &found); err != nil {
		return nil, explain(op, "", err)
	}
	images := make([]runtime.Image, len(found))
	for i, f := range found {
		images[i] = runtime.Image{ID: f.ID, Names: f.RepoTags, Bytes: f.Size, Created: time.Unix(f.Created, 0), Labels: f.Labels}
	}
	slices.SortStableFunc(images, func(a, b runtime.Image) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID))
	})
	return images, nil
}

// Build implements [runtime.ImageStore].
func (e *Engine) Build(ctx context.Context, opts runtime.BuildOptions, log func(string)) error {
	const op = "build image"
	c, err := e.connectClient(ctx)
	if err != nil {
		return failures.Wrap(op, err)
	}
	query := url.Values{
		"t": {opts.Name}, "dockerfile": {container.DockerfileName}, "rm": {"1"}, "forcerm": {"1"},
		"networkmode": {strconv.Itoa(c.buildNetwork(ctx))}, "httpproxy": {"0"},
		// Without it, and unlike on the command line, a build has the host's network.
		"nsoptions": {`[{"Name":"network","Host":false}]`},
	}
	if opts.Target != "" {
		query.Set("target", opts.Target)
	}
	if len(opts.Args) > 0 {
		args, err := json.Marshal(opts.Args)
		if err != nil {
			return failures.Wrap(op, err)
		}
		query.Set("buildargs", string(args))
	}
	reader, writer := io.Pipe()
	defer reader.Close() // ends the goroutine, should the service not read all
	go func() { writer.CloseWithError(container.WriteContext(writer, opts)) }()
	err = c.stream(ctx, "/build", query, reader, func(m container.Message) {
		for line := range strings.Lines(m.Stream) {
			if line = container.Sanitize(line); line != "" && log != nil {
				log(line)
			}
		}
	})
	return explain(op, opts.Name, err)
}

// The values of a build's networkmode.
const (
	defaultNetwork = 0
	noNetwork      = 1
)

// buildNetwork is the service's default, or none where it lacks what makes one.
func (c *client) buildNetwork(ctx context.Context) int {
	err := c.call(ctx, http.MethodGet, "/networks/%s/json", nil, nil, nil, "podman")
	if err != nil && !errors.Is(err, container.ErrNotFound) {
		return noNetwork
	}
	return defaultNetwork
}

// stream posts body and calls each with every line of the answer.
func (c *client) stream(ctx context.Context, endpoint string, query url.Values, body io.Reader, each func(container.Message)) error {
	header := http.Header{"Api-Version": {apiVersion}, "Content-Type": {"application/x-tar"}}
	resp, err := c.conn.DoRequest(ctx, body, http.MethodPost, endpoint, query, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !resp.IsSuccess() {
		return resp.Process(nil)
	}
	return container.ReadMessages(resp.Body, each)
}

// connectClient returns a client of a service that answers.
func (e *Engine) connectClient(ctx context.Context) (*client, error) {
	api, err := e.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return api.(*client), nil
}
