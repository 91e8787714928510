package container

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// Failures makes the errors of the engine that it names.
type Failures string

// New returns err as an error of the engine.
func (f Failures) New(op string, err error, hint string) error {
	return &runtime.Error{Engine: string(f), Op: op, Err: err, Hint: hint}
}

// Wrap returns err as an error of the engine, unless it is nil or one already.
func (f Failures) Wrap(op string, err error) error {
	if err == nil || IsFailure(err) {
		return err
	}
	return f.New(op, err, "")
}

// IsFailure reports whether err is an engine's error already.
func IsFailure(err error) bool {
	_, ok := errors.AsType[*runtime.Error](err)
	return ok
}

// A Condition is recognised by what an engine or its OCI runtime says, where
// the API gives nothing else.
type Condition struct {
	Phrases  []string
	Sentinel error
	Hint     string
}

// Match returns the first condition of which text has a phrase.
func Match(conditions []Condition, text string) (Condition, bool) {
	for _, c := range conditions {
		for _, phrase := range c.Phrases {
			if strings.Contains(text, phrase) {
				return c, true
			}
		}
	}
	return Condition{}, false
}

// Refuse is the error for what the engine does not put in force.
func (e *Engine) Refuse(differences ...runtime.Difference) error {
	texts := make([]string, len(differences))
	hint := e.opts.Hints.Changed
	for i, d := range differences {
		texts[i] = d.String()
		if strings.HasSuffix(d.Fact, " limit") {
			hint = e.opts.Hints.NoLimits
		}
	}
	return e.fail.New("attest sandbox", fmt.Errorf("%w: %s", runtime.ErrUnsupported, strings.Join(texts, "; ")), hint)
}

// unreadable reports that /proc does not show what is to be attested.
func (e *Engine) unreadable(err error) error {
	return e.fail.New("attest sandbox", fmt.Errorf("%w: %w", runtime.ErrUnsupported, err), e.opts.Hints.Unreadable)
}

// Sanitize removes from text of doubtful origin what could do more than be
// read: control sequences, invisible and direction-changing characters.
func Sanitize(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.TrimSpace(text)
}
