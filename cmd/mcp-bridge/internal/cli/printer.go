package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// A printer writes findings for a person: with signs where the locale has them,
// and colour on a terminal whose user does not mind.
type printer struct {
	*display

	signs map[runtime.Level]string
	err   error
}

// printer is that of the results.
func (r *root) printer() *printer { return newPrinter(r.display()) }

func newPrinter(d *display) *printer {
	p := &printer{display: d, signs: map[runtime.Level]string{runtime.LevelOK: "+", runtime.LevelWarn: "!", runtime.LevelFail: "x"}}
	locale := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	if strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8") {
		p.signs = map[runtime.Level]string{runtime.LevelOK: "✓", runtime.LevelWarn: "!", runtime.LevelFail: "✗"}
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
	styles := map[runtime.Level]style{runtime.LevelOK: green, runtime.LevelWarn: yellow, runtime.LevelFail: red}
	return p.paint(p.signs[level], styles[level])
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
