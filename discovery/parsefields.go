package discovery

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxConfigTime bounds every time in a definition.
const maxConfigTime = 30 * 24 * time.Hour

// knownField returns the field that a key of some dialect means.
func knownField(key string) string {
	switch key {
	case "command", "args", "cwd", "description", "disabled", "enabled", "type", "url", "headers", "tools", "approve", "concurrency", "idle", "timeout":
		return key
	case "cmd":
		return "command"
	case "env", "environment", "envs":
		return "env"
	case "envFile", "env_file":
		return "envFile"
	case "transport", "transportType":
		return "type"
	case "serverUrl", "httpUrl", "uri":
		return "url"
	case "http_headers":
		return "headers"
	case "env_keys", "env_vars", "env_http_headers", "bearer_token_env_var", "tool_timeout_sec", "timeoutMs", "timeout_ms", "trust":
		return key
	case "alwaysAllow", "autoApprove":
		return "autoApprove"
	case "includeTools", "enabled_tools", "available_tools":
		return "allowTools"
	case "excludeTools", "disabled_tools", "disabledTools":
		return "denyTools"
	case "enabledTools":
		return "allowTools"
	}
	return ""
}

// field reads one member. known is what its key means.
func (p configParser) field(s *Server, known string, m jsonMember) (err error) {
	key, n := m.key, m.value
	switch known {
	case "command":
		return p.command(s, key, n)
	case "args":
		var args []string
		args, err = p.strings(key, n)
		s.Args = append(s.Args, args...)
	case "env":
		var env map[string]string
		env, err = p.env(key, n)
		s.Env = merged(env, s.Env)
	case "env_keys", "env_vars":
		return p.envKeys(s, key, n)
	case "envFile":
		s.EnvFile, err = p.str(key, n)
	case "cwd":
		s.Cwd, err = p.str(key, n)
	case "description":
		s.Description, err = p.str(key, n)
		s.Description = cleanText(s.Description, maxServerDescription)
	case "disabled", "enabled":
		var yes bool
		if yes, err = p.boolean(key, n); yes == (known == "disabled") && err == nil {
			s.Disabled = true
		}
	case "type":
		return p.serverType(s, key, n)
	case "url":
		s.URL, err = p.str(key, n)
		if key == "httpUrl" && s.Type == "" {
			s.Type = TypeHTTP
		}
	case "headers":
		var headers map[string]string
		headers, err = p.env("headers", n)
		s.Headers = merged(headers, s.Headers)
	case "env_http_headers", "bearer_token_env_var":
		return p.envHeaders(s, key, n)
	default:
		return p.limit(s, known, m)
	}
	return err
}

// limit reads the fields that say what a server may do.
func (p configParser) limit(s *Server, known string, m jsonMember) (err error) {
	key, n := m.key, m.value
	switch known {
	case "timeout", "timeoutMs", "timeout_ms", "tool_timeout_sec":
		s.Timeout, err = p.timeout(key, n)
	case "idle":
		s.Idle, err = p.idle(key, n)
	case "concurrency":
		s.Concurrency, err = p.concurrency(key, n)
	case "tools":
		return p.tools(s, n)
	case "allowTools":
		s.AllowTools, err = p.patterns(key, n)
	case "denyTools":
		var deny []string
		deny, err = p.patterns(key, n)
		s.DenyTools = append(s.DenyTools, deny...)
	case "approve":
		s.Approve, err = p.globs(key, n, p.patterns)
	case "autoApprove":
		var auto []string
		auto, err = p.globs(key, n, p.strings) // whatever clients have: what matches nothing exempts nothing
		s.AutoApprove = append(s.AutoApprove, auto...)
	case "trust":
		if n.is(kindBool) && n.text == "true" {
			s.AutoApprove = append(s.AutoApprove, "*")
		}
	}
	return err
}

// merged returns the variables of both; those of more win.
func merged(base, more map[string]string) map[string]string {
	maps.Copy(base, more)
	return base
}

