package discovery

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// The dialects, by the key that they are known by.
const (
	DialectOwn      = "mcpServers"      // Claude, Cursor, Windsurf, Gemini, Cline, LM Studio and others; ours, too
	DialectVSCode   = "servers"         // .vscode/mcp.json, with inputs
	DialectSettings = "mcp.servers"     // VS Code's settings, and OpenCode 2
	DialectOpenCode = "mcp"             // OpenCode
	DialectCodex    = "mcp_servers"     // Codex
	DialectZed      = "context_servers" // Zed
	DialectGoose    = "extensions"      // goose
	DialectProjects = "projects"        // the blocks of projects in ~/.claude.json
	DialectSingle   = "command"         // one server, named after its file
	DialectRegistry = "server.json"     // of the official registry
)

// A block is one object of servers in a file.
type block struct {
	dialect  string
	project  string            // the folder that it is for; empty if everywhere
	servers  *jsonNode         // an object of definitions
	disabled map[string]bool   // the servers that are switched off elsewhere in the file
	only     map[string]bool   // the only servers that are not; nil for all
	inputs   map[string]*Input // by ID
}

const wantServers = `want {"mcpServers": {"name": {"command": …}}}, or what another client reads`

// blocksOf finds the servers of a file by its shape, and says what it found
// instead.
func (p configParser) blocksOf(root *jsonNode) ([]block, error) {
	if !root.is(kindObject) {
		return nil, fmt.Errorf("is %s; %s", root.kind, wantServers)
	}
	var blocks []block
	inputs, err := p.inputs(root.get("inputs"))
	if err != nil {
		return nil, err
	}
	add := func(dialect string, servers *jsonNode) {
		blocks = append(blocks, block{dialect: dialect, servers: servers, inputs: inputs})
	}
	for _, m := range root.members {
		switch n := m.value; m.key {
		case "mcpServers", "amp.mcpServers":
			add(DialectOwn, n)
		case "servers":
			add(DialectVSCode, n)
		case "mcp.servers":
			add(DialectSettings, n)
		case "mcp":
			if more, err := p.mcpBlock(n, root); err != nil {
				return nil, err
			} else if more != nil {
				blocks = append(blocks, *more)
			}
		case "mcp_servers":
			add(DialectCodex, n)
		case "context_servers":
			add(DialectZed, n)
		case "extensions":
			if n.is(kindObject) {
				add(DialectGoose, n)
			}
		}
	}
	for i, b := range blocks {
		if b.servers.is(kindNull) {
			blocks[i].servers = &jsonNode{kind: kindObject, offset: -1}
		} else if !b.servers.is(kindObject) {
			return nil, fmt.Errorf("%s%s is %s; %s", b.dialect, p.at(b.servers), b.servers.kind, wantServers)
		}
	}
	p.switchedOff(blocks, root)
	projects, err := p.projectBlocks(root.get("projects"))
	if err != nil {
		return nil, err
	}
	if blocks = append(blocks, projects...); len(blocks) > 0 || root.get("projects").is(kindObject) {
		return blocks, nil
	}
	if single := p.single(root); single != nil {
		return []block{*single}, nil
	}
	if near := nearestKey("mcpServers", root); near != "" {
		return nil, fmt.Errorf("no %q but %q; %s", "mcpServers", near, wantServers)
	}
	return nil, fmt.Errorf("no %q; %s", "mcpServers", wantServers)
}

// mcpBlock reads what is below "mcp": VS Code's and OpenCode's servers, or only
// other settings, as in Gemini's file.
func (p configParser) mcpBlock(n, root *jsonNode) (*block, error) {
	if servers := n.get("servers"); servers != nil && !looksLikeServer(servers) {
		inputs, err := p.inputs(n.get("inputs"))
		if err != nil {
			return nil, err
		}
		return &block{dialect: DialectSettings, servers: servers, inputs: inputs}, nil
	}
	if !n.is(kindObject) {
		if root.get("mcpServers") != nil {
			return nil, nil
		}
		return &block{dialect: DialectOpenCode, servers: n}, nil
	}
	servers := &jsonNode{kind: kindObject, offset: n.offset}
	for _, m := range n.members {
		if looksLikeServer(m.value) || m.value.is(kindObject) && root.get("mcpServers") == nil {
			servers.members = append(servers.members, m)
		}
	}
	if len(servers.members) == 0 && len(n.members) > 0 {
		return nil, nil
	}
	return &block{dialect: DialectOpenCode, servers: servers}, nil
}

