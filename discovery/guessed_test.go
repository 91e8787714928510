package discovery_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Names of a table's entries may be data, and are kept nowhere before a second
// object has shown that they are names of fields.
func TestNamesThatMayBeData(t *testing.T) {
	const people = `{"alice":1,"bob":2,"carol":3}`
	for _, tt := range []struct {
		about   string
		results []string
		want    string
	}{
		{"", []string{people}, "dict[str, int]"},
		{"", []string{people, people}, "dict[str, int]"}, // that is one result
		{"", []string{people, `{"alice":4,"bob":5,"carol":6}`}, "{alice: int, bob: int, carol: int}"},
		{"", []string{people, `{"dave":1,"erin":2}`}, "dict[str, int]"},
		{"", []string{people, `{"dave":1,"erin":2}`, `{"dave":3,"erin":4}`}, "dict[str, int]"}, // once is for ever
		{"", []string{people, `plain`}, "dict[str, int] | str"},
		{"", []string{people, `{"total":"x"}`}, "{total?: str, ...}"},
		{"", []string{`{"total":"x"}`, people}, "{total?: str, ...}"},
		{"", []string{`{"alice":50000,"bob":60000}`}, "dict[str, int]"},
		{"", []string{`{"alice":{"age":1,"id":2},"bob":{"age":3,"id":4}}`}, "dict[str, {age: int, id: int}]"},
		{"", []string{`{"alice":["x"],"bob":["y"]}`}, "dict[str, list[str]]"},
		{"", []string{`{"count":2,"of":` + people + `}`}, "{count: int, of: dict[str, int]}"},
		{"", []string{`[{"of":` + people + `},{"of":` + people + `}]`}, "list[{of: dict[str, int]}]"},
		{"", []string{`[{"foo":1,"bar":2},{"foo":3,"bar":4}]`}, "list[{foo: int, bar: int}]"},
		{"gives flurb and grault", []string{`{"flurb":1,"grault":2}`}, "{flurb: int, grault: int}"},
		{`{"properties":{"flurbCount":{}}}`, []string{`{"flurb":1,"grault":2}`}, "{flurb: int, grault: int}"},
		{"", []string{`{"firstName":"x","lastName":"y"}`}, "{firstName: str, lastName: str}"},
		{"", []string{`{"stdout":"x","stderr":"y"}`}, "{stdout: str, stderr: str}"},
		{"", []string{`{"lat":1,"lng":2.5,"alt":3}`}, "{lat: int, lng: float, alt: int}"},
		{"", []string{`{"temperature":1,"feels_like":2,"wind_speed":3}`}, "{temperature: int, feels_like: int, wind_speed: int}"},
		{"", []string{`{"name":"x","grault":1}`}, "{name: str, grault: int}"},
	} {
		var merged *discovery.Shape
		for _, result := range tt.results {
			merged = merged.Merged(discovery.Observe(textResult(result), tt.about))
		}
		if merged.String() != tt.want {
			t.Errorf("%v: got %s, want %s", tt.results, merged, tt.want)
		}
		data, err := json.Marshal(merged)
		if err != nil || strings.Contains(string(data), "alice") != strings.Contains(tt.want, "alice") {
			t.Errorf("%v: stored as %s, %v", tt.results, data, err)
		}
	}
}

// What is stored of a table does not stand in the way of what is seen later.
func TestGuessesAreStoredAsTables(t *testing.T) {
	data, err := json.Marshal(discovery.Observe(textResult(`{"flurb":1,"grault":2}`), ""))
	if err != nil {
		t.Fatal(err)
	}
	var stored *discovery.Shape
	if err := json.Unmarshal(data, &stored); err != nil || stored.String() != "dict[str, int]" {
		t.Fatalf("%s became %s, %v", data, stored, err)
	}
	again := stored.Merged(stored)
	if !again.Equal(stored) {
		t.Errorf("%s became %s", stored, again)
	}
	again = again.Merged(discovery.Observe(textResult(`{"flurb":3,"grault":4}`), ""))
	if got := again.String(); got != "dict[str, int]" {
		t.Errorf("after one more result: %s", got)
	}
	again = again.Merged(discovery.Observe(textResult(`{"flurb":5,"grault":6}`), ""))
	if got := again.String(); got != "{flurb: int, grault: int}" {
		t.Errorf("after two more: %s", got)
	}
	if got := again.Merged(stored).String(); got != "{flurb: int, grault: int}" {
		t.Errorf("with what another process stored: %s", got)
	}
}
