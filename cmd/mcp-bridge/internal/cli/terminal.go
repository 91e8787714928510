package cli

import (
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// plain returns w, made harmless if it is a terminal: what servers and cells say
// is shown there, and must not move the cursor, set the title or hide text.
func plain(w io.Writer) io.Writer {
	file, ok := w.(*os.File)
	if !ok {
		return w
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		return w
	}
	return terminal{w}
}

// isTerminal reports whether in is one, where a person types.
func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

type terminal struct{ w io.Writer }

func (t terminal) Write(p []byte) (int, error) {
	if _, err := io.WriteString(t.w, printable(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printable replaces control and invisible characters by U+FFFD.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && r != '\uFE0F' && // which makes an emoji
			unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
