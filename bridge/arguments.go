package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// MaxCode is the most bytes one cell may have.
const MaxCode = 4 << 20

// minTimeout is the least timeout in seconds: what is shorter means nothing.
const minTimeout = 0.001

var sessionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// parseArguments reads the arguments of run_python as strictly as the tool's
// schema promises. The errors are for the model.
func parseArguments(raw json.RawMessage) (Request, error) {
	var req Request
	if err := checkText(raw); err != nil {
		return req, err
	}
	given, err := req.decode(raw)
	if err == nil && !given["code"] {
		err = errors.New("`code` is missing: the Python code to run, as a string")
	}
	return req, err
}

// decode sets the fields of r and returns the names that were there. A name
// that comes twice is refused: who looked at the call on its way here may have
// seen the other value.
func (r *Request) decode(raw json.RawMessage) (map[string]bool, error) {
	notObject := errors.New("the arguments must be a JSON object with `code`")
	given := map[string]bool{}
	if len(raw) == 0 {
		return given, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, notObject
	}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, notObject
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, notObject
		}
		if given[name] {
			return nil, fmt.Errorf("argument %.64q is there twice", name)
		}
		given[name] = true
		if err := r.set(name, value); err != nil {
			return nil, err
		}
	}
	return given, nil
}

func (r *Request) set(name string, value json.RawMessage) error {
	isNull := bytes.Equal(value, []byte("null"))
	switch name {
	case "code":
		if isNull || json.Unmarshal(value, &r.Code) != nil {
			return fmt.Errorf("`code` must be a string, not %s", kindOf(value))
		}
	case "session":
		if !isNull && json.Unmarshal(value, &r.Session) != nil {
			return fmt.Errorf("`session` must be a string, not %s", kindOf(value))
		}
	case "timeout":
		if isNull {
			return nil
		}
		seconds, err := strconv.ParseFloat(string(value), 64)
		if err != nil || math.IsInf(seconds, 0) {
			return fmt.Errorf("`timeout` must be a number of seconds, not %s", kindOf(value))
		}
		if seconds < minTimeout {
			return fmt.Errorf("`timeout` must be at least %v seconds, not %v", minTimeout, seconds)
		}
		r.Timeout = time.Duration(min(seconds, 1e6) * float64(time.Second))
	default:
		why := fmt.Sprintf("unknown argument %.64q: run_python takes `code`, `timeout` and `session`", name)
		if hint := proxy.DidYouMean(name, []string{"code", "timeout", "session"}, ""); hint != "" {
			why += "; " + hint
		}
		return errors.New(why)
	}
	return nil
}

// validate checks a request from any source and fills in its defaults.
func (b *Bridge) validate(req *Request) error {
	switch {
	case len(req.Code) > MaxCode:
		return fmt.Errorf("`code` has %d bytes; at most %d are allowed", len(req.Code), MaxCode)
	case strings.ContainsRune(req.Code, 0):
		line := 1 + strings.Count(req.Code[:strings.IndexByte(req.Code, 0)], "\n")
		return fmt.Errorf("`code` contains a NUL character, on line %d; in a string literal write \\x00", line)
	case !utf8.ValidString(req.Code):
		return errors.New("`code` is not valid UTF-8")
	case req.Session != "" && !sessionName.MatchString(req.Session):
		return fmt.Errorf("`session` %.80q is not a valid name: 1 to 64 letters, digits, `_`, `-` or `.`, "+
			"beginning with a letter or digit", req.Session)
	}
	if req.Timeout == 0 {
		req.Timeout = b.opts.Timeout
	}
	// Most cells that ask for too much end long before: refusing them would cost
	// a call and teach nothing. One that does not end is told.
	req.Timeout = min(req.Timeout, b.opts.MaxTimeout)
	if req.Context != nil {
		var err error
		req.Context, err = normalContext(req.Context)
		return err
	}
	return nil
}

// checkText finds what JSON allows and Unicode text does not. Decoding would
// silently replace it, and the cell would not be what the client sent.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("the arguments are not valid UTF-8")
	}
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // now at the escaped character
		unit, ok := utf16Escape(raw[i-1:])
		if !ok || unit < 0xD800 || unit > 0xDFFF {
			continue
		}
		low, ok := utf16Escape(raw[min(i+5, len(raw)):])
		if unit > 0xDBFF || !ok || low < 0xDC00 || low > 0xDFFF {
			return fmt.Errorf("the arguments contain the lone surrogate \\u%04x, which is not a character; "+
				"in Python code write it as \"\\\\u%04x\"", unit, unit)
		}
		i += 10 // past both halves
	}
	return nil
}

// utf16Escape returns the code unit of the \uXXXX at the start of raw.
func utf16Escape(raw []byte) (uint64, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return unit, err == nil
}

func kindOf(value json.RawMessage) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "the number " + string(value[:min(len(value), 32)])
	}
}
