package discovery

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// A definition is one server of a file: as written, or the reason why there is
// none. The server's name is set in both cases.
type definition struct {
	server  Server
	project string
	inputs  map[string]*Input // of the file, by ID
	err     error
}

// parseConfig parses the file at path. An error concerns the file as a whole;
// errors of single servers are in their definitions, which are in the file's
// order.
func parseConfig(path string, data []byte) ([]definition, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	root, err := parseTree(path, data)
	if err != nil {
		return nil, err
	}
	p := configParser{name: path, lines: &lineIndex{data: data}}
	blocks, err := p.blocksOf(root)
	if err != nil {
		return nil, err
	}
	common := ""
	if d := root.get("description"); d != nil && len(blocks) > 0 && blocks[0].dialect == DialectOwn {
		if common, err = p.str("description", d); err != nil {
			return nil, err
		}
	}
	var definitions []definition
	for _, b := range blocks {
		for _, m := range b.servers.members {
			if b.dialect == DialectGoose && !gooseServer(m.value) {
				continue
			}
			def := p.definition(b, m)
			if def.server.Description == "" {
				def.server.Description = cleanText(common, maxServerDescription)
			}
			definitions = append(definitions, def)
		}
	}
	return definitions, nil
}

func (p configParser) definition(b block, m jsonMember) definition {
	def := definition{server: Server{Name: m.key, Dialect: b.dialect, File: p.name}, project: b.project, inputs: b.inputs}
	p.dialect = b.dialect
	if b.dialect == DialectRegistry {
		def.inputs = make(map[string]*Input)
		def.err = p.registry(&def, m.value)
		return def
	}
	def.err = p.server(&def.server, m.value)
	if b.disabled[m.key] || b.only != nil && !b.only[m.key] {
		def.server.Disabled = true
	}
	return def
}

// gooseServer reports whether an extension is an MCP server, and not a part of goose.
func gooseServer(n *jsonNode) bool {
	if config := n.get("config"); config.is(kindObject) {
		n = config
	}
	switch n.get("type").str() {
	case "builtin", "platform", "frontend", "inline_python":
		return false
	}
	return true
}

// configParser turns nodes into fields. Its errors name fields and positions,
// never values.
type configParser struct {
	name    string // of the file
	dialect string
	lines   *lineIndex
}

// A lineIndex finds lines and columns without reading the text each time.
type lineIndex struct {
	data   []byte
	starts []int

	// What was asked for last, for a line of a megabyte that is wrong all over.
	last, column int
}

func (l *lineIndex) position(offset int) string {
	if l.starts == nil {
		l.starts = lineStarts(l.data)
	}
	line := sort.SearchInts(l.starts, offset+1)
	from, column := l.starts[line-1], 1
	if l.last >= from && l.last <= offset && l.column > 0 {
		from, column = l.last, l.column
	}
	end := max(from, min(offset, len(l.data)))
	l.last, l.column = end, column+utf8.RuneCount(l.data[from:end])
	return fmt.Sprintf("%d:%d", line, l.column)
}

// at is " at line:column", and nothing where that is not known.
func (p configParser) at(n *jsonNode) string {
	if n == nil || n.offset < 0 {
		return ""
	}
	return " at " + p.lines.position(n.offset)
}

// server fills in s from its object, members in any order.
func (p configParser) server(s *Server, n *jsonNode) error {
	if err := checkServerName(s.Name); err != nil {
		return err
	}
	if !n.is(kindObject) {
		return p.wrong("the definition", n, kindObject)
	}
	if config := n.get("config"); p.dialect == DialectGoose && config.is(kindObject) {
		n = &jsonNode{kind: kindObject, offset: n.offset, members: slices.Concat(n.members, config.members)}
	}
	if err := p.fields(s, n); err != nil {
		return err
	}
	if p.dialect == DialectOpenCode || p.dialect == DialectSettings {
		bracesOf(s)
	}
	return p.complete(s, n)
}

// complete derives the type of a server and says what it lacks.
func (p configParser) complete(s *Server, n *jsonNode) error {
	switch {
	case s.Type != "":
	case s.Command != "" || s.URL == "":
		s.Type = TypeStdio
	case strings.HasSuffix(strings.TrimRight(s.URL, "/"), "/sse"):
		s.Type = TypeSSE
	default:
		s.Type = TypeHTTP
	}
	switch {
	case s.Disabled:
		return nil
	case s.Remote() && s.URL == "":
		return errors.New(`no "url"`)
	case s.Remote():
		s.Command, s.Args, s.Cwd = "", nil, ""
		return nil
	case s.Command != "":
		s.URL, s.Headers = "", nil
		return nil
	case p.dialect == DialectZed && (n.get("settings") != nil || n.get("source").str() == "extension"):
		return errors.New("no \"command\": it is an extension of Zed, which knows how to start it; give the command here")
	}
	return errors.New(`no "command" and no "url"`)
}

