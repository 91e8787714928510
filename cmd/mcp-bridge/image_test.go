package main_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	reference "github.com/google/go-containerregistry/pkg/name"
	imageregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A storeTest is an engine that keeps images, and how its command line removes one.
type storeTest struct {
	name string
	env  []string
	rm   []string
}

func stores() []storeTest {
	return []storeTest{
		{"podman", []string{"MCP_BRIDGE_RUNTIME=podman"}, []string{"podman", "rmi", "--force"}},
		{"docker", []string{"MCP_BRIDGE_RUNTIME=docker", dockerHost()}, []string{"docker", "rmi", "--force"}},
	}
}

// pullers are the engines that get images: gVisor, too, into a cache of the test's.
func pullers(t *testing.T) []storeTest {
	t.Helper()
	gvisor := []string{"MCP_BRIDGE_RUNTIME=gvisor", "PATH=" + helperDir(t) + ":" + os.Getenv("PATH"), "XDG_CACHE_HOME=" + t.TempDir()}
	return append(stores(), storeTest{"gvisor", gvisor, nil})
}

func (s storeTest) remove(t *testing.T, image string) {
	t.Helper()
	if s.rm == nil {
		return // the cache goes with the test
	}
	cmd := exec.Command(s.rm[0], append(s.rm[1:], image)...)
	if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(strings.ToLower(string(out)), "no such image") && !strings.Contains(string(out), "image not known") {
		t.Errorf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// A listedImage is part of an entry of image list --json.
type listedImage struct {
	Engine string
	Names  []string
	Bytes  int64
}

// TestImageCommands builds, lists and checks an image on each engine.
func TestImageCommands(t *testing.T) {
	t.Parallel()
	for _, engine := range stores() {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			image := "localhost/e2e-built:" + itoa(os.Getpid())
			s := setup{env: engine.env}
			t.Cleanup(func() { engine.remove(t, image) })
			got := shell(t, &s, "image", "build", "--base", sandboxImage, "--name", image)
			if got.code != exitOK || !strings.HasPrefix(got.stdout, image+" is on "+engine.name+", after ") {
				t.Fatalf("build: %+v", got)
			}
			contains(t, got.stderr, "trim.sh") // the log

			got = shell(t, &s, "image", "list")
			contains(t, got.stdout, "ENGINE", image)
			got = shell(t, &s, "image", "list", "--json")
			var listed []listedImage
			if err := json.Unmarshal([]byte(got.stdout), &listed); err != nil {
				t.Fatalf("%v\n%+v", err, got)
			}
			i := slices.IndexFunc(listed, func(l listedImage) bool { return slices.Contains(l.Names, image) })
			if i < 0 || listed[i].Engine != engine.name || listed[i].Bytes < 10<<20 {
				t.Errorf("listed: %+v", listed)
			}

			got = shell(t, &s, "image", "check", image, "--module", "json")
			if got.code != exitOK {
				t.Errorf("check: %+v", got)
			}
			contains(t, got.stdout, image+": works, ", "python  3.", "without matplotlib", "json    there")
			got = shell(t, &s, "image", "check", image, "--module", "numpy")
			if got.code != exitFailure {
				t.Errorf("check for numpy: %+v", got)
			}
			contains(t, got.stdout, "numpy   missing", "mcp-bridge image build --target data")
			if got := shell(t, &s, "image", "check", "localhost/e2e-none:1"); got.code != exitNoEngine || !strings.Contains(got.stderr, "image missing") {
				t.Errorf("check of no image: %+v", got)
			}
			if got := shell(t, &s, "image", "build", "--target", "none", "--name", image); got.code != exitUsage || !strings.Contains(got.stderr, "did you mean sandbox or data?") {
				t.Errorf("build of an unknown target: %+v", got)
			}
		})
	}
}

