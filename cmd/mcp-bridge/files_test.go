package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// keptFile is where a file of the workspace is on the host.
func keptFile(s *setup, name string) string {
	return filepath.Join(s.state, "workspace", "files", name)
}

// TestFilesAreKept follows files from one session to another, to the host, and
// to the next bridge.
func TestFilesAreKept(t *testing.T) {
	t.Parallel()
	s := setup{state: t.TempDir()}
	c := connect(t, s)
	c.runIn(t, "a", "(workspace / 'd').mkdir(); n = (workspace / 'd' / 'x.txt').write_text('of a'); n = open('big', 'wb').write(bytes(range(256)) * 10_000)")
	if got := c.runIn(t, "b", "print(open('d/x.txt').read(), open('big', 'rb').read() == bytes(range(256)) * 10_000, sorted(p.name for p in workspace.iterdir()))"); got != "of a True ['big', 'd']" {
		t.Errorf("another session sees %s", got)
	}
	c.runIn(t, "b", "n = open('d/x.txt', 'a').write(', then b'); import os; os.unlink('big')")
	if got := c.runIn(t, "a", "open('d/x.txt').read(), (workspace / 'big').exists()"); got != "('of a, then b', False)" {
		t.Errorf("the first session sees %s", got)
	}
	if data, err := os.ReadFile(keptFile(&s, "d/x.txt")); err != nil || string(data) != "of a, then b" {
		t.Errorf("on the host there is %q, %v", data, err)
	}
	if err := os.WriteFile(keptFile(&s, "of the user.csv"), []byte("1,2"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "a cell sees what the user puts there", func() bool {
		return c.runIn(t, "a", "(workspace / 'of the user.csv').exists()") == "True"
	})
	c.Close()
	if r := shell(t, &s, "exec", "-c", "sorted(map(str, workspace.rglob('*.*'))), workspace.usage().files"); r.stdout != "(['/workspace/d/x.txt', '/workspace/of the user.csv'], 2)\n" {
		t.Errorf("the next bridge has %+v", r)
	}
	if r := shell(t, &s, "workspace", "path"); r.stdout != filepath.Dir(keptFile(&s, "x"))+"\n" {
		t.Errorf("workspace path: %+v", r)
	}
	if r := shell(t, &s, "workspace", "list"); !strings.Contains(r.stdout, "of the user.csv  3 B") || strings.Count(r.stdout, "\n") != 3 {
		t.Errorf("workspace list: %+v", r)
	}
	if r := shell(t, &setup{}, "workspace", "list", "--json"); r.stdout != "[]\n" {
		t.Errorf("an empty list: %+v", r)
	}
}

// TestFilesOutlastTheSandbox ends the sandbox in every way, and holds what is said to what is there.
func TestFilesOutlastTheSandbox(t *testing.T) {
	t.Parallel()
	s := special(t, "--warm=0")
	c := connect(t, s)
	const kept = "files are those that were kept after the last cell that was not cut short"
	c.run(t, "n = open('a', 'w').write('1')")
	for _, name := range containersOf(t, c.cmd.Process.Pid) {
		podman(t, nil, "kill", name)
	}
	eventually(t, patience, "the sandbox is replaced", func() bool { return len(containersOf(t, c.cmd.Process.Pid)) == 0 })
	contains(t, c.run(t, "open('a').read()"), "replaced", "All variables are gone; "+kept, "'1'")
	// The Python process goes, its sandbox stays: nothing is lost.
	contains(t, c.fails(t, "n = open('a', 'w').write('2'); import os; os._exit(1)"), "All variables are gone; files in the workspace are kept")
	c.wants(t, "open('a').read()", "'2'")
	if got := c.runIn(t, "other", "open('a').read()"); got != "'2'" {
		t.Errorf("another session sees %s", got)
	}
	// A cell that is interrupted.
	r := c.call(t, arguments{"code": "n = open('a', 'w').write('3')\nwhile True: pass", "timeout": 1})
	contains(t, r.text, "Timed out", "Variables are kept")
	if got := c.runIn(t, "other", "open('a').read()"); got != "'3'" {
		t.Errorf("after an interrupt another session sees %s", got)
	}
}

// TestFilesQuota exceeds the quota, and hears of it.
func TestFilesQuota(t *testing.T) {
	t.Parallel()
	s := setup{state: t.TempDir(), args: []string{"--workspace-quota=1m"}}
	c := connect(t, s)
	contains(t, c.run(t, "n = open('big.bin', 'wb').write(bytes(3 << 20)); n = open('small', 'w').write('x')"),
		"Note: not kept: big.bin (3 MiB): the workspace's quota of 1 MiB is exceeded")
	c.wants(t, "workspace.usage()", "1 of 10,000 files, 1 bytes of 1 MiB kept across sessions\nnot kept: big.bin: the workspace's quota of 1 MiB is exceeded")
	c.wants(t, "workspace.quota", "1048576")
	c.wants(t, "open('big.bin', 'wb').truncate(1 << 20)", "1048576\nNote: not kept: big.bin (1 MiB): the workspace's quota of 1 MiB is exceeded")
	c.wants(t, "import os; os.unlink('small')", "(no output)")
	c.wants(t, "workspace.usage().bytes", "1048576")
	// Sparse files are as large as they say, and end at the sandbox's own bound.
	contains(t, c.run(t, "f = open('sparse', 'wb'); n = f.truncate(100 << 20)"), "not kept: sparse (100 MiB)")
	contains(t, c.fails(t, "f.truncate(1 << 40)"), "File too large")

	none := setup{state: t.TempDir(), args: []string{"--workspace-quota=0"}}
	if r := shell(t, &none, "exec", "-c", "n = open('x', 'w').write('x'); workspace.usage()"); r.stdout != "files are not kept: mcp-bridge has no folder for them\n" {
		t.Errorf("without files: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(none.state, "workspace")); err == nil {
		t.Error("a folder is made for no files")
	}
	for _, wrong := range []string{"200m", "-1", "lots"} {
		if r := shell(t, &setup{}, "exec", "--workspace-quota="+wrong, "-c", "1"); r.code != exitUsage || !strings.Contains(r.stderr, "workspace-quota") {
			t.Errorf("a quota of %s: %+v", wrong, r)
		}
	}
}

// TestFilesOfAKilledCell: what it wrote is kept, though no cell comes after it, when
// the bridge ends, with and without variables to save.
func TestFilesOfAKilledCell(t *testing.T) {
	t.Parallel()
	for _, hibernate := range []string{"true", "false"} {
		// A bridge that ends has a second for it, which a loaded machine may take away.
		eventually(t, patience, "the file is kept with --hibernate="+hibernate, func() bool {
			s := setup{state: t.TempDir(), args: []string{"--hibernate=" + hibernate, "--warm=0"}}
			c := connect(t, s)
			contains(t, c.fails(t, "import os, signal\nn = open('last', 'w').write('words')\nos.kill(os.getpid(), signal.SIGKILL)"), "variables are gone")
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(s.state, "workspace", "files", "last"))
			return err == nil && string(data) == "words"
		})
	}
}

// TestFilesOfTwoBridges has two bridges write the same file and others of their
// own at once, to one folder.
func TestFilesOfTwoBridges(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	clients := []*client{connect(t, setup{state: state}), connect(t, setup{state: state})}
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			for n := range 15 {
				code := fmt.Sprintf("text = '%d' * 300_000\nn = open('shared', 'w').write(text); n = open('own-%d-%d', 'w').write('x')\nset(open('shared').read()) in ({'0'}, {'1'})", i, i, n)
				if r, err := c.try(t.Context(), arguments{"code": code}); err != nil || r.text != "True" {
					t.Errorf("bridge %d: %+v, %v", i, r, err)
				}
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(filepath.Join(state, "workspace", "files", "shared"))
	if err != nil || len(data) != 300_000 || strings.Trim(string(data), string(data[:1])) != "" {
		t.Errorf("the shared file is torn: %d bytes, %v", len(data), err)
	}
	for _, c := range clients {
		eventually(t, patience, "both see all files", func() bool { return c.run(t, "len(list(workspace.glob('own-*')))") == "30" })
	}
}

// TestFilesAreOnlyFiles has a cell that tries to get at the host by way of its
// files, and by talking to the host itself.
func TestFilesAreOnlyFiles(t *testing.T) {
	t.Parallel()
	s := setup{state: t.TempDir(), args: []string{"--warm=0"}}
	c := connect(t, s)
	secret := filepath.Join(s.state, "secret")
	if err := os.WriteFile(secret, []byte("of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := c.run(t, `
import os
os.symlink("/etc/passwd", "link"); os.symlink("/", "root"); os.mkfifo("pipe")
open("new\nline", "w").close(); open("turned\u202etxt", "w").close(); open(b"not-utf8-\xff", "w").close()
n = open("fine", "w").write("x")`)
	contains(t, text, "link", "root", "links are not", `'new\nline'`, "control characters", "not UTF-8")
	// What the channel says is what counts, and cells can write to it.
	code := `
from mcpbridge import files
call = files.current.keeper()._client.call
def attempt(method, **params):
    try: return call("workspace/" + method, params)
    except Exception as e: return f"{type(e).__name__}: {e}"
put = dict(size=1, modified=1, offset=0, data="eA==")
for path in ("../../secret", "/etc/x", "a/../../../secret", "", ".", "..", "a//b", "a\0b", "x" * 300, "d/" * 40 + "x", 5, None, ["a"]):
    print(attempt("put", path=path, **put), attempt("get", path=path, offset=0), attempt("delete", files=[[path, 1, 1]]))
for wrong in (dict(offset=1 << 62), dict(offset=-1), dict(offset=3), dict(size=-1), dict(size=1 << 62), dict(size=1 << 70), dict(size=0.5),
              dict(modified=-1), dict(modified=1 << 70), dict(data="!"), dict(data="eHg="), dict(data="eA==" * (1 << 20)), dict(data=None, size=5, offset=5)):
    print(attempt("put", path="wrong", **{**put, **wrong}))
print(attempt("get", path="fine", offset=1 << 62), attempt("get", path="fine", offset=-1), attempt("get", path="missing", offset=0))
print(attempt("delete", files="fine"), attempt("delete", files=[["fine"]]), attempt("delete", files=[["fine", 1, 2]] * 20_000), attempt("list"))`
	out := c.run(t, code)
	for line := range strings.Lines(out) {
		if strings.Contains(line, "/tmp/") || strings.Contains(line, s.state) || strings.Contains(line, "panic") {
			t.Errorf("told too much: %s", line)
		}
	}
	var left []string
	for _, dir := range []string{filepath.Dir(s.state), s.state, filepath.Join(s.state, "workspace"), filepath.Join(s.state, "workspace", "files")} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, e.Name())
		}
	}
	if got := strings.Join(left, " "); !strings.Contains(got, "fine") || strings.Contains(got, "wrong") || strings.Contains(got, "link") || strings.Contains(got, "pipe") {
		t.Errorf("the host has %s", got)
	}
	if data, _ := os.ReadFile(secret); string(data) != "of the host" {
		t.Errorf("the host's file is now %q", data)
	}
	// Links that are put on the host are not followed either.
	for name, target := range map[string]string{"to-secret": secret, "to-root": "/", "fine-too": "fine"} {
		if err := os.Symlink(target, keptFile(&s, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(keptFile(&s, "marker"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the folder is looked at", func() bool { return c.runIn(t, "fresh", "os = __import__('os'); os.path.exists('marker')") == "True" })
	if got := c.runIn(t, "fresh", "sorted(os.listdir())"); got != "['fine', 'marker']" {
		t.Errorf("a new session has %s", got)
	}
	out = c.run(t, `print(attempt("get", path="to-secret", offset=0), attempt("get", path="to-root/etc/passwd", offset=0), attempt("put", path="to-root/tmp/x", **put))`)
	if strings.Contains(out, "data") || strings.Count(out, "RemoteError") != 3 {
		t.Errorf("by way of links: %s", out)
	}
}

// TestFilesAreResources lists and reads the files as a client does, and hears when
// they change.
func TestFilesAreResources(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{}, 100)
	s := setup{state: t.TempDir()}
	c := connectHearing(t, s, &mcp.ClientOptions{ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { changed <- struct{}{} }})
	if caps := c.InitializeResult().Capabilities.Resources; caps == nil || !caps.ListChanged || caps.Subscribe {
		t.Errorf("capabilities: %+v", caps)
	}
	list := func() map[string]*mcp.Resource {
		t.Helper()
		found := map[string]*mcp.Resource{}
		for r, err := range c.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			found[r.URI] = r
		}
		return found
	}
	if l := list(); len(l) != 0 {
		t.Errorf("at the start there are %v", l)
	}
	c.run(t, `
(workspace / "d").mkdir()
n = (workspace / "d" / "ü a?#%.csv").write_text("a,b\n1,2\n")
n = (workspace / "picture").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
n = (workspace / "plain").write_text("text")
n = (workspace / "empty.txt").write_text("")
n = (workspace / "big.bin").write_bytes(bytes(9 << 20))`)
	select {
	case <-changed:
	case <-time.After(patience):
		t.Error("no notification came")
	}
	found := list()
	for uri, want := range map[string]struct{ mime, text string }{
		"workspace:///d/%C3%BC%20a%3F%23%25.csv": {"text/csv", "a,b\n1,2\n"},
		"workspace:///picture":                   {"image/png", "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 100)},
		"workspace:///plain":                     {"text/plain; charset=utf-8", "text"},
		"workspace:///empty.txt":                 {"text/plain", ""},
	} {
		r := found[uri]
		if r == nil || r.Size != int64(len(want.text)) || r.Annotations == nil || r.Annotations.LastModified == "" {
			t.Errorf("%s is listed as %+v", uri, r)
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || len(read.Contents) != 1 || read.Contents[0].MIMEType != want.mime || read.Contents[0].Text+string(read.Contents[0].Blob) != want.text {
			t.Errorf("%s is read as %+v, %v", uri, read, err)
		}
	}
	if len(found) != 5 {
		t.Errorf("listed: %v", found)
	}
	if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "workspace:///big.bin"}); err == nil || !strings.Contains(err.Error(), "9 MiB, and at most 8 MiB") {
		t.Errorf("a big file: %v", err)
	}
	for _, uri := range []string{
		"workspace:///missing", "workspace:///", "workspace:///../../../etc/passwd", "workspace:///%2e%2e/%2e%2e/%2e%2e/etc/passwd", "workspace:////etc/passwd",
		"workspace:///d", "workspace://host/plain", "file:///etc/passwd", "workspace:plain", "workspace:///plain%00", "workspace:///plain?x", "", "%",
	} {
		if read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%q is read as %+v", uri, read.Contents[0])
		}
	}
	for len(changed) > 0 {
		<-changed
	}
	c.run(t, "import os; os.unlink('plain')\nfor i in range(1200): n = open(f'many-{i}', 'w').write('x')")
	select {
	case <-changed:
	case <-time.After(patience):
		t.Error("no second notification came")
	}
	found = list() // over pages
	if found["workspace:///plain"] != nil || len(found) != 1204 {
		t.Errorf("afterwards %d are listed", len(found))
	}
	page, err := c.ListResources(t.Context(), nil)
	if err != nil || len(page.Resources) != 500 || page.NextCursor == "" {
		t.Errorf("a page has %d, %v", len(page.Resources), err)
	}
	none := connect(t, setup{args: []string{"--workspace-quota=0"}})
	if caps := none.InitializeResult().Capabilities.Resources; caps != nil {
		t.Errorf("without files: %+v", caps)
	}
}
