package importer

import (
	"path/filepath"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/configedit"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// places are the objects of a file in which each dialect has its servers.
func places(dialect, project string) [][]string {
	switch dialect {
	case discovery.DialectOwn:
		return [][]string{{"mcpServers"}, {"amp.mcpServers"}}
	case dialectSettings:
		return [][]string{{"mcp", "servers"}, {"mcp.servers"}}
	case dialectProjects:
		return [][]string{{"projects", project, "mcpServers"}}
	case dialectSingle, dialectRegistry:
		return nil
	}
	return [][]string{{dialect}}
}

// A Place is where a server is defined.
type Place struct {
	Path    []string // of the object of servers; empty if the file is that of one server
	Key     string   // the server's name there
	Whole   bool     // the file defines this server, and nothing else
	Dialect string
}

// Locate finds a definition in the text of its file.
func Locate(path string, data []byte, def discovery.Definition) (Place, bool) {
	format := configedit.FormatOf(path)
	if def.Dialect == dialectSingle || def.Dialect == dialectRegistry {
		return Place{Whole: true, Key: def.Server.Name, Dialect: def.Dialect}, true
	}
	for _, object := range places(def.Dialect, def.Project) {
		if configedit.Lookup(format, data, append(slices.Clone(object), def.Server.Name)...) != nil {
			return Place{Path: object, Key: def.Server.Name, Dialect: def.Dialect}, true
		}
	}
	return Place{}, false
}

// hasServers reports whether a file has an object of servers at all, in any
// dialect; most settings of editors have none.
func hasServers(path string, data []byte) bool {
	format := configedit.FormatOf(path)
	if configedit.Lookup(format, data, "projects") != nil {
		return true
	}
	for _, dialect := range []string{
		discovery.DialectOwn, dialectVSCode, dialectSettings, dialectOpenCode, dialectCodex, dialectZed, dialectGoose,
	} {
		for _, object := range places(dialect, "") {
			if configedit.Lookup(format, data, object...) != nil {
				return true
			}
		}
	}
	return false
}

// entry is the definition of the bridge in a dialect.
func entry(dialect string, command string, args []string) configedit.Object {
	plain := configedit.Object{{Key: "command", Value: command}, {Key: "args", Value: args}}
	switch dialect {
	case dialectVSCode, dialectSettings:
		return append(configedit.Object{{Key: "type", Value: "stdio"}}, plain...)
	case dialectOpenCode:
		return configedit.Object{
			{Key: "type", Value: "local"}, {Key: "command", Value: append([]string{command}, args...)}, {Key: "enabled", Value: true},
		}
	case dialectZed:
		return append(configedit.Object{{Key: "source", Value: "custom"}}, plain...)
	case dialectGoose:
		return configedit.Object{
			{Key: "name", Value: bridgeName}, {Key: "type", Value: "stdio"}, {Key: "enabled", Value: true},
			{Key: "cmd", Value: command}, {Key: "args", Value: args}, {Key: "timeout", Value: 300},
		}
	}
	return plain
}

// Short is a path with ~ for the home folder, for a reader.
func Short(path, home string) string {
	if rel, err := filepath.Rel(home, path); home != "" && err == nil && filepath.IsLocal(rel) {
		return filepath.Join("~", rel)
	}
	return path
}
