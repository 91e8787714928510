package cli

import "testing"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\nÄ 漢 🙂":       "plain\ttext\nÄ 漢 🙂",
		"\x1b]0;owned\x07x\x1b[2J": "\ufffd]0;owned\ufffdx\ufffd[2J",
		"over\rwritten":            "over\ufffdwritten",
		"\u202etxt.exe\u200b":      "\ufffdtxt.exe\ufffd",
		"\u009b31m":                "\ufffd31m",
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %q, want %q", text, got, want)
		}
	}
}
