package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// soakCells are what a session is made of: each is run with its number.
var soakCells = []string{
	"x%[1]d = %[1]d\nx%[1]d + 1\ndel x%[1]d",
	"print('line', %[1]d)\nvalue = list(range(%[1]d %% 100))\nvalue",
	"def f(a):\n    \"\"\"Of cell %[1]d.\"\"\"\n    return a + %[1]d\nf(1)",
	"class C:\n    number = %[1]d\n    def get(self): return self.number\nC().get()",
	"1 / (%[1]d - %[1]d)",
	"raise ValueError('of %[1]d')",
	"x = = %[1]d",
	"await __import__('asyncio').sleep(0, %[1]d)",
	"import json, threading\nt = threading.Thread(target=print, args=('thread', %[1]d)); t.start(); t.join()",
	"import warnings\nwarnings.warn('of %[1]d')",
	"'y' * 3000",
	"tools.special.same(value=%[1]d)['value']",
}

// windows are the medians of so many windows of equal size.
func windows(samples []int, n int) []int {
	medians := make([]int, n)
	for i := range medians {
		window := slices.Sorted(slices.Values(samples[i*len(samples)/n : (i+1)*len(samples)/n]))
		medians[i] = window[len(window)/2]
	}
	return medians
}

// growth is by how much, in KiB, the windows of the last third are above those
// of the second: the first is for caches to fill.
func growth(medians []int) int {
	third := len(medians) / 3
	middle := slices.Sorted(slices.Values(medians[third : 2*third]))
	last := slices.Sorted(slices.Values(medians[2*third:]))
	return last[len(last)/2] - middle[len(middle)/2]
}

// TestGrowth shows that a leak would be seen.
func TestGrowth(t *testing.T) {
	t.Parallel()
	var flat, leaking []int
	for i := range 1000 {
		noise := (i * 7919) % 1500
		flat = append(flat, 30_000+min(i, 200)*20+noise)
		leaking = append(leaking, 30_000+i*20+noise) // 1 KiB a cell, sampled every 20
	}
	if g := growth(windows(flat, 20)); g > 500 {
		t.Errorf("flat memory seems to grow by %d KiB", g)
	}
	if g := growth(windows(leaking, 20)); g < 5000 {
		t.Errorf("a leak of 7,000 KiB is seen as %d", g)
	}
}

// TestSoak runs thousands of cells in one session. The memory of the bridge, of
// the supervisor and of the REPL stays what it is.
func TestSoak(t *testing.T) {
	t.Parallel()
	cells := 20_000
	if testing.Short() {
		cells = 2000
	}
	const every = 20
	c := connect(t, special(t, "--warm=0"))
	c.run(t, "None")
	supervisor := pidOf(t, containersOf(t, c.cmd.Process.Pid)[0])
	children := descendants(supervisor)
	if len(children) != 1 {
		t.Fatalf("the supervisor has the children %v, want the REPL", children)
	}
	watched := []struct {
		name string
		pid  int
	}{{"supervisor", supervisor}, {"REPL", children[0].pid}, {"bridge", c.cmd.Process.Pid}}
	samples := map[string][]int{}
	began := time.Now()
	for i := 1; i <= cells; i++ {
		r := c.call(t, arguments{"code": fmt.Sprintf(soakCells[i%len(soakCells)]+"\n# %[1]d", i)})
		if strings.Contains(r.text, "sandbox") || strings.Contains(r.text, "process ended") {
			t.Fatalf("cell %d: %s", i, r.text)
		}
		if i%every > 0 {
			continue
		}
		for _, w := range watched {
			samples[w.name] = append(samples[w.name], rss(t, w.pid))
		}
	}
	t.Logf("%d cells in %v", cells, time.Since(began).Round(time.Second))
	n := max(6, cells/1000)
	for _, w := range watched {
		medians := windows(samples[w.name], n)
		t.Logf("%-10s KiB, medians of %d cells: %v", w.name, cells/n, medians)
		// What 0.3 KiB a cell would make in the time between the two thirds.
		if g, most := growth(medians), max(1500, cells/3*3/10); g > most {
			t.Errorf("%s grew by %d KiB, at most %d were allowed", w.name, g, most)
		}
	}
}

// pidOf is the host's number of a container's first process.
func pidOf(t *testing.T, container string) int {
	t.Helper()
	out, err := exec.Command("podman", "inspect", "--format", "{{.State.Pid}}", container).Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// rss is what a process of the host holds, in KiB.
func rss(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * (os.Getpagesize() / 1024)
}
