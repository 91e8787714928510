// Package discovery answers two questions: which MCP servers are configured,
// and which of their tools fits what somebody is looking for.
//
//	~/MCPs/*.json ──Load──▶ Config ──┐
//	                                 ├─▶ NewIndex ──▶ Index.Search
//	tools/list ──▶ Catalog ─Document─┘
//
// [Load] reads the definitions of servers, [Catalog] remembers on disk the
// tools they offered, [Document] turns tools into Python signatures, and
// [Index] searches them.
//
// The package opens no connections and starts no servers: whoever does hands
// in what it learned. It treats all of it as hostile. Files, schemas and texts
// are bounded before they are looked at, and no text that leaves this package
// for a model or a terminal carries control or invisible characters.
package discovery
