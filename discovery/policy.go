package discovery

import "strings"

// Denied returns the field of s because of which a tool is not there for
// anybody, "tools.deny" or "tools.allow", or "" if it is. What is denied stays so
// whatever else allows it.
//
// A pattern means tools by their name, and by what that is in Python: a rule
// written after what listings show must not miss its tool. In a pattern * is any
// text, ? any character, and nothing else is special.
func (s Server) Denied(tool string) string {
	switch names := policyNames(tool); {
	case matchesAny(s.DenyTools, names):
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
	return matchesAny(s.Approve, names) && !matchesAny(s.AutoApprove, names)
}

// policyNames returns what a tool may be called in a pattern. It does not depend
// on the other tools of the server, which could change it.
func policyNames(tool string) []string {
	idents := memberIdents([]string{tool})
	return append(idents, tool, snakeCase(idents[0]))
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
