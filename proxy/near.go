package proxy

import (
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// DidYouMean is what to say of a name that is none of candidates: the nearest
// ones, or otherwise if none is near.
func DidYouMean(name string, candidates []string, otherwise string) string {
	near := discovery.Nearest(name, candidates, 3)
	if len(near) == 0 {
		return otherwise
	}
	for i, n := range near {
		near[i] = quoteName(n)
	}
	return "did you mean " + strings.Join(near, ", ") + "?"
}
