package discovery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// checkOf is the checker of one schema, and a check that may take so many steps.
func checkOf(t *testing.T, schema string, steps int) (*jsonNode, *check) {
	t.Helper()
	root, err := parseJSON(json.RawMessage(schema), maxSchemaValues)
	if err != nil {
		t.Fatal(err)
	}
	c := &Checker{doc: newSchemaDoc(root)}
	c.patterns.compile(root)
	return root, &check{checker: c, steps: steps}
}

// What a pattern costs is known before it is compiled, and again before a text
// is matched.
func TestPatternsAreBounded(t *testing.T) {
	for text, used := range map[string]bool{
		`^[A-Z]{2,10}-[0-9]{1,8}$`:              true,
		`^[^/]{1,255}(/[^/]{1,255})?$`:          true,
		`^(a|b|c)*x+y?$`:                        true,
		strings.Repeat(`(x?){1000}`, 48) + `y$`: false,
		`((((x{10}){10}){10}){1}){1}`:           false,
		`(((x{10}y{10}z{10}){10}){10})`:         false,
		`(a|b|c|d|e){900}`:                      false,
		`x{1000}x{1000}`:                        false,
		`(x{500,}){2}`:                          false,
		strings.Repeat(`(`, 200) + strings.Repeat(`)`, 200) + strings.Repeat(`(x{0,9}){9}`, 9): false,
	} {
		var p patterns
		p.add(text)
		if _, ok := p.known[text]; ok != used {
			t.Errorf("%.60s: used %v, want %v", text, ok, used)
		}
	}
	var all patterns
	for i := range maxPatterns {
		all.add(fmt.Sprintf(`^a%dx{0,400}$`, i))
	}
	if len(all.known) == 0 || len(all.known) == maxPatterns || all.size > maxPatternsSize {
		t.Errorf("%d patterns of %d instructions", len(all.known), all.size)
	}

	text := &jsonNode{kind: kindString, text: strings.Repeat("b", 1000)}
	schema, k := checkOf(t, `{"type":"string","pattern":"^a{0,400}$"}`, maxCheckSteps)
	if v := k.value(schema, text, 0); v == nil || k.steps > maxCheckSteps-1000 {
		t.Error("a long text is not judged, or for nothing")
	}
	schema, k = checkOf(t, `{"allOf":[`+strings.Repeat(`{"pattern":"^b*a{0,400}$"},`, 100)+`{"pattern":"^b*a{0,401}c$"}]}`, maxCheckSteps)
	if v := k.value(schema, text, 0); v != nil || !k.unsure {
		t.Error("texts are matched beyond the steps allowed")
	}
	short := &jsonNode{kind: kindString, text: "bbb"}
	if schema, k = checkOf(t, `{"pattern":"^a{0,400}$"}`, maxCheckSteps); k.value(schema, short, 0) == nil {
		t.Error("a short text is let pass")
	}
	_, k = checkOf(t, `{}`, maxCheckSteps)
	counted, _ := checkOf(t, `{"minLength":1}`, 0)
	if k.value(counted, &jsonNode{kind: kindString, text: strings.Repeat("x", 1<<20)}, 0); maxCheckSteps-k.steps < 1000 {
		t.Errorf("counting 1 MiB costs %d steps", maxCheckSteps-k.steps)
	}
}
