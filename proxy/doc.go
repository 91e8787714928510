// Package proxy holds the connections to the configured MCP servers, upstream
// of a sandbox, and answers what the code in sandboxes asks of them.
//
// It owns upstream sessions (start, reuse, restart, end), the call path, and
// the server side of the callback channel. It knows nothing of containers, of
// configuration files, or of the tool the model sees.
//
//	sandbox ── wire.Conn ──▶ ServeCallbacks ──▶ Proxy ──▶ upstream ──▶ session ──▶ MCP server
//	                                              │          │            │
//	                                              │          │            └ gate: raw results, bounds on what a server may send
//	                                              │          └ one per configured server: starting, backoff, its tools
//	                                              └ names, catalog, search
//
// Servers are started on first use, shared by all sandboxes, and kept. A
// server is trusted to run with the user's rights, since the user configured
// it, but not to behave: everything it sends is bounded. A sandbox is trusted
// with nothing.
package proxy
