package discovery

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An expander replaces variables in definitions:
//
//	${NAME}, ${env:NAME}   the variable's value; it must be set
//	${NAME:-default}       default where the variable is unset or empty
//	                       NAME=${NAME:-} in env sets nothing where NAME is not set
//	${workspaceFolder}     the project's folder; ${workspaceFolderBasename} its name
//	${userHome}            the home folder
//	${pathSeparator}, ${/} what separates the parts of a path
//	${input:ID}            a value that the user was asked for
//	$${                    a literal ${
//	~ or ~/…               the home folder, at the very beginning only
//
// What a variable's value contains is not expanded again, so a value cannot
// pull in other secrets.
type expander struct {
	lookup    func(string) (string, bool)
	input     func(string, Input) (string, bool)
	workspace string

	// Of the definition:
	dir    string            // of its file
	inputs map[string]*Input // that its file describes
	read   func(path string) ([]byte, error)
}

func newExpander(lookup func(string) (string, bool)) expander {
	return expander{lookup: lookup, read: readEnvFile}
}

// of returns the expander for a definition.
func (e expander) of(d definition) expander {
	e.dir, e.inputs = filepath.Dir(d.server.File), d.inputs
	if d.project != "" {
		e.workspace, e.dir = d.project, d.project
	}
	return e
}

// expansion collects what went wrong with the fields of a definition.
type expansion struct {
	expander
	missing []string          // variables
	unasked []string          // inputs
	asked   map[string]string // the values of inputs that were looked for
	size    int               // of what was expanded, in bytes
	err     error             // the first other one
}

func (x *expansion) expand(field, text string) string {
	out, err := x.text(text, x)
	if err != nil && x.err == nil {
		x.err = fmt.Errorf("%s: %w", field, err)
	}
	if x.size += len(out); x.size > maxExpandedAll && x.err == nil {
		x.err = fmt.Errorf("longer than %d KiB in all once expanded", maxExpandedAll>>10)
	}
	if x.err != nil {
		return "" // the definition is of no use
	}
	return out
}

// maxMissing bounds the variables and inputs that are told to be missing.
const maxMissing = 100

func addOnce(list []string, s string) []string {
	if len(list) >= maxMissing || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// server expands the definition in place. Its error names fields, variables and
// inputs, never their values.
func (e expander) server(s *Server) error {
	x := &expansion{expander: e}
	s.Command = x.expand("command", s.Command)
	for i, arg := range s.Args {
		s.Args[i] = x.expand(fmt.Sprintf("args[%d]", i), arg)
	}
	for _, name := range sortedKeys(s.Env) {
		text := s.Env[name]
		s.Env[name] = x.expand("env "+cleanLine(name, 40), text)
		if s.Env[name] == "" && text == "${"+name+":-}" {
			delete(s.Env, name) // passed on if it is set
		}
	}
	for _, name := range sortedKeys(s.Headers) {
		s.Headers[name] = x.expand("headers "+cleanLine(name, 40), s.Headers[name])
	}
	s.Cwd = x.expand("cwd", s.Cwd)
	s.URL = x.expand("url", s.URL)
	given := s.EnvFile // which has no values of variables
	s.EnvFile = x.expand("envFile", s.EnvFile)
	switch {
	case x.err != nil:
		return x.err
	case len(x.missing) > 0:
		return &VariableError{x.missing}
	case len(x.unasked) > 0:
		return &InputError{Server: s.Name, Inputs: x.unasked}
	case s.Remote():
		return checkRemote(s)
	case strings.TrimSpace(s.Command) == "":
		return errors.New("command is empty once its variables are expanded")
	}
	if s.Cwd != "" && !filepath.IsAbs(s.Cwd) {
		// Where the bridge happens to be started must not matter.
		s.Cwd = filepath.Join(e.dir, s.Cwd)
	}
	if s.EnvFile != "" {
		if err := e.envFile(s); err != nil {
			return fmt.Errorf("envFile %s: %w", cleanLine(given, maxPathShown), err)
		}
	}
	return nil
}

// checkRemote checks an address and headers. Its errors show neither.
func checkRemote(s *Server) error {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("url: want an address that begins with http:// or https://")
	}
	for _, name := range sortedKeys(s.Headers) {
		if strings.ContainsAny(s.Headers[name], "\r\n") {
			return fmt.Errorf("headers %s: contains a line break", cleanLine(name, 40))
		}
	}
	return nil
}

// An InputError is why a server is left out that needs values which only the
// user knows.
type InputError struct {
	Server string
	Inputs []string // their IDs
}

func (e *InputError) Error() string {
	what := "inputs "
	if len(e.Inputs) == 1 {
		what = "input "
	}
	return what + cleanLine(strings.Join(e.Inputs, ", "), 200) + " not set: run `mcp-bridge servers input " + shellWord(e.Server) + "`, which asks for it"
}

