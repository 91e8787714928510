package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/store"
)

var wide = store.Limits{Entries: 1000, EntryBytes: 1 << 20, TotalBytes: 64 << 20}

// TestMain is another process for some tests.
func TestMain(m *testing.M) {
	switch dir := os.Getenv("STORE_TEST_DIR"); os.Getenv("STORE_TEST_ROLE") {
	case "write":
		writeForEver(dir)
	case "count":
		countTo(dir, 200)
	default:
		os.Exit(m.Run())
	}
}

func other(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_TEST_ROLE="+role, "STORE_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func area(t *testing.T) *store.Area {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "state")).Area("area", wide)
}

func wantGet(t *testing.T, a *store.Area, key, want string) {
	t.Helper()
	got, err := a.Get(key)
	if err != nil || string(got) != want {
		t.Errorf("%.40q is %.40q (%v), want %.40q", key, got, err, want)
	}
}

func keys(t *testing.T, a *store.Area) []string {
	t.Helper()
	entries, err := a.List()
	if err != nil {
		t.Fatal(err)
	}
	keys := []string{}
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	slices.Sort(keys)
	return keys
}

func TestValues(t *testing.T) {
	a := area(t)
	if _, err := a.Get("k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a key that was never set: %v", err)
	}
	if got := keys(t, a); len(got) != 0 {
		t.Errorf("an area that was never written to has %q", got)
	}
	for _, value := range []string{"v", "", "a\nb\n", strings.Repeat("x", 1<<20)} {
		if err := a.Put("k", []byte(value)); err != nil {
			t.Fatal(err)
		}
		wantGet(t, a, "k", value)
	}
	if err := a.Put("k", nil); err != nil {
		t.Fatal(err)
	}
	wantGet(t, a, "k", "")
	if err := a.Delete("k"); err != nil {
		t.Fatal(err)
	}
	if err := a.Delete("k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("deleting twice: %v", err)
	}
	if _, err := a.Get("k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after its deletion: %v", err)
	}
}

func TestUpdate(t *testing.T) {
	a := area(t)
	add := func(text string) func([]byte) ([]byte, error) {
		return func(old []byte) ([]byte, error) { return append(old, text...), nil }
	}
	for _, text := range []string{"a", "b"} {
		if err := a.Update("k", add(text)); err != nil {
			t.Fatal(err)
		}
	}
	wantGet(t, a, "k", "ab")
	failed := errors.New("no")
	if err := a.Update("k", func([]byte) ([]byte, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("a failing update: %v", err)
	}
	wantGet(t, a, "k", "ab")
	for range 2 {
		if err := a.Update("k", func([]byte) ([]byte, error) { return nil, nil }); err != nil {
			t.Errorf("an update to nothing: %v", err)
		}
	}
	if _, err := a.Get("k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after an update to nothing: %v", err)
	}
}

// Names that are alike, or mean something to a file system, are all different.
func TestKeys(t *testing.T) {
	a := area(t)
	all := []string{
		"a/b", "a_b", "a-b", "a.b", "A/B", "a\\b", "..", ".", "../../etc/passwd", "/", "con", "NUL", "a\x00b", "a\nb", ".lock", ".new-x",
		"naïve", "nai\u0308ve", "ключ", "KEY", "key", "Key", " key", "key ", "x.entry", strings.Repeat("k", store.MaxKey), strings.Repeat("k", store.MaxKey-1),
		strings.Repeat("\x01", store.MaxKey), `"`, "{}",
	}
	for _, key := range all {
		if err := a.Put(key, []byte("value of "+key)); err != nil {
			t.Fatalf("%q: %v", key, err)
		}
	}
	for _, key := range all {
		wantGet(t, a, key, "value of "+key)
	}
	slices.Sort(all)
	if got := keys(t, a); !slices.Equal(got, all) {
		t.Errorf("the keys are %q", got)
	}
	for _, key := range []string{"", "a\xff", strings.Repeat("k", store.MaxKey+1)} {
		_, err := a.Get(key)
		if !errors.Is(err, store.ErrKey) || !errors.Is(a.Put(key, nil), store.ErrKey) || !errors.Is(a.Delete(key), store.ErrKey) {
			t.Errorf("%.20q is taken for a key: %v", key, err)
		}
	}
}

