package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	mcpbridge "github.com/mcp-bridge/mcp-bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestImageFiles has in the program every file that the Dockerfile copies, as it
// is in the repository.
func TestImageFiles(t *testing.T) {
	opts, err := recipe{target: "data", base: "other"}.options()
	if err != nil || opts.Args["BASE"] != "other" || opts.Name != "localhost/mcp-bridge-sandbox-data:latest" {
		t.Fatalf("%+v, %v", opts, err)
	}
	copied := regexp.MustCompile(`(?m)^COPY (sandbox-image\S+) `).FindAllStringSubmatch(opts.Dockerfile, -1)
	if len(copied) != 2 {
		t.Fatalf("the Dockerfile copies %v", copied)
	}
	needed := []string{"sandbox-image/build/trim.sh", "sandbox-image/build/data.sh", "sandbox-image/build/requirements/data-3.14.txt"}
	for _, m := range copied {
		needed = append(needed, m[1])
	}
	for _, name := range needed {
		if _, err := fs.Stat(opts.Context, name); err != nil {
			t.Error(err)
		}
	}
	err = fs.WalkDir(mcpbridge.Image(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		carried, err := fs.ReadFile(mcpbridge.Image(), name)
		if err != nil {
			return err
		}
		if original, err := os.ReadFile(filepath.Join("../../../..", name)); err != nil || !bytes.Equal(original, carried) {
			t.Errorf("%s is not as in the repository (%v)", name, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRecipe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "Dockerfile")
	if err := os.WriteFile(file, []byte("FROM scratch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := recipe{target: "x", file: file, context: dir, name: "localhost/mine"}.options()
	if err != nil || opts.Dockerfile != "FROM scratch\n" || opts.Name != "localhost/mine" || opts.Target != "x" {
		t.Errorf("%+v, %v", opts, err)
	}
	if _, err := fs.Stat(opts.Context, "Dockerfile"); err != nil {
		t.Error(err)
	}
	for _, bad := range []recipe{{file: dir + "/none"}, {target: "data", context: dir + "/none"}, {target: "data", context: file}, {target: "dat"}} {
		if _, err := bad.options(); exitCode(t.Context(), err) != exitUsage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestDescribeImage(t *testing.T) {
	took := 250 * time.Millisecond
	for _, test := range []struct {
		name   string
		trial  trial
		wanted []string
		want   string // level and name of each finding
		says   string
	}{
		{"plain", trial{text: `{"python": "3.12.1", "modules": {"numpy": null}}`, took: took}, nil, "ok image ok python warn data", "0.25 s"},
		{"data", trial{text: `{"python": "3.14.0", "modules": {"matplotlib": "1", "numpy": "2", "openpyxl": "3", "pandas": "4", "PIL": "5", "scipy": ""}}`}, []string{"numpy"}, "ok image ok python ok data ok numpy", "PIL 5, scipy"},
		{"missing", trial{text: `{"python": "3.14.0", "modules": {}}`}, []string{"numpy", "foo"}, "ok image ok python warn data fail numpy fail foo", "--target data"},
		{"no kernel", trial{err: fmt.Errorf("%w: 3.9", runtime.ErrNoProgram)}, nil, "fail image", "3.9"},
		{"lies", trial{text: `{"python": 5}`}, nil, "fail image", "does not answer"},
		{"babble", trial{text: "hello"}, nil, "fail image", "does not answer"},
	} {
		found := describeImage("x", test.trial, test.wanted)
		var levels []string
		for _, f := range found {
			levels = append(levels, string(f.Level)+" "+f.Name)
		}
		if got := strings.Join(levels, " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		if !strings.Contains(fmt.Sprint(found), test.says) {
			t.Errorf("%s: %v does not say %q", test.name, found, test.says)
		}
	}
}

func TestWriteImages(t *testing.T) {
	var out, err bytes.Buffer
	r := newRoot(IO{Out: &out, Err: &err})
	now := time.Unix(1e9, 0)
	images := []listedImage{
		{Engine: "podman", Names: []string{"localhost/a:1", "localhost/a:2"}, Bytes: 79 << 20, Created: now.Add(-90 * time.Minute), Python: "3.14.8", Used: true},
		{Engine: "docker", Names: []string{"odd\nname"}, Bytes: 5, Created: now.Add(-96 * time.Hour)},
	}
	if err := r.writeImages(images, now); err != nil {
		t.Fatal(err)
	}
	const want = `ENGINE  IMAGE                         SIZE    AGE   PYTHON  USED
podman  localhost/a:1, localhost/a:2  79 MiB  1 h   3.14.8  yes
docker  odd name                      5 B     4 d   ?
`
	if got := out.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") || strings.Count(got, "\n") != 3 {
		t.Errorf("got\n%s", got)
	}
	if got := age(now, time.Time{}); got != "?" {
		t.Errorf("no age is %q", got)
	}
	for d, want := range map[time.Duration]string{0: "now", -time.Hour: "now", 5 * time.Minute: "5 min", 47 * time.Hour: "47 h", 480 * time.Hour: "20 d"} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("age(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestSameImage(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"localhost/a:latest", "localhost/a", true},
		{"docker.io/library/python:3.14", "python:3.14", true},
		{"localhost/a:1", "localhost/a", false},
		{"localhost/a", "this machine's Python", false},
		{"<none>", "<none>", true},
	} {
		if got := sameImage(test.a, test.b); got != test.same {
			t.Errorf("sameImage(%q, %q) = %v", test.a, test.b, got)
		}
	}
}
