package runtimetest

import (
	"context"
	"errors"
	"log/slog"
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
)

// Images runs what every [runtime.ImageStore] passes. tellsBytes says whether
// the engine tells how many bytes it has pulled; remove removes an image if it
// exists.
func Images(t *testing.T, images runtime.ImageStore, tellsBytes bool, remove func(t testing.TB, image string)) {
	t.Run("Pull", func(t *testing.T) { testPull(t, images, tellsBytes, remove) })
	t.Run("Build", func(t *testing.T) { testBuild(t, images, remove) })
}

// testPull pulls from a registry of the test's own, on loopback, where engines
// want no TLS.
func testPull(t *testing.T, images runtime.ImageStore, tellsBytes bool, remove func(testing.TB, string)) {
	server := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, 0))))
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
	var steps []runtime.PullProgress
	if err := images.Pull(t.Context(), ref.Name(), func(p runtime.PullProgress) { steps = append(steps, p) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, ref.Name()) })
	if len(steps) == 0 {
		t.Fatal("no progress was told")
	}
	if last := steps[len(steps)-1]; tellsBytes && (last.Total < layerBytes || last.Done != last.Total) {
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
	if i < 0 || all[i].Bytes < 2*layerBytes || all[i].ID == "" {
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

func testBuild(t *testing.T, images runtime.ImageStore, remove func(testing.TB, string)) {
	ref := "localhost/mcpb-test-build:" + strconv.FormatInt(time.Now().UnixNano(), 36)
	t.Cleanup(func() { remove(t, ref) })
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
