// Command gotest runs "go test" with the arguments it is given and says briefly
// how it went: a line per package, the whole output of what failed, what is
// running when nothing has been heard for a while, and at the end
// "N passed, N failed, N skipped".
//
// A test that skips itself tests nothing, so a skip fails the run too, unless the
// test's name stands in .ci/skips.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	module     = "github.com/mcp-bridge/mcp-bridge"
	skipsFile  = ".ci/skips"
	quietLimit = 20 * time.Second
)

// An event is a line of "go test -json"; see "go doc test2json".
type event struct {
	Action      string
	Package     string
	ImportPath  string // instead of Package, in build-output and build-fail
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

type testID struct{ pkg, name string }

// A run is the state of one "go test".
type run struct {
	output  map[testID][]string // of tests and, with an empty name, packages; freed as they pass
	builds  map[string][]string // compiler output by ImportPath
	started map[testID]time.Time
	count   map[string]int // passed tests by package
	skipped map[testID]string
	passed  int
	failed  int
	broken  bool // something failed that is not a test, such as a build
}

func main() {
	err := testAll(os.Args[1:])
	if err == nil {
		return
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok { // else the output above says it all
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	os.Exit(1)
}

func testAll(args []string) error {
	allowed, err := readSkips()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	// An interrupt reaches go test as well; this process stays to tell how it ended.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for r := bufio.NewReader(stdout); ; {
			line, err := r.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	r := &run{
		output: map[testID][]string{}, builds: map[string][]string{}, started: map[testID]time.Time{},
		count: map[string]int{}, skipped: map[testID]string{},
	}
	r.follow(lines)
	err = r.summary(allowed)
	return cmp.Or(cmd.Wait(), err)
}

// follow handles lines until there are no more.
func (r *run) follow(lines <-chan string) {
	quiet := time.NewTicker(quietLimit)
	defer quiet.Stop()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return
			}
			var ev event
			if json.Unmarshal([]byte(line), &ev) != nil {
				fmt.Print(line) // go test's own words, such as an unknown flag
				continue
			}
			if r.handle(ev) {
				quiet.Reset(quietLimit)
			}
		case <-quiet.C:
			r.printRunning()
		}
	}
}

// handle takes in one event and reports whether it printed something.
func (r *run) handle(ev event) bool {
	id := testID{ev.Package, ev.Test}
	switch ev.Action {
	case "build-output":
		r.builds[ev.ImportPath] = append(r.builds[ev.ImportPath], ev.Output)
	case "output":
		r.output[id] = append(r.output[id], ev.Output)
	case "start", "run":
		r.started[id] = time.Now()
	case "pass", "fail", "skip":
		delete(r.started, id)
		defer delete(r.output, id)
		if ev.Test == "" {
			return r.endPackage(ev)
		}
		return r.endTest(ev)
	}
	return false
}

func (r *run) endTest(ev event) bool {
	id := testID{ev.Package, ev.Test}
	switch ev.Action {
	case "pass":
		r.passed++
		r.count[ev.Package]++
	case "skip":
		r.skipped[id] = reason(r.output[id])
	case "fail":
		r.failed++
		printAll(r.output[id])
		return true
	}
	return false
}

func (r *run) endPackage(ev event) bool {
	name := short(ev.Package)
	switch {
	case ev.Action == "fail":
		r.broken = true
		printAll(r.builds[ev.FailedBuild])
		printAll(r.output[testID{ev.Package, ""}])
		fmt.Printf("FAIL  %-44s %7.1f s\n", name, ev.Elapsed)
	case ev.Action == "skip" || r.count[ev.Package] == 0:
		return false // no tests in it
	default:
		fmt.Printf("ok    %-44s %7.1f s %5d tests\n", name, ev.Elapsed, r.count[ev.Package])
		for _, line := range r.output[testID{ev.Package, ""}] {
			if strings.HasPrefix(line, "coverage:") || strings.HasPrefix(line, "Benchmark") {
				fmt.Print("      ", line)
			}
		}
	}
	return true
}

// printRunning names the tests that run now, the innermost ones only.
func (r *run) printRunning() {
	ids := slices.SortedFunc(maps.Keys(r.started), func(a, b testID) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	})
	for i, id := range ids {
		if i+1 < len(ids) && ids[i+1].pkg == id.pkg && (id.name == "" || strings.HasPrefix(ids[i+1].name, id.name+"/")) {
			continue
		}
		fmt.Printf("…     %s %s (%d s)\n", short(id.pkg), id.name, int(time.Since(r.started[id]).Seconds()))
	}
}

// summary prints the closing lines; it returns an error for what "go test" itself
// does not fail on.
func (r *run) summary(allowed []string) error {
	unexpected := 0
	for id, why := range r.skipped {
		if slices.Contains(allowed, id.name) {
			continue
		}
		unexpected++
		fmt.Printf("SKIP  %s %s: %s\n", short(id.pkg), id.name, why)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", r.passed, r.failed, len(r.skipped))
	switch {
	case unexpected > 0:
		return fmt.Errorf("%d tests skipped themselves that %s does not list", unexpected, skipsFile)
	case r.passed+r.failed == 0 && !r.broken:
		return errors.New("no test ran")
	}
	return nil
}

// readSkips returns the names in the skips file: the first word of each line
// that is neither empty nor a comment.
func readSkips() ([]string, error) {
	text, err := os.ReadFile(skipsFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
			names = append(names, f[0])
		}
	}
	return names, err
}

// reason is what a test said when it skipped itself: its last line before the verdict.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--- SKIP") && !strings.HasPrefix(line, "===") {
			return line
		}
	}
	return "no reason given"
}

func printAll(lines []string) {
	for _, line := range lines {
		if !strings.HasPrefix(line, "=== ") && line != "FAIL\n" && !strings.HasPrefix(line, "FAIL\t") {
			fmt.Print(line)
		}
	}
}

func short(pkg string) string {
	return strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
}
