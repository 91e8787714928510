package bridge

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxShape is how many characters are shown of what a value is that is cut.
const maxShape = 500

// maxNotes is how many notes of a report are shown.
const maxNotes = 8

// result shapes what a call shows of a cell that has ended.
func (s *session) result(ctx context.Context, e *execution) Result {
	r := Result{}
	notices := s.takeNotices(ctx, e, &r)
	own := s.show(ctx, e, &r)
	late := s.takeLate(e.cell)
	r.details.Notes = slices.Concat(notices, r.details.Notes, late)
	if s.bridge.opts.NotesApart {
		r.Text, r.Notes = join(own), r.details.Notes
		return r
	}
	r.Text = join(slices.Concat(notices, own, late))
	if r.Text == "" && len(r.Images) == 0 {
		r.Text = "(no output)"
	}
	return r
}

// show returns what there is to say of a cell that has ended, and sets the rest
// of r.
func (s *session) show(ctx context.Context, e *execution, r *Result) []string {
	limit := s.bridge.opts.OutputLimit
	s.mu.Lock()
	kept, fresh := e.kept, e.takeOutput()
	s.mu.Unlock()
	if kept != nil {
		r.IsError, r.Images, r.details = kept.IsError, append(r.Images, kept.Images...), kept.details
		return []string{kept.Text}
	}
	return append([]string{e.addOutput(r, fresh, limit)}, s.addOutcome(ctx, r, e)...)
}

// addOutcome adds to r how the cell ended.
func (s *session) addOutcome(ctx context.Context, r *Result, e *execution) []string {
	var parts []string
	o := e.outcome
	switch {
	case e.reset && o.err != nil:
		return []string{"[the session was reset, and its sandbox replaced: all variables are gone, and what was saved of them]"}
	case e.reset && o.Lost != "":
		parts = append(parts, "[the session was reset: all variables are gone, and what was saved of them; files are kept]")
		if e.more {
			parts = append(parts, "[what stood after session.reset() did not run]")
		}
		return parts
	case o.err != nil:
		r.IsError = true
		parts = append(parts, r.failed("lost", fmt.Sprintf("Error: %v. %s; the next call starts a new sandbox.", o.err, s.bridge.goneText())))
	case o.Lost != "":
		r.IsError = true
		parts = append(parts, r.failed("lost", fmt.Sprintf("Error: the Python process ended: %s. All variables are gone; files in the workspace are kept. "+
			"The next call starts afresh.", shorten(o.Lost, maxReason, "nothing"))))
	default:
		parts = append(parts, s.addReport(ctx, r, o.Cell, e.cell)...)
	}
	if o.Interrupted != "" {
		text := e.interruptText(s.bridge.opts.MaxTimeout)
		if o.Lost == "" {
			text += s.keptText()
		}
		parts = append(parts, text)
		if !s.bridge.opts.NotesApart { // it is the error
			r.details.Notes = append(r.details.Notes, text)
		}
		r.IsError = true
		if o.err == nil && o.Lost == "" {
			r.details.Status = interruptedStatus(o.Interrupted)
		}
	}
	return parts
}

// addReport adds to r what the REPL says of the cell.
func (s *session) addReport(ctx context.Context, r *Result, c *report, cell int) []string {
	var parts []string
	d := &r.details
	d.Status = "ok"
	limit := s.roomLeft(r)
	if c.Value != nil {
		parts = append(parts, valueText(c.Value, fmt.Sprintf("_ and out[%d].value", cell), limit))
		d.setValue(c.Value, parts[0], limit)
	}
	notes := s.takeImages(ctx, r, c.Images)
	d.Images = len(r.Images)
	for _, text := range c.Notes[:min(len(c.Notes), maxNotes)] {
		notes = append(notes, "["+note(text)+"]")
	}
	apart := s.bridge.opts.NotesApart
	if !apart {
		parts = append(parts, notes...)
	}
	switch {
	case c.Status == "exit":
		d.Status, d.ExitCode = "exit", c.Exit
		if c.Exit != 0 {
			r.IsError = true
			parts = append(parts, fmt.Sprintf("The cell ended with sys.exit(%d).%s", c.Exit, s.keptText()))
		}
	case c.Status == "error" && c.Error != nil:
		r.IsError = true
		text := shorten(c.Error.Traceback, limit, "the exception")
		parts = append(parts, text)
		d.setError(c.Error, text)
	case c.Status != "ok":
		r.IsError = true
		parts = append(parts, r.failed("error", "Error: the cell ended in an unknown way."))
	}
	if c.Note != "" {
		notes = append(notes, "Note: "+shorten(c.Note, maxReason, "nothing"))
		if !apart {
			parts = append(parts, notes[len(notes)-1])
		}
	}
	d.Notes = append(d.Notes, notes...)
	return parts
}

// takeImages adds the cell's images to r, unless the session is being closed.
func (s *session) takeImages(ctx context.Context, r *Result, images []imageReport) []string {
	if len(images) == 0 {
		return nil
	}
	ctx, stop := until(ctx, s.closing)
	defer stop()
	return s.bridge.images.take(ctx, r, images)
}

// roomLeft is how many characters of a result are left for what comes after the
// cell's output: never so few that it would say nothing.
func (s *session) roomLeft(r *Result) int {
	limit := s.bridge.opts.OutputLimit
	return max(limit-utf8.RuneCountInString(r.details.Output), limit/5)
}

