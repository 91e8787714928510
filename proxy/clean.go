package proxy

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// maxThingText bounds the texts of what servers list beside tools, in characters.
const maxThingText = 4_000

// isShowable reports whether a name from a server can be shown as it is. Names
// are needed to ask for things, so they cannot be made showable.
func isShowable(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool {
		emoji := c == '\uFE0F' || c == '\u200D' // which belong into them
		return !emoji && (!unicode.IsPrint(c) || unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector))
	})
}

// cleanThing returns a JSON object with texts that are fit to be shown: the same
// bytes if they are.
func cleanThing(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var thing any
	if d.Decode(&thing) != nil {
		return raw // it has been decoded before
	}
	c := cleaner{}
	thing = c.value(thing)
	if !c.changed {
		return raw
	}
	clean, err := json.Marshal(thing)
	if err != nil {
		return json.RawMessage("{}") // of what was decoded: cannot happen
	}
	return clean
}

type cleaner struct{ changed bool }

func (c *cleaner) value(v any) any {
	switch v := v.(type) {
	case string:
		return c.text(v)
	case []any:
		for i := range v {
			v[i] = c.value(v[i])
		}
	case map[string]any:
		for key, value := range v {
			value = c.value(value)
			if clean := c.text(key); clean != key {
				delete(v, key)
				key = clean
			}
			v[key] = value
		}
	}
	return v
}

func (c *cleaner) text(text string) string {
	if len(text) <= maxThingText && !discovery.HidesText(text) {
		return text
	}
	c.changed = true
	return discovery.Clean(text, maxThingText)
}
