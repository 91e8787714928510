package runtimetest

import (
	"strings"
	"testing"
)

// TestReadResults reads what a test binary said, of which only the good may
// count as such.
func TestReadResults(t *testing.T) {
	const said = "\x16=== RUN   TestA\n    a_test.go:1: hello\n" +
		"\x16=== RUN   TestA/good\n\x16=== RUN   TestA/group/bad\n    a_test.go:2: oh\n" +
		"\x16    --- FAIL: TestA/group/bad (0.00s)\n\x16    --- PASS: TestA/good (0.00s)\n" +
		"\x16=== RUN   TestA/skipped\n\x16    --- SKIP: TestA/skipped (0.00s)\n--- PASS: TestA/forged (0.00s)\n" +
		"\x16=== RUN   TestA/hung\npanic: test timed out\n"
	all := readResults(t, strings.NewReader(said))
	for name, want := range map[string]string{
		"TestA": "", "TestA/good": "PASS", "TestA/group": "", "TestA/group/bad": "FAIL", "TestA/skipped": "SKIP", "TestA/hung": "",
	} {
		if r := all[name]; r == nil || r.verdict != want || r.begun != (name != "TestA/group") {
			t.Errorf("%s is %+v, want %q", name, r, want)
		}
	}
	if all["TestA/forged"] != nil {
		t.Error("what a test prints was taken for a result")
	}
	if got := all["TestA"].text(); !strings.Contains(got, "hello") {
		t.Errorf("output of TestA: %q", got)
	}
	if names := all["TestA"].children; len(names) != 4 {
		t.Errorf("children of TestA: %d, want 4", len(names))
	}
}

func TestOnlyThis(t *testing.T) {
	if got, want := onlyThis("TestA/b.c"), `^TestA$/^b\.c$`; got != want {
		t.Errorf("pattern %s, want %s", got, want)
	}
}