func valueText(v *valueReport, whole string, limit int) string {
	text := shorten(v.Text, limit, whole)
	if v.Shape == "" {
		return text
	}
	return fmt.Sprintf("%s\n[cut: %s; the whole is in %s]", text, cutEnd(v.Shape, maxShape), whole)
}

// interruptText says why the cell was interrupted. most is the longest timeout
// there is.
func (e *execution) interruptText(most time.Duration) string {
	why := "Interrupted: the client cancelled the call."
	switch {
	case e.outcome.Interrupted == "timeout" && e.timeout >= most:
		why = fmt.Sprintf("Timed out: the cell was interrupted after %s, the most one may take: do the work in several cells.", inSeconds(e.timeout))
	case e.outcome.Interrupted == "timeout":
		why = fmt.Sprintf("Timed out: the cell was interrupted after %s. Pass a larger `timeout` (%v at most) if it needs more.",
			inSeconds(e.timeout), most.Seconds())
	case e.stopped:
		why = "Interrupted by " + interruptCode + "."
	}
	return why
}

// keptText says that a cell that was ended costs no variables.
func (s *session) keptText() string {
	if s.bridge.opts.NotesApart {
		return ""
	}
	return " Variables are kept."
}

// inSeconds writes a duration for the model, without fractions where they mean
// nothing.
func inSeconds(d time.Duration) string {
	if d > 10*time.Second {
		d = d.Round(time.Second)
	}
	d = d.Round(time.Millisecond)
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

// imageMark is a line that stands for an image in what a cell prints.
var imageMark = regexp.MustCompile(`(?m)^\[image [0-9]+\]$`)

// progress shapes what a call shows of a cell that still runs.
func (s *session) progress(ctx context.Context, e *execution) Result {
	r := Result{}
	notices := s.takeNotices(ctx, e, &r)
	s.mu.Lock()
	fresh, soFar := e.takeOutput(), e.soFar()
	s.mu.Unlock()
	output := e.addOutput(&r, fresh, s.bridge.opts.OutputLimit)
	with := "an "
	if s.name != "" {
		with = "this `session` and "
	}
	r.details.Status, r.details.Notes = "running", append(notices,
		fmt.Sprintf("[cell %d is still running, %s: call run_python with %sempty `code` to wait for the rest, or with the code `%s` to stop it]",
			e.cell, soFar, with, interruptCode))
	if imageMark.MatchString(output) {
		r.details.Notes = append(r.details.Notes, "[its images come when it has ended]")
	}
	r.Text = join(slices.Insert(slices.Clone(r.details.Notes), len(notices), output))
	return r
}

// soFar says how long a cell runs, without the time of questions, and whether it
// waits for the user. The session's mu is held.
func (e *execution) soFar() string {
	since := (time.Since(e.started) - e.questions.stoodStill()).Round(time.Second)
	if since > e.timeout {
		return fmt.Sprintf("for %s now, of which it had %s: it is being stopped", inSeconds(since), inSeconds(e.timeout))
	}
	text := fmt.Sprintf("for %s now of at most %s", inSeconds(since), inSeconds(e.timeout))
	if asking := e.asking(); asking != "" {
		return text + ", " + asking
	}
	return text
}

// takeOutput returns what the cell printed that no call has shown yet. The
// session's mu is held.
func (e *execution) takeOutput() string {
	fresh := e.output.since(e.shown)
	e.shown = e.output.written()
	if !e.hasEnded() { // the rest of a line that is being drawn comes with what follows
		n := unfinished(fresh)
		e.shown, fresh = e.shown-n, fresh[:len(fresh)-n]
	}
	return fresh
}

// addOutput returns what is shown of the cell's output, and adds it to the
// details of r. It may take a while: the session's mu is not to be held, which
// the whole bridge may wait for.
func (e *execution) addOutput(r *Result, fresh string, limit int) string {
	whole := plain(fresh)
	shown := shorten(whole, limit, fmt.Sprintf("out[%d]", e.cell))
	r.details.Cell, r.details.Output, r.details.Truncated = e.cell, shown, len(shown) != len(whole)
	return shown
}

func (e *execution) hasEnded() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// takeNotices returns what happened since the last result, for a result about e.
// Of another cell that ended unseen r gets the images.
func (s *session) takeNotices(ctx context.Context, e *execution, r *Result) []string {
	missed := s.takeMissed(e)
	var notices []string
	if missed != nil {
		var m Result
		text := join(s.show(ctx, missed, &m))
		r.Images = m.Images
		if text == "" {
			notices = append(notices, fmt.Sprintf("[cell %d, which was still running, has ended]", missed.cell))
		} else {
			notices = append(notices, fmt.Sprintf("[cell %d, which was still running, has ended:]\n%s\n[end of cell %d]",
				missed.cell, text, missed.cell))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notice != "" {
		notices = append(notices, s.notice)
	}
	notices = append(notices, s.late.take(func(cell int) bool { return cell != e.cell })...)
	s.notice = ""
	return notices
}

// takeMissed returns the cell that ended unseen. If that is e, which was still
// running a moment ago, it stays for the next call.
func (s *session) takeMissed(e *execution) *execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	missed := s.missed
	if missed == e {
		return nil
	}
	s.missed = nil
	return missed
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
