package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/clipperhouse/displaywidth"
	"github.com/spf13/pflag"
)

// addPager adds the flags of commands that may have more to show than fits on a
// terminal: see [root.page].
func (s *settings) addPager(flags *pflag.FlagSet) {
	flags.StringVar(&s.pager, "pager", "", "program to show long output in on a terminal (default $PAGER, or less -FRX); cat is none")
	flags.BoolVar(&s.noPager, "no-pager", false, "show long output as it is")
}

// page has f write to a display, and shows in a pager what does not fit on the
// terminal. Without a terminal there is no pager; one that cannot be used is told
// on stderr, and what it should have shown is written as it is.
func (r *root) page(ctx context.Context, f func(*display) error) error {
	d := r.display()
	command := r.settings.pagerCommand()
	if _, ok := r.io.Out.(terminal); !ok || len(command) == 0 {
		return f(d)
	}
	var text bytes.Buffer
	out := d.w
	d.w = &text
	err := f(d)
	if d.fits(text.Bytes()) {
		_, writeErr := out.Write(text.Bytes())
		return errors.Join(err, writeErr)
	}
	if pagerErr := showIn(ctx, command, text.Bytes(), out, bare(r.io.Err)); pagerErr != nil {
		fmt.Fprintf(r.io.Err, "mcp-bridge: warning: pager %s: %v; --no-pager does without\n", oneLined(command[0]), pagerErr)
		_, writeErr := out.Write(text.Bytes())
		return errors.Join(err, writeErr)
	}
	return err
}

// bare is the file below a writer that is a terminal.
func bare(w io.Writer) io.Writer {
	if t, ok := w.(terminal); ok {
		return t.w
	}
	return w
}

// pagerCommand is the pager with its arguments, or nothing where none is wanted:
// --pager, MCP_BRIDGE_PAGER and `pager` in config.toml, then PAGER, then less. A
// variable that is set, and empty, wants none.
func (s *settings) pagerCommand() []string {
	const most = 64 // words; a pager has a few
	if s.noPager || os.Getenv("TERM") == "dumb" {
		return nil
	}
	command := s.pager
	if command == "" {
		if _, err := exec.LookPath("less"); err == nil { // nobody has asked for it
			command = "less -FRX"
		}
		for _, name := range []string{"PAGER", "MCP_BRIDGE_PAGER"} {
			if value, ok := os.LookupEnv(name); ok {
				command = value
			}
		}
	}
	words := strings.Fields(command)
	if len(words) == 0 || len(words) > most || words[0] == "cat" {
		return nil
	}
	return words
}

// fits reports whether text, and a prompt after it, fit on the terminal.
func (d *display) fits(text []byte) bool {
	lines := 1
	for line := range bytes.Lines(text) {
		width := displaywidth.Options{ControlSequences: true}.Bytes(bytes.TrimRight(line, "\n"))
		lines += max(1, (width+d.columns-1)/max(d.columns, 1))
		if lines > d.lines {
			return false
		}
	}
	return true
}

// showIn has a pager show text until the user leaves it. Ctrl-C is the pager's:
// it must not leave the terminal to two programs.
func showIn(ctx context.Context, command []string, text []byte, out, errs io.Writer) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	pager := exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...) //nolint:gosec // the user's own choice
	pager.Stdin, pager.Stdout, pager.Stderr = bytes.NewReader(text), out, errs
	pager.Env = os.Environ()
	for _, preset := range []string{"LESS=FRX", "LV=-c"} {
		if name, _, _ := strings.Cut(preset, "="); os.Getenv(name) == "" {
			pager.Env = append(pager.Env, preset)
		}
	}
	return pager.Run()
}
