package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// offline is an engine that only makes images.
func offline(t *testing.T) *Engine {
	t.Helper()
	e, err := New(Options{RuntimeDir: privateDir(t), CacheDir: filepath.Join(privateDir(t), "cache")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(e.store.dir); len(left) > 0 {
			t.Errorf("a closed engine left %v", left)
		}
	})
	return e
}

// hostileFolder has everything in it that could lead out, block or hurt.
func hostileFolder(t *testing.T) string {
	t.Helper()
	outside := t.TempDir()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(path string, mode os.FileMode) error {
		return errors.Join(os.WriteFile(path, []byte("in "+filepath.Base(path)), 0o644), os.Chmod(path, mode))
	}
	listener, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	if err := errors.Join(
		write(filepath.Join(outside, "secret"), 0o644),
		os.Symlink(filepath.Join(outside, "secret"), in("absolute")), os.Symlink("../../../../etc/passwd", in("relative")),
		os.Symlink(outside, in("folder")), os.Symlink("loop", in("loop")), os.Symlink(strings.Repeat("x", 4095), in("long")),
		unix.Mkfifo(in("pipe"), 0o666), write(in("plain"), 0o644), write(in("suid"), 0o6755|os.ModeSetuid), write(in("private"), 0o640),
		write(in("new\nline"), 0o644), write(in("not \xff UTF-8"), 0o644), write(in(strings.Repeat("n", 255)), 0o644), write(in(".wh.plain"), 0o644),
		os.WriteFile(in("empty"), nil, 0o644), os.WriteFile(in("page"), make([]byte, 4096), 0o644), os.WriteFile(in("more"), make([]byte, 5000), 0o644),
		os.Mkdir(in("closed"), 0o700), write(in("closed/inner"), 0o644), os.Mkdir(in("by name"), 0o711), write(in("by name/inner"), 0o644),
		os.Chtimes(in("plain"), time.Time{}, time.Unix(-1000, 0)),
	); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := unix.Mknod(in("device"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil { // which has no end
			t.Fatal(err)
		}
	}
	return dir
}

// TestHostileFolder holds that a snapshot has what everybody can read in a
// folder, links as links, and nothing else.
func TestHostileFolder(t *testing.T) {
	e := offline(t)
	s, err := e.snapshot(t.Context(), hostileFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	defer e.snapshots.release(s)
	var got []string
	for _, line := range list(t, s.path) {
		if cut := strings.Index(line, "Lrwxrwxrwx"); cut == 0 {
			line = "link" + strings.TrimPrefix(line, "Lrwxrwxrwx")
		}
		got = append(got, fmt.Sprintf("%.60q", line))
	}
	want := []string{
		`"-rw-r--r-- .wh.plain in .wh.plain"`, `"-rw-r--r-- by name/inner in inner"`, `"-rw-r--r-- empty"`, `"-rw-r--r-- new\nline in new\nline"`,
		`"-rw-r--r-- not \xff UTF-8 in not \xff UTF-8"`, `"-rw-r--r-- plain in plain"`, `"-rw-r-----  private"`, `"-rwxr-xr-x suid in suid"`,
	}
	for _, line := range want {
		if !slices.Contains(got, strings.Replace(line, "  ", " ", 1)) {
			t.Errorf("there is no %s", line)
		}
	}
	text := strings.Join(got, "\n")
	for _, absent := range []string{"secret in", "socket", "pipe", "device", "closed/inner", "in private", "root:"} {
		if strings.Contains(text, absent) {
			t.Errorf("there is %q in\n%s", absent, text)
		}
	}
	if n := strings.Count(text, `"link`); n != 5 {
		t.Errorf("%d links, want 5, in\n%s", n, text)
	}
}

// TestFolderBounds holds that what is too much is refused, before it is copied,
// and leaves nothing.
func TestFolderBounds(t *testing.T) {
	e := offline(t)
	big, deep := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(big, "sparse"), nil, 0o644), os.Truncate(filepath.Join(big, "sparse"), 8<<40)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(deep, strings.Repeat("d/", maxFolderDepth+2)), 0o755); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{big: "more than 1024 MiB", deep: "more than 100 deep"} {
		_, err := e.folders(t.Context(), []runtime.Bind{{Source: source, Target: "/mnt/data"}})
		if !errors.Is(err, runtime.ErrNoBinds) || !strings.Contains(err.Error(), want) || !strings.Contains(runtime.HintOf(err), "smaller folder") {
			t.Errorf("%v (hint %q), want %q", err, runtime.HintOf(err), want)
		}
	}
	many := t.TempDir()
	for i := range 40 {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprint(i)), []byte("0123456789"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, limit := range map[string]func(*walk){
		"entries": func(w *walk) { w.maxEntries = 39 },
		"bytes":   func(w *walk) { w.maxBytes = 399 },
		"neither": func(w *walk) { w.maxEntries, w.maxBytes = 40, 400 },
	} {
		visited := 0
		w := newWalk(func(found) error { visited++; return nil })
		limit(w)
		if err := w.run(t.Context(), many); errors.Is(err, errTooLarge) != (name != "neither") || visited > 41 {
			t.Errorf("%s: %v after %d entries", name, err, visited)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.folders(ended, []runtime.Bind{{Source: many, Target: "/mnt/data"}}); !errors.Is(err, context.Canceled) || errors.Is(err, runtime.ErrNoBinds) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestFolderSwapped has a folder's entries exchanged for links while they are
// copied: what is copied is what was opened.
func TestFolderSwapped(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "x"), []byte("secret"), 0o644), os.Mkdir(filepath.Join(dir, "d"), 0o755),
		os.WriteFile(filepath.Join(dir, "d", "x"), []byte("plain"), 0o644), os.WriteFile(filepath.Join(dir, "d", "y"), []byte("plain"), 0o644)); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	w := newWalk(func(f found) error {
		seen[f.name] = f.kind() == unix.S_IFREG
		if f.name == "/d" { // after it was opened, and before it is read
			return errors.Join(os.Rename(filepath.Join(dir, "d"), filepath.Join(dir, "was")), os.Symlink(outside, filepath.Join(dir, "d")))
		}
		if f.name == "/d/x" {
			if err := errors.Join(os.Remove(filepath.Join(dir, "was", "x")), os.Symlink(filepath.Join(outside, "x"), filepath.Join(dir, "was", "x")),
				os.Remove(filepath.Join(dir, "was", "y")), os.Symlink(filepath.Join(outside, "x"), filepath.Join(dir, "was", "y"))); err != nil {
				return err
			}
			file, err := reopen(f.fd, unix.O_NONBLOCK)
			if err != nil {
				return err
			}
			defer file.Close()
			if text, err := os.ReadFile(file.Name()); err != nil || string(text) != "plain" {
				t.Errorf("read %q, %v", text, err)
			}
		}
		return nil
	})
	if err := w.run(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if !seen["/d/x"] || seen["/d/y"] {
		t.Errorf("seen %v: the second has become a link", seen)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Symlink(outside, link), os.Mkdir(filepath.Join(outside, "below"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{link, filepath.Join(link, "below")} {
		if err := newWalk(func(found) error { return nil }).run(t.Context(), source); err == nil {
			t.Errorf("%s was followed", source)
		}
	}
}

// TestGrowingFile has a file grow and change while it is copied.
func TestGrowingFile(t *testing.T) {
	e := offline(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("a", 10000)), 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				log.WriteString("b")
			}
		}
	}()
	s, err := e.snapshot(t.Context(), dir)
	close(stop)
	<-stopped
	if err != nil {
		t.Fatal(err)
	}
	defer e.snapshots.release(s)
	lines := list(t, s.path)
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "-rw-r--r-- log "+strings.Repeat("a", 10000)) {
		t.Errorf("%.80q", lines)
	}
}

// TestSnapshotsAreKept holds that an unchanged folder is copied once, a changed
// one again, and that nothing is left on the disk.
func TestSnapshotsAreKept(t *testing.T) {
	e := offline(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	change := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	take := func() *snapshot {
		t.Helper()
		s, err := e.snapshot(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	change("one")
	first := take()
	e.snapshots.release(first)
	if _, err := os.Lstat(first.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that has just changed was kept: %v", err)
	}
	now, _, err := look(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	second := take()
	second.imprint = now
	e.snapshots.keep(dir, second) // as if it had been unchanged for a while
	third := take()
	if third != second {
		t.Error("an unchanged folder was copied again")
	}
	change("three") // of another size, for its time may be the same
	fourth := take()
	if fourth == second || !strings.HasSuffix(list(t, fourth.path)[0], "three") || !strings.HasSuffix(list(t, second.path)[0], "one") {
		t.Error("a changed folder was not copied")
	}
	// Emptying the cache costs a copy, and nothing else.
	now, _, _ = look(t.Context(), dir)
	fourth.imprint = now
	e.snapshots.keep(dir, fourth)
	if err := os.Remove(fourth.path); err != nil {
		t.Fatal(err)
	}
	fifth := take()
	if fifth == fourth {
		t.Error("a snapshot that is gone was given out")
	}
	// What is shown is known to be of now, or not.
	box := &sandbox{spec: runtime.Spec{Binds: []runtime.Bind{{Source: dir}}}, shown: []imprint{now}}
	if box.Outdated(t.Context()) {
		t.Error("an unchanged folder is outdated")
	}
	change("more")
	if !box.Outdated(t.Context()) {
		t.Error("a changed folder is not outdated")
	}
	sixth := take()
	if box.shown[0] = sixth.imprint; sixth.imprint != (imprint{}) || !box.Outdated(t.Context()) {
		t.Error("a folder that had just changed is taken for certain")
	}
	// Sweeping takes what has no owner, and nothing else.
	orphan := filepath.Join(e.store.dir, snapshotPrefix+"1")
	if err := os.WriteFile(orphan, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.store.sweep(); err != nil {
		t.Fatal(err)
	}
	_, err1 := os.Lstat(orphan)
	_, err2 := os.Lstat(fifth.path)
	if !errors.Is(err1, fs.ErrNotExist) || err2 != nil {
		t.Errorf("after sweeping: orphan %v, ours %v", err1, err2)
	}
	e.snapshots.release(second, third, fourth, fifth, sixth)
}
