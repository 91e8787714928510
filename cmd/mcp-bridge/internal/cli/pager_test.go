package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
)

// onTerminal is a command tree whose stdout is a terminal of 80 columns and 24
// lines, and what is written to stdout and stderr.
func onTerminal(t *testing.T) (r *root, stdout, stderr *bytes.Buffer) {
	t.Helper()
	for _, name := range []string{"COLUMNS", "NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"} {
		t.Setenv(name, "")
	}
	t.Setenv("TERM", "xterm")
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	r = &root{io: IO{Out: terminal{stdout}, Err: stderr}}
	r.settings.colour = colourAuto
	return r, stdout, stderr
}

// script writes a program for sh and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	if goruntime.GOOS == "windows" {
		t.Skip("needs sh")
	}
	path := filepath.Join(t.TempDir(), "pager")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPager(t *testing.T) {
	works := script(t, `echo "$1:$LESS"; tr a-z A-Z`)
	breaks := script(t, "exit 3")
	lines, long := strings.Repeat("x\n", 24), strings.Repeat("漢", 40*24)
	for _, test := range []struct {
		name, pager, text string
		env               map[string]string
		noPager, pipe     bool
		want, warning     string
	}{
		{"short", works, strings.Repeat("x\n", 23), nil, false, false, strings.Repeat("x\n", 23), ""},
		{"long", works + " first", lines, nil, false, false, "first:FRX\n" + strings.ToUpper(lines), ""},
		{"wrapped", works, long, nil, false, false, ":FRX\n" + long, ""},
		{"colours take no room", works, "\x1b[1m" + strings.Repeat("x", 80) + "\x1b[0m", nil, false, false, "\x1b[1m" + strings.Repeat("x", 80) + "\x1b[0m", ""},
		{"PAGER", "", lines, map[string]string{"PAGER": works, "LESS": "i"}, false, false, ":i\n" + strings.ToUpper(lines), ""},
		{"MCP_BRIDGE_PAGER is nearer", "", lines, map[string]string{"PAGER": "false", "MCP_BRIDGE_PAGER": works}, false, false, ":FRX\n" + strings.ToUpper(lines), ""},
		{"set and empty", "", lines, map[string]string{"PAGER": works, "MCP_BRIDGE_PAGER": ""}, false, false, lines, ""},
		{"cat", "cat -v", lines, nil, false, false, lines, ""},
		{"--no-pager", works, lines, nil, true, false, lines, ""},
		{"dumb", works, lines, map[string]string{"TERM": "dumb"}, false, false, lines, ""},
		{"a pipe", works, lines, nil, false, true, lines, ""},
		{"absent", "/nonexistent/pager", lines, nil, false, false, lines, "pager /nonexistent/pager: "},
		{"broken", breaks, lines, nil, false, false, lines, "exit status 3; --no-pager does without"},
		{"left early", script(t, "exit 0"), strings.Repeat(long, 1000), nil, false, false, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, stdout, stderr := onTerminal(t)
			t.Setenv("LESS", "")
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			if test.pipe {
				r.io.Out = stdout
			}
			r.settings.pager, r.settings.noPager = test.pager, test.noPager
			failed := errors.New("after writing")
			err := r.page(t.Context(), func(d *display) error {
				_, err := io.WriteString(d.w, test.text)
				return errors.Join(err, failed)
			})
			if !errors.Is(err, failed) || stdout.String() != test.want {
				t.Errorf("%v\ngot  %.300q\nwant %.300q", err, stdout, test.want)
			}
			if !strings.Contains(stderr.String(), test.warning) || (test.warning == "") != (stderr.Len() == 0) {
				t.Errorf("stderr has %q", stderr)
			}
		})
	}
}

// Who has no pager, and wants none, is not told that there is none.
func TestNoPagerThere(t *testing.T) {
	r, _, _ := onTerminal(t)
	t.Setenv("PATH", t.TempDir())
	for _, name := range []string{"PAGER", "MCP_BRIDGE_PAGER"} {
		t.Setenv(name, "") // so that it is set again after the test
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	if command := r.settings.pagerCommand(); command != nil {
		t.Errorf("the pager is %v", command)
	}
}

func TestEscapedJSON(t *testing.T) {
	var out bytes.Buffer
	r := &root{io: IO{Out: terminal{&out}}}
	if err := r.writeJSON(map[string]string{"a": "é漢🙂<\x7f\u202e\u200b\U000E0041\x1b[2J"}); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"a\": \"é漢🙂<\\u007f\\u202e\\u200b\\udb40\\udc41\\u001b[2J\"\n}\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}
