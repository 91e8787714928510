package discovery

import "testing"

func TestCleanEscapes(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": "b"}`:                             `{"a": "b"}`,
		`"\u202eabc\u200b\ufe01d"`:               `"abcd"`,
		`"\u001b[31mred\u0007 \u00fc\n\u000a\t"`: `"red \u00fc\n\u000a\t"`,
		`"\udb40\udc41x\ud83d\ude00\ud83d"`:      `"x\ud83d\ude00"`,
		`"\\u202e \" \\\u202e\\"`:                `"\\u202e \" \\\\"`,
		`"\u20`:                                  `"\u20`,
		`\`:                                      `\`,
		`\u001b[`:                                ``,
	} {
		if got := cleanEscapes(text); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