// No two files differ in case only, and none has a name that a system dislikes.
func TestFileNames(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir).Area("area", wide)
	for _, key := range []string{"Key", "key", "KEY", "a b:c*?", "../x"} {
		if err := a.Put(key, nil); err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(filepath.Join(dir, "area"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		name := file.Name()
		if seen[strings.ToLower(name)] || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.") != "" || len(name) > 200 {
			t.Errorf("a file is called %q", name)
		}
		seen[strings.ToLower(name)] = true
		info, err := file.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v (%v)", name, info.Mode(), err)
		}
	}
}

func TestLimits(t *testing.T) {
	limits := store.Limits{Entries: 2, EntryBytes: 100, TotalBytes: 400}
	a := open(t, t.TempDir()).Area("area", limits)
	put := func(key string, size int) error { return a.Put(key, bytes.Repeat([]byte("x"), size)) }
	for _, step := range []struct {
		key  string
		size int
		full string
	}{
		{"a", 101, "too large: 101 bytes, and one entry may have no more than 100"},
		{"a", 100, ""},
		{"a", 90, ""},
		{"b", 100, ""},
		{"c", 1, "2 entries"},
		{"a", 100, ""}, // in the place of its own old value
	} {
		err := put(step.key, step.size)
		if step.full == "" && err != nil || step.full != "" && (!errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), step.full)) {
			t.Errorf("%d bytes for %s: %v, want %q", step.size, step.key, err, step.full)
		}
	}
	small := open(t, t.TempDir()).Area("area", store.Limits{Entries: 9, EntryBytes: 100, TotalBytes: 200})
	if err := errors.Join(small.Put("a", make([]byte, 60))); err != nil {
		t.Fatal(err)
	}
	if err := small.Put("b", make([]byte, 60)); !errors.Is(err, store.ErrFull) || !strings.Contains(err.Error(), "no more than 200") {
		t.Errorf("more than all may have: %v", err)
	}
	if got := keys(t, small); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the keys are %q", got)
	}
}

func TestDamage(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir).Area("area", wide)
	file := func() string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "area", "*.entry"))
		if err != nil || len(files) != 1 {
			t.Fatalf("the files are %q (%v)", files, err)
		}
		return files[0]
	}
	for name, content := range map[string]string{
		"empty": "", "no head": "value", "short": `{"key":"k","size":5}` + "\nval", "another's": `{"key":"other","size":3}` + "\nval",
		"no JSON": "{\nvalue", "huge head": strings.Repeat("x", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			if err := a.Put("k", []byte("value")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file(), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Get("k"); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("got %v", err)
			}
			entries, err := a.List()
			if err != nil || len(entries) > 1 || len(entries) == 1 && (!entries[0].Damaged || entries[0].Key != "k") {
				t.Errorf("listed %v (%v)", entries, err)
			}
			if err := a.Put("k", []byte("new")); err != nil {
				t.Error(err)
			}
			wantGet(t, a, "k", "new")
		})
	}
}

