package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sharedFolder is a folder that everybody can enter, with a file and a link in it.
func sharedFolder(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcp-bridge-mount-") // the go command's own folders are for one user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	folder := filepath.Join(dir, name)
	for _, d := range []string{dir, folder} {
		if err := os.Mkdir(d, 0o755); err != nil && d == folder {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"in.csv": "a,b\n1,2\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestMount shows folders of the host, and lets nobody change them.
func TestMount(t *testing.T) {
	t.Parallel()
	data, named := sharedFolder(t, "my data"), sharedFolder(t, "x")
	s := setup{args: []string{"--mount=" + data + ":ro", "--mount", named + "=/mnt/other:ro", "--warm=0"}}
	c := connect(t, s)
	if got := c.InitializeResult().Instructions; !strings.Contains(got, "/mnt/my_data, /mnt/other, read-only") || strings.Contains(got, data) {
		t.Errorf("instructions: %s", got)
	}
	c.wants(t, "open('/mnt/my_data/in.csv').read(), open('/mnt/other/in.csv').read()", `('a,b\n1,2\n', 'a,b\n1,2\n')`)
	c.wants(t, "open('/mnt/my_data/link').read() == open('/etc/passwd').read()", "True") // its own
	contains(t, c.fails(t, "open('/mnt/my_data/new', 'w')"), "Read-only file system")
	if err := os.WriteFile(filepath.Join(data, "later"), []byte("later"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.wants(t, "open('/mnt/my_data/later').read()", "'later'")
	if err := os.WriteFile(filepath.Join(data, "private"), []byte("p"), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, c.fails(t, "open('/mnt/my_data/private')"), "Permission denied")
	// By variable and by file, too.
	byEnv := setup{env: []string{"MCP_BRIDGE_MOUNT=" + named + "," + data + "=/mnt/d"}}
	if r := shell(t, &byEnv, "exec", "-c", "import os; sorted(os.listdir('/mnt'))"); r.stdout != "['d', 'x']\n" {
		t.Errorf("by variable: %+v", r)
	}
}

// TestMountRefused are folders that no cell should see.
func TestMountRefused(t *testing.T) {
	t.Parallel()
	home, data := t.TempDir(), sharedFolder(t, "data")
	for _, d := range []string{".ssh", "MCPs", ".config/mcp-bridge", "work/state", "work/fine"} {
		if err := os.MkdirAll(filepath.Join(home, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(home, "work", "link")
	if err := os.Symlink(filepath.Join(home, ".ssh"), link); err != nil {
		t.Fatal(err)
	}
	for mount, want := range map[string]string{
		data + ":rw":                      "read-only, for a cell may do anything with what it can write to",
		data + "/missing":                 "no such file",
		data + "/in.csv":                  "it is not a folder",
		"/":                               "cells must not see",
		"/proc/1":                         "cells must not see",
		"/etc":                            "cells must not see",
		"/etc/ssl:ro":                     "cells must not see",
		home:                              "it holds",
		filepath.Dir(home):                "it holds",
		"~":                               "it holds",
		"~/.ssh":                          "cells must not see",
		link:                              "cells must not see",
		"~/MCPs:ro":                       "cells must not see",
		"~/.config/mcp-bridge":            "cells must not see",
		filepath.Join(home, "work"):       "it holds what mcp-bridge keeps",
		filepath.Join(home, "work/state"): "it holds what mcp-bridge keeps",
		data + "=/etc":                    "is no place for it",
		data + "=/mnt/a/b":                "is no place for it",
		data + "=/mnt/..":                 "is no place for it",
		data + ":/mnt/x":                  "write " + data + "=/mnt/x",
		data + "," + data:                 "there already",
		":ro":                             "no folder",
	} {
		s := setup{state: filepath.Join(home, "work/state"), env: []string{"HOME=" + home, "XDG_CONFIG_HOME=", "MCP_BRIDGE_IMAGE=" + sandboxImage}}
		if r := shell(t, &s, "exec", "--mount="+mount, "-c", "1"); r.code != exitUsage || !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, "panic") {
			t.Errorf("--mount=%s: want %q, got %+v", mount, want, r)
		}
	}
	if r := shell(t, &setup{}, "exec", "--mount=/", "-c", "1"); !strings.Contains(r.stderr, "--mount \"/\"") {
		t.Errorf("the root: %+v", r)
	}
	s := setup{env: []string{"MCP_BRIDGE_MOUNT=" + data + ":rw"}}
	if r := shell(t, &s, "exec", "-c", "1"); r.code != exitConfig || !strings.Contains(r.stderr, "MCP_BRIDGE_MOUNT") {
		t.Errorf("by variable: %+v", r)
	}
	if err := os.Chmod(data, 0o700); err != nil {
		t.Fatal(err)
	}
	s = setup{}
	if r := shell(t, &s, "exec", "--mount="+data, "-c", "import os\ntry: os.listdir('/mnt/data')\nexcept OSError as e: print(e.strerror)"); r.stdout != "Permission denied\n" || !strings.Contains(r.stderr, "chmod o+rx") {
		t.Errorf("a folder for its owner only: %+v", r)
	}
}

// TestMountElsewhere is of engines that cannot show folders.
func TestMountElsewhere(t *testing.T) {
	t.Parallel()
	data := sharedFolder(t, "data")
	s := setup{args: []string{"--mount=" + data, "--runtime=gvisor"}}
	r := shell(t, &s, "exec", "-c", "1")
	if r.code == exitOK || !strings.Contains(r.stderr, "folders of the host cannot be mounted") || !strings.Contains(r.stderr, "hint: use --runtime podman or docker") {
		t.Errorf("gVisor: %+v", r)
	}
}
