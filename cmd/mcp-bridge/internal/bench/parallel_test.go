package bench

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkParallelCalls: 32 calls at once of a tool that takes 200 ms, by tools.map
// and by asyncio.gather, beside one call; and 32 of one that takes a second. The
// cell times its own calls.
func BenchmarkParallelCalls(b *testing.B) {
	const prepare = `import asyncio, time
wait = tools.bench.wait
def one(seconds):
    start = time.perf_counter(); wait(seconds); return time.perf_counter() - start
def mapped(seconds):
    start = time.perf_counter(); tools.map(wait, [seconds] * 32); return time.perf_counter() - start
async def gathered(seconds):
    start = time.perf_counter(); await asyncio.gather(*(wait.aio(seconds) for _ in range(32))); return time.perf_counter() - start
_ = one(0), mapped(0), await gathered(0)`
	onEngines(b, func(b *testing.B, e engine) {
		br := e.start(b)
		br.run(b, "", prepare)
		var one, mapped, gathered timings
		seconds := func(code string) time.Duration { return time.Duration(br.value(b, "", code) * float64(time.Second)) }
		for b.Loop() {
			one = append(one, seconds("one(.2)"))
			mapped = append(mapped, seconds("mapped(.2)"))
			gathered = append(gathered, seconds("await gathered(.2)"))
		}
		report(b, "one", one.median())
		for _, f := range []struct {
			name string
			timings
		}{{"map", mapped}, {"gather", gathered}} {
			b.ReportMetric(float64(f.median())/float64(one.median()), fmt.Sprintf("%s-of-32×one(aim-1.2)", f.name))
		}
		long := seconds("one(1)")
		b.ReportMetric(float64(seconds("mapped(1)"))/float64(long), "map-of-32×one-of-1s(aim-1.1)")
		b.ReportMetric(0, "ns/op")
	})
}
