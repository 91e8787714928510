package runtimetest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// testMounts shows folders of the host, with everything in them that could be a
// way out or in.
func testMounts(t *testing.T, s *suite) {
	dir := sharedDir(t)
	write := func(name, content string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("data/plain.txt", "shown", 0o644)
	write("data/deep/er/plain.txt", "deep", 0o644)
	write("data/private.txt", "private", 0o600)
	write("data/run.sh", "#!/bin/sh\necho ran\n", 0o755)
	write("beside/secret.txt", "secret", 0o644)
	write("other/plain.txt", "other", 0o644)
	for name, target := range map[string]string{
		"absolute": "/etc/hostname", "outside": filepath.Join(dir, "beside/secret.txt"), "relative": "../beside/secret.txt",
		"up": "../../../../../..", "inner": "plain.txt", "process": "/proc/1/root/etc/passwd",
	} {
		if err := os.Symlink(target, filepath.Join(dir, "data", name)); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "data", "socket"))
	if err == nil {
		err = os.Chmod(filepath.Join(dir, "data", "socket"), 0o777)
		t.Cleanup(func() { listener.Close() })
	}
	if err != nil {
		t.Fatal(err)
	}
	spec := s.spec()
	spec.Binds = []runtime.Bind{{Source: filepath.Join(dir, "data"), Target: "/mnt/data"}, {Source: filepath.Join(dir, "other"), Target: "/mnt/other-1"}}
	p := s.start(t, spec)
	read := func(path string) string {
		t.Helper()
		return p.text(t, fmt.Sprintf("import errno\ntry: result = open(%q).read()\nexcept OSError as e: result = errno.errorcode[e.errno]", path))
	}
	for path, want := range map[string]string{
		"/mnt/data/plain.txt": "shown", "/mnt/data/deep/er/plain.txt": "deep", "/mnt/data/inner": "shown", "/mnt/other-1/plain.txt": "other",
		"/mnt/data/private.txt": "EACCES",                                 // of another user
		"/mnt/data/outside":     "ENOENT", "/mnt/data/relative": "ENOENT", // they lead nowhere, for inside is nothing else of the host
	} {
		if got := read(path); got != want {
			t.Errorf("%s reads %q, want %q", path, got, want)
		}
	}
	if inside, outside := read("/mnt/data/absolute"), read("/etc/hostname"); inside != outside {
		t.Errorf("an absolute link shows %q, the sandbox's own file is %q", inside, outside)
	}
	if got, want := p.list(t, `import os; result = os.listdir("/mnt/data/up")`), p.list(t, `result = os.listdir("/")`); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("a link up shows %v, the root has %v", got, want)
	}
	// What is changed on the host shows, in the next sandbox at the latest;
	// nothing can be changed from inside.
	write("data/later.txt", "later", 0o644)
	write("other/plain.txt", "changed", 0o644)
	want := map[string]string{"/mnt/data/later.txt": "later", "/mnt/other-1/plain.txt": "changed"}
	if s.Snapshots {
		want = map[string]string{"/mnt/data/later.txt": "ENOENT", "/mnt/other-1/plain.txt": "other"}
		next := s.start(t, spec)
		if got := next.text(t, `result = open("/mnt/data/later.txt").read() + open("/mnt/other-1/plain.txt").read()`); got != "laterchanged" {
			t.Errorf("later files read %q in the next sandbox", got)
		}
		if got := next.text(t, `result = attempt(open, "/mnt/data/socket")`); got == "ok" {
			t.Error("a socket can be opened")
		}
	}
	for path, want := range want {
		if got := read(path); got != want {
			t.Errorf("%s reads %q after a change, want %q", path, got, want)
		}
	}
	for _, code := range []string{
		`open, "/mnt/data/new", "w"`, `open, "/mnt/data/plain.txt", "a"`, `os.unlink, "/mnt/data/plain.txt"`, `os.mkdir, "/mnt/data/d"`,
		`os.rename, "/mnt/data/plain.txt", "/mnt/data/x"`, `os.symlink, "/x", "/mnt/data/x"`, `os.chmod, "/mnt/data/plain.txt", 0o777`,
		`os.utime, "/mnt/data/plain.txt"`, `os.mknod, "/mnt/data/n"`, `os.link, "/mnt/data/plain.txt", "/mnt/data/x"`, `open, "/mnt/new", "w"`,
	} {
		if got := p.text(t, "import os; result = attempt("+code+")"); got == "ok" {
			t.Errorf("%s is permitted", code)
		}
	}
	if got := p.text(t, `import subprocess; result = attempt(subprocess.run, ["/mnt/data/run.sh"])`); got != "EACCES" {
		t.Errorf("a program in the folder: %s, want EACCES", got)
	}
	if got := p.text(t, `import socket; result = attempt(socket.socket(socket.AF_UNIX).connect, "/mnt/data/socket")`); got == "ok" {
		t.Logf("a socket in the folder can be connected to, as on the host by everybody")
	}
	for _, name := range []string{"new", "x", "d", "n"} {
		if _, err := os.Lstat(filepath.Join(dir, "data", name)); err == nil {
			t.Errorf("%s was made on the host", name)
		}
	}
	if os.Geteuid() == 0 { // nobody else can mount anything for it to look at
		t.Run("Submounts", func(t *testing.T) { testSubmounts(t, s, dir) })
	}
	for name, bind := range map[string]runtime.Bind{
		"missing": {Source: filepath.Join(dir, "missing"), Target: "/mnt/data"}, "relative": {Source: "data", Target: "/mnt/data"},
		"elsewhere": {Source: dir, Target: "/etc"}, "deep": {Source: dir, Target: "/mnt/a/b"}, "up": {Source: dir, Target: "/mnt/.."}, "all": {Source: dir, Target: "/mnt"},
		"options": {Source: dir, Target: "/mnt/data:rw"}, "comma": {Source: dir, Target: "/mnt/a,b"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := s.spec()
			spec.Binds = []runtime.Bind{bind}
			t.Log(s.fail(t, spec))
			if _, err := os.Lstat(filepath.Join(dir, "missing")); err == nil {
				t.Error("a folder was made on the host")
			}
		})
	}
}

// testSubmounts mounts something below a folder: it is not shown. In a user
// namespace the kernel refuses to show the folder without it.
func testSubmounts(t *testing.T, s *suite, dir string) {
	point := filepath.Join(dir, "other", "mounted")
	if err := os.Mkdir(point, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", point, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mount something to look at: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(point, syscall.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(point, "x"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec := s.spec()
	spec.Binds = []runtime.Bind{{Source: filepath.Join(dir, "other"), Target: "/mnt/other"}}
	sandbox, err := s.engine.Start(t.Context(), spec)
	if err != nil {
		t.Log(err)
		return
	}
	defer sandbox.Close()
	if got := NewPeer(sandbox).list(t, `import os; result = os.listdir("/mnt/other/mounted")`); len(got) > 0 {
		t.Errorf("what is mounted below the folder is shown: %v", got)
	}
}

// sharedDir is a folder that everybody can enter.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcpb-binds")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
