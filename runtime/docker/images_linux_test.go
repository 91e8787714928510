package docker_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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

func TestImages(t *testing.T) {
	runtimetest.Images(t, store(t), true, func(t testing.TB, image string) { cli(t, "rmi", "--force", image) })
}

// tag is a name for an image of this test, which is removed at its end.
func tag(t *testing.T, of string) string {
	t.Helper()
	ref := "localhost/mcpb-test-" + of + ":" + strconv.FormatInt(time.Now().UnixNano(), 36)
	t.Cleanup(func() { cli(t, "rmi", "--force", ref) })
	return ref
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
