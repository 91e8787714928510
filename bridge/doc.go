// Package bridge is the MCP server with the one tool run_python: it keeps
// sessions, has their cells run in sandboxes, and shapes what comes back.
//
// Words, as used throughout: a client speaks MCP with us and asks for a cell, one
// piece of code, to be run in a session. A session has a sandbox, one container,
// in which the kernel runs: a supervisor, which answers us on the control
// channel, and the REPL it forks, in which the cell calls tools of upstream
// servers on the callback channel.
//
//	client ── tools/call ──▶ Bridge ─▶ session ─▶ kernel ── control ──▶ supervisor
//	                                                 └────── callback ─ REPL
//
// Nothing that comes from a sandbox is trusted, and nothing of the host but what
// a cell asked for goes in. The package knows no container engine and no
// configuration format.
package bridge