func (p configParser) fields(s *Server, n *jsonNode) error {
	seen := make(map[string]bool, len(n.members))
	for _, m := range n.members {
		known := knownField(m.key)
		if seen[m.key] && known != "" {
			return fmt.Errorf("%q is given twice, again%s", m.key, p.at(m.value))
		}
		seen[m.key] = true
		if m.value.is(kindNull) {
			continue
		}
		if known == "" {
			if err := p.unknown(m.key, m.value); err != nil {
				return err
			}
			continue
		}
		if err := p.field(s, known, m); err != nil {
			return err
		}
	}
	return nil
}

// unknown lets the keys of other clients pass ("icon", "trust", …) but not what
// looks like a slip: a misspelt "disabled" must not start a server.
func (p configParser) unknown(key string, n *jsonNode) error {
	for known := range strings.FieldsSeq("command args env envFile cwd description disabled enabled url headers approve") {
		near := 2
		if len(known) < 5 {
			near = 1
		}
		if strings.EqualFold(key, known) || editDistance([]rune(known), []rune(key), near) <= near {
			return fmt.Errorf("unknown key %q%s; did you mean %q?", truncate(key, 40), p.at(n), known)
		}
	}
	return nil
}

func (p configParser) wrong(field string, n *jsonNode, want jsonKind) error {
	return fmt.Errorf("%s%s: is %s, want %s", cleanLine(field, 80), p.at(n), n.kind, want)
}

func (p configParser) str(field string, n *jsonNode) (string, error) {
	if !n.is(kindString) {
		return "", p.wrong(field, n, kindString)
	}
	if strings.ContainsRune(n.text, 0) {
		return "", fmt.Errorf("%s%s: contains a NUL character", field, p.at(n))
	}
	return n.text, nil
}

// scalar is str, and takes numbers and booleans as they are written where that
// is the custom: a port in YAML has no quotes.
func (p configParser) scalar(field string, n *jsonNode) (string, error) {
	if p.unquoted() && (n.is(kindNumber) || n.is(kindBool)) {
		return n.text, nil
	}
	return p.str(field, n)
}

func (p configParser) unquoted() bool {
	switch strings.ToLower(filepath.Ext(p.name)) {
	case ".yaml", ".yml", ".toml":
		return true
	}
	return false
}

func (p configParser) strings(field string, n *jsonNode) ([]string, error) {
	if !n.is(kindArray) {
		return nil, p.wrong(field, n, kindArray)
	}
	list := make([]string, 0, len(n.items))
	for i, item := range n.items {
		s, err := p.scalar(fmt.Sprintf("%s[%d]", field, i), item)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// env reads an object of variables, and "headers" likewise.
func (p configParser) env(field string, n *jsonNode) (map[string]string, error) {
	if !n.is(kindObject) {
		return nil, p.wrong(field, n, kindObject)
	}
	env := make(map[string]string, len(n.members))
	for _, m := range n.members {
		switch {
		case field == "headers" && !headerName(m.key):
			return nil, fmt.Errorf("headers%s: %q is not a header's name", p.at(m.value), truncate(m.key, 40))
		case m.key == "" || strings.ContainsAny(m.key, "=\x00"):
			return nil, fmt.Errorf("%s%s: %q is not a variable's name", field, p.at(m.value), truncate(m.key, 40))
		}
		if _, ok := env[m.key]; ok {
			return nil, fmt.Errorf("%s%s: %q is given twice", field, p.at(m.value), truncate(m.key, 40))
		}
		value, err := p.scalar(field+" "+truncate(m.key, 40), m.value)
		if err != nil {
			return nil, err
		}
		env[m.key] = value
	}
	return env, nil
}

// headerName reports whether s is a token of HTTP.
func headerName(s string) bool {
	return s != "" && len(s) <= 128 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

func checkServerName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("a server's name is empty")
	case utf8.RuneCountInString(name) > maxServerName:
		return fmt.Errorf("a server's name is longer than %d characters", maxServerName)
	case strings.ContainsFunc(name, func(r rune) bool { return r == '\n' || hidden(r) && r != '\ufe0f' && r != '\u200d' }):
		return errors.New("a server's name contains control or invisible characters")
	}
	return nil
}