// command reads a command: a text; a list, with its arguments; or, of older
// versions of Zed, an object of path, args and env.
func (p configParser) command(s *Server, key string, n *jsonNode) (err error) {
	switch n.kind {
	case kindArray:
		words, err := p.strings(key, n)
		if err != nil {
			return err
		}
		if len(words) == 0 {
			return fmt.Errorf("%s%s: is empty", key, p.at(n))
		}
		s.Command, s.Args = words[0], append(words[1:], s.Args...)
		return nil
	case kindObject:
		if p.dialect != DialectZed {
			break
		}
		for _, m := range n.members {
			switch {
			case m.value.is(kindNull):
			case m.key == "path" || m.key == "command":
				s.Command, err = p.str(key+"."+m.key, m.value)
			case m.key == "args" || m.key == "env":
				err = p.field(s, m.key, m)
			case m.key == "timeout":
				s.Timeout, err = p.timeout(m.key, m.value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	s.Command, err = p.str(key, n)
	return err
}

// envKeys reads the names of goose's secrets, which are taken from variables,
// and of those that Codex passes on if they are set.
func (p configParser) envKeys(s *Server, key string, n *jsonNode) error {
	names, err := p.strings(key, n)
	if err != nil {
		return err
	}
	end := "}"
	if key == "env_vars" {
		end = ":-}"
	}
	for _, name := range names {
		if !variableName(name) {
			return fmt.Errorf("%s%s: %q is not a variable's name", key, p.at(n), truncate(name, 40))
		}
		if _, ok := s.Env[name]; !ok {
			s.Env = merged(map[string]string{name: "${" + name + end}, s.Env)
		}
	}
	return nil
}

// envHeaders reads Codex's headers whose values are in variables.
func (p configParser) envHeaders(s *Server, key string, n *jsonNode) error {
	from := make(map[string]string)
	if key == "bearer_token_env_var" {
		name, err := p.str(key, n)
		if err != nil {
			return err
		}
		from["Authorization"] = name
	} else {
		var err error
		if from, err = p.env("headers", n); err != nil {
			return err
		}
	}
	headers := make(map[string]string, len(from))
	for header, name := range from {
		if !variableName(name) {
			return fmt.Errorf("%s%s: %s: want the name of a variable", key, p.at(n), header)
		}
		if headers[header] = "${" + name + "}"; key == "bearer_token_env_var" {
			headers[header] = "Bearer ${" + name + "}"
		}
	}
	s.Headers = merged(headers, s.Headers)
	return nil
}

func (p configParser) boolean(key string, n *jsonNode) (bool, error) {
	if !n.is(kindBool) {
		return false, p.wrong(key, n, kindBool)
	}
	return n.text == "true", nil
}

func (p configParser) serverType(s *Server, key string, n *jsonNode) error {
	text, err := p.str(key, n)
	if err != nil {
		return err
	}
	switch strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(text)) {
	case "stdio", "local", "command":
		s.Type = TypeStdio
	case "http", "streamablehttp", "remote":
		s.Type = TypeHTTP
	case "sse":
		s.Type = TypeSSE
	default:
		return fmt.Errorf("%s%s: unknown; want \"stdio\", \"http\" or \"sse\"", key, p.at(n))
	}
	return nil
}

// tools reads {"allow": […], "deny": […]}, or a list of those that are allowed.
func (p configParser) tools(s *Server, n *jsonNode) (err error) {
	if n.is(kindArray) {
		if s.AllowTools, err = p.patterns("tools", n); err == nil && len(s.AllowTools) == 0 {
			s.DenyTools = append(s.DenyTools, "*")
		}
		return err
	}
	if !n.is(kindObject) {
		return p.wrong("tools", n, kindObject)
	}
	for _, m := range n.members {
		switch {
		case m.value.is(kindNull):
		case m.key == "allow":
			if s.AllowTools, err = p.patterns("tools.allow", m.value); err == nil && len(s.AllowTools) == 0 {
				s.DenyTools = append(s.DenyTools, "*")
			}
		case m.key == "deny":
			var deny []string
			deny, err = p.patterns("tools.deny", m.value)
			s.DenyTools = append(s.DenyTools, deny...)
		default:
			err = fmt.Errorf("unknown key %q%s in tools; it has \"allow\" and \"deny\"", truncate(m.key, 40), p.at(m.value))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// patterns reads a list of globs. One that looks as if it meant something else
// than it does is an error: a rule that matches nothing would let tools pass.
func (p configParser) patterns(field string, n *jsonNode) ([]string, error) {
	list, err := p.strings(field, n)
	for i, pattern := range list {
		wrong := ""
		switch at := strings.IndexAny(pattern, `[]{}\`); {
		case strings.TrimSpace(pattern) != pattern || pattern == "":
			wrong = "is empty, or has spaces around it"
		case at >= 0:
			wrong = fmt.Sprintf("has a %q; only * and ? are special: write a pattern for each name", pattern[at:at+1])
		default:
			continue
		}
		return nil, fmt.Errorf("%s[%d]%s: %q %s", field, i, p.at(n.items[i]), truncate(pattern, 40), wrong)
	}
	return list, err
}

// globs reads a list of globs, in the way of read, or true for all tools.
func (p configParser) globs(key string, n *jsonNode, read func(string, *jsonNode) ([]string, error)) ([]string, error) {
	if n.is(kindBool) {
		if n.text == "true" {
			return []string{"*"}, nil
		}
		return nil, nil
	}
	return read(key, n)
}

// timeout reads the time that a call may take. A text has a unit ("90s", "2m").
// Of a number, the unit is that of the client: OpenCode and keys that say so
// count milliseconds, Codex, goose and Zed seconds. The clients that share
// mcpServers disagree: there 1000 and more are milliseconds, less are seconds.
func (p configParser) timeout(key string, n *jsonNode) (time.Duration, error) {
	if n.is(kindObject) && (p.dialect == DialectOpenCode || p.dialect == DialectSettings) {
		request := n.get("request") // OpenCode 2 has "startup", too
		if request == nil || request.is(kindNull) {
			return 0, nil
		}
		return p.timeout(key+".request", request)
	}
	unit := time.Second
	switch {
	case key == "tool_timeout_sec":
	case key == "timeoutMs" || key == "timeout_ms" || p.dialect == DialectOpenCode || strings.HasSuffix(key, ".request"):
		unit = time.Millisecond
	case p.dialect == DialectCodex || p.dialect == DialectGoose || p.dialect == DialectZed:
	default:
		if f, err := strconv.ParseFloat(n.text, 64); n.is(kindNumber) && err == nil && f >= 1000 {
			unit = time.Millisecond
		}
	}
	return p.duration(key, n, unit)
}

// idle reads the time without a call after which a server is stopped: seconds,
// a text with a unit, or 0, false or "never", which is below 0.
func (p configParser) idle(key string, n *jsonNode) (time.Duration, error) {
	if n.is(kindBool) && n.text == "false" || n.is(kindString) && n.text == "never" {
		return -1, nil
	}
	d, err := p.duration(key, n, time.Second)
	if d == 0 && err == nil {
		d = -1
	}
	return d, err
}

func (p configParser) duration(key string, n *jsonNode, unit time.Duration) (time.Duration, error) {
	var d time.Duration
	switch n.kind {
	case kindString:
		var err error
		if d, err = time.ParseDuration(strings.TrimSpace(n.text)); err != nil {
			return 0, fmt.Errorf("%s%s: want a time such as \"90s\" or \"2m\", or a number", key, p.at(n))
		}
	case kindNumber:
		f, err := strconv.ParseFloat(n.text, 64)
		if err != nil || math.IsNaN(f) || math.Abs(f)*float64(unit) > float64(math.MaxInt64/2) {
			return 0, fmt.Errorf("%s%s: is out of range", key, p.at(n))
		}
		d = time.Duration(f * float64(unit))
	default:
		return 0, fmt.Errorf("%s%s: is %s, want a number or a time such as \"90s\"", key, p.at(n), n.kind)
	}
	if d < 0 || d > maxConfigTime {
		return 0, fmt.Errorf("%s%s: is out of range", key, p.at(n))
	}
	return d, nil
}

func (p configParser) concurrency(key string, n *jsonNode) (int, error) {
	const most = 10_000
	if !n.is(kindNumber) {
		return 0, p.wrong(key, n, kindNumber)
	}
	count, err := strconv.Atoi(n.text)
	if err != nil || count < 1 || count > most {
		return 0, fmt.Errorf("%s%s: want a whole number from 1 to %d", key, p.at(n), most)
	}
	return count, nil
}
