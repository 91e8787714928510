package proxy

import (
	"context"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Probe starts a server, given by name or identifier, unless it runs, and asks
// it for its tools, whatever is known of them. The caller must not change the
// result.
//
// Errors are *[Error].
func (p *Proxy) Probe(ctx context.Context, server string) ([]discovery.Tool, error) {
	return twice(ctx, func() ([]discovery.Tool, error) {
		u, err := p.upstream(server)
		if err != nil {
			return nil, err
		}
		s, err := u.session(ctx)
		if err != nil {
			return nil, err
		}
		set, _, err := u.list(ctx, s)
		if err != nil {
			return nil, err
		}
		return set.tools, nil
	})
}
