//go:build unix

package workspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/workspace"
)

func open(t testing.TB, dir string, quota workspace.Quota) *workspace.Store {
	t.Helper()
	s, err := workspace.Open(workspace.Options{Dir: dir, Quota: quota})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(s *workspace.Store, path, content string) (workspace.Change, error) {
	ctx := context.Background()
	u, err := s.Begin(ctx, workspace.File{Path: path, Size: int64(len(content)), Modified: time.Unix(1e9, 123)})
	if err != nil {
		return workspace.Change{}, err
	}
	defer u.Abort()
	for len(content) > 0 {
		n := min(len(content), 1000)
		if err := u.Write([]byte(content[:n])); err != nil {
			return workspace.Change{}, err
		}
		content = content[n:]
	}
	_, change, err := u.Commit(ctx)
	return change, err
}

func mustPut(t testing.TB, s *workspace.Store, path, content string) {
	t.Helper()
	if _, err := put(s, path, content); err != nil {
		t.Fatalf("put %q: %v", path, err)
	}
}

// names are the files that there are, as "path=size".
func names(t testing.TB, s *workspace.Store) string {
	t.Helper()
	var all []string
	for _, f := range s.List(t.Context()).Files {
		all = append(all, fmt.Sprintf("%s=%d", f.Path, f.Size))
	}
	return strings.Join(all, " ")
}

func kindOf(err error) workspace.Kind {
	if e, ok := errors.AsType[*workspace.Error](err); ok {
		return e.Kind
	}
	return ""
}

// outdated makes the next look at the folder a real one.
func outdated(t testing.TB, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "generation"), []byte(fmt.Sprint("changed ", rand.Int())), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, workspace.Quota{})
	if v := s.Version(t.Context()); v != 0 {
		t.Errorf("version of an empty workspace is %d", v)
	}
	big := strings.Repeat("x", 12_345)
	mustPut(t, s, "a.txt", "one")
	mustPut(t, s, "d/e/ü\u200dx.bin", big)
	mustPut(t, s, "a.txt", "two!")
	if got, want := names(t, s), "a.txt=4 d/e/ü\u200dx.bin=12345"; got != want {
		t.Errorf("there is %q, want %q", got, want)
	}
	data, file, err := s.Read("d/e/ü\u200dx.bin", 12_000, 1000)
	if err != nil || string(data) != big[12_000:] || file.Size != 12_345 || !file.Modified.Equal(time.Unix(1e9, 123)) {
		t.Errorf("read %d bytes of %+v, %v", len(data), file, err)
	}
	before := s.List(t.Context())
	if before.Bytes != 12_349 || !before.Whole || before.Version != 3 {
		t.Errorf("listing %+v", before)
	}
	// It is what is there, and outlasts the store.
	other := open(t, dir, workspace.Quota{})
	if got, want := names(t, other), names(t, s); got != want {
		t.Errorf("another store sees %q, want %q", got, want)
	}
	stale := before.Files[0]
	stale.Size++
	if change, err := s.Delete(t.Context(), []workspace.File{stale, {Path: "../x"}, {Path: "d"}}); err != nil || change.Version != 3 {
		t.Errorf("delete of what is not so: %+v, %v", change, err)
	}
	if change, err := s.Delete(t.Context(), before.Files); err != nil || change != (workspace.Change{Version: 4, Previous: 3}) {
		t.Errorf("delete: %+v, %v", change, err)
	}
	if left, _ := os.ReadDir(s.Dir()); len(left) > 0 || names(t, s) != "" || names(t, other) != "" {
		t.Errorf("left after all was deleted: %v, %q, %q", left, names(t, s), names(t, other))
	}
}

