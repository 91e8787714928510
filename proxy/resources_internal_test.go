package proxy

import "testing"

func TestFits(t *testing.T) {
	for _, test := range []struct {
		template, uri string
		want          bool
	}{
		{"a://b", "a://b", true},
		{"a://b", "a://bc", false},
		{"a://{x}", "a://b", true},
		{"a://{x}", "b://b", false},
		{"a://{x}/c", "a://b/c", true},
		{"a://{x}/c", "a://b/d", false},
		{"a://{x}/{y}.md", "a://b/c.md", true},
		{"a://{x}/{y}.md", "a://b.md", false},
		{"a://{+path}{?q}", "a://b/c?q=1", true},
		{"a://{x}-{y}", "a://1-2-3", true},
		{"a://{x", "a://{x", false},
		{"{x}", "", true},
		{"", "", true},
		{"", "x", false},
	} {
		if got := fits(test.template, test.uri); got != test.want {
			t.Errorf("fits(%q, %q) is %v", test.template, test.uri, got)
		}
	}
}
