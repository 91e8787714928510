package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Message is a JSON-RPC 2.0 envelope: a request (Method and ID), a
// notification (Method alone), or a response (ID, and Result or Error).
// Params, Result and Error.Data are JSON text.
type Message struct {
	Method string
	ID     int64 // 0 for none: ids on our connections start at 1
	Params json.RawMessage
	Result json.RawMessage
	Error  *Error
}

// IsRequest reports whether m asks for a response.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != 0 }

// IsNotification reports whether m is a request without a response.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == 0 }

// Error is a JSON-RPC error object.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Error codes of JSON-RPC 2.0, section 5.1.
const (
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// maxID keeps ids exact in every JSON implementation.
const maxID = 1 << 53

func appendMessage(buf []byte, m *Message) ([]byte, error) {
	buf = append(buf, `{"jsonrpc":"2.0"`...)
	if m.ID != 0 {
		buf = append(buf, `,"id":`...)
		buf = strconv.AppendInt(buf, m.ID, 10)
	}
	if m.Method != "" {
		method, err := json.Marshal(m.Method)
		if err != nil {
			return nil, err
		}
		buf = append(append(buf, `,"method":`...), method...)
	}
	if m.Params != nil {
		buf = append(append(buf, `,"params":`...), m.Params...)
	}
	if m.Result != nil {
		buf = append(append(buf, `,"result":`...), m.Result...)
	}
	if m.Error != nil {
		data, err := json.Marshal(m.Error)
		if err != nil {
			return nil, err
		}
		buf = append(append(buf, `,"error":`...), data...)
	}
	return append(buf, '}'), nil
}

// decodeMessage parses and checks an envelope, which becomes part of the message.
// Keys are compared exactly, and unknown and repeated ones refused, so that no
// two parsers can read one frame differently. The text is gone over once for
// all that JSON has to be, and once for the members; encoding/json would do so
// four times, at 10 ms a MiB.
func decodeMessage(payload []byte) (*Message, error) {
	if !utf8.Valid(payload) { // encoding/json would mend it, and pass it on unmended
		return nil, fmt.Errorf("%w: not UTF-8", ErrProtocol)
	}
	if !json.Valid(payload) || bytes.TrimSpace(payload)[0] != '{' {
		return nil, fmt.Errorf("%w: not a JSON object", ErrProtocol)
	}
	members := membersOf(payload)
	if len(members) > maxMembers {
		return nil, fmt.Errorf("%w: more than %d keys", ErrProtocol, maxMembers)
	}
	m := &Message{}
	seen := make(map[string]bool, maxMembers)
	version := ""
	for _, member := range members {
		var key string
		if err := json.Unmarshal(member.key, &key); err != nil {
			return nil, fmt.Errorf("%w: a key is no string: %v", ErrProtocol, err)
		}
		if seen[key] {
			return nil, fmt.Errorf("%w: a key is there twice", ErrProtocol)
		}
		seen[key] = true
		if key == "jsonrpc" {
			version = string(member.value)
			continue
		}
		if err := m.set(key, member.value); err != nil {
			return nil, fmt.Errorf("%w: %v", ErrProtocol, err)
		}
	}
	if err := m.check(version); err != nil {
		return nil, err
	}
	return m, nil
}

// maxMembers is how many keys the largest envelope has.
const maxMembers = 6

// A member is the text of a key, with its quotes, and of its value.
type member struct{ key, value []byte }

// membersOf returns the members of the outermost object of valid JSON, of too many
// only the first.
func membersOf(object []byte) []member {
	var members []member
	var key []byte
	depth, begin := 0, 0 // begin is behind the colon
	for i := 0; i < len(object) && len(members) <= maxMembers; i++ {
		switch c := object[i]; c {
		case '"':
			end := stringEnd(object, i)
			if depth == 1 && key == nil {
				key = object[i : end+1]
			}
			i = end
		case '{', '[':
			depth++
		case ':':
			if depth == 1 {
				begin = i + 1
			}
		case '}', ']', ',':
			if depth == 1 && key != nil {
				members = append(members, member{key, bytes.TrimSpace(object[begin:i])})
				key = nil
			}
			if c != ',' {
				depth--
			}
		}
	}
	return members
}

// stringEnd returns the index of the quote that closes the string opened at i.
func stringEnd(text []byte, i int) int {
	for end := i + 1; ; end++ {
		end += bytes.IndexByte(text[end:], '"')
		slashes := 0
		for text[end-1-slashes] == '\\' { // the quote that opens it ends this
			slashes++
		}
		if slashes%2 == 0 {
			return end
		}
	}
}

func (m *Message) set(key string, value json.RawMessage) (err error) {
	switch key {
	case "id":
		m.ID, err = strconv.ParseInt(string(value), 10, 64)
		if err != nil || m.ID < 1 || m.ID > maxID {
			return fmt.Errorf("id is not an integer from 1 to %d", int64(maxID))
		}
	case "method":
		if err := json.Unmarshal(value, &m.Method); err != nil || m.Method == "" {
			return fmt.Errorf("method is not a name")
		}
	case "params":
		m.Params = value
	case "result":
		m.Result = value
	case "error":
		if bytes.Equal(value, []byte("null")) {
			return fmt.Errorf("error is null")
		}
		if err := json.Unmarshal(value, &m.Error); err != nil {
			return fmt.Errorf("error is not an error object")
		}
	default:
		return fmt.Errorf("unknown key %.32q", key)
	}
	return nil
}

func (m *Message) check(version string) error {
	isResponse := m.Result != nil || m.Error != nil
	switch {
	case version != `"2.0"`:
		return fmt.Errorf("%w: jsonrpc is not \"2.0\"", ErrProtocol)
	case m.Method != "" && isResponse,
		m.Method == "" && !isResponse,
		m.Result != nil && m.Error != nil,
		isResponse && m.ID == 0,
		isResponse && m.Params != nil:
		return fmt.Errorf("%w: neither a request nor a response", ErrProtocol)
	}
	return nil
}
