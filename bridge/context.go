package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

const (
	// contextKey is where a request's _meta has the value for `context`. It is no
	// argument of the tool, so that no model pays for it: it is for programs.
	contextKey = "io.mcp-bridge/context"

	// MaxContext is the most bytes the value of `context` may have as JSON.
	MaxContext = 4 << 20

	maxContextDepth = 100
	maxNumber       = 300 // characters: Python refuses to read numbers of thousands
)

// contextOf returns the value for `context` of a request's _meta, or nil.
func contextOf(meta map[string]any) (json.RawMessage, error) {
	value, ok := meta[contextKey]
	if !ok {
		return nil, nil
	}
	if !isExact(value) {
		return nil, errors.New("_meta[\"" + contextKey + "\"] has a number of 2**53 or more, of which digits are lost on the way: pass it as a string")
	}
	return mustJSON(value), nil
}

// isExact reports whether a decoded value has no number but those that float64,
// as which they were decoded, has every integer below.
func isExact(value any) bool {
	switch value := value.(type) {
	case float64:
		return math.Abs(value) < 1<<53
	case []any:
		for _, element := range value {
			if !isExact(element) {
				return false
			}
		}
	case map[string]any:
		for _, element := range value {
			if !isExact(element) {
				return false
			}
		}
	}
	return true
}

// normalContext checks a value for `context` and writes it as the wire wants it:
// every key once.
func normalContext(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > MaxContext {
		return nil, fmt.Errorf("the value for `context` has %d bytes as JSON; at most %d are allowed", len(raw), MaxContext)
	}
	if err := checkText(raw); err != nil {
		return nil, fmt.Errorf("`context`: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("the value for `context` is not JSON: %w", err)
	}
	if d.More() {
		return nil, errors.New("the value for `context` is more than one JSON value")
	}
	if err := checkContext(value, maxContextDepth); err != nil {
		return nil, err
	}
	return mustJSON(value), nil
}

func checkContext(value any, depth int) error {
	if depth < 0 {
		return fmt.Errorf("the value for `context` is nested more than %d levels deep", maxContextDepth)
	}
	switch value := value.(type) {
	case json.Number:
		if len(value) > maxNumber {
			return fmt.Errorf("the value for `context` has a number of %d characters; at most %d are allowed", len(value), maxNumber)
		}
	case []any:
		for _, element := range value {
			if err := checkContext(element, depth-1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, element := range value {
			if err := checkContext(element, depth-1); err != nil {
				return err
			}
		}
	}
	return nil
}
