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
	case discovery.DialectSettings:
		return [][]string{{"mcp", "servers"}, {"mcp.servers"}}
	case discovery.DialectProjects:
		return [][]string{{"projects", project, "mcpServers"}}
	case discovery.DialectSingle, discovery.DialectRegistry:
		return nil
	}
	return [][]string{{dialect}}
}

// A Place is where a server is defined.
type Place struct {
	Path    []string // of the object of servers; of the server itself if the file is that of one
	Key     string   // the server's name there
	Whole   bool     // the file defines this server, and nothing else
	Dialect string
}

// Locate finds a definition in the text of its file; one whose dialect is not
// known, as it could not be read, in any.
func Locate(path string, data []byte, def discovery.Definition) (Place, bool) {
	format := configedit.FormatOf(path)
	if def.Dialect == discovery.DialectSingle || def.Dialect == discovery.DialectRegistry {
		place := Place{Whole: true, Key: def.Server.Name, Dialect: def.Dialect}
		if _, wrapped := configedit.Lookup(format, data, "server").(map[string]any); wrapped && def.Dialect == discovery.DialectRegistry {
			place.Path = []string{"server"} // as the registry's API has it
		}
		return place, true
	}
	dialects := []string{def.Dialect}
	if def.Dialect == "" {
		dialects = shared
	}
	for _, dialect := range dialects {
		for _, object := range places(dialect, def.Project) {
			if configedit.Lookup(format, data, append(slices.Clone(object), def.Server.Name)...) != nil {
				return Place{Path: object, Key: def.Server.Name, Dialect: dialect}, true
			}
		}
	}
	return Place{}, false
}

// shared are the dialects whose files have several servers, for everywhere.
var shared = []string{
	discovery.DialectOwn, discovery.DialectVSCode, discovery.DialectSettings, discovery.DialectOpenCode, discovery.DialectCodex, discovery.DialectZed, discovery.DialectGoose,
}

// hasServers reports whether a file has an object of servers at all, in any
// dialect; most settings of editors have none.
func hasServers(path string, data []byte) bool {
	format := configedit.FormatOf(path)
	if configedit.Lookup(format, data, "projects") != nil {
		return true
	}
	for _, dialect := range shared {
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
	case discovery.DialectVSCode, discovery.DialectSettings:
		return append(configedit.Object{{Key: "type", Value: "stdio"}}, plain...)
	case discovery.DialectOpenCode:
		return configedit.Object{
			{Key: "type", Value: "local"}, {Key: "command", Value: append([]string{command}, args...)}, {Key: "enabled", Value: true},
		}
	case discovery.DialectZed:
		return append(configedit.Object{{Key: "source", Value: "custom"}}, plain...)
	case discovery.DialectGoose:
		return configedit.Object{
			{Key: "name", Value: bridgeName},
			{Key: "type", Value: "stdio"},
			{Key: "enabled", Value: true},
			{Key: "cmd", Value: command},
			{Key: "args", Value: args},
			{Key: "timeout", Value: 300},
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

// Switch enables or disables a server, in the way of its dialect.
func Switch(format configedit.Format, data []byte, p Place, on bool) ([]byte, error) {
	path := p.Path
	if !p.Whole {
		path = append(slices.Clone(p.Path), p.Key)
	}
	at := func(key string) []string { return append(slices.Clone(path), key) }
	key, value := "disabled", !on
	switch {
	case configedit.Lookup(format, data, at("disabled")...) != nil:
	case configedit.Lookup(format, data, at("enabled")...) != nil || hasEnabled(p.Dialect):
		key, value = "enabled", on
	case on:
		return data, nil
	}
	if key == "disabled" && on {
		return configedit.Remove(format, data, path, key)
	}
	return configedit.Put(format, data, value, at(key)...)
}

// hasEnabled tells the dialects that write "enabled", and not "disabled".
func hasEnabled(dialect string) bool {
	return slices.Contains([]string{discovery.DialectOpenCode, discovery.DialectCodex, discovery.DialectZed, discovery.DialectGoose}, dialect)
}
