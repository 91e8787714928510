package bridge

import (
	"fmt"
	"strings"
)

const (
	maxImages     = 8
	maxImageBytes = 8 << 20
)

// result shapes what a call shows of a cell that has ended.
func (s *session) result(e *execution) Result {
	limit := s.bridge.opts.OutputLimit
	var parts []string
	r := Result{}
	parts = append(parts, s.takeNotices()...)
	parts = append(parts, s.takeOutput(e, limit))
	o := e.outcome
	switch {
	case o.err != nil:
		r.IsError, r.Exit = true, 1
		parts = append(parts, fmt.Sprintf("Error: %v. All variables and files are gone; the next call starts a new sandbox.", o.err))
	case o.Lost != "":
		r.IsError, r.Exit = true, 1
		parts = append(parts, fmt.Sprintf("Error: the Python process ended: %s. All variables are gone; files in the workspace are kept. "+
			"The next call starts afresh.", o.Lost))
	default:
		parts = append(parts, r.addReport(o.Cell, limit)...)
	}
	if o.Interrupted != "" {
		parts = append(parts, interruptText(o))
		r.IsError = true
		r.Exit = max(r.Exit, 1)
	}
	r.Text = join(parts)
	if r.Text == "" && len(r.Images) == 0 {
		r.Text = "(no output)"
	}
	return r
}

// addReport adds what the REPL says of the cell.
func (r *Result) addReport(c *report, limit int) []string {
	var parts []string
	if c.Value != nil {
		parts = append(parts, valueText(c.Value, limit))
	}
	for i, image := range c.Images {
		switch {
		case i == maxImages:
			parts = append(parts, fmt.Sprintf("[%d more images not shown: at most %d a cell]", len(c.Images)-i, maxImages))
		case i < maxImages && (len(image.Data) > maxImageBytes || !strings.HasPrefix(image.MIME, "image/")):
			parts = append(parts, fmt.Sprintf("[an image of %s bytes not shown: at most %d MiB]", grouped(len(image.Data)), maxImageBytes>>20))
		case i < maxImages:
			r.Images = append(r.Images, Image{MIMEType: image.MIME, Data: image.Data})
		}
	}
	switch {
	case c.Status == "exit" && c.Exit != 0:
		r.IsError, r.Exit = true, c.Exit
		parts = append(parts, fmt.Sprintf("The cell ended with sys.exit(%d). Variables are kept.", c.Exit))
	case c.Status == "error" && c.Error != nil:
		r.IsError, r.Exit = true, 1
		parts = append(parts, shorten(c.Error.Traceback, limit, "the exception"))
	case c.Status != "ok" && c.Status != "exit":
		r.IsError, r.Exit = true, 1
		parts = append(parts, "Error: the cell ended in an unknown way.")
	}
	return parts
}

func valueText(v *valueReport, limit int) string {
	text := shorten(v.Text, limit, "_")
	if v.Shape == "" {
		return text
	}
	return fmt.Sprintf("%s\n[cut: %s; the whole is in _]", text, shorten(v.Shape, 500, "_"))
}

func interruptText(o outcome) string {
	why := "Interrupted: the client cancelled the call."
	if o.Interrupted == "timeout" {
		why = "Timed out: the cell was interrupted when its time was up. Pass a larger `timeout` (in seconds) if it needs more."
	}
	if o.Lost == "" {
		why += " Variables are kept."
	}
	return why
}

// progress shapes what a call shows of a cell that still runs.
func (s *session) progress(e *execution) Result {
	parts := append(s.takeNotices(), s.takeOutput(e, s.bridge.opts.OutputLimit),
		fmt.Sprintf("[cell %d is still running: call run_python with an empty `code` to wait for the rest]", e.cell))
	return Result{Text: join(parts)}
}

// takeOutput returns what the cell printed that no call has shown yet.
func (s *session) takeOutput(e *execution, limit int) string {
	s.mu.Lock()
	text := e.output.String()
	fresh := text[min(e.shown, len(text)):]
	e.shown = len(text)
	s.mu.Unlock()
	return shorten(fresh, limit, fmt.Sprintf("out[%d]", e.cell))
}

// takeNotices returns what happened since the last result.
func (s *session) takeNotices() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var notices []string
	if s.notice != "" {
		notices = append(notices, s.notice)
	}
	if len(s.late) > 0 {
		notices = append(notices, "[printed after an earlier cell had ended:]\n"+shorten(string(s.late), 2000, "nothing")+"\n[end]")
	}
	s.notice, s.late = "", nil
	return notices
}

// join puts parts on lines of their own, leaving out empty ones. A part's own
// blank lines are kept.
func join(parts []string) string {
	var b strings.Builder
	for _, part := range parts {
		if part == "" {
			continue
		}
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(part)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
