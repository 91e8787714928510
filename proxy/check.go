package proxy

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// maxCheckers is how many bytes of schemas a toolset keeps ready to check
// arguments against.
const maxCheckers = 4 << 20

// checkers holds what checks the arguments of tools, made when they are called
// first.
type checkers struct {
	mu    sync.Mutex
	of    map[string]*discovery.Checker // by name; nil for a tool that cannot be checked
	bytes int
}

// checker returns what checks the arguments of a tool, nil if nothing can. Why
// not is said once.
func (t *toolset) checker(u *upstream, name string) *discovery.Checker {
	c := t.checkers
	c.mu.Lock()
	defer c.mu.Unlock()
	if checker, ok := c.of[name]; ok {
		return checker
	}
	i, ok := t.index[name]
	if !ok {
		return nil
	}
	size := len(t.tools[i].InputSchema)
	if c.of == nil || c.bytes+size > maxCheckers {
		c.of, c.bytes = make(map[string]*discovery.Checker), 0
	}
	checker, err := discovery.NewChecker(t.tools[i], t.docs[i])
	if err != nil {
		checker = nil
		u.logger.Warn("arguments are not checked: the tool's schema cannot be used", "tool", quoteName(name), "error", err)
	}
	c.of[name] = checker
	c.bytes += size
	return checker
}

// checked returns args as they are to be sent, or why the tool would refuse
// them. What is known of the tool may be older than the server that runs: then
// it is asked again before a call is refused.
func (u *upstream) checked(ctx context.Context, s *session, name string, args json.RawMessage) (json.RawMessage, error) {
	set := u.known()
	if set == nil {
		return args, nil
	}
	sent, err := set.checker(u, name).Check(args)
	if err != nil && !u.listedOf(s) {
		if newer, _, listErr := u.list(ctx, s); listErr == nil && newer != set {
			set = newer
			sent, err = set.checker(u, name).Check(args)
		}
	}
	if err == nil {
		return sent, nil
	}
	e := &Error{Kind: Invalid, Err: err, Message: u.tool(name) + " was not called: " + err.Error()}
	if i, ok := set.index[name]; ok {
		e.Hint = "its signature is " + set.docs[i].Signature
	}
	return nil, e
}

// listedOf reports whether what is known was listed by this session.
func (u *upstream) listedOf(s *session) bool {
	t := &u.tools
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.listing != nil && t.listedOf == s && t.listing.landed() && t.listing.err == nil
}
