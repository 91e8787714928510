package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxFileValues bounds the values of a file: a megabyte of "[[[…" or "1,1,1,…"
// would otherwise become a hundred times its size in memory.
const maxFileValues = 200_000

// maxFileDepth bounds the nesting of TOML and YAML.
const maxFileDepth = 100

// IsConfigFile reports whether Load reads a file of that name in a folder.
func IsConfigFile(name string) bool {
	switch filepath.Ext(name) {
	case ".json", ".jsonc", ".toml", ".yaml", ".yml":
		return !strings.HasPrefix(name, ".")
	}
	return false
}

// parseTree parses the text of a file. The extension says whether it is TOML,
// YAML or JSON, which is what anything else is taken for; JSON may have
// comments and trailing commas, as the files of most clients.
func parseTree(name string, data []byte) (*jsonNode, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8 text")
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".toml":
		return parseTOML(data)
	case ".yaml", ".yml":
		return parseYAML(data)
	}
	if !json.Valid(data) {
		data = plainJSON(data)
	}
	return parseJSON(data, maxFileValues)
}

// plainJSON returns data with spaces in the place of comments and of commas
// before a closing bracket, so that everything else stays where it is.
func plainJSON(data []byte) []byte {
	out := bytes.Clone(data)
	last := 0 // where the last thing but space and comments is
	comma := -1
	for i := 0; i < len(out); {
		n := 1
		switch rest := out[i:]; {
		case rest[0] == '"':
			n = stringEnd(rest)
			last, comma = i, -1
		case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")):
			if n = commentEnd(rest); n < 0 {
				return out // without an end: an error where it begins
			}
			blank(rest[:n])
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
		default:
			if comma >= 0 && (rest[0] == '}' || rest[0] == ']') {
				out[comma] = ' '
			}
			comma = -1
			if rest[0] == ',' && strings.IndexByte("{[,:", out[last]) < 0 {
				comma = i
			}
			last = i
		}
		i += n
	}
	return out
}

// stringEnd returns the length of the JSON string that s begins with.
func stringEnd(s []byte) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"', '\n':
			return i + 1
		}
	}
	return len(s)
}

// commentEnd returns the length of the comment that s begins with, or -1.
func commentEnd(s []byte) int {
	if s[1] == '/' {
		if end := bytes.IndexByte(s, '\n'); end >= 0 {
			return end
		}
		return len(s)
	}
	end := bytes.Index(s[2:], []byte("*/"))
	if end < 0 {
		return -1
	}
	return end + 4
}

// blank overwrites s with spaces, but for the ends of lines.
func blank(s []byte) {
	for i, c := range s {
		if c != '\n' && c != '\r' {
			s[i] = ' '
		}
	}
}

// lineStarts returns where each line begins.
func lineStarts(data []byte) []int {
	starts := []int{0}
	for i, c := range data {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}
