package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// registry reads the official registry's description of a server: the first of
// its packages that can be started here, and without one the first of its
// remotes. What the user has to know becomes variables and inputs.
func (p configParser) registry(def *definition, n *jsonNode) error {
	s := &def.server
	if err := checkServerName(s.Name); err != nil {
		return err
	}
	s.Description = cleanText(n.get("description").str(), maxServerDescription)
	if off := n.get("disabled"); off != nil && !off.is(kindNull) { // ours: `servers disable` writes it
		var err error
		if s.Disabled, err = p.boolean("disabled", off); err != nil {
			return err
		}
	}
	r := registryReader{configParser: p, def: def}
	for _, pkg := range n.get("packages").list() {
		if ok, err := r.pkg(pkg); ok || err != nil {
			return err
		}
	}
	for _, remote := range n.get("remotes").list() {
		if ok, err := r.remote(remote); ok || err != nil {
			return err
		}
	}
	return errors.New("has no package that can be started (npm, pypi, oci or nuget, over stdio) and no remote")
}

// either returns the member of either name: older descriptions have snake_case.
func either(n *jsonNode, name, older string) *jsonNode {
	if m := n.get(name); m != nil {
		return m
	}
	return n.get(older)
}

type registryReader struct {
	configParser
	def *definition
}

// pkg reads one package. It reports false if it is of no use here.
func (r registryReader) pkg(n *jsonNode) (bool, error) {
	kind := either(n, "registryType", "registry_type").str()
	if kind == "" {
		kind = n.get("registry_name").str()
	}
	id := n.get("identifier").str()
	if id == "" {
		id = n.get("name").str()
	}
	if transport := n.get("transport").get("type").str(); transport != "" && transport != "stdio" {
		return false, nil
	}
	if id == "" || strings.HasPrefix(id, "-") {
		return false, nil
	}
	runtimeArgs, err := r.arguments(either(n, "runtimeArguments", "runtime_arguments"))
	if err != nil {
		return false, err
	}
	args, err := r.arguments(either(n, "packageArguments", "package_arguments"))
	if err != nil {
		return false, err
	}
	env, err := r.values(either(n, "environmentVariables", "environment_variables"), "environmentVariables")
	if err != nil {
		return false, err
	}
	command := registryCommand(kind, id, n.get("version").str(), runtimeArgs, env)
	if command == nil {
		return false, nil
	}
	if hint := either(n, "runtimeHint", "runtime_hint").str(); hint != "" && !strings.ContainsAny(hint, " \x00") {
		command[0] = hint
	}
	s := &r.def.server
	s.Type, s.Command, s.Args, s.Env = TypeStdio, command[0], append(command[1:], args...), env
	return true, nil
}

// registryCommand returns how a package is started, nil if it is of no kind that
// is known here.
func registryCommand(kind, id, version string, runtimeArgs []string, env map[string]string) []string {
	at := func(separator string) string {
		if version == "" || version == "latest" {
			return id
		}
		return id + separator + version
	}
	has := func(flag string) bool { return slices.Contains(runtimeArgs, flag) }
	switch kind {
	case "npm":
		command := []string{"npx"}
		if !has("-y") && !has("--yes") {
			command = append(command, "-y")
		}
		return append(append(command, runtimeArgs...), at("@"))
	case "pypi":
		return append(append([]string{"uvx"}, runtimeArgs...), at("@"))
	case "nuget":
		command := append(append([]string{"dnx"}, runtimeArgs...), at("@"))
		if !has("--yes") && !has("-y") {
			command = append(command, "--yes")
		}
		return append(command, "--")
	case "oci", "docker":
		command := []string{"docker", "run"}
		if !has("-i") && !has("-it") && !has("--interactive") {
			command = append(command, "-i")
		}
		if !has("--rm") {
			command = append(command, "--rm")
		}
		for _, name := range sortedKeys(env) {
			command = append(command, "-e", name)
		}
		image := id
		if last := id[strings.LastIndexByte(id, '/')+1:]; !strings.ContainsAny(last, ":@") {
			image = at(":")
		}
		return append(append(command, runtimeArgs...), image)
	}
	return nil
}

