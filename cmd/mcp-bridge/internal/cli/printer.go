package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A printer writes findings for a person: with signs where the locale has them,
// and colour on a terminal whose user does not mind.
type printer struct {
	w      io.Writer
	signs  map[runtime.Level]string
	colour bool
	err    error
}

func newPrinter(w io.Writer) *printer {
	p := &printer{w: w, signs: map[runtime.Level]string{runtime.LevelOK: "+", runtime.LevelWarn: "!", runtime.LevelFail: "x"}}
	locale := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	if strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8") {
		p.signs = map[runtime.Level]string{runtime.LevelOK: "✓", runtime.LevelWarn: "!", runtime.LevelFail: "✗"}
	}
	if t, ok := w.(terminal); ok { // what is written then has gone through printable
		p.w = t.w
		p.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return p
}

func (p *printer) diagnosis(d *diagnosis) error {
	for _, e := range d.Engines {
		p.heading(e.Name)
		p.findings(e.Findings)
	}
	p.heading("this machine")
	p.findings(d.Host)
	p.heading("servers")
	p.findings(d.Servers)
	p.heading("a real cell")
	p.findings([]runtime.Finding{d.Cell.Finding})
	return p.err
}

func (p *printer) heading(text string) { p.printf("%s\n", oneLined(text)) }

// findings writes a line for each, and below it what mends it.
func (p *printer) findings(all []runtime.Finding) {
	width := 0
	for _, f := range all {
		width = max(width, len(f.Name))
	}
	for _, f := range all {
		p.printf("  %s %-*s  %s\n", p.sign(f.Level), width, oneLined(f.Name), oneLined(f.Detail))
		if f.Fix != "" && f.Level != runtime.LevelOK {
			p.printf("    %-*s  mend: %s\n", width, "", oneLined(f.Fix))
		}
	}
}

func (p *printer) sign(level runtime.Level) string {
	colours := map[runtime.Level]string{runtime.LevelOK: "32", runtime.LevelWarn: "33", runtime.LevelFail: "31"}
	if !p.colour {
		return p.signs[level]
	}
	return "\x1b[" + colours[level] + "m" + p.signs[level] + "\x1b[0m"
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// oneLined is text in one line and harmless on a terminal.
func oneLined(text string) string {
	return printable(strings.Join(strings.Fields(text), " "))
}
