//go:build unix

package discovery_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestLoadNotRegularFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{"good.json": `{"mcpServers": {"good": {"command": "x"}}}`})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(syscall.Mkfifo(filepath.Join(dir, "fifo.json"), 0o600))
	must(os.Mkdir(filepath.Join(dir, "dir.json"), 0o700))
	must(os.Symlink("loop.json", filepath.Join(dir, "loop.json")))
	must(os.Symlink("nowhere", filepath.Join(dir, "gone.json")))
	must(os.Symlink("/dev/zero", filepath.Join(dir, "zero.json")))
	must(os.Symlink("good.json", filepath.Join(dir, "link.json")))

	c := discovery.Load(discovery.LoadOptions{Dirs: []string{dir}})
	if !slices.Equal(names(c), []string{"good"}) {
		t.Errorf("servers %q", names(c))
	}
	got := problems(c)
	for _, want := range []string{
		"fifo.json: is a named pipe", "dir.json: is a directory", "loop.json: stat: too many levels of symbolic links",
		"gone.json: stat: no such file", "zero.json: is a device", "link.json: good: already defined in good.json",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("problems do not contain %q:\n%s", want, got)
		}
	}
}
