package docker_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// store opens an engine for its images.
func store(t *testing.T) runtime.ImageStore {
	t.Helper()
	engine := open(t, shortDir(t))
	t.Cleanup(func() { engine.Close() })
	return engine.(runtime.ImageStore)
}

// TestPull pulls from a registry of the test's own, on loopback, where Docker
// wants no TLS.
func TestPull(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	ref, err := name.ParseReference(host + "/mcpb/test:1")
	if err != nil {
		t.Fatal(err)
	}
	const layerBytes = 4 << 20
	pushed, err := random.Image(layerBytes, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, pushed); err != nil {
		t.Fatal(err)
	}
	images := store(t)
	var steps []runtime.PullProgress
	if err := images.Pull(t.Context(), ref.Name(), func(p runtime.PullProgress) { steps = append(steps, p) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cli(t, "rmi", ref.Name()) })
	if last := steps[len(steps)-1]; last.Total < layerBytes || last.Done != last.Total {
		t.Errorf("%d steps, the last is %+v, want all of at least %d bytes", len(steps), last, layerBytes)
	}
	for i, s := range steps {
		if s.Done > s.Total || s.Status == "" || i > 0 && s.Done < steps[i-1].Done {
			t.Errorf("step %d: %+v after %+v", i, s, steps[max(0, i-1)])
		}
	}
	all, err := images.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(i runtime.Image) bool { return slices.Contains(i.Names, ref.Name()) })
	if i < 0 || all[i].Bytes < 2*layerBytes || !strings.HasPrefix(all[i].ID, "sha256:") {
		t.Errorf("not among the images: %+v", all)
	}
	if !slices.IsSortedFunc(all, func(a, b runtime.Image) int { return b.Created.Compare(a.Created) }) {
		t.Error("images are not in order")
	}

	for what, image := range map[string]string{
		"unknown tag": host + "/mcpb/test:2", "unknown name": host + "/mcpb/none", "no registry": "127.0.0.1:1/none", "no reference": "UPPER CASE",
	} {
		if err := images.Pull(t.Context(), image, nil); !errors.Is(err, runtime.ErrImageMissing) || runtime.HintOf(err) == "" {
			t.Errorf("%s: %v (hint %q), want ErrImageMissing with a hint", what, err, runtime.HintOf(err))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := images.Pull(ctx, ref.Name(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// tag is a name for an image of this test, which is removed at its end.
func tag(t *testing.T, of string) string {
	t.Helper()
	ref := "localhost/mcpb-test-" + of + ":" + strconv.FormatInt(time.Now().UnixNano(), 36)
	t.Cleanup(func() { cli(t, "rmi", "--force", ref) })
	return ref
}

func TestBuild(t *testing.T) {
	images, ref := store(t), tag(t, "build")
	var lines []string
	opts := runtime.BuildOptions{
		Name:       ref,
		Dockerfile: "FROM scratch AS one\nARG WORD\nCOPY dir/a /a\nLABEL word=$WORD\nFROM scratch AS two\nCOPY missing /\n",
		Context:    fstest.MapFS{"dir/a": {Data: []byte("a")}},
		Target:     "one",
		Args:       map[string]string{"WORD": "said"},
	}
	if err := images.Build(t.Context(), opts, func(line string) { lines = append(lines, line) }); err != nil {
		t.Fatal(err)
	}
	if len(lines) < 3 || slices.ContainsFunc(lines, func(l string) bool { return l == "" || strings.ContainsAny(l, "\n\x1b") }) {
		t.Errorf("log: %q", lines)
	}
	all, err := images.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(i runtime.Image) bool { return slices.Contains(i.Names, ref) })
	if i < 0 || all[i].Labels["word"] != "said" {
		t.Errorf("built image: %+v", all)
	}
	opts.Target = "two"
	if err := images.Build(t.Context(), opts, nil); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestImageBringsNothing starts a sandbox from an image that declares whatever
// an image can, and finds nothing of it inside.
func TestImageBringsNothing(t *testing.T) {
	engine := open(t, shortDir(t))
	defer engine.Close()
	ref := tag(t, "hostile")
	err := engine.(runtime.ImageStore).Build(t.Context(), runtime.BuildOptions{Name: ref, Dockerfile: "FROM " + image() + `
ENV LD_DEBUG=help HTTP_PROXY=http://user:secret@proxy HOSTNAME=elsewhere HOME=/root PATH=/nowhere PYTHONSTARTUP=/x EMPTY=
VOLUME /data /workspace /run /usr/share
USER root
WORKDIR /root
ENTRYPOINT ["/bin/false"]
CMD ["/bin/false"]
HEALTHCHECK --interval=1s CMD touch /workspace/healthy
STOPSIGNAL SIGUSR1
EXPOSE 80
ONBUILD RUN false
LABEL io.mcp-bridge.owner=1 io.mcp-bridge.pid=1
`}, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	volumes := cli(t, "volume", "ls", "--quiet")
	sandbox, err := engine.Start(t.Context(), runtimetest.Spec(ref, seccomp(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Close()
	peer := runtimetest.NewPeer(sandbox)
	for code, want := range map[string]any{
		"import os; result = sorted(os.environ)":                                        []any{"HOME", "HOSTNAME", "LC_CTYPE", "PATH"},
		"import os; result = os.getcwd()":                                               runtime.Workspace,
		"import os; result = os.listdir('/data') + os.listdir('/usr/share')":            []any{},
		"import os; result = os.access('/data', os.W_OK) or os.access('/run', os.W_OK)": false,
		"import os; result = os.listdir('/run')":                                        []any{"mcp-bridge"},
	} {
		if got := peer.Eval(t, code); !equal(got, want) {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
	if now := cli(t, "volume", "ls", "--quiet"); now != volumes {
		t.Errorf("volumes %q, before %q", now, volumes)
	}
	if owner := cli(t, "inspect", "--format", `{{index .Config.Labels "io.mcp-bridge.pid"}}`, sandbox.ID()); strings.TrimSpace(owner) == "1" {
		t.Error("the image's label is in force")
	}
}

func equal(a, b any) bool {
	x, ok1 := a.([]any)
	y, ok2 := b.([]any)
	if ok1 && ok2 {
		return slices.Equal(x, y)
	}
	return a == b
}
