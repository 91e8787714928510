package bridge

import (
	"context"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An entry is what clients see of the tool, which names the configured servers.
type entry struct {
	mu      sync.Mutex
	servers []string
	shown   map[int]func(*mcp.Tool) // to each MCP server
	last    int                     // key of shown
}

// show has put called with the tool, now and when that changes, until ctx is done.
func (e *entry) show(ctx context.Context, tool func(servers []string) *mcp.Tool, put func(*mcp.Tool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shown == nil {
		e.shown = map[int]func(*mcp.Tool){}
	}
	e.last++
	key := e.last
	e.shown[key] = put
	put(tool(e.servers))
	context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.shown, key)
	})
}

// SetServers has the tool's description name these servers, by their Python
// names, instead of Options.Servers. Clients are told if that changes it.
func (b *Bridge) SetServers(names []string) {
	e := &b.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	before := b.tool(e.servers).Description
	e.servers = slices.Clone(names)
	tool := b.tool(e.servers)
	if tool.Description == before {
		return
	}
	for _, put := range e.shown {
		put(tool)
	}
}
