package discovery_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// A watched is a folder that is being watched.
type watched struct {
	t       *testing.T
	dir     string
	configs chan *discovery.Config
	last    string // what was found last
}

func watch(t *testing.T, dir string, files ...string) *watched {
	t.Helper()
	w := &watched{t: t, dir: dir, configs: make(chan *discovery.Config, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- discovery.Watch(ctx, discovery.LoadOptions{Dirs: []string{dir}, Files: files}, func(c *discovery.Config) { w.configs <- c })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err == nil {
			t.Error("Watch returned no error")
		}
	})
	return w
}

// wants waits until the servers are these, as name=command, and returns the
// configuration.
func (w *watched) wants(servers ...string) *discovery.Config {
	w.t.Helper()
	want := strings.Join(servers, " ")
	limit := time.After(60 * time.Second)
	for {
		select {
		case config := <-w.configs:
			var got []string
			for _, s := range config.Servers {
				got = append(got, s.Name+"="+s.Command)
			}
			if w.last = strings.Join(got, " "); w.last == want {
				return config
			}
		case <-limit:
			w.t.Fatalf("servers are %q, want %q", w.last, want)
		}
	}
}

func (w *watched) write(name, command string) {
	w.t.Helper()
	server := strings.TrimSuffix(filepath.Base(name), ".json")
	w.writeText(name, fmt.Sprintf(`{"mcpServers": {%q: {"command": %q}}}`, server, command))
}

func (w *watched) writeText(name, text string) {
	w.t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(w.dir, name)
	}
	w.check(os.WriteFile(name, []byte(text), 0o600))
}

func (w *watched) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestWatchFollowsEdits(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir())
	w.wants()
	w.write("b.json", "one")
	w.wants("b=one")
	w.write("a.json", "one")
	w.wants("a=one", "b=one")
	w.write("b.json", "two")
	w.wants("a=one", "b=two")
}

func TestWatchFollowsRenames(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir())
	w.write("a.json", "one")
	w.wants("a=one")
	w.writeText(".a.json.swp", "noise")
	w.writeText("4913", "noise")
	w.writeText("a.json~", `{"mcpServers": {"a": {"command": "two"}}}`)
	w.check(os.Rename(filepath.Join(w.dir, "a.json~"), filepath.Join(w.dir, "a.json")))
	w.wants("a=two")
	w.check(os.Rename(filepath.Join(w.dir, "a.json"), filepath.Join(w.dir, "a.json.off")))
	w.wants()
}

func TestWatchKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir())
	w.writeText("a.json", `{"mcpServers": {"x": {"command": "one"}, "y": {"command": "one"}}}`)
	w.write("b.json", "one")
	w.wants("x=one", "y=one", "b=one")
	w.writeText("a.json", `{"mcpServers": {"x": {"comm`)
	w.write("b.json", "two")
	config := w.wants("x=one", "y=one", "b=two")
	if want := []string{"x", "y"}; !slices.Equal(config.Kept, want) || len(config.Problems) != 1 {
		t.Errorf("kept are %v, want %v; problems: %v", config.Kept, want, config.Problems)
	}
	w.writeText("a.json", `{"mcpServers": {"y": {"command": {"no": "string"}}, "x": {"command": "two"}}}`)
	config = w.wants("x=two", "y=one", "b=two")
	if want := []string{"y"}; !slices.Equal(config.Kept, want) || len(config.Problems) != 1 {
		t.Errorf("kept are %v, want %v; problems: %v", config.Kept, want, config.Problems)
	}
	w.writeText("a.json", `{"mcpServers": {"y": {"command": "two"}}}`)
	if config = w.wants("y=two", "b=two"); config.Kept != nil || config.Problems != nil {
		t.Errorf("after the mending: kept %v, problems %v", config.Kept, config.Problems)
	}
	w.writeText("b.json", "") // an editor has just opened it to write
	w.check(os.Remove(filepath.Join(w.dir, "a.json")))
	w.wants("b=two")
	w.check(os.Remove(filepath.Join(w.dir, "b.json")))
	w.wants()
}

// A bad edit does not let a later file's definition of the same name count.
func TestWatchKeepsThePrecedence(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir())
	w.writeText("a.json", `{"mcpServers": {"x": {"command": "first"}}}`)
	w.writeText("b.json", `{"mcpServers": {"x": {"command": "second"}}}`)
	w.wants("x=first")
	w.writeText("a.json", `{`)
	w.write("c.json", "one")
	w.wants("x=first", "c=one")
	w.check(os.Remove(filepath.Join(w.dir, "a.json")))
	w.wants("x=second", "c=one")
}

// A definition of the same name that is read earlier counts from now on: the one
// that counted before can still be read, and is no bad edit.
func TestWatchTakesEarlierDefinitions(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.json")
	w := watch(t, t.TempDir(), file)
	w.write(file, "one")
	w.wants("x=one")
	w.write("x.json", "two")
	if config := w.wants("x=two"); config.Kept != nil || len(config.Problems) != 1 {
		t.Errorf("kept %v, problems %v", config.Kept, config.Problems)
	}
}