// What is not a file of ours is neither followed nor read.
func TestSymlinks(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(`{"key":"k","size":6}`+"\nsecret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	a := open(t, dir).Area("area", wide)
	if err := a.Put("k", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "area", "*.entry"))
	if err := errors.Join(os.Remove(files[0]), os.Symlink(secret, files[0])); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Get("k"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("through a link: %q, %v", got, err)
	}
	if got := keys(t, a); len(got) != 0 {
		t.Errorf("a link is listed: %q", got)
	}
	if err := a.Put("k", []byte("again")); err != nil {
		t.Error(err)
	}
	wantGet(t, a, "k", "again")
	if data, _ := os.ReadFile(secret); !strings.HasSuffix(string(data), "secret") {
		t.Errorf("a write went through a link: %q", data)
	}

	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	linked := open(t, dir).Area("linked", wide)
	_, readErr := linked.Get("k")
	_, listErr := linked.List()
	for _, err := range []error{linked.Put("k", nil), readErr, listErr} {
		if !errors.Is(err, store.ErrUnsafe) {
			t.Errorf("an area that is a link: %v", err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(dir, "root")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(filepath.Join(dir, "root")); !errors.Is(err, store.ErrUnsafe) {
		t.Errorf("a store that is a link: %v", err)
	}
}

func TestOpen(t *testing.T) {
	parent := t.TempDir()
	deep := filepath.Join(parent, "a", "b", "state")
	if open(t, deep).Dir() != deep {
		t.Error("the directory is another one")
	}
	for _, dir := range []string{deep, filepath.Dir(deep)} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v (%v)", dir, info.Mode(), err)
		}
	}
	open(t, deep) // again
	readable := filepath.Join(parent, "readable")
	writable := filepath.Join(parent, "writable")
	file := filepath.Join(parent, "file")
	err := errors.Join(os.Mkdir(readable, 0o755), os.Mkdir(writable, 0o700), os.Chmod(writable, 0o777), os.WriteFile(file, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	open(t, readable)
	for _, dir := range []string{writable, file} {
		if _, err := store.Open(dir); !errors.Is(err, store.ErrUnsafe) {
			t.Errorf("%s was opened: %v", dir, err)
		}
	}
	if _, err := store.Open(filepath.Join(file, "below")); err == nil {
		t.Error("a folder below a file was opened")
	}
}

// value has its own length and key in it, and differs in every byte from others
// of the same number's parity.
func value(key string, n int) []byte {
	body := bytes.Repeat([]byte{byte('a' + n%26)}, 1+(n*7919)%100_000)
	return fmt.Appendf(nil, "%s %d %s", key, len(body), body)
}

// whole reports whether data is one of the values, and not parts of two.
func whole(key string, data []byte) bool {
	fields := bytes.SplitN(data, []byte(" "), 3)
	return len(fields) == 3 && string(fields[0]) == key && strconv.Itoa(len(fields[2])) == string(fields[1]) &&
		len(bytes.Trim(fields[2], string(fields[2][:1]))) == 0
}

func writeForEver(dir string) {
	s, err := store.Open(dir)
	if err != nil {
		panic(err)
	}
	a := s.Area("area", wide)
	for n := 0; ; n++ {
		key := "k" + strconv.Itoa(n%5)
		var err error
		if n%11 == 10 {
			err = a.Delete(key)
		} else {
			err = a.Put(key, value(key, n))
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			panic(err)
		}
	}
}

// TestKill kills writers wherever they are, and finds every value whole, and
// room for the next writer.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir).Area("area", wide)
	for n := range 40 {
		cmd := other(t, "write", dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(10+n*3) * time.Millisecond) // any moment will do
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		entries, err := a.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			data, err := a.Get(e.Key)
			if err != nil || e.Damaged || !whole(e.Key, data) {
				t.Fatalf("after kill %d, %s is %.60q… of %d bytes (%v)", n, e.Key, data, len(data), err)
			}
		}
	}
	if err := a.Put("k0", value("k0", 1)); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "area", ".new-*")); len(left) > 0 {
		t.Errorf("the dead have left %q", left)
	}
}

func countTo(dir string, n int) {
	s, err := store.Open(dir)
	if err != nil {
		panic(err)
	}
	a := s.Area("area", wide)
	for range n {
		if err := a.Update("count", increment); err != nil {
			panic(err)
		}
	}
}

func increment(old []byte) ([]byte, error) {
	n, _ := strconv.Atoi(string(old))
	return []byte(strconv.Itoa(n + 1)), nil
}

// TestTwoWriters has two processes, and goroutines in a third, count together.
func TestTwoWriters(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir).Area("area", wide)
	done := make(chan error)
	for range 2 {
		cmd := other(t, "count", dir)
		go func() { done <- cmd.Run() }()
		go func() {
			for range 50 {
				if err := a.Update("count", increment); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	wantGet(t, a, "count", "500")
}
