package discovery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
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

// Each element that is looped over costs a step, and none more than that.
func TestStepsAreWhatACheckCosts(t *testing.T) {
	const many = 5000
	var names, members, tags strings.Builder
	for i := range many {
		fmt.Fprintf(&names, `"k%d",`, i)
		fmt.Fprintf(&members, `"k%d":1,`, i)
		fmt.Fprintf(&tags, `"t%d":{},`, i)
	}
	list, object := `[`+strings.TrimSuffix(names.String(), ",")+`]`, `{`+strings.TrimSuffix(members.String(), ",")+`}`
	value, err := parseJSON(json.RawMessage(object), maxCheckedNodes)
	if err != nil {
		t.Fatal(err)
	}
	value.indexedAll()
	for name, schema := range map[string]string{
		"required":          `{"required":` + list + `}`,
		"dependentRequired": `{"dependentRequired":{"k0":` + list + `}}`,
		"not there":         `{"dependentRequired":` + object + `}`,
		"patternProperties": `{"additionalProperties":{},"patternProperties":{"x":{}}}`,
		"tags":              `{"oneOf":[{"type":"object","required":["x"],"properties":{` + strings.TrimSuffix(tags.String(), ",") + `}}]}`,
		"type":              `{"type":[` + strings.Repeat(`"x",`, 8*many) + `"object"]}`,
		"enum":              `{"enum":` + list + `}`,
	} {
		root, k := checkOf(t, schema, maxCheckSteps)
		k.value(root, value, 0)
		if used := maxCheckSteps - k.steps; used < many {
			t.Errorf("%s: %d steps", name, used)
		}
		root, k = checkOf(t, schema, many/2)
		if k.value(root, value, 0); k.steps >= 0 {
			t.Errorf("%s: does not stop", name)
		}
	}
	long := &jsonNode{kind: kindNumber, text: strings.Repeat("1", 1<<20)}
	for _, schema := range []string{`{"maximum":1}`, `{"type":"integer"}`, `{"const":1}`} {
		root, k := checkOf(t, schema, maxCheckSteps)
		if k.value(root, long, 0); maxCheckSteps-k.steps < 1000 {
			t.Errorf("%s: %d steps for a number of 1 MiB", schema, maxCheckSteps-k.steps)
		}
	}
}

// Objects of arguments and of schemas with many members are looked up in an index.
func TestLargeObjectsAreIndexed(t *testing.T) {
	object := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":1`, i)
		}
		return `{` + b.String()[1:] + `}`
	}
	value, err := parseJSON(json.RawMessage(`[`+object(16)+`,{"a":`+object(17)+`}]`), maxCheckedNodes)
	if err != nil {
		t.Fatal(err)
	}
	value.indexedAll()
	if few, more := value.items[0], value.items[1].get("a"); few.index != nil || len(more.index) != 17 || more.get("k16") != more.members[16].value {
		t.Errorf("indexes of %d and %d", len(few.index), len(more.index))
	}
	var params []Param
	for i := range 20 {
		params = append(params, Param{Name: fmt.Sprintf("k%d", i), Ident: fmt.Sprintf("k%d", i)})
	}
	tool := Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","properties":` + strings.ReplaceAll(object(20), ":1", `:{"type":"integer"}`) + `}`)}
	c, err := NewChecker(tool, ToolDoc{Params: params})
	if err != nil {
		t.Fatal(err)
	}
	k := &check{checker: c, steps: maxCheckSteps}
	nulls, err := parseJSON(json.RawMessage(strings.Replace(object(20), ":1", ":null", 1)), maxCheckedNodes)
	if err != nil {
		t.Fatal(err)
	}
	if without, ok := k.withoutNulls(nulls); !ok || len(without.index) != 19 || k.steps == maxCheckSteps {
		t.Errorf("without nulls: %v, an index of %d, and %d steps left", ok, len(without.index), k.steps)
	}
}

// After its time a check lets the rest pass.
func TestCheckEndsInTime(t *testing.T) {
	value, err := parseJSON(json.RawMessage(`[`+strings.Repeat("1,", 2000)+`"x"]`), maxCheckedNodes)
	if err != nil {
		t.Fatal(err)
	}
	schema, k := checkOf(t, `{"items":{"type":"integer"}}`, maxCheckSteps)
	k.until = time.Now().Add(time.Hour)
	if k.value(schema, value, 0) == nil {
		t.Error("what is wrong passes before its time is over")
	}
	schema, k = checkOf(t, `{"items":{"type":"integer"}}`, maxCheckSteps)
	k.until = time.Now().Add(-time.Hour)
	if k.value(schema, value, 0) != nil || !k.unsure {
		t.Error("it goes on after its time")
	}
}
