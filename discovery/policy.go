package discovery

import (
	"strconv"
	"strings"
)

// Denied returns the field of s because of which a tool is not there for
// anybody, "tools.deny" or "tools.allow", or "" if it is. What is denied stays so
// whatever else allows it.
//
// A pattern means tools by their name, and by what that is in Python: a rule
// written after what listings show must not miss its tool. In a pattern * is any
// text, ? any character, and nothing else is special. What denies and what needs
// approval is matched whatever the case of letters is, what allows is not: a slip
// must not let a tool pass.
func (s Server) Denied(tool string) string {
	switch names := policyNames(tool); {
	case matchesAny(folded(s.DenyTools), folded(names)):
		return "tools.deny"
	case len(s.AllowTools) > 0 && !matchesAny(s.AllowTools, names):
		return "tools.allow"
	}
	return ""
}

// NeedsApproval reports whether the user wants to be asked before a tool is
// called. Patterns are as in Denied.
func (s Server) NeedsApproval(tool string) bool {
	if len(s.Approve) == 0 {
		return false
	}
	names := policyNames(tool)
	return matchesAny(folded(s.Approve), folded(names)) && !matchesAny(s.AutoApprove, names)
}

// policyNames returns what a tool may be called in a pattern. It does not depend
// on the other tools of the server, which could change it.
func policyNames(tool string) []string {
	idents := memberIdents([]string{tool})
	return append(idents, tool, snakeCase(idents[0]))
}

func folded(texts []string) []string {
	lower := make([]string, len(texts))
	for i, text := range texts {
		lower[i] = strings.ToLower(text)
	}
	return lower
}

// UnusedPatterns returns the patterns of s that match none of these tools, each
// with the field that it is in.
func (s Server) UnusedPatterns(tools []string) []string {
	var names []string
	for _, tool := range tools {
		names = append(names, policyNames(tool)...)
	}
	lower := folded(names)
	var unused []string
	note := func(field string, given, patterns, names []string) {
		for i, pattern := range patterns {
			if pattern != "*" && !matchesAny([]string{pattern}, names) {
				unused = append(unused, field+" "+strconv.Quote(given[i]))
			}
		}
	}
	note("tools.allow", s.AllowTools, s.AllowTools, names)
	note("tools.deny", s.DenyTools, folded(s.DenyTools), lower)
	note("approve", s.Approve, folded(s.Approve), lower)
	return unused
}

func matchesAny(patterns, names []string) bool {
	for _, pattern := range patterns {
		for _, name := range names {
			if matchesGlob(pattern, name) {
				return true
			}
		}
	}
	return false
}

// matchesGlob takes time in proportion to the product of the lengths at most.
func matchesGlob(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, from := -1, 0 // the latest * and where what it stands for ends
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, from = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(string(p[i:]), "*") == ""
}