func TestWatchFoldersThatComeAndGo(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	w := watch(t, filepath.Join(base, "later", "MCPs"))
	w.wants()
	for _, command := range []string{"one", "two"} {
		w.check(os.MkdirAll(w.dir, 0o700))
		w.write("a.json", command)
		w.wants("a=" + command)
		w.check(os.RemoveAll(filepath.Join(base, "later")))
		w.wants()
	}
	w.check(os.MkdirAll(w.dir, 0o700))
	w.write("a.json", "three")
	w.wants("a=three")
	// Another folder takes its place.
	other := filepath.Join(base, "other")
	w.check(os.Mkdir(other, 0o700))
	w.writeText(filepath.Join(other, "a.json"), `{"mcpServers": {"a": {"command": "four"}}}`)
	w.check(os.Rename(w.dir, w.dir+".old"))
	w.check(os.Rename(other, w.dir))
	w.wants("a=four")
	w.write("a.json", "five")
	w.wants("a=five")
}

func TestWatchFollowsLinks(t *testing.T) {
	t.Parallel()
	base, far := t.TempDir(), t.TempDir()
	w := watch(t, filepath.Join(base, "MCPs"))
	w.check(os.Mkdir(filepath.Join(far, "v1"), 0o700))
	w.check(os.Mkdir(filepath.Join(far, "v2"), 0o700))
	w.writeText(filepath.Join(far, "v1", "real"), `{"mcpServers": {"a": {"command": "one"}}}`)
	w.writeText(filepath.Join(far, "v2", "real"), `{"mcpServers": {"a": {"command": "three"}}}`)
	w.check(os.Symlink("v1", filepath.Join(far, "now")))
	w.check(os.Mkdir(w.dir, 0o700))
	w.check(os.Symlink(filepath.Join(far, "now", "real"), filepath.Join(w.dir, "a.json")))
	w.wants("a=one")
	w.writeText(filepath.Join(far, "v1", "real"), `{"mcpServers": {"a": {"command": "two"}}}`)
	w.wants("a=two")
	// A link on the way is replaced, as Kubernetes and package managers do.
	w.check(os.Symlink("v2", filepath.Join(far, "next")))
	w.check(os.Rename(filepath.Join(far, "next"), filepath.Join(far, "now")))
	w.wants("a=three")
	// The folder itself is a link.
	w.check(os.Rename(w.dir, filepath.Join(base, "elsewhere")))
	w.check(os.Symlink("elsewhere", w.dir))
	w.write("b.json", "one")
	w.wants("a=three", "b=one")
	w.check(os.Symlink("a.json", filepath.Join(w.dir, "a.tmp"))) // in one step, or a is gone for a moment
	w.check(os.Rename(filepath.Join(w.dir, "a.tmp"), filepath.Join(w.dir, "a.json")))
	w.wants("a=three", "b=one") // it leads to itself: a bad edit
}

func TestWatchNamedFiles(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	file := filepath.Join(base, "project", ".mcp.json")
	w := watch(t, filepath.Join(base, "MCPs"), file)
	w.check(os.Mkdir(filepath.Dir(file), 0o700))
	w.writeText(file, `{"mcpServers": {"a": {"command": "one"}}}`)
	w.wants("a=one")
	w.check(os.Remove(file))
	w.wants()
}

func TestWatchBurst(t *testing.T) {
	t.Parallel()
	w := watch(t, t.TempDir())
	w.wants()
	var want []string
	for i := range 200 {
		name := fmt.Sprintf("s%03d", i)
		w.write(name+".json", "x")
		want = append(want, name+"=x")
	}
	w.wants(want...)
	if n := len(w.configs); n > 0 {
		t.Errorf("%d more configurations came", n)
	}
}

// A value that the user gives while a bridge runs counts.
func TestWatchSeesInputs(t *testing.T) {
	dir, stamp := t.TempDir(), filepath.Join(t.TempDir(), "state", "stamp")
	if err := os.WriteFile(filepath.Join(dir, "a.json"), []byte(`{"mcpServers": {"a": {"command": "${input:x}"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var value atomic.Pointer[string]
	w := &watched{t: t, dir: dir, configs: make(chan *discovery.Config, 100)}
	opts := discovery.LoadOptions{Dirs: []string{dir}, InputFiles: []string{stamp}, Input: func(string, discovery.Input) (string, bool) {
		if v := value.Load(); v != nil {
			return *v, true
		}
		return "", false
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- discovery.Watch(ctx, opts, func(c *discovery.Config) { w.configs <- c }) }()
	w.wants()
	for _, text := range []string{"one", "two"} {
		value.Store(&text)
		if err := os.MkdirAll(filepath.Dir(stamp), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(stamp, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.wants("a=" + text)
	}
	cancel()
	<-done
}
