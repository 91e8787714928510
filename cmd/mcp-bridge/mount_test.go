package main_test

import (
	"errors"
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

// TestMount shows folders of the host on every engine, and lets nobody change them.
func TestMount(t *testing.T) {
	t.Parallel()
	for _, engine := range attackedEngines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			testMount(t, engine, engine == "gvisor")
		})
	}
}

// testMount is of an engine that shows folders as they are, or as they were when
// the sandbox started.
func testMount(t *testing.T, engine string, snapshot bool) {
	data, named := sharedFolder(t, "my data"), sharedFolder(t, "x")
	if err := os.WriteFile(filepath.Join(data, "private"), []byte("p"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := setup{args: []string{"--mount=" + data + ":ro", "--mount", named + "=/mnt/other:ro", "--warm=0"}}
	c := connectOn(t, engine, &s)
	if got := c.InitializeResult().Instructions; !strings.Contains(got, "/mnt/my_data, /mnt/other, read-only") || strings.Contains(got, data) {
		t.Errorf("instructions: %s", got)
	}
	c.wants(t, "open('/mnt/my_data/in.csv').read(), open('/mnt/other/in.csv').read()", `('a,b\n1,2\n', 'a,b\n1,2\n')`)
	c.wants(t, "open('/mnt/my_data/link').read() == open('/etc/passwd').read()", "True") // its own
	contains(t, c.fails(t, "open('/mnt/my_data/new', 'w')"), "Read-only file system")
	if err := os.WriteFile(filepath.Join(data, "later"), []byte("later"), 0o644); err != nil {
		t.Fatal(err)
	}
	if snapshot {
		contains(t, c.fails(t, "open('/mnt/my_data/later')"), "No such file")
	}
	contains(t, c.runIn(t, "next", "open('/mnt/my_data/later').read()"), "'later'")
	if snapshot {
		contains(t, c.run(t, "session.reset()"), "[the session was reset")
	}
	c.wants(t, "open('/mnt/my_data/later').read()", "'later'")
	contains(t, c.fails(t, "open('/mnt/my_data/private')"), "Permission denied")
	// By variable and by file, too.
	if engine == rootlessPodman {
		return
	}
	byEnv := setup{args: []string{"--runtime=" + engine}, env: append(engineEnv(t), "MCP_BRIDGE_MOUNT="+named+","+data+"=/mnt/d")}
	if r := shell(t, &byEnv, "exec", "-c", "import os; sorted(os.listdir('/mnt'))"); r.stdout != "['d', 'x']\n" || snapshot != strings.Contains(r.stderr, "is a snapshot") {
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

// TestMountTooLarge is a folder that an engine cannot copy.
func TestMountTooLarge(t *testing.T) {
	t.Parallel()
	data := sharedFolder(t, "data")
	sparse := filepath.Join(data, "sparse")
	if err := errors.Join(os.WriteFile(sparse, nil, 0o644), os.Truncate(sparse, 1<<40)); err != nil {
		t.Fatal(err)
	}
	s := setup{args: []string{"--runtime=gvisor"}, env: engineEnv(t)}
	r := shell(t, &s, "exec", "--mount="+data, "-c", "1")
	if r.code == exitOK || !strings.Contains(r.stderr, "too large for a snapshot: it has more than 1024 MiB") || !strings.Contains(r.stderr, "hint: mount a smaller folder") {
		t.Errorf("gVisor: %+v", r)
	}
}
