package stdio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// decode turns one line into messages: one, or several for a batch as protocol
// 2025-03-26 knew them. None and no error means that the line is no message,
// such as a log line on standard output. It returns ErrProtocol for a line that
// claims to be a message and is broken: somebody may be waiting for it.
//
// The messages refer to line, which must not change afterwards.
func decode(line []byte) ([]jsonrpc.Message, error) {
	line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
	if len(line) == 0 || line[0] != '{' && line[0] != '[' {
		return nil, nil
	}
	if !utf8.Valid(line) {
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
	}
	if !json.Valid(line) {
		if bytes.Contains(line, []byte(`"jsonrpc"`)) {
			return nil, fmt.Errorf("%w: not valid JSON", ErrProtocol)
		}
		return nil, nil
	}
	if line[0] == '{' {
		if msg := decodeObject(line); msg != nil {
			return []jsonrpc.Message{msg}, nil
		}
		return nil, nil
	}
	return decodeBatch(line), nil
}

func decodeBatch(line []byte) (msgs []jsonrpc.Message) {
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) != nil {
		return nil // nested deeper than encoding/json goes
	}
	for _, raw := range batch {
		if len(raw) > 0 && raw[0] == '{' {
			if msg := decodeObject(raw); msg != nil {
				msgs = append(msgs, msg)
			}
		}
	}
	return msgs
}

// decodeObject returns the message in a valid JSON object, nil if it is none.
// go-sdk's own decoder does the same at ten times the price (33 KB for an echo).
func decodeObject(object []byte) jsonrpc.Message {
	var version, id, method, params, result, failure []byte
	depth := eachMember(object, func(key, value []byte) {
		switch string(key) {
		case "jsonrpc":
			version = value
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			params = value
		case "result":
			result = value
		case "error":
			failure = value
		}
	})
	if string(version) != `"2.0"` {
		return nil
	}
	rpcID, ok := decodeID(id)
	switch {
	case !ok:
		return nil
	case method != nil:
		var name string
		if json.Unmarshal(method, &name) != nil || depth > MaxDepth {
			return nil
		}
		return &jsonrpc.Request{ID: rpcID, Method: name, Params: params}
	case !rpcID.IsValid():
		return nil
	case depth > MaxDepth:
		return &jsonrpc.Response{ID: rpcID, Result: result, Error: ErrTooDeep}
	case failure != nil && string(failure) != "null":
		var rpcErr jsonrpc.Error
		if json.Unmarshal(failure, &rpcErr) != nil {
			return failed(rpcID, "the server answered with an error of unknown form")
		}
		return &jsonrpc.Response{ID: rpcID, Error: &rpcErr}
	case result != nil:
		return &jsonrpc.Response{ID: rpcID, Result: result}
	}
	return failed(rpcID, "the server answered with neither a result nor an error")
}

func failed(id jsonrpc.ID, message string) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message}}
}

// decodeID reports false for an id that is none; an absent one is fine.
func decodeID(raw []byte) (jsonrpc.ID, bool) {
	if raw == nil || string(raw) == "null" {
		return jsonrpc.ID{}, true
	}
	var value any
	if raw[0] == '"' {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return jsonrpc.ID{}, false
		}
		value = s
	} else {
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return jsonrpc.ID{}, false
		}
		value = n
	}
	id, err := jsonrpc.MakeID(value)
	return id, err == nil
}

// recoverID looks for the id of a message of which only the head and the tail
// are there. Every known implementation writes the id either right after the
// opening brace and the version, or last.
func recoverID(head, tail []byte) (jsonrpc.ID, bool) {
	head = bytes.TrimPrefix(bytes.TrimSpace(head), []byte("{"))
	head = bytes.TrimPrefix(head, []byte(`"jsonrpc":"2.0",`))
	if rest, ok := bytes.CutPrefix(head, []byte(`"id":`)); ok {
		if end := bytes.IndexByte(rest, ','); end > 0 {
			return decodeID(bytes.TrimSpace(rest[:end]))
		}
	}
	tail = bytes.TrimSuffix(bytes.TrimSuffix(bytes.TrimSpace(tail), []byte("}")), []byte(`,"jsonrpc":"2.0"`))
	if start := bytes.LastIndex(tail, []byte(`"id":`)); start >= 0 {
		return decodeID(bytes.TrimSpace(tail[start+len(`"id":`):]))
	}
	return jsonrpc.ID{}, false
}

// Depth returns how deep a valid JSON object is nested.
func Depth(object []byte) int { return eachMember(object, func([]byte, []byte) {}) }

// eachMember calls f with the raw key (without quotes, escapes as written) and
// the raw value of every member of object, which must be valid JSON. It returns
// how deep object is nested.
func eachMember(object []byte, f func(key, value []byte)) (depth int) {
	s := splitter{data: object, pos: bytes.IndexByte(object, '{') + 1}
	for {
		s.space()
		if s.data[s.pos] == '}' {
			return s.deepest + 1
		}
		start := s.pos
		s.value()
		key := s.data[start+1 : s.pos-1]
		s.space()
		s.pos++ // the colon
		s.space()
		start = s.pos
		s.value()
		f(key, s.data[start:s.pos])
		s.space()
		if s.data[s.pos] == ',' {
			s.pos++
		}
	}
}

// A splitter walks over valid JSON without decoding it.
type splitter struct {
	data    []byte
	pos     int
	deepest int
}

func (s *splitter) space() {
	for s.data[s.pos] <= ' ' {
		s.pos++
	}
}

// value moves over one value.
func (s *splitter) value() {
	depth := 0
	for ; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '"':
			s.text()
		case '{', '[':
			depth++
			s.deepest = max(s.deepest, depth)
			continue
		case '}', ']':
			if depth == 0 { // the end of what a number or word was in
				return
			}
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return
			}
			continue
		default:
			continue
		}
		if depth == 0 { // a string, object or array is complete
			s.pos++
			return
		}
	}
}

// text moves to the closing quote of the string that begins here.
func (s *splitter) text() {
	for s.pos++; s.data[s.pos] != '"'; s.pos++ {
		if s.data[s.pos] == '\\' {
			s.pos++
		}
	}
}
