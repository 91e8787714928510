package main_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sandboxImage is the default one.
const sandboxImage = "localhost/mcp-bridge-sandbox:latest"

// TestNoEngine has the engine or its image missing in each way. The model and the
// operator are told, with the command that helps, and MCP goes on.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	noPython := importImage(t, "e2e-no-python", map[string]string{"etc/hostname": "sandbox\n"})
	notPython := importImage(t, "e2e-not-python", map[string]string{"usr/bin/python3": "this is no program\n"})
	noPodman := t.TempDir()
	for _, test := range []struct {
		name   string
		setup  setup
		told   []string
		hinted string
	}{
		{"no podman", setup{env: []string{"PATH=" + noPodman}}, []string{"unavailable"}, "apt-get install podman"},
		{"podman that fails", setup{env: []string{"PATH=" + failingPodman(t)}}, []string{"unavailable"}, "podman info"},
		{"no service", setup{env: []string{"CONTAINER_HOST=unix:///nonexistent/podman.sock"}}, []string{"unavailable"}, "CONTAINER_HOST"},
		{"remote service", setup{env: []string{"CONTAINER_HOST=ssh://nobody@localhost/podman.sock"}}, []string{"unavailable"}, "CONTAINER_HOST"},
		{"no image", setup{args: []string{"--image", "localhost/e2e-none:1"}}, []string{"image missing"}, "mcp-bridge image build"},
		{"image without Python", setup{args: []string{"--image", noPython}}, []string{"program cannot run"}, "Python 3.10"},
		{"image with a broken Python", setup{args: []string{"--image", notPython}}, []string{"cannot"}, "Python 3.10"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, test.setup)
			for range 2 { // it does not get stuck
				text := c.fails(t, "print('success')")
				contains(t, text, append(test.told, test.hinted)...)
				lacks(t, text, "success")
			}
			contains(t, c.stderr.String(), test.hinted)
			if list, err := c.ListTools(t.Context(), nil); err != nil || len(list.Tools) != 1 {
				t.Errorf("MCP does not answer any more: %v, %v", list, err)
			}

			got := shell(t, &test.setup, "exec", "-c", "print('success')")
			if got.code != 3 || got.stdout != "" {
				t.Errorf("exec: exit code %d and stdout %q, want 3 and nothing", got.code, got.stdout)
			}
			contains(t, got.stderr, "mcp-bridge: error: ", "mcp-bridge: hint: ", test.hinted)
		})
	}
}

// TestEngineComesBack starts without an image and gets one later.
func TestEngineComesBack(t *testing.T) {
	t.Parallel()
	const image = "localhost/e2e-later:1"
	c := connect(t, setup{args: []string{"--image", image}})
	c.fails(t, "1")
	podman(t, nil, "tag", sandboxImage, image)
	t.Cleanup(func() { podman(t, nil, "untag", sandboxImage, image) })
	c.wants(t, "1 + 1", "2")
}

// TestServiceIsKilled takes the engine's service away between two calls.
func TestServiceIsKilled(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	c.run(t, "kept = 'kept'")
	killed := 0
	for _, p := range descendants(c.cmd.Process.Pid) {
		args, _ := os.ReadFile(filepath.Join("/proc", itoa(p.pid), "cmdline"))
		if strings.Contains(string(args), "service") && p.alive() {
			service, err := os.FindProcess(p.pid)
			if err != nil {
				t.Fatal(err)
			}
			if err := service.Kill(); err != nil {
				t.Fatal(err)
			}
			killed++
		}
	}
	if killed != 1 {
		t.Fatalf("killed %d services, want 1", killed)
	}
	c.wants(t, "kept", "'kept'")
	eventually(t, patience, "a new session starts, on a new service", func() bool {
		r := c.call(t, arguments{"code": "1 + 1", "session": "new"})
		if !r.isError && r.text != "2" || r.isError && !strings.Contains(r.text, "try again") {
			t.Fatalf("error %v: %s", r.isError, r.text)
		}
		return !r.isError // the death of the service may not have been noticed yet
	})
}

// importImage makes an image of some files and removes it with the test.
func importImage(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for file, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	image := "localhost/" + name + ":" + itoa(os.Getpid())
	podman(t, archive.Bytes(), "import", "--quiet", "-", image)
	t.Cleanup(func() { podman(t, nil, "rmi", "--force", image) })
	return image
}

func podman(t *testing.T, stdin []byte, args ...string) {
	t.Helper()
	cmd := exec.Command("podman", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("podman %v: %v\n%s", args, err, out)
	}
}

// failingPodman returns a PATH with a podman that does not work.
func failingPodman(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho 'Error: storage is broken' >&2\nexit 125\n"
	if err := os.WriteFile(filepath.Join(dir, "podman"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A run is what a command left.
type run struct {
	stdout, stderr string
	code           int
}

// shell runs a command to its end.
func shell(t *testing.T, s *setup, args ...string) run {
	t.Helper()
	return shellWith(t, s, "", args...)
}

// shellWith is shell with something on stdin.
func shellWith(t *testing.T, s *setup, stdin string, args ...string) run {
	t.Helper()
	return finish(t, s.command(t, args...), stdin)
}

func finish(t *testing.T, cmd *exec.Cmd, stdin string) run {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bridges.add(cmd.Process.Pid)
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("%v: %v", cmd.Args, err)
	} else if ok && !exit.Exited() {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return run{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}
