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

// TestLoadUntrusted holds that nothing is read that others can change: what a
// definition says runs as the user.
func TestLoadUntrusted(t *testing.T) {
	const definition = `{"mcpServers": {"%": {"command": "x"}}}`
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(dir, name string, mode os.FileMode) string {
		path := filepath.Join(dir, name+".json")
		must(os.WriteFile(path, []byte(strings.ReplaceAll(definition, "%", name)), 0o600))
		must(os.Chmod(path, mode))
		return path
	}
	folder := func(mode os.FileMode) string {
		dir := t.TempDir()
		t.Cleanup(func() { os.Chmod(dir, 0o700) })
		must(os.Chmod(dir, mode))
		return dir
	}
	dir := folder(0o755)
	write(dir, "mine", 0o644)
	open := write(dir, "open", 0o646)
	elsewhere, shared, sticky := folder(0o700), folder(0o777), folder(0o777|os.ModeSticky)
	must(os.Symlink(write(elsewhere, "linked", 0o600), filepath.Join(dir, "linked.json")))
	must(os.Symlink(write(sticky, "stuck", 0o600), filepath.Join(dir, "stuck.json")))
	must(os.Symlink(write(shared, "swapped", 0o600), filepath.Join(dir, "swapped.json")))
	must(os.Symlink(write(elsewhere, "loose", 0o662), filepath.Join(dir, "loose.json")))
	must(os.WriteFile(filepath.Join(shared, "env"), []byte("A=1"), 0o600))
	must(os.Symlink(filepath.Join(shared, "env"), filepath.Join(dir, "env")))
	must(os.WriteFile(filepath.Join(dir, "variables.json"), []byte(`{"mcpServers": {"v": {"command": "x", "envFile": "env"}}}`), 0o600))
	must(os.Symlink(shared, filepath.Join(elsewhere, "folder")))
	want := []string{
		"open.json: not read: other users can change it (mode 0646), and what it says runs as you; run `chmod go-w " + open + "`",
		"swapped.json: leads to a file in " + shared + ": not read: other users can change it (mode 0777)",
		"envFile env: leads to a file in " + shared + ": not read: other users can change it (mode 0777)",
		"loose.json: not read: other users can change it (mode 0662)",
		filepath.Base(shared) + ": not read: other users can change it (mode 0777), and what it says runs as you; run `chmod go-w " + shared + "`",
		"folder: not read: other users can change it (mode 0777), and what it says runs as you; run `chmod go-w " + elsewhere + "/folder`",
	}
	if os.Geteuid() == 0 { // who alone can give files away; TestTrust has the others
		must(os.Chown(write(dir, "foreign", 0o600), 1, 1))
		given := folder(0o700)
		write(given, "inside", 0o600)
		must(os.Chown(given, 1, 1))
		dirs := []string{given}
		if c := discovery.Load(discovery.LoadOptions{Dirs: dirs}); len(c.Servers) > 0 {
			t.Errorf("a folder of another user was read: %v", names(c))
		}
		want = append(want, "foreign.json: not read: it belongs to another user (uid 1), and what it says would run as you; if it is yours, run `chown 0 ")
	}

	c := discovery.Load(discovery.LoadOptions{Dirs: []string{dir, shared, filepath.Join(elsewhere, "folder")}})
	if !slices.Equal(names(c), []string{"linked", "mine", "stuck"}) {
		t.Errorf("servers %q", names(c))
	}
	got := problems(c)
	for _, want := range want {
		if !strings.Contains(got, want) {
			t.Errorf("problems do not contain %q:\n%s", want, got)
		}
	}
	if len(c.Problems) != len(want) {
		t.Errorf("%d problems, want %d:\n%s", len(c.Problems), len(want), got)
	}
}
