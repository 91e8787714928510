package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxFileValues bounds the JSON values of a file: a megabyte of "[[[…" or
// "1,1,1,…" would otherwise become a hundred times its size in memory.
const maxFileValues = 200_000

// A definition is one entry of mcpServers: a server as written, or the reason
// why there is none. The server's name is set in both cases.
type definition struct {
	server Server
	err    error
}

// parseConfig parses one file. An error concerns the file as a whole; errors
// of single servers are in their definitions, which are in the file's order.
func parseConfig(data []byte) ([]definition, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8 text")
	}
	root, err := parseJSON(data, maxFileValues)
	if err != nil {
		return nil, err
	}
	servers, err := serversOf(root)
	if err != nil {
		return nil, err
	}
	p := configParser{data: data}
	common := ""
	if d := root.get("description"); d != nil {
		if common, err = p.str("description", d); err != nil {
			return nil, err
		}
	}
	definitions := make([]definition, 0, len(servers.members))
	for _, m := range servers.members {
		def := definition{server: Server{Name: m.key}}
		def.err = p.server(&def.server, m.value)
		if def.server.Description == "" {
			def.server.Description = cleanText(common, maxServerDescription)
		}
		definitions = append(definitions, def)
	}
	return definitions, nil
}

// serversOf finds the mcpServers object, and says what it found instead.
func serversOf(root *jsonNode) (*jsonNode, error) {
	const want = `want {"mcpServers": {"name": {"command": …}}}`
	if !root.is(kindObject) {
		return nil, fmt.Errorf("is %s; %s", root.kind, want)
	}
	servers := root.get("mcpServers")
	if servers == nil {
		if near := nearestKey("mcpServers", root); near != "" {
			return nil, fmt.Errorf("no %q but %q; %s", "mcpServers", near, want)
		}
		return nil, fmt.Errorf("no %q; %s", "mcpServers", want)
	}
	if !servers.is(kindObject) {
		return nil, fmt.Errorf("mcpServers is %s; %s", servers.kind, want)
	}
	return servers, nil
}

// nearestKey returns a key of the object that was probably meant to be name.
func nearestKey(name string, object *jsonNode) string {
	for _, m := range object.members {
		if strings.EqualFold(m.key, name) || strings.EqualFold(m.key, "servers") ||
			editDistance([]rune(name), []rune(m.key), 2) <= 2 {
			return m.key
		}
	}
	return ""
}

// configParser turns nodes into fields. Its errors name fields and positions,
// never values.
type configParser struct{ data []byte }

// server fills in s from its object, members in any order.
func (p configParser) server(s *Server, n *jsonNode) error {
	if err := checkServerName(s.Name); err != nil {
		return err
	}
	if !n.is(kindObject) {
		return p.wrong("the definition", n, kindObject)
	}
	if err := p.fields(s, n); err != nil {
		return err
	}
	if s.Disabled || s.Command != "" {
		return nil
	}
	if n.get("url") != nil || n.get("serverUrl") != nil {
		return errors.New("remote servers (\"url\") are not supported yet: only servers started with a \"command\" are")
	}
	return errors.New("no \"command\"")
}

func (p configParser) fields(s *Server, n *jsonNode) error {
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		if seen[m.key] && knownKey(m.key) {
			return fmt.Errorf("%q is given twice, again at %s", m.key, position(p.data, m.value.offset))
		}
		seen[m.key] = true
		if m.value.is(kindNull) {
			continue
		}
		if err := p.field(s, m.key, m.value); err != nil {
			return err
		}
	}
	return nil
}

const knownKeys = "command args env cwd description disabled"

func knownKey(key string) bool {
	for known := range strings.FieldsSeq(knownKeys) {
		if key == known {
			return true
		}
	}
	return false
}

func (p configParser) field(s *Server, key string, n *jsonNode) (err error) {
	switch key {
	case "command":
		s.Command, err = p.str(key, n)
	case "args":
		s.Args, err = p.strings(key, n)
	case "env":
		s.Env, err = p.env(n)
	case "cwd":
		s.Cwd, err = p.str(key, n)
	case "description":
		s.Description, err = p.str(key, n)
		s.Description = cleanText(s.Description, maxServerDescription)
	case "disabled":
		if !n.is(kindBool) {
			return p.wrong(key, n, kindBool)
		}
		s.Disabled = n.text == "true"
	default:
		return p.unknown(key, n)
	}
	return err
}

// unknown lets the keys of other clients pass ("type", "timeout", …) but not
// what looks like a slip: a misspelt "disabled" must not start a server.
func (p configParser) unknown(key string, n *jsonNode) error {
	for known := range strings.FieldsSeq(knownKeys) {
		near := 2
		if len(known) < 5 {
			near = 1
		}
		if strings.EqualFold(key, known) || editDistance([]rune(known), []rune(key), near) <= near {
			return fmt.Errorf("unknown key %q at %s; did you mean %q?", key, position(p.data, n.offset), known)
		}
	}
	return nil
}

func (p configParser) str(field string, n *jsonNode) (string, error) {
	if !n.is(kindString) {
		return "", p.wrong(field, n, kindString)
	}
	if strings.ContainsRune(n.text, 0) {
		return "", fmt.Errorf("%s at %s: contains a NUL character", field, position(p.data, n.offset))
	}
	return n.text, nil
}

func (p configParser) strings(field string, n *jsonNode) ([]string, error) {
	if !n.is(kindArray) {
		return nil, p.wrong(field, n, kindArray)
	}
	list := make([]string, 0, len(n.items))
	for i, item := range n.items {
		s, err := p.str(fmt.Sprintf("%s[%d]", field, i), item)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (p configParser) env(n *jsonNode) (map[string]string, error) {
	if !n.is(kindObject) {
		return nil, p.wrong("env", n, kindObject)
	}
	env := make(map[string]string, len(n.members))
	for _, m := range n.members {
		if m.key == "" || strings.ContainsAny(m.key, "=\x00") {
			return nil, fmt.Errorf("env at %s: %q is not a variable's name", position(p.data, m.value.offset), truncate(m.key, 40))
		}
		if _, ok := env[m.key]; ok {
			return nil, fmt.Errorf("env at %s: %q is given twice", position(p.data, m.value.offset), truncate(m.key, 40))
		}
		value, err := p.str("env "+truncate(m.key, 40), m.value)
		if err != nil {
			return nil, err
		}
		env[m.key] = value
	}
	return env, nil
}

func (p configParser) wrong(field string, n *jsonNode, want jsonKind) error {
	return fmt.Errorf("%s at %s: is %s, want %s", cleanLine(field, 80), position(p.data, n.offset), n.kind, want)
}

func checkServerName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("a server's name is empty")
	case utf8.RuneCountInString(name) > maxServerName:
		return fmt.Errorf("a server's name is longer than %d characters", maxServerName)
	case strings.ContainsFunc(name, func(r rune) bool { return r == '\n' || hidden(r) }):
		return errors.New("a server's name contains control or invisible characters")
	}
	return nil
}
