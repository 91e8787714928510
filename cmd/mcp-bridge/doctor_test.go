package main_test

import (
	"encoding/json"
	"testing"
)

// TestDoctor has it look at this machine, and at machines that lack something.
func TestDoctor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		setup setup
		code  int
		says  []string
	}{
		{"podman", setup{}, exitOK, []string{"podman\n", "✓ kernel", "✓ clock", "✓ cell", "Python 3."}},
		{"whatever works", auto(), exitOK, []string{"podman\n", "ran on podman"}},
		{
			"no engine", auto("PATH="+helperDir(t), "DOCKER_HOST=unix:///nonexistent/docker.sock"), exitOK,
			[]string{"podman\n  ✗ ", "docker\n  ✗ ", "gvisor\n  ✓ ", "ran on gvisor"},
		},
		{"no podman", setup{env: []string{"PATH=" + t.TempDir()}}, exitNoEngine, []string{"✗", "not installed", "mend: ", "apt-get install podman"}},
		{"no image", setup{args: []string{"--image", "localhost/e2e-none:1"}}, exitNoEngine, []string{"✗ cell", "image missing", "mcp-bridge image build"}},
		{"no limits wanted", setup{args: []string{"--allow-unlimited"}}, exitOK, []string{"! allow-unlimited"}},
		{"unknown engine", setup{args: []string{"--runtime", "dokcer"}}, exitUsage, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.setup.env = append(test.setup.env, "LC_ALL=C.UTF-8")
			got := shell(t, &test.setup, "doctor")
			if got.code != test.code {
				t.Errorf("exit code %d, want %d\n%s%s", got.code, test.code, got.stdout, got.stderr)
			}
			contains(t, got.stdout, test.says...)
			lacks(t, got.stdout, "\x1b")
			if test.code != exitUsage {
				lacks(t, got.stderr, "error: ") // the findings have said it
			}
		})
	}
}

// TestDoctorJSON reads the diagnosis as a program does.
func TestDoctorJSON(t *testing.T) {
	t.Parallel()
	got := shell(t, &setup{}, "doctor", "--json")
	var d struct {
		Version string
		Works   bool
		Engines []struct {
			Name     string
			Findings []struct{ Name, Level, Detail, Fix string }
		}
		Host []struct{ Name, Level string }
		Cell struct {
			Name, Level, Detail, Engine string
			Millis                      float64 `json:"duration_ms"`
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil {
		t.Fatalf("%v\n%s", err, got.stdout)
	}
	if got.code != exitOK || !d.Works || len(d.Engines) != 1 || d.Engines[0].Name != "podman" || len(d.Engines[0].Findings) == 0 {
		t.Errorf("exit code %d, %+v", got.code, d)
	}
	if d.Cell.Level != "ok" || d.Cell.Engine != "podman" || d.Cell.Millis <= 0 || len(d.Host) < 5 {
		t.Errorf("%+v", d)
	}
}
