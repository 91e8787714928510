package gvisor

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/erofs/go-erofs"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	sandboximage "github.com/mcp-bridge/mcp-bridge/sandbox-image"
)

// entry is one of a hostile archive.
type entry struct {
	name, link, content string
	kind                byte
	mode                int64
}

// image makes one of layers of entries.
func image(t *testing.T, layers ...[]entry) v1.Image {
	t.Helper()
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: platform().Architecture, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, entries := range layers {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		for _, e := range entries {
			if e.mode == 0 {
				e.mode = 0o644
			}
			if err := w.WriteHeader(&tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Size: int64(len(e.content)), Mode: e.mode, ModTime: time.Unix(1, 0)}); err != nil {
				t.Fatal(err)
			}
			io.WriteString(w, e.content)
		}
		w.Close()
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

// list reads an EROFS image: mode, path, and what a file or link holds.
func list(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tree, err := erofs.Open(f)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			data, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			content = string(data)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%v %s %s", info.Mode(), name, content)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestHostileImage(t *testing.T) {
	img := image(t, []entry{{name: "hard", kind: tar.TypeLink, link: "/../../etc/shadow"}})
	s := store{dir: t.TempDir()}
	build := func(limit func(*builder)) (string, error) {
		return s.make(t.Context(), keyOf(fmt.Sprint(time.Now().UnixNano())), note{}, func(b *builder) error {
			limit(b)
			return unpack(t.Context(), b, img, func() {})
		})
	}
	if _, err := build(func(*builder) {}); err == nil || !strings.Contains(err.Error(), "hard link") {
		t.Errorf("hard link to what is not in the image: %v", err)
	}
	img = image(t, []entry{{name: "etc/shadow", kind: tar.TypeReg, content: "image's own"}}, nil)
	if _, err := build(func(b *builder) { b.maxBytes = 5 }); err == nil || !strings.Contains(err.Error(), "more than 5 bytes") {
		t.Errorf("too many bytes: %v", err)
	}
	if _, err := build(func(b *builder) { b.maxEntries = 1 }); err == nil || !strings.Contains(err.Error(), "more than 1 files") {
		t.Errorf("too many entries: %v", err)
	}
	_, err := s.make(t.Context(), keyOf("links"), note{}, func(b *builder) error {
		if err := errors.Join(b.symlink("b", "a"), b.symlink("a", "b"), b.symlink("/../../etc", "out"), b.text("out/through", "1")); err != nil {
			t.Error(err)
		}
		if _, there := b.kinds["/etc/through"]; !there {
			t.Error("a file by way of a link is not where the link leads in the image")
		}
		return b.text("a/x", "")
	})
	if err == nil || !strings.Contains(err.Error(), "too many symbolic links") {
		t.Errorf("circle of links: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "*")); len(left) > 0 {
		t.Errorf("failed builds left %v", left)
	}
}

func TestUnpack(t *testing.T) {
	img := image(t,
		[]entry{
			{name: "etc/", kind: tar.TypeDir, mode: 0o755},
			{name: "etc/old", kind: tar.TypeReg, content: "lower"},
			{name: "gone", kind: tar.TypeReg, content: "whiteout"},
		},
		[]entry{
			{name: "../../escape", kind: tar.TypeReg, content: "1"},
			{name: "/abs/../../up", kind: tar.TypeReg, content: "2"},
			{name: "out", kind: tar.TypeSymlink, link: "/../../../etc"},
			{name: "out/through", kind: tar.TypeReg, content: "3"},
			{name: "suid", kind: tar.TypeReg, content: "4", mode: 0o6755},
			{name: "dev", kind: tar.TypeBlock},
			{name: "null", kind: tar.TypeChar},
			{name: "pipe", kind: tar.TypeFifo},
			{name: "twin", kind: tar.TypeReg, content: "5"},
			{name: "twin", kind: tar.TypeReg, content: "6"},
			{name: "later", kind: tar.TypeLink, link: "original"},
			{name: "original", kind: tar.TypeReg, content: "7"},
			{name: ".wh.gone", kind: tar.TypeReg},
			{name: "etc/old", kind: tar.TypeReg, content: "upper"},
		})
	dir := t.TempDir()
	s := store{dir: dir}
	path, err := s.make(t.Context(), keyOf("test"), note{Names: []string{"x"}}, func(b *builder) error { return unpack(t.Context(), b, img, func() {}) })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"-rw-r--r-- escape 1",
		"-rw-r--r-- etc/old upper",
		"-rw-r--r-- later 7",
		"-rw-r--r-- original 7",
		"Lrwxrwxrwx out",
		"-rwxr-xr-x suid 4",
		"-rw-r--r-- twin 5",
		"-rw-r--r-- up 2",
	}
	if got := list(t, path); !slices.Equal(got, want) {
		t.Errorf("image holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "escape")); len(left) > 0 {
		t.Error("a file escaped")
	}
}

func TestPull(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	image := image(t, []entry{{name: "hello", kind: tar.TypeReg, content: strings.Repeat("x", 100_000)}})
	ref := strings.TrimPrefix(server.URL, "http://") + "/team/tool:1"
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(parsed, image); err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{RuntimeDir: privateDir(t), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.checkImage(ref); runtime.HintOf(err) == "" {
		t.Errorf("before the pull: %v", err)
	}
	var steps []runtime.PullProgress
	for range 2 {
		if err := e.Pull(t.Context(), ref, func(p runtime.PullProgress) { steps = append(steps, p) }); err != nil {
			t.Fatal(err)
		}
	}
	if last := steps[len(steps)-1]; last.Done != last.Total || last.Total == 0 {
		t.Errorf("progress ends with %+v", last)
	}
	if err := e.checkImage(ref); err != nil {
		t.Errorf("after the pull: %v", err)
	}
	images, err := e.Images(t.Context())
	if err != nil || len(images) != 1 || !slices.Contains(images[0].Names, parsed.Name()) || images[0].Bytes == 0 {
		t.Errorf("images: %+v, %v", images, err)
	}
	err = e.Pull(t.Context(), strings.TrimPrefix(server.URL, "http://")+"/team/none:1", nil)
	if err == nil || !strings.Contains(err.Error(), runtime.ErrImageMissing.Error()) || !strings.Contains(runtime.HintOf(err), "podman save") {
		t.Errorf("pull of what is not there: %v (hint %q)", err, runtime.HintOf(err))
	}
}

// TestTamperedArchive holds that an archive's layers are compared with what its
// configuration says of them.
func TestTamperedArchive(t *testing.T) {
	honest := image(t, []entry{{name: "hello", kind: tar.TypeReg, content: "honest"}})
	file := filepath.Join(t.TempDir(), "image.tar")
	ref, err := name.NewTag("local/test:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(file, ref, honest); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifyLayers(t.Context(), img); err != nil {
		t.Fatalf("positive control: %v", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.RootFS.DiffIDs[0].Hex = strings.Repeat("0", 64)
	if err := verifyLayers(t.Context(), liar{img, config}); err == nil {
		t.Error("a layer that is not the one of the configuration was accepted")
	}
}

type liar struct {
	v1.Image
	config *v1.ConfigFile
}

func (l liar) ConfigFile() (*v1.ConfigFile, error) { return l.config, nil }

func TestSeccompForGVisor(t *testing.T) {
	s, err := parseSeccomp(sandboximage.Seccomp())
	if err != nil {
		t.Fatal(err)
	}
	if s.DefaultAction != specs.ActTrace {
		t.Errorf("default action is %s", s.DefaultAction)
	}
	for name, want := range map[string]specs.LinuxSeccompAction{"clone3": specs.ActTrace, "mount": specs.ActErrno, "read": specs.ActAllow, "ptrace": specs.ActErrno} {
		i := slices.IndexFunc(s.Syscalls[1:], func(s specs.LinuxSyscall) bool { return slices.Contains(s.Names, name) })
		if i < 0 || s.Syscalls[1+i].Action != want {
			t.Errorf("%s is not %s", name, want)
		}
	}
	for _, bad := range []string{`{"defaultAction":"SCMP_ACT_ALLOW"}`, `{}`, `[]`} {
		if _, err := parseSeccomp([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
}

func TestRelocate(t *testing.T) {
	for prefix, want := range map[string]string{
		"/usr": "/usr", "/usr/local": "/usr/local", "/opt/python": "/usr/local/", "/opt/python3": "/usr/local/.", "/home/jo/py/3.13.0": "/usr/local/./././.",
	} {
		r, err := relocate(prefix)
		if err != nil || r.to != want || len(r.to) != len(prefix) {
			t.Errorf("%s goes to %q, %v, want %q", prefix, r.to, err, want)
		}
	}
	if _, err := relocate("/opt/py"); err == nil {
		t.Error("a prefix that is too short was accepted")
	}
	r, _ := relocate("/home/jo/py/3.13.0")
	if got := string(r.content([]byte("\x7fELF /home/jo/py/3.13.0/lib 3.13.0"))); got != "\x7fELF ////////////3.13.0/lib 3.13.0" {
		t.Errorf("ELF file became %q", got)
	}
	if got := string(r.content([]byte("x /home/jo/py/3.13.0/lib"))); got != "x /usr/local/././././lib" {
		t.Errorf("text became %q", got)
	}
}

// TestSentryIsAttested falsifies each fact of the Sentry's once.
func TestSentryIsAttested(t *testing.T) {
	good := func() runtime.Facts {
		f := runtime.Facts{UID: nobody, GID: nobody, NoNewPrivs: true, Seccomp: 2, Namespaces: map[string]string{}, HostNamespaces: map[string]string{}}
		for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"} {
			f.Namespaces[kind], f.HostNamespaces[kind] = kind+":[2]", kind+":[1]"
		}
		f.Mounts = []runtime.Mount{{Point: "/", Type: "tmpfs", ReadOnly: true}}
		return f
	}
	if d := sentryDifferences(good()); len(d) > 0 {
		t.Fatalf("positive control: %v", d)
	}
	for name, spoil := range map[string]func(*runtime.Facts){
		"uid":        func(f *runtime.Facts) { f.UID = 0 },
		"gid":        func(f *runtime.Facts) { f.GID = 0 },
		"capability": func(f *runtime.Facts) { f.Caps.Ambient = 1 },
		"bounding":   func(f *runtime.Facts) { f.Caps.Bounding = 1 },
		"nnp":        func(f *runtime.Facts) { f.NoNewPrivs = false },
		"seccomp":    func(f *runtime.Facts) { f.Seccomp = 0 },
		"ipc":        func(f *runtime.Facts) { f.Namespaces["ipc"] = f.HostNamespaces["ipc"] },
		"mnt":        func(f *runtime.Facts) { f.Namespaces["mnt"] = f.HostNamespaces["mnt"] },
		"net":        func(f *runtime.Facts) { f.Namespaces["net"] = f.HostNamespaces["net"] },
		"pid":        func(f *runtime.Facts) { f.Namespaces["pid"] = f.HostNamespaces["pid"] },
		"user":       func(f *runtime.Facts) { f.Namespaces["user"] = f.HostNamespaces["user"] },
		"uts":        func(f *runtime.Facts) { delete(f.Namespaces, "uts") },
		"interface":  func(f *runtime.Facts) { f.Interfaces = []string{"lo", "eth0"} },
		"device":     func(f *runtime.Facts) { f.Devices = []string{"kvm"} },
		"mount":      func(f *runtime.Facts) { f.Mounts = append(f.Mounts, runtime.Mount{Point: "/proc", Type: "proc"}) },
		"root":       func(f *runtime.Facts) { f.Mounts[0].Type = "ext4" },
		"writable":   func(f *runtime.Facts) { f.Mounts[0].ReadOnly = false },
	} {
		f := good()
		spoil(&f)
		if len(sentryDifferences(f)) != 1 {
			t.Errorf("%s: %v", name, sentryDifferences(f))
		}
	}
}

// TestImagesAreAttested falsifies what the Sentry has open.
func TestImagesAreAttested(t *testing.T) {
	root, folder, other := fileID{1, 1}, fileID{1, 2}, fileID{2, 1}
	want := map[fileID]string{root: "/cache/root", folder: "/cache/folder"}
	for name, test := range map[string]struct {
		got  map[fileID]string
		want int
	}{
		"as given": {map[fileID]string{root: "/cache/root", folder: "/cache/folder (deleted)"}, 0},
		"missing":  {map[fileID]string{root: "/cache/root"}, 1},
		"another":  {map[fileID]string{root: "/cache/root", other: "/cache/folder"}, 2},
		"more":     {map[fileID]string{root: "/cache/root", folder: "/cache/folder", other: "/etc/shadow"}, 1},
	} {
		if got := imageDifferences(test.got, want); len(got) != test.want {
			t.Errorf("%s: %v, want %d differences", name, got, test.want)
		}
	}
	// Of a real process: a file is found, and known again by another name.
	path := filepath.Join(t.TempDir(), "image")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, err1 := idOf(path)
	files, err2 := openFiles(os.Getpid())
	if err := errors.Join(err1, err2, os.Remove(path)); err != nil || files[id] != path {
		t.Errorf("%v: %q, want %q", err, files[id], path)
	}
}

// TestBundle holds the configuration that runsc gets.
func TestBundle(t *testing.T) {
	b := bundle{
		mountPoints: "/m", folders: []string{"/d1", "/d2"},
		spec: runtime.Spec{
			Binds:   []runtime.Bind{{Source: "/home/u/data", Target: "/mnt/data"}, {Source: "/srv", Target: "/mnt/srv"}},
			Command: []string{"python3"}, Seccomp: []byte(`{"defaultAction":"SCMP_ACT_ERRNO"}`), Limits: runtime.Limits{}.WithDefaults(), Env: []string{"A=b"},
		},
		transport: runtime.TransportFD, uid: 70000, empty: "/e", rootfs: "/r", files: "/f", rlimits: runtime.Limits{}.WithDefaults().Rlimits(),
	}
	config, err := b.config()
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/config.json"
	if os.Getenv("MCPB_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("configuration differs from %s:\n%s", golden, got)
	}
}
