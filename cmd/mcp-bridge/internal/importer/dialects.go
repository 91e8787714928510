package importer

// Dialects, as discovery names them.
const (
	dialectVSCode   = "servers"
	dialectSettings = "mcp.servers"
	dialectOpenCode = "mcp"
	dialectCodex    = "mcp_servers"
	dialectZed      = "context_servers"
	dialectGoose    = "extensions"
	dialectProjects = "projects"
	dialectSingle   = "command"
	dialectRegistry = "server.json"
)