// TestImageUsage makes mistakes.
func TestImageUsage(t *testing.T) {
	t.Parallel()
	noPython := importImage(t, "e2e-check-no-python", map[string]string{"etc/hostname": "sandbox\n"})
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"image"}, exitOK, "pull"},
		{[]string{"image", "pull"}, exitUsage, "accepts 1 arg"},
		{[]string{"image", "puhl", "x"}, exitUsage, "puhl"},
		{[]string{"image", "build", "--file", "/nonexistent"}, exitUsage, "/nonexistent"},
		{[]string{"image", "build", "--context", "/nonexistent"}, exitUsage, "/nonexistent"},
		{[]string{"image", "list", "--runtime", "dokcer"}, exitUsage, "dokcer"},
		{[]string{"image", "check", noPython}, exitFailure, "Python 3.10"},
		{[]string{"image", "pull", "127.0.0.1:1/none:1"}, exitNoEngine, "127.0.0.1:1/none:1"},
	} {
		got := shell(t, &setup{}, test.args...)
		if got.code != test.code || !strings.Contains(got.stdout+got.stderr, test.says) {
			t.Errorf("%v: %+v", test.args, got)
		}
	}
	nowhere := []string{"PATH=" + t.TempDir(), "DOCKER_HOST=unix:///nonexistent/docker.sock"}
	for _, engine := range []string{"podman", "docker"} {
		got := shell(t, &setup{env: append(nowhere, "MCP_BRIDGE_RUNTIME="+engine)}, "image", "list")
		if got.code != exitNoEngine || got.stdout != "" {
			t.Errorf("list without %s: %+v", engine, got)
		}
		contains(t, got.stderr, engine+": ", "apt-get install "+engine)
	}
	all := auto(nowhere...)
	got := shell(t, &all, "image", "list")
	if got.code != exitOK {
		t.Errorf("list: %+v", got)
	}
	contains(t, got.stdout, "gvisor", "host Python")
	contains(t, got.stderr, "mcp-bridge: not listed: podman: ", "mcp-bridge: not listed: docker: ")
}

// A hub is a registry on loopback that has the sandbox's image.
type hub struct {
	image string       // by its name in the registry
	gets  atomic.Int32 // of its blobs: a layer and a configuration
	open  func()       // lets layers be sent; they wait for it
}

// newHub pushes the sandbox's image to a registry of its own.
func newHub(t *testing.T, name string) *hub {
	t.Helper()
	sending := make(chan struct{})
	h := &hub{open: sync.OnceFunc(func() { close(sending) })}
	store := imageregistry.New(imageregistry.Logger(log.New(io.Discard, "", 0)))
	var pushed atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if pushed.Load() && req.Method == http.MethodGet {
			if strings.Contains(req.URL.Path, "/blobs/") {
				h.gets.Add(1)
				select {
				case <-sending:
				case <-req.Context().Done():
				}
			}
		}
		store.ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		h.open()
		server.CloseClientConnections()
		server.Close()
	})
	h.image = strings.TrimPrefix(server.URL, "http://") + "/" + name + ":1"
	push(t, h.image)
	pushed.Store(true)
	return h
}

// push puts the sandbox's image into a registry, with a layer on top that no
// engine has seen: one that has every layer asks for none.
func push(t *testing.T, name string) {
	t.Helper()
	podman(t, nil, "push", "--quiet", "--tls-verify=false", sandboxImage, "docker://"+name)
	ref, err := reference.ParseReference(name, reference.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(ref)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := crane.Layer(map[string][]byte{"unique": []byte(rand.Text())})
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
}

// TestPullCommand gets an image by name.
func TestPullCommand(t *testing.T) {
	t.Parallel()
	for _, engine := range pullers(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, "pull-"+engine.name)
			h.open()
			t.Cleanup(func() { engine.remove(t, h.image) })
			got := shell(t, &setup{env: engine.env}, "image", "pull", h.image)
			if got.code != exitOK || !strings.HasPrefix(got.stdout, h.image+" is on "+engine.name+", after ") {
				t.Errorf("%+v", got)
			}
			contains(t, got.stderr, h.image+" on "+engine.name+":") // progress
			if got := shell(t, &setup{env: engine.env}, "exec", "--image", h.image, "-c", "6 * 7"); got.stdout != "42\n" {
				t.Errorf("exec: %+v", got)
			}
		})
	}
}

