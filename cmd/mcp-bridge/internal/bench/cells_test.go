package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkCell: a warm cell that prints, and one that calls a tool, with 0, 1 and
// 10 kB of other code, beside a round trip over a unix socket to a Python, and what
// the sandbox's Python takes to compile that code.
func BenchmarkCell(b *testing.B) {
	onEngines(b, func(b *testing.B, e engine) {
		br, socket := e.start(b), echoSocket(b)
		br.run(b, "", "tools.bench.echo(text='x')")
		for _, size := range []int{0, 1, 10} {
			b.Run(fmt.Sprintf("%dkB", size), func(b *testing.B) {
				code := assignments(size * 1000)
				br.run(b, "", code+"pass")
				var printed, called, raw timings
				for b.Loop() {
					for range 20 {
						raw.time(func() { roundTrip(b, socket) })
						printed.time(func() { br.run(b, "", code+"print(1)") })
						called.time(func() { br.run(b, "", code+"tools.bench.echo(text='x')") })
					}
				}
				compiling := br.value(b, "", fmt.Sprintf(`import time
def compiled(text):
    start = time.perf_counter_ns(); compile(text, "x", "exec"); return time.perf_counter_ns() - start
sorted(compiled(%q) for _ in range(50))[25]`, code))
				report(b, "print", printed.median())
				report(b, "tool", called.median())
				report(b, "socket", raw.median())
				report(b, "compile", time.Duration(compiling))
				floor := float64(raw.median()) + compiling
				b.ReportMetric(float64(printed.median())/floor, "print×floor")
				b.ReportMetric(0, "ns/op")
			})
		}
	})
}

// assignments is code of about so many bytes that takes no time to run.
func assignments(size int) string {
	var code strings.Builder
	for i := 0; code.Len() < size; i++ {
		fmt.Fprintf(&code, "value_%d = {'name': 'n%d', 'size': %d + len('x')}\n", i%20, i, i)
	}
	return code.String()
}