// looksLikeServer tells a definition from an object of definitions.
func looksLikeServer(n *jsonNode) bool {
	command := n.get("command")
	return command.is(kindString) || command.is(kindArray) || n.get("type").is(kindString) || n.get("url").is(kindString) || n.get("enabled").is(kindBool)
}

// switchedOff notes the servers that Gemini's "mcp" says not to start.
func (p configParser) switchedOff(blocks []block, root *jsonNode) {
	mcp := root.get("mcp")
	off, only := nameSet(mcp.get("excluded")), nameSet(mcp.get("allowed"))
	for i := range blocks {
		if blocks[i].dialect == DialectOwn {
			blocks[i].disabled, blocks[i].only = off, only
		}
	}
}

// nameSet returns the texts of a list, nil for anything else.
func nameSet(n *jsonNode) map[string]bool {
	if !n.is(kindArray) {
		return nil
	}
	set := make(map[string]bool, len(n.items))
	for _, item := range n.items {
		set[item.str()] = true
	}
	return set
}

// projectBlocks reads the blocks of projects of ~/.claude.json.
func (p configParser) projectBlocks(n *jsonNode) ([]block, error) {
	if !n.is(kindObject) {
		return nil, nil
	}
	var blocks []block
	for _, m := range n.members {
		servers := m.value.get("mcpServers")
		if servers == nil || servers.is(kindNull) {
			continue
		}
		if !servers.is(kindObject) {
			return nil, fmt.Errorf("mcpServers%s is %s; %s", p.at(servers), servers.kind, wantServers)
		}
		blocks = append(blocks, block{
			dialect: DialectProjects, project: m.key, servers: servers, disabled: nameSet(m.value.get("disabledMcpServers")),
		})
	}
	return blocks, nil
}

// single reads a file of one server: a definition, or the registry's description of one.
func (p configParser) single(root *jsonNode) *block {
	one := func(dialect, name string, n *jsonNode) *block {
		return &block{dialect: dialect, servers: &jsonNode{kind: kindObject, offset: n.offset, members: []jsonMember{{name, n}}}}
	}
	described := root
	if inner := root.get("server"); inner.is(kindObject) {
		described = inner // as the registry's API wraps it
	}
	if name := described.get("name"); name.is(kindString) && (described.get("packages").is(kindArray) || described.get("remotes").is(kindArray)) {
		return one(DialectRegistry, name.text[strings.LastIndexByte(name.text, '/')+1:], described)
	}
	for _, key := range []string{"command", "cmd", "url", "serverUrl", "httpUrl"} {
		if n := root.get(key); n.is(kindString) || n.is(kindArray) || n != nil && key == "command" {
			base := filepath.Base(p.name)
			return one(DialectSingle, strings.TrimSuffix(base, filepath.Ext(base)), root)
		}
	}
	return nil
}

// nearestKey returns a key of the object that was probably meant to be name.
func nearestKey(name string, object *jsonNode) string {
	for _, m := range object.members {
		if strings.EqualFold(m.key, name) || editDistance([]rune(name), []rune(m.key), 2) <= 2 {
			return m.key
		}
	}
	return ""
}

// inputs reads what a file says of the values that the user is asked for.
func (p configParser) inputs(n *jsonNode) (map[string]*Input, error) {
	if n == nil || n.is(kindNull) {
		return nil, nil
	}
	if !n.is(kindArray) {
		return nil, p.wrong("inputs", n, kindArray)
	}
	inputs := make(map[string]*Input, len(n.items))
	for _, item := range n.items {
		id := item.get("id")
		if !id.is(kindString) || !inputID(id.text) {
			return nil, errors.New("inputs" + p.at(item) + `: want {"id": "name", "type": "promptString", …}`)
		}
		in := &Input{
			ID:          id.text,
			Description: cleanLine(item.get("description").str(), maxParamDescription),
			Default:     item.get("default").str(),
			Password:    item.get("password").is(kindBool) && item.get("password").text == "true",
		}
		if options := item.get("options"); options.is(kindArray) {
			for _, option := range options.items {
				if option.is(kindObject) {
					option = option.get("value")
				}
				if option.is(kindString) {
					in.Options = append(in.Options, option.text)
				}
			}
		}
		inputs[in.ID] = in
	}
	return inputs, nil
}

// inputID reports whether s can stand in ${input:…}.
func inputID(s string) bool {
	return s != "" && len(s) <= 128 && !strings.ContainsAny(s, "{}$") && !strings.ContainsFunc(s, hidden)
}
