package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A patient is an engine that can be diagnosed.
type patient struct {
	runtime.Engine

	name     string
	findings []runtime.Finding
	err      error // of Check
	hangs    bool
}

func (p *patient) Name() string                        { return p.name }
func (p *patient) Check(context.Context, string) error { return p.err }

func (p *patient) Diagnose(ctx context.Context, _ string) []runtime.Finding {
	if p.hangs {
		<-ctx.Done()
	}
	return p.findings
}

// undiagnosed hides that an engine can be.
type undiagnosed struct{ runtime.Engine }

func TestDiagnoseEngines(t *testing.T) {
	broken := &runtime.Error{Engine: "docker", Op: "check", Err: fmt.Errorf("%w: no socket", runtime.ErrUnavailable), Hint: "systemctl start docker"}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	got := diagnoseEngines(ctx, []runtime.Engine{
		&patient{name: "podman", findings: []runtime.Finding{{Name: "version", Level: runtime.LevelOK, Detail: "5.4"}}},
		undiagnosed{&patient{name: "docker", err: broken}},
		undiagnosed{&patient{name: "gvisor"}},
		&patient{name: "late", hangs: true, err: errors.New("no answer")},
	}, "")
	want := []engineDiagnosis{
		{"podman", []runtime.Finding{{Name: "version", Level: "ok", Detail: "5.4"}}},
		{"docker", []runtime.Finding{{Name: "check", Level: "fail", Detail: "docker: check: container engine unavailable: no socket", Fix: "systemctl start docker"}}},
		{"gvisor", []runtime.Finding{{Name: "check", Level: "ok", Detail: "can start sandboxes"}}},
		{"late", []runtime.Finding{{Name: "check", Level: "fail", Detail: "no answer"}}},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// ill is a diagnosis with a finding of each level.
func ill() *diagnosis {
	return &diagnosis{
		Version: "1.2.3",
		Engines: []engineDiagnosis{{"podman", []runtime.Finding{
			{Name: "version", Level: runtime.LevelOK, Detail: "5.4", Fix: "nothing to mend"},
			{Name: "cgroup limits", Level: runtime.LevelWarn, Detail: "pids only\x1b[2J", Fix: "systemctl\nedit user@"},
			{Name: "image", Level: runtime.LevelFail, Detail: "missing", Fix: "make image"},
		}}},
		Host:    []runtime.Finding{{Name: "kernel", Level: runtime.LevelOK, Detail: "Linux"}},
		Servers: []runtime.Finding{{Name: "definitions", Level: runtime.LevelOK, Detail: "2 servers"}},
		Cell:    describeTrial(trial{err: &runtime.Error{Engine: "podman", Op: "start", Err: runtime.ErrImageMissing, Hint: "make image"}, took: 1500 * time.Microsecond}, ""),
	}
}

func TestPrintDiagnosis(t *testing.T) {
	const text = `podman
  ✓ version        5.4
  ! cgroup limits  pids only�[2J
                   mend: systemctl edit user@
  ✗ image          missing
                   mend: make image
this machine
  ✓ kernel  Linux
servers
  ✓ definitions  2 servers
a real cell
  ✗ cell  podman: start: image missing
          mend: make image
`
	coloured := strings.NewReplacer("✓", "\x1b[32m✓\x1b[0m", "!", "\x1b[33m!\x1b[0m", "✗", "\x1b[31m✗\x1b[0m")
	ascii := strings.NewReplacer("✓", "+", "✗", "x")
	for _, test := range []struct {
		name, locale, noColour string
		terminal               bool
		want                   string
	}{
		{"a pipe", "de_DE.UTF-8", "", false, text},
		{"a terminal", "C.utf8", "", true, coloured.Replace(text)},
		{"a terminal without colour", "C.UTF-8", "1", true, text},
		{"ASCII", "C", "", false, ascii.Replace(text)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("LC_ALL", test.locale)
			t.Setenv("NO_COLOR", test.noColour)
			t.Setenv("TERM", "xterm")
			var out bytes.Buffer
			p := newPrinter(newDisplay(&out, colourAuto))
			if test.terminal {
				p = newPrinter(newDisplay(terminal{&out}, colourAuto))
			}
			if err := p.diagnosis(ill()); err != nil || out.String() != test.want {
				t.Errorf("%v\ngot\n%s\nwant\n%s", err, out.String(), test.want)
			}
		})
	}
}

// TestDiagnosisJSON pins the shape that programs rely on.
func TestDiagnosisJSON(t *testing.T) {
	got, err := json.Marshal(ill())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"version":"1.2.3","works":false,` +
		`"engines":[{"name":"podman","findings":[` +
		`{"name":"version","level":"ok","detail":"5.4","fix":"nothing to mend"},` +
		`{"name":"cgroup limits","level":"warn","detail":"pids only\u001b[2J","fix":"systemctl\nedit user@"},` +
		`{"name":"image","level":"fail","detail":"missing","fix":"make image"}]}],` +
		`"host":[{"name":"kernel","level":"ok","detail":"Linux"}],"servers":[{"name":"definitions","level":"ok","detail":"2 servers"}],` +
		`"cell":{"name":"cell","level":"fail","detail":"podman: start: image missing","fix":"make image","duration_ms":1.5}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestClockFinding(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name            string
		wall, monotonic time.Duration // that pass in the pause
		now             time.Time
		want            runtime.Level
	}{
		{"good", 20 * time.Millisecond, 20 * time.Millisecond, noon, runtime.LevelOK},
		{"busy machine", 3 * time.Second, 3 * time.Second, noon, runtime.LevelOK},
		{"stopped", 0, 0, noon, runtime.LevelFail},
		{"set back", -time.Hour, 20 * time.Millisecond, noon, runtime.LevelWarn},
		{"set forward", time.Hour, 20 * time.Millisecond, noon, runtime.LevelWarn},
		{"no battery", 20 * time.Millisecond, 20 * time.Millisecond, time.Unix(0, 0), runtime.LevelWarn},
	} {
		now := clockReading{wall: test.now}
		sleep := func(time.Duration) { now.wall, now.monotonic = now.wall.Add(test.wall), now.monotonic+test.monotonic }
		f := clockFinding(func() clockReading { return now }, sleep, noon.Add(-30*24*time.Hour))
		if f.Level != test.want || (f.Fix == "") != (f.Level == runtime.LevelOK) {
			t.Errorf("%s: %+v", test.name, f)
		}
	}
	if f := clockFinding(newClock(), time.Sleep, builtAt()); f.Level != runtime.LevelOK {
		t.Errorf("the real clock: %+v", f)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{5: "5 B", 2048: "2 KiB", 512 << 20: "512 MiB", 22 << 30: "22 GiB"} {
		if got := bridge.Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
}
