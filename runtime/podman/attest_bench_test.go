//go:build linux

package podman_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// BenchmarkAttestation measures what reading the facts of a running sandbox and
// comparing them costs, beside the whole start of which it is a part.
func BenchmarkAttestation(b *testing.B) {
	engine := open(b, shortDir(b))
	defer engine.Close()
	spec := runtimetest.Spec(image(), seccomp(b))
	var sandbox runtime.Sandbox
	const starts = 5
	var took time.Duration
	for range starts {
		if sandbox != nil {
			sandbox.Close()
		}
		begin := time.Now()
		var err error
		if sandbox, err = engine.Start(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
		took += time.Since(begin)
	}
	defer sandbox.Close()
	pid, err := strconv.Atoi(strings.TrimSpace(cli(b, "inspect", "--format", "{{.State.Pid}}", sandbox.ID())))
	if err != nil {
		b.Fatal(err)
	}
	want := runtime.Expectation{Spec: spec, Settings: true, EngineEnv: []string{"HOSTNAME=*", "container=*", "TERM=*"}}
	for b.Loop() {
		facts, err := local.ReadFacts(pid)
		if err != nil {
			b.Fatal(err)
		}
		facts.Settings = &runtime.Settings{LogDriver: "none", AutoRemove: true, Seccomp: spec.Seccomp}
		want.UID, want.GID = facts.UID, facts.GID
		if differences := runtime.Attest(want, facts); len(differences) > 0 {
			b.Fatal(differences)
		}
	}
	b.ReportMetric(float64(took.Milliseconds())/starts, "start-ms")
}