// TestNames holds what may not be a name, and that nothing comes of it.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "state"), workspace.Quota{})
	for _, path := range []string{
		"", ".", "..", "/etc/passwd", "../x", "a/../b", "a/./b", "a//b", "a/", "/", "a/../../x", "a\x00b", "a\nb", "a\x1b[2Jb",
		"evil\u202etxt.exe", "a\u2066b", "a\u2028b", "\xff\xfe", "a/\xc3\x28", strings.Repeat("x", 256), strings.Repeat("d/", 32) + "x",
		strings.Repeat("0123456789/", 100) + "x", "\x7f", "\u0085",
	} {
		if _, err := put(s, path, "x"); kindOf(err) != workspace.BadName {
			t.Errorf("put %q: %v", path, err)
		}
		if _, _, err := s.Read(path, 0, 10); kindOf(err) != workspace.BadName {
			t.Errorf("read %q: %v", path, err)
		}
		if _, err := s.Delete(t.Context(), []workspace.File{{Path: path}}); err != nil {
			t.Errorf("delete %q: %v", path, err)
		}
	}
	for _, path := range []string{"a b", "a:b", "…", ".hidden", "..x", "x..", "-rf", "~", "$HOME", "a\\b", "CON", "שלום", strings.Repeat("d/", 31) + "x"} {
		mustPut(t, s, path, "x")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left beside the state: %v", entries)
	}
}

