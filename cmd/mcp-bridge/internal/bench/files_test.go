package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkFiles: the files that a cell has written on their way to the host, and on
// their way to another sandbox before its next cell, beside a copy of the same
// files on the host.
func BenchmarkFiles(b *testing.B) {
	sets := []struct {
		name        string
		count, size int
	}{{"1MB", 1, 1e6}, {"10MB", 1, 10e6}, {"100MB", 1, 100e6}, {"1000-small", 1000, 1000}}
	onEngines(b, func(b *testing.B, e engine) {
		br := e.start(b, "--warm=0", "--workspace-quota=120m", "--state-dir="+b.TempDir())
		br.run(b, "a", `import os, time
def write(count, size):
    for i in range(count):
        with open(f"f{i}", "wb") as f: f.write(os.urandom(size))
    start = time.perf_counter_ns(); workspace.sync(); return time.perf_counter_ns() - start`)
		br.run(b, "b", "pass")
		for _, set := range sets {
			b.Run(set.name, func(b *testing.B) {
				var out, in, floor timings
				remove := fmt.Sprintf("for i in range(%d): os.unlink(f'f{i}')", set.count)
				for n := 0; b.Loop(); n++ {
					if n > 0 { // there is room for 100 MB once
						br.run(b, "a", remove)
						br.run(b, "b", "pass")
					}
					out = append(out, time.Duration(br.value(b, "a", fmt.Sprintf("write(%d, %d)", set.count, set.size))))
					in.time(func() { br.run(b, "b", "pass") })
					floor = append(floor, copied(b, set.count, set.size))
				}
				if got := br.value(b, "b", fmt.Sprintf("os = __import__('os'); sum(os.path.getsize(f'f{i}') for i in range(%d))", set.count)); int(got) != set.count*set.size {
					b.Errorf("%v bytes came, want %d files of %d", got, set.count, set.size)
				}
				br.run(b, "a", remove)
				br.run(b, "b", "pass")
				report(b, "out", out.median())
				report(b, "in", in.median())
				report(b, "copy", floor.median())
				b.ReportMetric(float64(out.median())/float64(floor.median()), "out×copy")
				b.ReportMetric(float64(in.median())/float64(floor.median()), "in×copy")
				b.ReportMetric(0, "ns/op")
			})
		}
	})
}

// copied is how long a plain copy of so many files takes on the host.
func copied(b *testing.B, count, size int) time.Duration {
	b.Helper()
	from, to := b.TempDir(), b.TempDir()
	name := func(dir string, i int) string { return filepath.Join(dir, fmt.Sprint("f", i)) }
	for i := range count {
		if err := os.WriteFile(name(from, i), make([]byte, size), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	begin := time.Now()
	for i := range count {
		if err := copyFile(name(to, i), name(from, i)); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begin)
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
