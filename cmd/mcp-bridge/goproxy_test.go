package main_test

import (
	"archive/zip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	modulePath    = "github.com/mcp-bridge/mcp-bridge"
	moduleVersion = "v0.0.1"
)

// TestGoRunLatest starts the bridge as someone does who has installed nothing,
// with this tree in the place of the published module.
func TestGoRunLatest(t *testing.T) {
	proxy := t.TempDir()
	publish(t, filepath.Join(proxy, filepath.FromSlash(modulePath), "@v"))

	cmd := exec.CommandContext(t.Context(), "go", "run", modulePath+"/cmd/mcp-bridge@latest", "version")
	cmd.Dir = t.TempDir() // outside of any module
	cmd.Env = append(os.Environ(),
		"GOPROXY="+proxies(t, proxy),
		"GOMODCACHE="+filepath.Join(t.TempDir(), "mod"), // keep v0.0.1 out of the user's
		"GOFLAGS=-trimpath -modcacherw",                 // share what `make build` compiled; be removable
		"GOSUMDB=off",                                   // it knows nothing of this version
		"GOWORK=off",
	)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, stderr.String())
	}
	if !strings.Contains(string(out), moduleVersion) {
		t.Errorf("%v printed %q, want the module's version %s in it", cmd.Args, out, moduleVersion)
	}
}

// proxies is the GOPROXY that finds this module in dir and its dependencies in
// the module cache, or else where this machine gets modules from. Without
// "direct": nobody is to be asked whether a shorter path is a repository.
func proxies(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, configured, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	list := []string{"file://" + dir, "file://" + filepath.Join(cache, "cache", "download")}
	for p := range strings.SplitSeq(configured, ",") {
		if p != "direct" && p != "off" {
			list = append(list, p)
		}
	}
	return strings.Join(append(list, "off"), ",")
}

// publish lays out this tree in dir as a module proxy serves it.
func publish(t *testing.T, dir string) {
	t.Helper()
	root := filepath.Join("..", "..")
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list":                  moduleVersion + "\n",
		moduleVersion + ".info": `{"Version":"` + moduleVersion + `"}`,
		moduleVersion + ".mod":  string(gomod),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.Create(filepath.Join(dir, moduleVersion+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	zw := zip.NewWriter(archive)
	addTree(t, zw, root)
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}

// addTree adds the files that a clean checkout of root has, as nearly as can be
// told without asking git.
func addTree(t *testing.T, zw *zip.Writer, root string) {
	t.Helper()
	left := []string{".git", "bin", "dist", "__pycache__"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(left, entry.Name()):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil // the go command refuses symlinks in modules
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		w, err := zw.Create(modulePath + "@" + moduleVersion + "/" + filepath.ToSlash(name))
		if err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(w, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