func TestQuota(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, workspace.Quota{Bytes: 1000, Files: 3})
	mustPut(t, s, "a", strings.Repeat("a", 600))
	if _, err := put(s, "b", strings.Repeat("b", 401)); kindOf(err) != workspace.OverFull || !strings.Contains(err.Error(), "1000 B") {
		t.Errorf("over the quota: %v", err)
	}
	mustPut(t, s, "b", strings.Repeat("b", 400))
	mustPut(t, s, "a", strings.Repeat("c", 600)) // in place of as much
	if _, err := put(s, "a", strings.Repeat("c", 601)); kindOf(err) != workspace.OverFull {
		t.Errorf("a byte more: %v", err)
	}
	mustPut(t, s, "c", "")
	if _, err := put(s, "d", ""); kindOf(err) != workspace.OverFull {
		t.Errorf("a file more: %v", err)
	}
	for _, size := range []int64{1 << 40, math.MaxInt64, -1, math.MinInt64} { // none is written
		if _, err := s.Begin(t.Context(), workspace.File{Path: "x", Size: size, Modified: time.Now()}); err == nil {
			t.Errorf("size %d is taken", size)
		}
	}
	// What is on its way counts.
	list := s.List(t.Context()).Files
	if _, err := s.Delete(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	first, err := s.Begin(t.Context(), workspace.File{Path: "x", Size: 700, Modified: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(s, "y", strings.Repeat("y", 301)); kindOf(err) != workspace.OverFull {
		t.Errorf("beside an upload: %v", err)
	}
	if err := first.Write(make([]byte, 701)); kindOf(err) != workspace.Refused {
		t.Errorf("more than was said: %v", err)
	}
	if _, _, err := first.Commit(t.Context()); kindOf(err) != workspace.Refused {
		t.Errorf("less than was said: %v", err)
	}
	first.Abort()
	mustPut(t, s, "y", strings.Repeat("y", 1000))
	if left, _ := os.ReadDir(filepath.Join(dir, "partial")); len(left) > 0 {
		t.Errorf("unfinished files are left: %v", left)
	}
	// What the user adds counts too, and what is over is not removed.
	if err := os.WriteFile(filepath.Join(s.Dir(), "z"), make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	outdated(t, dir)
	if _, err := put(s, "w", "w"); kindOf(err) != workspace.OverFull {
		t.Errorf("above what the user has added: %v", err)
	}
	if got := names(t, s); got != "y=1000 z=5000" {
		t.Errorf("there is %q", got)
	}
}

// TestNothingButFiles has links, pipes and sockets in the folder: they are not
// seen, not followed, not waited for and not written through.
func TestNothingButFiles(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, workspace.Quota{})
	mustPut(t, s, "real/file", "x")
	for name, target := range map[string]string{"link": secret, "folder": outside, "up": "..", "inner": "real", "alias": "real/file", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(s.Dir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(s.Dir(), "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	outdated(t, dir)
	if got := names(t, s); got != "real/file=1" {
		t.Errorf("there is %q", got)
	}
	for _, path := range []string{"link", "folder/secret", "up/generation", "inner/file", "alias", "loop", "loop/x", "pipe", "real"} {
		if data, _, err := s.Read(path, 0, 100); kindOf(err) != workspace.NotFound {
			t.Errorf("read %s: %q, %v", path, data, err)
		}
	}
	for _, path := range []string{"folder/new", "up/new", "inner/new", "loop/new", "real/file/new", "real"} {
		if _, err := put(s, path, "new"); kindOf(err) != workspace.Refused {
			t.Errorf("put %s: %v", path, err)
		}
	}
	mustPut(t, s, "link", "mine") // takes the link's place
	if data, _ := os.ReadFile(secret); string(data) != "secret" {
		t.Errorf("written through a link: %q", data)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("written outside: %v", entries)
	}
}

// TestLinkedFolders is of a state folder in which somebody has put links.
func TestLinkedFolders(t *testing.T) {
	for _, name := range []string{"files", "partial"} {
		dir, outside := t.TempDir(), t.TempDir()
		if err := os.Symlink(outside, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if s, err := workspace.Open(workspace.Options{Dir: dir}); err == nil {
			s.Close()
			t.Errorf("%s may be a link", name)
		}
	}
}

// TestSwappedFolders replaces a folder by a link again and again while files are
// written and read below it. Nothing gets out, and nothing comes in.
func TestSwappedFolders(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, workspace.Quota{})
	folder := filepath.Join(s.Dir(), "d")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				os.RemoveAll(folder)
				os.Symlink(outside, folder)
				os.Remove(folder)
				os.Mkdir(folder, 0o700)
			}
		}
	}()
	for range 2000 {
		put(s, "d/x", "mine")
		if data, _, err := s.Read("d/x", 0, 100); err == nil && string(data) != "mine" {
			t.Errorf("read %q from outside", data)
		}
		outdated(t, dir)
		s.List(t.Context())
	}
	close(stop)
	<-stopped
	entries, err := os.ReadDir(outside)
	data, _ := os.ReadFile(filepath.Join(outside, "x"))
	if err != nil || len(entries) != 1 || string(data) != "secret" {
		t.Errorf("outside there is %v, %q, %v", entries, data, err)
	}
}

// TestFromOutside has the user change the folder while the store is open.
func TestFromOutside(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, workspace.Quota{})
	if err := os.MkdirAll(filepath.Join(s.Dir(), "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Dir(), "data", "in.csv")
	changes := []func() error{
		func() error { return os.WriteFile(path, []byte("a,b"), 0o644) },
		func() error { return os.WriteFile(path, []byte("a,b,c"), 0o644) },
		func() error { return os.RemoveAll(s.Dir()) },
	}
	for i, want := range []string{"data/in.csv=3", "data/in.csv=5", ""} {
		before := s.Version(t.Context())
		if err := changes[i](); err != nil {
			t.Fatal(err)
		}
		for s.Version(t.Context()) == before { // at most a second later
			time.Sleep(20 * time.Millisecond)
		}
		if got := names(t, s); got != want {
			t.Errorf("there is %q, want %q", got, want)
		}
	}
	mustPut(t, s, "again", "x")
}

// TestTwoWriters has stores of two bridges write the same files at once: each
// file is one writer's, whole, and both know the same at the end.
func TestTwoWriters(t *testing.T) {
	dir := t.TempDir()
	quota := workspace.Quota{Bytes: 64 << 10, Files: 6}
	stores := []*workspace.Store{open(t, dir, quota), open(t, dir, quota)}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := stores[i%2]
			for n := range 40 {
				_, err := put(s, fmt.Sprint("f", (i+n)%5), strings.Repeat(string(rune('a'+i)), 5000+i))
				if err != nil {
					t.Errorf("put: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for n := range 5 {
		data, _, err := stores[n%2].Read(fmt.Sprint("f", n), 0, 10_000)
		if err != nil || len(data) < 5000 || len(data) != 5000+int(data[0]-'a') || len(bytes.Trim(data, string(data[:1]))) != 0 {
			t.Errorf("f%d is torn: %d bytes, %v", n, len(data), err)
		}
	}
	if a, b := names(t, stores[0]), names(t, stores[1]); a != b {
		t.Errorf("one sees %q, the other %q", a, b)
	}
}

// TestMany bounds the look at a folder with more files than there may be.
func TestMany(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, workspace.Quota{Files: 100})
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(s.Dir(), fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outdated(t, dir)
	if l := s.List(t.Context()); l.Whole || len(l.Files) != 100 {
		t.Errorf("%d files, whole: %v", len(l.Files), l.Whole)
	}
	if _, err := put(s, "new", ""); kindOf(err) != workspace.OverFull {
		t.Errorf("put: %v", err)
	}
}

// TestReplacing begins to replace a file many times over: what is on its way
// takes no more of the disk than the quota once more, whoever writes it.
func TestReplacing(t *testing.T) {
	dir := t.TempDir()
	quota := workspace.Quota{Bytes: 1 << 20}
	stores := []*workspace.Store{open(t, dir, quota), open(t, dir, quota)}
	mustPut(t, stores[0], "f", strings.Repeat("f", 1<<20))
	onDisk := func() (total int64) {
		for _, folder := range []string{"files", "partial"} {
			entries, _ := os.ReadDir(filepath.Join(dir, folder))
			for _, e := range entries {
				if info, err := e.Info(); err == nil {
					total += info.Size()
				}
			}
		}
		return total
	}
	begun := 0
	for i := range 20 {
		u, err := stores[i%2].Begin(t.Context(), workspace.File{Path: "f", Size: 1<<20 - 1, Modified: time.Unix(1e9, 0)})
		if err != nil {
			if kindOf(err) != workspace.OverFull {
				t.Fatal(err)
			}
			continue
		}
		defer u.Abort()
		begun++
		if err := u.Write(make([]byte, 1<<20-1)); err != nil {
			t.Fatal(err)
		}
		if begun == 1 {
			defer func() {
				if _, _, err := u.Commit(t.Context()); err != nil {
					t.Error(err)
				}
				mustPut(t, stores[1], "f", strings.Repeat("f", 1<<20)) // there is room again
			}()
		}
	}
	if got := onDisk(); begun != 1 || got > 2<<20 {
		t.Errorf("%d of 20 were begun, with %d bytes on disk", begun, got)
	}
}

// TestFoldersCount makes folders until a look at all of them would be cut short:
// they count as files do, so that nothing is kept that was not counted.
func TestFoldersCount(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, workspace.Quota{Bytes: 1 << 20, Files: 400})
	deep, hidden := 0, 0
	for i := range 60 {
		if _, err := put(s, fmt.Sprintf("a%d/", i)+strings.Repeat("d/", 30)+"f", ""); err == nil {
			deep++
		} else if kindOf(err) != workspace.OverFull {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		outdated(t, dir)
		if _, err := put(s, fmt.Sprintf("z%d", i), strings.Repeat("z", 900<<10)); err == nil {
			hidden++
		} else if kindOf(err) != workspace.OverFull {
			t.Fatal(err)
		}
		var seen []workspace.File
		for _, f := range s.List(t.Context()).Files {
			if f.Size > 0 {
				seen = append(seen, f)
			}
		}
		if _, err := s.Delete(t.Context(), seen); err != nil {
			t.Fatal(err)
		}
	}
	if deep != 400/32 {
		t.Errorf("%d files with 31 folders each are kept, want %d", deep, 400/32)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir(), "z*")); len(left) > 0 || hidden != 4 {
		t.Errorf("of %d files that were kept, %d are not seen", hidden, len(left))
	}
	// Folders go with their last file, and there is room again.
	if _, err := s.Delete(t.Context(), s.List(t.Context()).Files); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		mustPut(t, s, fmt.Sprintf("b%d/", i)+strings.Repeat("d/", 30)+"f", "")
	}
}

// TestNotWhole has more in the folder than is looked at: what is not counted has
// to go before something is added, even in place of a file that is known.
func TestNotWhole(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, workspace.Quota{Bytes: 1000, Files: 10})
	mustPut(t, s, "a", "a")
	on, err := s.Begin(t.Context(), workspace.File{Path: "a", Size: 0, Modified: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := os.Mkdir(filepath.Join(s.Dir(), fmt.Sprint("d", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	outdated(t, dir)
	if _, _, err := on.Commit(t.Context()); kindOf(err) != workspace.OverFull {
		t.Errorf("commit: %v", err)
	}
	for _, path := range []string{"a", "b"} {
		if _, err := put(s, path, ""); kindOf(err) != workspace.OverFull {
			t.Errorf("put %s: %v", path, err)
		}
	}
	if err := os.RemoveAll(s.Dir()); err != nil {
		t.Fatal(err)
	}
	outdated(t, dir)
	mustPut(t, s, "b", "")
}

// TestCrash leaves what a killed bridge does: an unfinished file and a spoilt
// counter.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, workspace.Quota{})
	mustPut(t, s, "a", "a")
	s.Close()
	old, fresh := filepath.Join(dir, "partial", "old"), filepath.Join(dir, "partial", "fresh")
	for _, name := range []string{old, fresh} {
		if err := os.WriteFile(name, []byte("part"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	day := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(old, day, day); err != nil {
		t.Fatal(err)
	}
	outdated(t, dir)
	alive, err := open(t, dir, workspace.Quota{}).Begin(t.Context(), workspace.File{Path: "c", Size: 1, Modified: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Abort()
	s = open(t, dir, workspace.Quota{})
	mustPut(t, s, "b", "b")
	if got := names(t, s); got != "a=1 b=1" {
		t.Errorf("there is %q", got)
	}
	left, _ := os.ReadDir(filepath.Join(dir, "partial"))
	if len(left) != 1 || left[0].Name() == "fresh" {
		t.Errorf("unfinished files: %v, want that which is still written", left)
	}
	if err := alive.Write([]byte("c")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := alive.Commit(t.Context()); err != nil || names(t, s) != "a=1 b=1 c=1" {
		t.Errorf("commit of what was on its way: %v, %q", err, names(t, s))
	}
}

func BenchmarkVersion(b *testing.B) {
	for _, files := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			dir := b.TempDir()
			s := open(b, dir, workspace.Quota{})
			for i := range files {
				if err := os.MkdirAll(filepath.Join(s.Dir(), fmt.Sprint(i/100)), 0o700); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(s.Dir(), fmt.Sprint(i/100), fmt.Sprint(i)), nil, 0o600); err != nil {
					b.Fatal(err)
				}
			}
			b.Run("known", func(b *testing.B) {
				for b.Loop() {
					s.Version(b.Context())
				}
			})
			b.Run("looked at", func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					os.WriteFile(filepath.Join(dir, "generation"), []byte(fmt.Sprint(i)), 0o600)
					s.Version(b.Context())
				}
			})
		})
	}
}

func BenchmarkPut(b *testing.B) {
	s := open(b, b.TempDir(), workspace.Quota{})
	for i := 0; b.Loop(); i++ {
		mustPut(b, s, fmt.Sprint("d/", i%1000), "x")
	}
}
