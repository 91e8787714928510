package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// maxArguments bounds what is read from stdin for one call, in bytes.
const maxArguments = 32 << 20

const argumentsHint = `title=text, count:=3 for JSON, --json '{"title": "x"}', or - for JSON from stdin`

// callArguments are what the command line says of a tool's arguments.
type callArguments struct {
	json  string   // an object
	pairs []string // key=text or key:=json
}

// callArguments reads the words after SERVER.TOOL, and --json, of which "-" is
// stdin.
func (r *root) callArguments(words []string, object string, given bool) (callArguments, error) {
	if slices.Contains(words, "-") {
		if given {
			return callArguments{}, usageError(argumentsHint, "the arguments are either in --json or, with -, on stdin")
		}
		words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "-" })
		object, given = "-", true
	}
	what := "--json"
	if given && object == "-" {
		what = "stdin"
		data, err := io.ReadAll(io.LimitReader(r.io.In, maxArguments+1))
		if err != nil {
			return callArguments{}, fmt.Errorf("read stdin: %w", err)
		}
		if len(data) > maxArguments {
			return callArguments{}, usageError("", "the arguments on stdin are over %d MiB", maxArguments>>20)
		}
		object = string(data)
	}
	if _, err := members(object); err != nil {
		return callArguments{}, usageError(argumentsHint, "%s must be a JSON object: %.200s", what, object)
	}
	for _, word := range words {
		if key, _, _, ok := splitPair(word); !ok || key == "" {
			return callArguments{}, usageError(argumentsHint, "%q is not an argument of the form key=text or key:=json", word)
		}
	}
	return callArguments{object, words}, nil
}

// members are those of a JSON object.
func members(object string) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal([]byte(object), &fields)
	if err == nil && fields == nil {
		err = fmt.Errorf("%s is not an object", object)
	}
	return fields, err
}

// splitPair takes key=text or key:=json apart.
func splitPair(word string) (key, value string, isJSON, ok bool) {
	key, value, ok = strings.Cut(word, "=")
	key, isJSON = strings.CutSuffix(key, ":")
	return key, value, isJSON, ok
}

// for joins them to one object, for a tool: text is a string where the tool
// takes one, and otherwise the JSON that it may be, such as a number. Whether it
// is right, the tool's schema says when it is called.
func (a callArguments) of(doc discovery.ToolDoc) (json.RawMessage, error) {
	if len(a.pairs) == 0 {
		return json.RawMessage(a.json), nil
	}
	fields, err := members(a.json)
	if err != nil {
		return nil, err
	}
	for _, word := range a.pairs {
		key, text, isJSON, _ := splitPair(word)
		param := findParam(doc, key)
		if param != nil {
			key = param.Name
		}
		if _, ok := fields[key]; ok {
			return nil, usageError("", "argument %s is given twice", key)
		}
		switch {
		case isJSON && !json.Valid([]byte(text)):
			return nil, usageError(`strings are JSON in quotes, or after = alone: `+key+`=text`, "argument %s: %s is not JSON", key, text)
		case isJSON, param != nil && !takesText(*param) && json.Valid([]byte(text)):
			fields[key] = json.RawMessage(text)
		default:
			if fields[key], err = json.Marshal(text); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(fields)
}

// findParam is the parameter of any of its names, nil if there is none.
func findParam(doc discovery.ToolDoc, name string) *discovery.Param {
	for i := range doc.Params {
		if doc.Params[i].Name == name {
			return &doc.Params[i]
		}
	}
	for i, p := range doc.Params {
		if p.Ident == name || slices.Contains(p.Aliases, name) {
			return &doc.Params[i]
		}
	}
	return nil
}

// takesText reports whether a parameter may be a string, as far as its type
// says.
func takesText(p discovery.Param) bool {
	for _, part := range unionParts(p.Type) {
		switch {
		case part == "str" || part == "Any" || part == "":
			return true
		case strings.HasPrefix(part, "Literal[") && strings.ContainsAny(part, `'"`):
			return true
		}
	}
	return false
}

// unionParts are what a type like "int | list[str | None]" may be, as texts.
func unionParts(typ string) []string {
	var parts []string
	depth, from := 0, 0
	quote := rune(0)
	for i, c := range typ {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case strings.ContainsRune("[{(", c):
			depth++
		case strings.ContainsRune("]})", c):
			depth--
		case c == '|' && depth == 0:
			parts = append(parts, strings.TrimSpace(typ[from:i]))
			from = i + 1
		}
	}
	return append(parts, strings.TrimSpace(typ[from:]))
}