// shellWord quotes a text for a shell where that is needed.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./@:+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// A VariableError is why a server is left out whose definition needs environment
// variables that are not set.
type VariableError struct{ Names []string }

func (e *VariableError) Error() string {
	names := e.Names
	if len(names) == 1 {
		return fmt.Sprintf("environment variable %s is not set (set it, or write ${%[1]s:-default})", names[0])
	}
	const shown = 10
	if len(names) > shown {
		names = append(names[:shown:shown], "…")
	}
	return fmt.Sprintf("environment variables %s are not set (set them, or write ${NAME:-default})", strings.Join(names, ", "))
}

// text expands one string, and notes in x the variables and inputs it lacked.
func (e expander) text(s string, x *expansion) (string, error) {
	s, err := e.tilde(s)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(s, "${")
		if !found {
			out.WriteString(s)
			break
		}
		if literal, escaped := strings.CutSuffix(before, "$"); escaped {
			out.WriteString(literal + "${")
			s = after
			continue
		}
		out.WriteString(before)
		reference, rest, closed := strings.Cut(after, "}")
		if !closed {
			return "", errors.New("${ without } (write $${ for a literal ${)")
		}
		value, err := e.reference(reference, x)
		if err != nil {
			return "", err
		}
		if out.WriteString(value); out.Len() > maxExpanded {
			return "", fmt.Errorf("longer than %d KiB once expanded", maxExpanded>>10)
		}
		s = rest
	}
	if strings.ContainsRune(out.String(), 0) {
		return "", errors.New("contains a NUL character once expanded")
	}
	return out.String(), nil
}

// maxExpanded bounds a text with its variables: no argument can be longer.
const maxExpanded = 2 << 20

// maxExpandedAll bounds all texts of a definition: no program can be started with more.
const maxExpandedAll = 8 << 20

// reference evaluates what stands between ${ and }.
func (e expander) reference(text string, x *expansion) (string, error) {
	if id, ok := strings.CutPrefix(text, "input:"); ok && inputID(id) {
		return e.inputValue(id, x), nil
	}
	if value, ok, err := e.predefined(text); ok {
		return value, err
	}
	text = strings.TrimPrefix(text, "env:")
	name, def, hasDefault := strings.Cut(text, ":-")
	if !variableName(name) {
		// The text is not repeated: somebody may have put a secret there.
		return "", errors.New("only ${NAME}, ${NAME:-default}, ${input:ID}, ${workspaceFolder} and ${userHome} are understood (write $${ for a literal ${)")
	}
	if strings.Contains(def, "${") {
		return "", fmt.Errorf("the default of ${%s} contains a variable; that is not supported", name)
	}
	value, ok := e.lookup(name)
	switch {
	case hasDefault && value == "":
		return def, nil
	case !ok:
		x.missing = addOnce(x.missing, name)
	}
	return value, nil
}

// predefined evaluates the names that clients know without a variable.
func (e expander) predefined(name string) (value string, ok bool, err error) {
	switch name {
	case "workspaceFolder":
		value, err = e.workspaceFolder()
	case "workspaceFolderBasename":
		value, err = e.workspaceFolder()
		value = filepath.Base(value)
	case "userHome":
		value, err = e.tilde("~")
	case "pathSeparator", "/":
		value = string(filepath.Separator)
	default:
		return "", false, nil
	}
	return value, true, err
}

func (e expander) workspaceFolder() (string, error) {
	if e.workspace != "" {
		return filepath.Abs(e.workspace)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("${workspaceFolder}: %w", err)
	}
	return dir, nil
}

func (e expander) inputValue(id string, x *expansion) string {
	if value, ok := x.asked[id]; ok {
		return value
	}
	if len(x.unasked) >= maxMissing {
		return ""
	}
	value := e.askInput(id, x)
	if x.asked == nil {
		x.asked = map[string]string{}
	}
	x.asked[id] = value
	return value
}

func (e expander) askInput(id string, x *expansion) string {
	in := Input{ID: id}
	if described := e.inputs[id]; described != nil {
		in = *described
	}
	if e.input != nil {
		if value, ok := e.input(id, in); ok {
			return value
		}
	}
	if in.Default == "" {
		x.unasked = addOnce(x.unasked, id)
	}
	return in.Default
}

// variableName reports whether s is a portable name, and short enough to be one.
func variableName(s string) bool {
	if s == "" || len(s) > 128 || (s[0] >= '0' && s[0] <= '9') {
		return false
	}
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// tilde expands a leading ~ that stands alone or before a slash.
func (e expander) tilde(s string) (string, error) {
	if s != "~" && !strings.HasPrefix(s, "~/") && !strings.HasPrefix(s, "~"+string(filepath.Separator)) {
		return s, nil
	}
	home, ok := e.lookup("HOME")
	if !ok || home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("~: %w", err)
		}
	}
	return home + s[1:], nil
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
