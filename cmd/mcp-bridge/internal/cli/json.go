package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/pflag"
)

// addJSON adds the flags of a command that can print JSON for programs. `tools
// call` has only the second: its --json takes the arguments.
func addJSON(flags *pflag.FlagSet, asJSON *bool) {
	flags.BoolVar(asJSON, "json", false, "print JSON, as --output json does")
	addOutput(flags, asJSON)
}

func addOutput(flags *pflag.FlagSet, asJSON *bool) {
	flags.VarP(&outputFormat{asJSON}, "output", "o", "form of the output: text or json")
}

// outputFormat is the --output flag, text or json.
type outputFormat struct{ json *bool }

func (o *outputFormat) Set(text string) error {
	switch text {
	case "text", "json":
		*o.json = text == "json"
		return nil
	}
	return fmt.Errorf("%q is not text or json", text)
}

func (o *outputFormat) String() string {
	if o.json != nil && *o.json {
		return "json"
	}
	return "text"
}

// Type names the value in help texts.
func (*outputFormat) Type() string { return "form" }

// writeJSON writes v to stdout. What would not be seen on a terminal, or do
// something to it, is written as \u0000, so that it is harmless and nothing is lost.
func (r *root) writeJSON(v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := r.io.Out.Write([]byte(escapedJSON(b.String())))
	return err
}

// escapedJSON is the same JSON in printable characters.
func escapedJSON(text string) string {
	harmless := func(c rune) bool {
		return c == '\n' || !unicode.In(c, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point)
	}
	if strings.IndexFunc(text, func(c rune) bool { return !harmless(c) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		switch high, low := utf16.EncodeRune(c); {
		case harmless(c):
			b.WriteRune(c)
		case high != unicode.ReplacementChar:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

// writeJSONLine writes a value on one line.
func (r *root) writeJSONLine(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = r.io.Out.Write([]byte(escapedJSON(string(text)) + "\n"))
	return err
}
