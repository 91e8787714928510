package proxy

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

func TestClean(t *testing.T) {
	r := newRedactor(discovery.Server{
		Args: []string{"--api-key=abcdefghijklmnopqrst", "sk-0123456789abcdef", "-v", "/opt/long/path/to/a/script.js"},
		Env:  map[string]string{"A": "hunter2", "B": "hunter2-and-more", "C": "on", "D": "line one\nline two", "E": ""},
	})
	tests := []struct{ text, want string }{
		{"key hunter2-and-more or hunter2", "key [redacted] or [redacted]"},
		{"turned on, with line two of line one", "turned on, with [redacted] of [redacted]"},
		{"abcdefghijklmnopqrst sk-0123456789abcdef -v", "[redacted] [redacted] -v"},
		{"\x1b[1;31mred\x1b[0m \x1b]0;title\x07bell\a \u202eevil", "red bell evil"},
		{"at f (/opt/x/y/z.js:3:5)", "at f (…/z.js:3:5)"},
		{`open 'C:\Users\me\file.txt': no`, "open '…/file.txt': no"},
		{"file:///home/me/x.js", "file:///home/me/x.js"},
		{"calling tools/list/all on 2026/01/02", "calling tools/list/all on 2026/01/02"},
		{"see https://example.com/a/b", "see https://example.com/a/b"},
		{"proxy http://me:pw@proxy:80 down", "proxy http://[redacted]@proxy:80 down"},
		{"bad \xff byte", "bad \uFFFD byte"},
		{" \n two\nlines \n", "two\nlines"},
	}
	for _, test := range tests {
		if got := r.clean(test.text, 1000); got != test.want {
			t.Errorf("clean(%q) is %q, want %q", test.text, got, test.want)
		}
	}
	if got := r.clean(strings.Repeat("ä", 100), 51); got != "…"+strings.Repeat("ä", 25) {
		t.Errorf("the end of a long text is %q", got)
	}
}

// Neither invisible characters nor an encoding get a secret past the redactor.
func TestCleanFindsHiddenSecrets(t *testing.T) {
	const secret = "s3cr3t/canary+value ÿ42"
	r := newRedactor(discovery.Server{Env: map[string]string{"TOKEN": secret, "PEM": "-----\r\nfirst\tline\r\n"}})
	hidden := map[string]string{
		"hex":        hex.EncodeToString([]byte(secret)),
		"upper hex":  fmt.Sprintf("%X", secret),
		"query":      url.QueryEscape(secret),
		"lower":      "s3cr3t%2fcanary%2bvalue%20%c3%bf42",
		"component":  "s3cr3t%2Fcanary%2Bvalue%20%C3%BF42",
		"path":       url.PathEscape(secret),
		"tab":        "first\tline",
		"tab hidden": "first\u200bline",
	}
	for _, c := range []string{"\u200b", "\u00ad", "\x00", "\b", "\ufe0f", "\u034f", "\u2064", "\U000e0041", "\x1b[0m", "\u200b\x1b[1m\u200b"} {
		hidden["joined by "+strconv.QuoteToASCII(c)] = strings.Join(strings.Split(secret, ""), c)
	}
	for name, encoding := range map[string]*base64.Encoding{
		"std": base64.StdEncoding, "raw std": base64.RawStdEncoding, "URL": base64.URLEncoding, "raw URL": base64.RawURLEncoding,
	} {
		for _, before := range []string{"", "a", "ab", "abc:"} {
			for _, after := range []string{"", "z", "zz", "zzz"} {
				hidden[name+" "+before+after] = encoding.EncodeToString([]byte(before + secret + after))
			}
		}
	}
	for name, text := range hidden {
		got := r.clean("it is "+text+", ok?", 1000)
		if !strings.Contains(got, "[redacted]") || len(got) > len("it is abcdef[redacted]abcdef==, ok?") {
			t.Errorf("%s: clean(%q) is %q", name, text, got)
		}
	}
	if got := r.clean(strings.Repeat("x", 64<<20)+secret, 12); got != "…xx[redacted]" {
		t.Errorf("the end of a huge text is %q", got)
	}
}

func TestDidYouMean(t *testing.T) {
	candidates := []string{"create_issue", "list_issues", "getFile", "x", strings.Repeat("long", 100)}
	tests := []struct{ name, want string }{
		{"createissue", `did you mean "create_issue"?`},
		{"get_fiel", `did you mean "getFile"?`},
		{"issue", `did you mean "create_issue", "list_issues"?`},
		{"y", "else"},
		{"", "else"},
		{"zzzzzz", "else"},
		{strings.Repeat("long", 100), "else"},
	}
	for _, test := range tests {
		if got := DidYouMean(test.name, candidates, "else"); got != test.want {
			t.Errorf("DidYouMean(%.20q) is %q, want %q", test.name, got, test.want)
		}
	}
}

func TestQuoteName(t *testing.T) {
	if got := quoteName("a\nb\xff" + strings.Repeat("x", 100)); got != `"a`+"\uFFFDb\uFFFD"+strings.Repeat("x", 76)+`…"` {
		t.Errorf("got %s", got)
	}
}
