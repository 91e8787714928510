package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/configedit"
)

// takenBack makes, of a client's file that was changed since, what it is without
// the import's edit: clients write their files all the time. It reports whether
// that could be done.
func takenBack(dir string, file journalFile, current []byte, merged *[]byte) bool {
	if file.Create || len(file.Taken) == 0 {
		return false
	}
	backup, err := read(filepath.Join(dir, file.Backup))
	if err != nil || sum(backup) != file.Before {
		return false
	}
	format := configedit.FormatOf(file.Path)
	out := current
	if n := len(file.Bridge); n > 0 {
		if out, err = configedit.Remove(format, out, file.Bridge[:n-1], file.Bridge[n-1]); err != nil {
			return false
		}
	}
	for _, t := range file.Taken {
		for _, key := range t.Keys {
			path := append(slices.Clone(t.Object), key)
			if configedit.Lookup(format, out, path...) != nil {
				continue // it is there again
			}
			value, err := editable(configedit.Lookup(format, backup, path...))
			if err == nil {
				out, err = configedit.Put(format, out, value, path...)
			}
			if err != nil {
				return false
			}
		}
	}
	*merged = out
	return true
}

// editable is a decoded value as configedit writes it.
func editable(value any) (any, error) {
	switch value := value.(type) {
	case string, bool, int:
		return value, nil
	case int64:
		return int(value), nil
	case json.Number:
		return strconv.Atoi(value.String())
	case []any:
		list := make([]string, len(value))
		for i, item := range value {
			text, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("a list of %T", item)
			}
			list[i] = text
		}
		return list, nil
	case map[string]any:
		object := configedit.Object{}
		for _, key := range inOrder(value) {
			inner, err := editable(value[key])
			if err != nil {
				return nil, err
			}
			object = append(object, configedit.Field{Key: key, Value: inner})
		}
		return object, nil
	}
	return nil, fmt.Errorf("a %T", value)
}

// inOrder are the keys of a definition as people write them, then the others.
func inOrder(object map[string]any) []string {
	var keys []string
	for _, key := range []string{"type", "command", "args", "url"} {
		if _, ok := object[key]; ok {
			keys = append(keys, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