// TestPullTimesOut has a registry that does not send.
func TestPullTimesOut(t *testing.T) {
	t.Parallel()
	for _, engine := range pullers(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, "slow-"+engine.name)
			t.Cleanup(func() { engine.remove(t, h.image) })
			got := shell(t, &setup{env: engine.env}, "exec", "--image", h.image, "--pull-timeout", "2", "-c", "1")
			if got.code != exitNoEngine || got.stdout != "" {
				t.Errorf("exec: %+v", got)
			}
			contains(t, got.stderr, "image missing", "was not there after 2s", "--pull-timeout")
			got = shell(t, &setup{env: engine.env}, "image", "pull", h.image, "--pull-timeout", "1")
			if got.code != exitFailure {
				t.Errorf("pull: %+v", got)
			}
			contains(t, got.stderr, "was not there after 1s", "--pull-timeout")
		})
	}
}

// TestPullOnFirstUse starts with an image that is in a registry only. Both
// sessions wait for one pull, the client hears how far it is, and the cell's
// own timeout does not count meanwhile.
func TestPullOnFirstUse(t *testing.T) {
	t.Parallel()
	for _, engine := range pullers(t) {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, "first-"+engine.name)
			t.Cleanup(func() { engine.remove(t, h.image) })
			s := setup{env: engine.env, args: []string{"--image", h.image, "--warm", "0", "--timeout", "5"}}
			var told progressLog
			c := connectHearing(t, s, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { told.add(req.Params) },
			})
			var wg sync.WaitGroup
			for _, session := range []string{"one", "two"} {
				wg.Go(func() {
					params := &mcp.CallToolParams{Name: "run_python", Arguments: arguments{"code": "6 * 7", "session": session}}
					params.SetProgressToken("token-" + session)
					r, err := c.CallTool(t.Context(), params)
					if err != nil || r.IsError || r.Content[0].(*mcp.TextContent).Text != "42" {
						t.Errorf("session %s: %+v, %v", session, r, err)
					}
				})
			}
			eventually(t, patience, "both hear of the pull", func() bool { return told.of("token-one") > 0 && told.of("token-two") > 0 })
			h.open()
			wg.Wait()
			if n := h.gets.Load(); n < 1 || n > 3 { // an engine may have the layer
				t.Errorf("the registry was asked for %d blobs, want each once at most", n)
			}
			told.growing(t)
		})
	}
}

// TestExecPulls shows the pull on stderr, and nothing of it on stdout.
func TestExecPulls(t *testing.T) {
	t.Parallel()
	h := newHub(t, "exec")
	h.open()
	engine := stores()[0]
	t.Cleanup(func() { engine.remove(t, h.image) })
	got := shell(t, &setup{env: engine.env}, "exec", "--image", h.image, "-c", "6 * 7")
	if got.code != exitOK || got.stdout != "42\n" {
		t.Errorf("%+v", got)
	}
	contains(t, got.stderr, "getting "+h.image)
}

// A progressLog keeps progress notifications by their tokens.
type progressLog struct {
	mu  sync.Mutex
	all map[string][]float64
}

func (l *progressLog) add(p *mcp.ProgressNotificationParams) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string][]float64{}
	}
	token, _ := p.ProgressToken.(string)
	l.all[token] = append(l.all[token], p.Progress)
}

func (l *progressLog) of(token string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all[token])
}

// growing checks what MCP demands of progress.
func (l *progressLog) growing(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for token, values := range l.all {
		for i := 1; i < len(values); i++ {
			if values[i] <= values[i-1] {
				t.Errorf("progress of %q does not grow: %v", token, values)
			}
		}
	}
}