// remote reads one address.
func (r registryReader) remote(n *jsonNode) (bool, error) {
	s := &r.def.server
	kind := either(n, "type", "transport_type").str()
	switch kind {
	case "streamable-http", "streamable", "http":
		s.Type = TypeHTTP
	case "sse":
		s.Type = TypeSSE
	default:
		return false, nil
	}
	text := n.get("url").str()
	if text == "" {
		return false, nil
	}
	var err error
	if s.URL, err = r.template(text, n.get("variables")); err != nil {
		return false, err
	}
	s.Headers, err = r.values(n.get("headers"), "headers")
	return err == nil, err
}

// arguments reads a list of arguments. Those that are neither given nor needed
// are left out.
func (r registryReader) arguments(n *jsonNode) ([]string, error) {
	var args []string
	for _, item := range n.list() {
		name := item.get("name").str()
		label := name
		if hint := either(item, "valueHint", "value_hint").str(); hint != "" {
			label = hint
		}
		value, ok, err := r.value(item, strings.TrimLeft(label, "-"))
		if err != nil {
			return nil, err
		}
		named := item.get("type").str() == "named"
		switch {
		case named && name != "" && ok && value != "":
			args = append(args, name, value)
		case named && name != "" && (ok || required(item) || item.get("format").str() == "boolean" && item.get("default").str() == "true"):
			args = append(args, name)
		case !named && ok:
			args = append(args, value)
		}
	}
	return args, nil
}

// values reads the variables or headers of a description.
func (r registryReader) values(n *jsonNode, field string) (map[string]string, error) {
	values := make(map[string]string)
	for _, item := range n.list() {
		name := item.get("name").str()
		if field == "headers" && !headerName(name) || field != "headers" && !variableName(name) {
			return nil, fmt.Errorf("%s%s: %q is no name for one", field, r.at(item), truncate(name, 40))
		}
		if field != "headers" && item.get("value") == nil {
			switch fallback := item.get("default").str(); {
			case fallback != "" && !strings.ContainsAny(fallback, "{}$"):
				values[name] = "${" + name + ":-" + fallback + "}"
			case required(item):
				values[name] = "${" + name + "}"
			default:
				values[name] = "${" + name + ":-}"
			}
			continue
		}
		value, ok, err := r.value(item, name)
		if err != nil {
			return nil, err
		}
		if ok {
			values[name] = value
		}
	}
	return values, nil
}

// value returns the value of an input of the description: as given, or else its
// default, or else, where there must be one, what the user is asked for.
func (r registryReader) value(n *jsonNode, label string) (value string, ok bool, err error) {
	if text := n.get("value").str(); text != "" {
		value, err = r.template(text, n.get("variables"))
		return value, true, err
	}
	if text := n.get("default").str(); text != "" {
		return literal(text), true, nil
	}
	if !required(n) || label == "" {
		return "", false, nil
	}
	value, err = r.ask(label, n)
	return value, true, err
}

// template replaces {name} in a text by what variables say of the name.
func (r registryReader) template(text string, variables *jsonNode) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "{")
		name, rest, closed := strings.Cut(after, "}")
		v := variables.get(name)
		if !found || !closed {
			b.WriteString(literal(text))
			return b.String(), nil
		}
		b.WriteString(literal(before))
		if v == nil {
			if b.WriteString("{"); strings.HasSuffix(before, "$") {
				return "", errors.New("${ in a text of the registry is not supported")
			}
			text = after
			continue
		}
		value := literal(v.get("value").str())
		if value == "" {
			value = literal(v.get("default").str())
		}
		if value == "" {
			var err error
			if value, err = r.ask(name, v); err != nil {
				return "", err
			}
		}
		b.WriteString(value)
		text = rest
	}
}

// literal keeps a text of the registry from being taken for our variables.
func literal(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// ask returns the placeholder for a value that the user is asked for.
func (r registryReader) ask(id string, n *jsonNode) (string, error) {
	if !inputID(id) {
		return "", fmt.Errorf("%q%s is no name for a value", truncate(id, 40), r.at(n))
	}
	in := &Input{ID: id, Description: cleanLine(n.get("description").str(), maxParamDescription)}
	if secret := either(n, "isSecret", "is_secret"); secret.is(kindBool) {
		in.Password = secret.text == "true"
	}
	for _, choice := range n.get("choices").list() {
		if choice.is(kindString) {
			in.Options = append(in.Options, choice.text)
		}
	}
	r.def.inputs[id] = in
	return "${input:" + id + "}", nil
}

func required(n *jsonNode) bool {
	r := either(n, "isRequired", "is_required")
	return r.is(kindBool) && r.text == "true"
}
