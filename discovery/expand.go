package discovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An expander replaces variables in definitions:
//
//	${NAME}            the variable's value; it must be set
//	${NAME:-default}   default where the variable is unset or empty
//	$${                a literal ${
//	~ or ~/…           the home folder, at the very beginning only
//
// What a variable's value contains is not expanded again, so a value cannot
// pull in other secrets.
type expander struct {
	lookup func(string) (string, bool)
}

func newExpander(lookup func(string) (string, bool)) expander { return expander{lookup} }

// server expands the definition in place. Its error names fields and
// variables, never their values.
func (e expander) server(s *Server) error {
	var missing []string
	var firstErr error
	expand := func(field, text string) string {
		out, unset, err := e.text(text)
		if err != nil && firstErr == nil {
			firstErr = fmt.Errorf("%s: %w", field, err)
		}
		for _, name := range unset {
			if !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
		return out
	}
	s.Command = expand("command", s.Command)
	for i, arg := range s.Args {
		s.Args[i] = expand(fmt.Sprintf("args[%d]", i), arg)
	}
	for _, name := range sortedKeys(s.Env) {
		s.Env[name] = expand("env "+cleanLine(name, 40), s.Env[name])
	}
	s.Cwd = expand("cwd", s.Cwd)
	switch {
	case firstErr != nil:
		return firstErr
	case len(missing) > 0:
		return missingError(missing)
	case strings.TrimSpace(s.Command) == "":
		return errors.New("command is empty once its variables are expanded")
	}
	if s.Cwd != "" && !filepath.IsAbs(s.Cwd) {
		// Where the bridge happens to be started must not matter.
		s.Cwd = filepath.Join(filepath.Dir(s.File), s.Cwd)
	}
	return nil
}

func missingError(names []string) error {
	if len(names) == 1 {
		return fmt.Errorf("environment variable %s is not set (set it, or write ${%[1]s:-default})", names[0])
	}
	const shown = 10
	if len(names) > shown {
		names = append(names[:shown:shown], "…")
	}
	return fmt.Errorf("environment variables %s are not set (set them, or write ${NAME:-default})", strings.Join(names, ", "))
}

// text expands one string and returns the variables it lacked.
func (e expander) text(s string) (string, []string, error) {
	s, err := e.tilde(s)
	if err != nil {
		return "", nil, err
	}
	var out strings.Builder
	var unset []string
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
			return "", nil, errors.New("${ without } (write $${ for a literal ${)")
		}
		value, missing, err := e.reference(reference)
		if err != nil {
			return "", nil, err
		}
		if missing != "" {
			unset = append(unset, missing)
		}
		out.WriteString(value)
		s = rest
	}
	if strings.ContainsRune(out.String(), 0) {
		return "", nil, errors.New("contains a NUL character once expanded")
	}
	return out.String(), unset, nil
}

// reference evaluates what stands between ${ and }.
func (e expander) reference(text string) (value, missing string, err error) {
	name, def, hasDefault := strings.Cut(text, ":-")
	if !variableName(name) {
		// The text is not repeated: somebody may have put a secret there.
		return "", "", errors.New("only ${NAME} and ${NAME:-default} are understood (write $${ for a literal ${)")
	}
	if strings.Contains(def, "${") {
		return "", "", fmt.Errorf("the default of ${%s} contains a variable; that is not supported", name)
	}
	value, ok := e.lookup(name)
	switch {
	case hasDefault && value == "":
		return def, "", nil
	case !ok:
		return "", name, nil
	}
	return value, "", nil
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
