package gvisor

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	sandboximage "github.com/mcp-bridge/mcp-bridge/sandbox-image"
)

// BenchmarkStart compares, in pairs, a start up to the attested sandbox with
// `runsc run` of `python3 -c pass` on the same root file system, and with the
// same profile.
func BenchmarkStart(b *testing.B) {
	e := open(b, Options{})
	rootfs, err := e.rootfs(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	plain := plainBundle(b, rootfs)
	var ours, theirs, closing []time.Duration
	for b.Loop() {
		begin := time.Now()
		s, err := e.Start(b.Context(), spec())
		if err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(begin))
		begin = time.Now()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		closing = append(closing, time.Since(begin))

		args := append(flags(filepath.Join(plain, "state")), "run", "--bundle="+plain, "plain")
		cmd := exec.CommandContext(b.Context(), e.helper, args...)
		begin = time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		theirs = append(theirs, time.Since(begin))
	}
	milliseconds := func(of []time.Duration) float64 {
		slices.Sort(of)
		return of[len(of)/2].Seconds() * 1000
	}
	b.ReportMetric(milliseconds(ours), "ms/start")
	b.ReportMetric(milliseconds(theirs), "ms/runsc-run")
	b.ReportMetric(milliseconds(closing), "ms/close")
	b.ReportMetric(milliseconds(ours)/milliseconds(theirs), "ratio")
	b.ReportMetric(0, "ns/op")
}

// plainBundle is the least that runs Python under the same kernel.
func plainBundle(b *testing.B, rootfs string) string {
	b.Helper()
	dir := privateDir(b)
	plain := bundle{
		spec:  runtime.Spec{Command: []string{"python3", "-I", "-c", "pass"}, Seccomp: sandboximage.Seccomp(), Limits: runtime.Limits{}.WithDefaults()},
		uid:   70000,
		empty: filepath.Join(dir, "empty"), rootfs: rootfs, rlimits: runtime.Limits{}.WithDefaults().Rlimits(),
	}
	for _, made := range []string{plain.empty, filepath.Join(dir, "state")} {
		if err := os.Mkdir(made, 0o700); err != nil {
			b.Fatal(err)
		}
	}
	if err := plain.write(dir); err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkRoundTrip is one byte there and back, over a sandbox's stream.
func BenchmarkRoundTrip(b *testing.B) {
	s, err := open(b, Options{}).Start(b.Context(), runtime.Spec{
		Command: []string{"python3", "-I", "-c", probeProgram, "echo"}, Seccomp: sandboximage.Seccomp(), AllowUnlimited: os.Geteuid() != 0,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	buf := []byte("x")
	for b.Loop() {
		if _, err := s.Callback().Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Callback().Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}
