package discovery

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// Bounds of the patterns of a schema. Matching takes as long as the text is
// times the pattern, and a pattern of few characters can be of many
// instructions: (x?){1000}.
const (
	maxPatterns         = 200
	maxPatternText      = 500    // characters of one
	maxPatternSize      = 2_000  // instructions of one
	maxPatternsSize     = 20_000 // instructions of all
	patternWorkPerStep  = 100    // characters times instructions that count as a step
	maxMatchedText      = 64 << 10
	patternsReadOtherly = `\p \s \S \Q \z \A (? [[` // by Go than by JavaScript
)

// A pattern is a regular expression, and about how many instructions it has.
type pattern struct {
	re   *regexp.Regexp
	size int
}

// cost is how many steps it takes to match a text of so many bytes.
func (p pattern) cost(length int) int { return 1 + length*p.size/patternWorkPerStep }

// patterns are the regular expressions of a schema that Go can read.
type patterns struct {
	known map[string]pattern
	size  int // of all
}

// compile finds them. Most of what JavaScript allows beyond Go does not compile;
// what is read differently is left out, and so is what is too large.
func (p *patterns) compile(n *jsonNode) {
	for _, item := range n.items {
		p.compile(item)
	}
	for _, m := range n.members {
		p.compile(m.value)
		if m.key == "pattern" && m.value.is(kindString) {
			p.add(m.value.text)
		}
	}
}

func (p *patterns) add(text string) {
	if _, ok := p.known[text]; ok || len(text) > maxPatternText || len(p.known) >= maxPatterns {
		return
	}
	for other := range strings.FieldsSeq(patternsReadOtherly) {
		if strings.Contains(text, other) {
			return
		}
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return
	}
	size := patternSize(parsed)
	if size > maxPatternSize || p.size+size > maxPatternsSize {
		return
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return
	}
	if p.known == nil {
		p.known = make(map[string]pattern)
	}
	p.size += size
	p.known[text] = pattern{re, size}
}

// patternSize estimates of how many instructions an expression is, before they
// are made: repeated ones are copied as often as they are repeated. It stops
// counting when they are too many.
func patternSize(re *syntax.Regexp) int {
	size := 1
	switch re.Op {
	case syntax.OpLiteral:
		size = len(re.Rune)
	case syntax.OpCapture, syntax.OpConcat, syntax.OpAlternate:
		size = 2 + len(re.Sub)
	}
	copies := 1
	if re.Op == syntax.OpRepeat {
		copies = max(re.Min, re.Max, 1)
		size = copies // a branch for each
	}
	for _, sub := range re.Sub {
		if size > maxPatternSize {
			break
		}
		size += copies * patternSize(sub)
	}
	return size
}
