package discovery

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Bounds of an envFile.
const (
	maxEnvFile = 256 << 10 // bytes
	maxEnvVars = 1000
)

// envFile adds to Env what the server's envFile says; what the definition
// itself says wins. Its errors show no values.
func (e expander) envFile(s *Server) error {
	path := s.EnvFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.dir, path)
	}
	data, err := e.read(path)
	if err != nil {
		return err
	}
	vars, err := parseEnvFile(data)
	if err != nil {
		return err
	}
	s.Env, s.EnvFile = merged(vars, s.Env), ""
	return nil
}

// readEnvFile reads one that is trusted as definitions are: what it says becomes
// variables of a program that runs as the user.
func readEnvFile(path string) ([]byte, error) {
	data, err := readRegular(path, maxEnvFile)
	if err == nil {
		err = requireTrustedTarget(path)
	}
	return data, err
}

// parseEnvFile parses lines of NAME=value, as .env files have them: with an
// optional "export", comments behind #, and values in quotes, of which double
// ones know \n, \t, \", \\ and \$. Variables in values are not expanded.
func parseEnvFile(data []byte) (map[string]string, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8 text")
	}
	vars := make(map[string]string)
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, found := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name = strings.TrimSpace(name)
		if !found || !variableName(name) {
			return nil, fmt.Errorf("line %d: want NAME=value", number)
		}
		text, ok := envValue(strings.TrimSpace(value))
		if !ok || strings.ContainsRune(text, 0) {
			return nil, fmt.Errorf("line %d: %s: a quote without an end, or a NUL character", number, name)
		}
		if vars[name] = text; len(vars) > maxEnvVars {
			return nil, fmt.Errorf("more than %d variables", maxEnvVars)
		}
	}
	return vars, nil
}

func envValue(s string) (value string, ok bool) {
	if s == "" {
		return "", true
	}
	switch quote := s[0]; quote {
	case '\'':
		end := strings.IndexByte(s[1:], '\'')
		if end < 0 {
			return "", false
		}
		return s[1 : 1+end], true
	case '"':
		var b strings.Builder
		for i := 1; i < len(s); i++ {
			switch c := s[i]; {
			case c == '"':
				return b.String(), true
			case c == '\\' && i+1 < len(s):
				i++
				switch s[i] {
				case 'n':
					b.WriteByte('\n')
				case 't':
					b.WriteByte('\t')
				case 'r':
					b.WriteByte('\r')
				case '"', '\\', '$':
					b.WriteByte(s[i])
				default:
					b.WriteString(s[i-1 : i+1])
				}
			default:
				b.WriteByte(c)
			}
		}
		return "", false
	}
	if at := strings.Index(s, " #"); at >= 0 {
		s = strings.TrimSpace(s[:at])
	}
	return s, true
}
