package bench

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkFirstCall: the first call of a client without a spare sandbox, from
// the moment it is sent, and from the start of the binary; and the first call of
// a session when the engine is in use already. Beside them, the engine's own
// command line that runs the same Python in the same image.
func BenchmarkFirstCall(b *testing.B) {
	onEngines(b, func(b *testing.B, e engine) {
		var first, whole, later, floor timings
		for b.Loop() {
			floor.time(func() {
				if out, err := e.floor(b).CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			})
			begin := time.Now()
			bridge := e.start(b, "--warm=0")
			first.time(func() { bridge.run(b, "", "1") })
			whole = append(whole, time.Since(begin))
			later.time(func() { bridge.run(b, "second", "1") })
			bridge.Close()
		}
		report(b, "first", first.median())
		report(b, "from-start", whole.median())
		report(b, "second-session", later.median())
		report(b, "floor", floor.median())
		ratio := func(t timings, name string) {
			b.ReportMetric(float64(t.median())/float64(floor.median()), name)
		}
		ratio(first, "first×floor(aim-"+e.most+")")
		ratio(whole, "from-start×floor")
		ratio(later, "second-session×floor")
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkFirstCallWarm: what a session's first call with a spare sandbox costs
// over a warm call.
func BenchmarkFirstCallWarm(b *testing.B) {
	onEngines(b, func(b *testing.B, e engine) {
		var first, warm timings
		for n := 0; b.Loop(); n++ {
			bridge := e.start(b)
			awaitSandboxes(b, bridge, 1)
			first.time(func() { bridge.run(b, "", "1") })
			awaitSandboxes(b, bridge, 2) // the next spare takes no processor from what is timed
			warm.time(func() { bridge.run(b, "", "1") })
			bridge.Close()
		}
		report(b, "first", first.median())
		report(b, "warm", warm.median())
		report(b, "first-over-warm(aim-30000)", first.median()-warm.median())
		b.ReportMetric(0, "ns/op")
	})
}

// awaitSandboxes waits until a bridge has so many sandboxes, each with its REPL.
func awaitSandboxes(b *testing.B, br *bridge, count int) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	for len(br.sandboxes(b)) < count {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			b.Fatalf("no %d sandboxes", count)
		}
	}
	time.Sleep(700 * time.Millisecond) // until the REPL waits for a cell, too: gVisor shows a sandbox long before
}

// BenchmarkIdleMemory: the proportional set size of an idle sandbox, supervisor
// and REPL together, that has run one cell.
func BenchmarkIdleMemory(b *testing.B) {
	onEngines(b, func(b *testing.B, e engine) {
		bridge := e.start(b, "--warm=0")
		bridge.run(b, "", "1")
		var alone, spare int64
		for b.Loop() {
			alone = 0
			for _, pid := range bridge.sandboxes(b)[0] {
				alone += pss(b, pid)
			}
		}
		bridge.run(b, "second", "1")
		boxes := bridge.sandboxes(b)
		for _, box := range boxes {
			for _, pid := range box {
				spare += pss(b, pid)
			}
		}
		b.ReportMetric(float64(alone)/1024, "MiB(aim-20)")
		b.ReportMetric(float64(spare)/1024/float64(len(boxes)), "MiB-of-each-of-two")
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkHundredIdle: a warm call while a hundred sandboxes are idle, beside
// the same with none but its own.
func BenchmarkHundredIdle(b *testing.B) {
	const crowd = 100
	onEngines(b, func(b *testing.B, e engine) {
		alone := e.start(b, "--warm=0")
		crowded := e.start(b, "--warm=0", fmt.Sprintf("--max-sandboxes=%d", crowd+1), "--memory=64m")
		alone.run(b, "", "1")
		crowded.run(b, "", "1")
		var single, among timings
		measureAlone := func() {
			for range 200 {
				single.time(func() { alone.run(b, "", "1") })
			}
		}
		measureAlone()
		begin := time.Now()
		for i := range crowd {
			crowded.run(b, fmt.Sprint("s", i), "1")
		}
		each := time.Since(begin) / crowd
		boxes := crowded.sandboxes(b)
		if len(boxes) != crowd+1 {
			b.Fatalf("there are %d sandboxes, want %d", len(boxes), crowd+1)
		}
		for range 200 {
			among.time(func() { crowded.run(b, "", "1") })
		}
		for b.Loop() {
			among.time(func() { crowded.run(b, "", "1") })
		}
		var memory int64
		for _, box := range boxes {
			for _, pid := range box {
				memory += pss(b, pid)
			}
		}
		crowded.Close()
		measureAlone() // the machine may have become slower or faster
		report(b, "warm", single.median())
		report(b, "warm-among-100", among.median())
		report(b, "start-of-each", each)
		b.ReportMetric(float64(among.median())/float64(single.median()), "×single(aim-2)")
		b.ReportMetric(float64(memory)/1024/float64(len(boxes)), "MiB-each")
		b.ReportMetric(0, "ns/op")
	})
}
