package bench

import (
	"fmt"
	"testing"
)

// BenchmarkHibernate: what it takes to save variables as a bridge ends, over the end
// of one that has nothing to save, and to restore them with the next one's first
// call, over a first call that restores nothing; beside that call, which starts a
// sandbox.
func BenchmarkHibernate(b *testing.B) {
	worlds := []struct{ name, code string }{
		{"small", "import json\nnames = {f'k{i}': [i] * 10 for i in range(100)}\ndef f(x): return x + 1\nclass C:\n    y = f(1)\nc = C()"},
		{"10MB", "import os\nrows = [os.urandom(1000) for _ in range(10_000)]"},
	}
	onEngines(b, func(b *testing.B, e engine) {
		if e.transport != transports[e.name][0] {
			b.Skip("starting and ending takes long, and the transport is not what counts")
		}
		for _, world := range worlds {
			b.Run(world.name, func(b *testing.B) {
				var save, end, restore, first timings
				state := "--state-dir=" + b.TempDir()
				for n := 0; b.Loop(); n++ {
					kept, new := fmt.Sprint("kept", n), fmt.Sprint("new", n)
					br := e.start(b, "--warm=0", state)
					br.run(b, kept, world.code)
					save.time(func() { br.Close() })
					br = e.start(b, "--warm=0", state)
					br.run(b, "", "pass") // the engine is in use from here on
					first.time(func() { br.run(b, new, "pass") })
					restore.time(func() { br.run(b, kept, "pass") })
					br.Close()
					br = e.start(b, "--warm=0", state)
					br.run(b, new, "pass")
					end.time(func() { br.Close() })
				}
				report(b, "save", save.median()-end.median())
				report(b, "restore", restore.median()-first.median())
				report(b, "first-call", first.median())
				b.ReportMetric(float64(save.median()-end.median())/float64(first.median()), "save×first-call")
				b.ReportMetric(float64(restore.median()-first.median())/float64(first.median()), "restore×first-call")
				b.ReportMetric(0, "ns/op")
			})
		}
	})
}
