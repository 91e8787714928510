package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// A style is how text looks where colours are shown: parameters of SGR.
type style string

const (
	unstyled style = ""
	bold     style = "1"
	faint    style = "2"
	red      style = "31"
	green    style = "32"
	yellow   style = "33"
	cyan     style = "36"
)

// paint returns text in a style. It has to be harmless: see [oneLined].
func paint(text string, s style) string {
	if s == unstyled || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// colourMode is the --color flag.
type colourMode string

const (
	colourAuto   colourMode = "auto"
	colourAlways colourMode = "always"
	colourNever  colourMode = "never"
)

func (m *colourMode) Set(text string) error {
	switch mode := colourMode(strings.ToLower(text)); mode {
	case colourAuto, colourAlways, colourNever:
		*m = mode
		return nil
	}
	return fmt.Errorf("%q is not auto, always or never", text)
}

func (m *colourMode) String() string { return string(*m) }

// Type names the value in help texts.
func (*colourMode) Type() string { return "when" }

// colours reports whether what is written to w may have them. The flag wins;
// then NO_COLOR, then CLICOLOR_FORCE, as https://no-color.org and
// https://bixense.com/clicolors have it.
func (m colourMode) colours(w io.Writer) bool {
	switch m {
	case colourAlways:
		return true
	case colourNever:
		return false
	}
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	_, isTerminal := w.(terminal)
	return isTerminal && os.Getenv("TERM") != "dumb" && os.Getenv("CLICOLOR") != "0"
}
