package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
)

func TestColours(t *testing.T) {
	screen, pipe := terminal{&bytes.Buffer{}}, &bytes.Buffer{}
	for _, test := range []struct {
		name            string
		mode            colourMode
		env             map[string]string
		screen, through bool
	}{
		{"auto", colourAuto, nil, true, false},
		{"always", colourAlways, map[string]string{"NO_COLOR": "1"}, true, true},
		{"never", colourNever, map[string]string{"CLICOLOR_FORCE": "1"}, false, false},
		{"NO_COLOR", colourAuto, map[string]string{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, false, false},
		{"forced", colourAuto, map[string]string{"CLICOLOR_FORCE": "1", "TERM": "dumb"}, true, true},
		{"not forced", colourAuto, map[string]string{"CLICOLOR_FORCE": "0"}, true, false},
		{"switched off", colourAuto, map[string]string{"CLICOLOR": "0"}, false, false},
		{"dumb", colourAuto, map[string]string{"TERM": "dumb"}, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{"NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"} {
				t.Setenv(name, test.env[name])
			}
			t.Setenv("TERM", "xterm"+test.env["TERM"])
			if test.env["TERM"] != "" {
				t.Setenv("TERM", test.env["TERM"])
			}
			if a, b := test.mode.colours(screen), test.mode.colours(pipe); a != test.screen || b != test.through {
				t.Errorf("terminal %v, pipe %v; want %v, %v", a, b, test.screen, test.through)
			}
		})
	}
	var m colourMode
	if err := m.Set("sometimes"); err == nil || m.Set("ALWAYS") != nil || m != colourAlways {
		t.Errorf("%v, %v", err, m)
	}
}

// wide has names that take other columns than they have runes or bytes.
func wide(d *display) *table {
	table := d.newTable("NAME", "WHAT")
	table.add(plainCell("ascii"), plainCell("plain text that goes on for a while, further than a terminal is wide"))
	table.add(styledCell("漢字", bold), cell{{"one", green}, {" two ", unstyled}, {"three", faint}})
	table.add(plainCell("🙂 smile"), plainCell("e\u0301 combined"))
	table.add(plainCell("empty"), plainCell(""))
	return table
}

func TestTable(t *testing.T) {
	const want = `NAME      WHAT
ascii     plain text that goes on for a while, further than a terminal is wide
漢字      one two three
🙂 smile  é combined
empty
`
	var out bytes.Buffer
	if err := wide(&display{w: &out}).write(); err != nil || out.String() != strings.ReplaceAll(want, "é", "e\u0301") {
		t.Errorf("%v\n%s", err, out.String())
	}
	out.Reset()
	if err := wide(&display{w: &out, colour: true}).write(); err != nil || !strings.Contains(out.String(), "\x1b[1m漢字\x1b[0m      \x1b[32mone\x1b[0m two \x1b[2mthree\x1b[0m\n") {
		t.Errorf("%v\n%q", err, out.String())
	}
}

// TestTableFits has no line that is wider than the terminal, at any width that is
// of use, and says where something is missing.
func TestTableFits(t *testing.T) {
	for columns := 2*leastColumn + columnGap; columns < 90; columns++ {
		var out bytes.Buffer
		if err := wide(&display{w: &out, columns: columns}).write(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if got := displaywidth.String(strings.TrimSuffix(line, "\n")); got > columns {
				t.Errorf("%d columns: %q has %d", columns, line, got)
			}
		}
		if cut := strings.Contains(out.String(), "…"); cut != (columns < 78) {
			t.Errorf("%d columns: cut is %v:\n%s", columns, cut, out.String())
		}
	}
}

// TestTableCutsSpans cuts a cell of several styles where the room ends.
func TestTableCutsSpans(t *testing.T) {
	var out bytes.Buffer
	for columns, want := range map[int]string{12: "one, two, 漢\n", 11: "one, two, …\n", 10: "one, two,…\n", 9: "one, two…\n", 5: "one,…\n"} {
		out.Reset()
		table := (&display{w: &out, columns: columns}).newTable()
		table.add(cell{{"one", bold}, {", ", unstyled}, {"two", bold}, {", ", unstyled}, {"漢", bold}})
		row := table.rows[0][0]
		var b strings.Builder
		table.writeCell(&b, row, row.width(), columns)
		if got := b.String() + "\n"; got != want {
			t.Errorf("%d columns: %q, want %q", columns, got, want)
		}
	}
}

// TestTableIsHarmless has names that would take over a terminal.
func TestTableIsHarmless(t *testing.T) {
	var out bytes.Buffer
	table := (&display{w: &out, columns: 200, colour: true}).newTable()
	table.add(styledCell("\x1b]0;owned\x07\x1b[2J", bold), plainCell("two\nlines\r\u202eright to left\u200b"), plainCell("\u009b31m\xff"))
	if err := table.write(); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(out.String())
	if text != printable(text) || strings.Count(text, "\n") != 1 {
		t.Errorf("%q", out.String())
	}
}
