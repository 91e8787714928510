package sandboximage_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sandboximage "github.com/mcp-bridge/mcp-bridge/sandbox-image"
)

// What is embedded is what is there, and nothing else.
func TestFiles(t *testing.T) {
	sources, err := filepath.Glob("mcpbridge/*.py")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	var embedded []string
	err = fs.WalkDir(sandboximage.Files(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		embedded = append(embedded, filepath.FromSlash(path))
		got, err := fs.ReadFile(sandboximage.Files(), path)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from the source", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(embedded)
	slices.Sort(sources)
	if !slices.Equal(embedded, sources) {
		t.Errorf("embedded are %v, the sources are %v", embedded, sources)
	}
	if !slices.Contains(embedded, filepath.Join("mcpbridge", "__init__.py")) {
		t.Error("__init__.py is missing")
	}
}

func TestCommand(t *testing.T) {
	argv, err := sandboximage.Command("/files dir", sandboximage.Settings{DataLimit: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	if len(argv) != 6 || !slices.Equal(argv[:3], []string{"python3", "-I", "-c"}) || argv[4] != "/files dir" {
		t.Errorf("argv is %q", argv)
	}
	var settings map[string]int64
	if err := json.Unmarshal([]byte(argv[5]), &settings); err != nil || settings["data_limit"] != 1<<40 {
		t.Errorf("settings are %s", argv[5])
	}
}

// The boot code runs the embedded kernel, and tells an old Python what it lacks.
func TestBoot(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, sandboximage.Files()); err != nil {
		t.Fatal(err)
	}
	argv, err := sandboximage.Command(dir, sandboximage.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	argv[1] = "-IB"
	argv = append(argv, "socket:"+filepath.Join(dir, "no-socket"))
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "mcpbridge") || !strings.Contains(string(out), "No such file") {
		t.Errorf("without a socket it ended with %v: %s", err, out)
	}
	argv[3] = "import sys; sys.version_info = (3, 9, 1)\n" + argv[3]
	out, err = exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "mcp-bridge needs Python 3.10 or newer in the image; this is 3.") {
		t.Errorf("with Python 3.9 it ended with %v: %s", err, out)
	}
}

// Over stdio the kernel comes in on stdin, and nothing is read from files. Its
// report and its hello are the first that it says.
func TestBootFromStdin(t *testing.T) {
	var files bytes.Buffer
	archive := zip.NewWriter(&files)
	if err := archive.AddFS(sandboximage.Files()); err != nil {
		t.Fatal(err)
	}
	archive.Close()
	argv, err := sandboximage.Command("/nowhere", sandboximage.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], append(argv[1:], "stdio")...)
	cmd.Stdin = io.MultiReader(bytes.NewReader(binary.BigEndian.AppendUint32(nil, uint32(files.Len()))), &files)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output() // stdin ends, and so does the kernel
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("ended with %v: %s", err, stderr.String())
	}
	if len(out) < 5 || out[0] != 0x01 || !bytes.Contains(out, []byte(`"uid_map"`)) || !bytes.Contains(out, []byte(`"method":"hello"`)) {
		t.Errorf("it said %.200q", out)
	}
}

func TestSeccompIsJSON(t *testing.T) {
	if !json.Valid(sandboximage.Seccomp()) {
		t.Error("the seccomp profile is not JSON")
	}
}
