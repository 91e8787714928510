//go:build unix

package discovery

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTrust(t *testing.T) {
	groups := filepath.Join(t.TempDir(), "group")
	if err := os.WriteFile(groups, []byte("root:x:0:\nann:x:1000:\nbob:x:1001:eve\nstaff:x:50:ann\ncarl:x:1002:carl\nodd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		self, uid, gid int
		mode           fs.FileMode
		says           string // "" if it is trusted
	}{
		"own":                           {1000, 1000, 1000, 0o600, ""},
		"readable by all":               {1000, 1000, 50, 0o755, ""},
		"root's":                        {1000, 0, 0, 0o644, ""},
		"somebody else's":               {1000, 1001, 1001, 0o600, "run `sudo chown 1000 /x`"},
		"somebody else's, to root":      {0, 1000, 1000, 0o600, "run `chown 0 /x`"},
		"writable by all":               {1000, 1000, 1000, 0o602, "run `chmod go-w /x`"},
		"writable by all and group":     {1000, 1000, 1000, 0o666, "run `chmod go-w /x`"},
		"sticky":                        {1000, 1000, 1000, 0o777 | fs.ModeSticky, "run `chmod go-w /x`"},
		"root's, writable by all":       {1000, 0, 0, 0o777, "run `chmod go-w /x`"},
		"group of one's own":            {1000, 1000, 1000, 0o664, ""},
		"group of one's own, is member": {1002, 1002, 1002, 0o775, ""},
		"own group with a guest":        {1001, 1001, 1001, 0o664, "run `chmod go-w /x`"},
		"group of many":                 {1000, 1000, 50, 0o664, "run `chmod go-w /x`"},
		"root's group":                  {1000, 0, 0, 0o664, "run `chmod go-w /x`"},
		"group that is not listed":      {1003, 1003, 1003, 0o664, "run `chmod go-w /x`"},
	} {
		t.Run(name, func(t *testing.T) {
			err := trust{test.self, groups}.require("/x", test.mode, test.uid, test.gid)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want it to say %q", err, test.says)
			}
		})
	}
	if (trust{1000, "/does/not/exist"}).private(1000) {
		t.Error("a group is private though nobody knows its members")
	}
}

func TestQuote(t *testing.T) {
	for path, want := range map[string]string{
		"/home/ann/MCPs/a_b-1.json": "/home/ann/MCPs/a_b-1.json",
		"/my files/x":               "'/my files/x'",
		"/it's":                     `'/it'\''s'`,
		"/$(id)":                    "'/$(id)'",
		"/~":                        "'/~'",
		"":                          "''",
	} {
		if got := quote(path); got != want {
			t.Errorf("%q is quoted as %s, want %s", path, got, want)
		}
	}
	if got := quote("/x\x1b]0;y\x07\n/z"); strings.ContainsAny(got, "\x1b\x07\n") {
		t.Errorf("control characters are left in %q", got)
	}
}
