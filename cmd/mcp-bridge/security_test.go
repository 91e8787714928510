package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityPromises holds that every test that SECURITY.md names exists, and
// that every promise names one or says that it is not made yet.
func TestSecurityPromises(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	groups := sources(t, filepath.Join(root, "runtime/runtimetest/*.go"))
	named := regexp.MustCompile("`([a-z/-]+)\\.((?:Test|Fuzz)\\w+)`|`Contract/(\\w+)`")
	total := 0
	for _, test := range named.FindAllStringSubmatch(string(text), -1) {
		total++
		if group := test[3]; group != "" {
			if !strings.Contains(groups, fmt.Sprintf("{%q, test", group)) {
				t.Errorf("the contract has no group %s", group)
			}
			continue
		}
		if !strings.Contains(sources(t, filepath.Join(root, test[1], "*_test.go")), "\nfunc "+test[2]+"(") {
			t.Errorf("%s has no %s", test[1], test[2])
		}
	}
	promises := regexp.MustCompile(`(?s)\*\*P(\d+)\..*?\n\n`).FindAllStringSubmatch(string(text), -1)
	for i, p := range promises {
		if p[1] != fmt.Sprint(i+1) {
			t.Errorf("promise %d is P%s", i+1, p[1])
		}
		if !named.MatchString(p[0]) && !strings.Contains(p[0], "*Not yet a promise:*") {
			t.Errorf("P%s names no test", p[1])
		}
	}
	if len(promises) != 19 || total < 60 {
		t.Errorf("%d promises and %d tests, want 19 and more than 60", len(promises), total)
	}
}

// sources returns the text of the files that match.
func sources(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}
