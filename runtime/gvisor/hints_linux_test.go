package gvisor

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestMissingHint holds that what is advised of an image that is not there works,
// and repeats no path.
func TestMissingHint(t *testing.T) {
	const export = "`podman save -o image.tar localhost/x`"
	for _, test := range []struct {
		image, says string
		lacks       []string
	}{
		{"localhost/x", export, []string{"image pull", "image build"}},
		{"docker.io/library/python:3.14", "`mcp-bridge image pull --runtime gvisor docker.io/library/python:3.14`", nil},
		{"docker-archive:/home/ann/image.tar", "docker-archive:FILE", []string{"ann", "image pull"}},
		{"oci-archive:/home/ann/image.tar", "oci-archive:FILE", []string{"ann", "image pull"}},
		{"/home/ann/image.tar", "NAME", []string{"ann"}},
		{"dir:/home/ann/image", "NAME", []string{"ann"}},
		{"localhost/../home/ann:", "podman save -o image.tar NAME", []string{"ann", "image pull"}},
	} {
		e, err := New(Options{RuntimeDir: privateDir(t), CacheDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		_, started := e.rootfs(t.Context(), test.image)
		for what, err := range map[string]error{"check": e.checkImage(test.image), "start": started} {
			hint := runtime.HintOf(err)
			if !errors.Is(err, runtime.ErrImageMissing) || !strings.Contains(hint, test.says) {
				t.Errorf("%s of %s: %v (hint %q), want %q", what, test.image, err, hint, test.says)
			}
			for _, no := range test.lacks {
				if strings.Contains(hint, no) {
					t.Errorf("%s of %s: hint %q has %q", what, test.image, hint, no)
				}
			}
		}
	}
}

// TestPullOfLocalName asks no registry for what only another engine can have.
func TestPullOfLocalName(t *testing.T) {
	e, err := New(Options{RuntimeDir: privateDir(t), CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	err = e.Pull(t.Context(), "localhost/x", func(runtime.PullProgress) { asked = true })
	if asked || !errors.Is(err, runtime.ErrImageMissing) || !strings.Contains(runtime.HintOf(err), "docker-archive:image.tar") {
		t.Errorf("pull: %v (hint %q), registry asked: %v", err, runtime.HintOf(err), asked)
	}
	err = e.Build(t.Context(), runtime.BuildOptions{Name: "localhost/x"}, nil)
	for _, says := range []string{"podman save -o image.tar", "docker-archive:image.tar", "registry"} {
		if !strings.Contains(runtime.HintOf(err), says) {
			t.Errorf("build: %v (hint %q), want %q", err, runtime.HintOf(err), says)
		}
	}
}

// TestHintsHaveNoPaths makes errors in directories with a telling name.
func TestHintsHaveNoPaths(t *testing.T) {
	const secret = "ann-of-the-host"
	dir := filepath.Join(privateDir(t), secret)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("no program"), 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := New(Options{Runsc: file, Python: file, RuntimeDir: file, CacheDir: file})
	if err != nil {
		t.Fatal(err)
	}
	_, home := e.ensureHome()
	_, python := e.rootfs(t.Context(), "")
	_, archive := e.rootfs(t.Context(), "docker-archive:"+file)
	for what, err := range map[string]error{
		"helper": e.Check(t.Context(), ""), "home": home, "python": python, "archive": archive,
	} {
		if hint := runtime.HintOf(err); err == nil || hint == "" || strings.Contains(hint, secret) || strings.Contains(hint, os.TempDir()) {
			t.Errorf("%s: %v (hint %q)", what, err, hint)
		}
	}
	for _, c := range conditions {
		if strings.Contains(c.Hint, os.TempDir()) {
			t.Errorf("hint %q", c.Hint)
		}
	}
}

// TestPreparingIsTold holds that the seconds of the first start are not silent.
func TestPreparingIsTold(t *testing.T) {
	var told bytes.Buffer
	e, err := New(Options{RuntimeDir: privateDir(t), CacheDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := e.rootfs(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(told.String(), `level=INFO msg="preparing the host's Python`); n != 1 || !strings.Contains(told.String(), "python=\"Python 3.") {
		t.Errorf("told %d times:\n%s", n, told.String())
	}
	if f := e.diagnoseImage(t.Context(), ""); !strings.Contains(f.Detail, "the host's own Python 3.") {
		t.Errorf("diagnosis: %+v", f)
	}
}
