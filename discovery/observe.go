package discovery

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Bounds of looking at one result.
const (
	maxObserved     = 12 << 20  // bytes of a result: larger ones are not looked at
	maxObserveSteps = 20_000    // values and brackets
	maxObserveText  = 128 << 10 // bytes of a text that is JSON
	maxObserveItems = 20        // of one list
	maxObserveKeys  = 500       // of one object
	maxBlocks       = 10        // of content
)

// Observe returns the shape of the Python value that a CallToolResult becomes,
// nil if it is an error or makes no sense. It looks at the first items of lists,
// and at the beginning of what is large, so that its cost is bounded. What is in
// about, the tool's description and schema, helps to tell names of fields from data.
func Observe(result json.RawMessage, about string) *Shape {
	if len(result) > maxObserved {
		return nil
	}
	s := &scanner{data: result, steps: maxObserveSteps, within: maxObserveSteps, names: &fieldNames{about: about}}
	var structured *Shape
	var blocks []*Shape
	media, failed := false, false
	s.object(func(key string) {
		switch key {
		case "structuredContent":
			structured = s.value(0)
		case "content":
			s.array(func(int) {
				block, isMedia := s.block()
				media = media || isMedia
				if len(blocks) < maxBlocks {
					blocks = append(blocks, block)
				}
			})
		case "isError":
			failed = s.peek() == 't'
			s.skip()
		default:
			s.skip()
		}
	})
	done := !s.spent()
	switch {
	case failed || s.bad:
		return nil
	case structured != nil && !media && !structured.isNone():
		return structured
	case !done: // there may be more blocks, or structured content
		return nil
	case len(blocks) == 0:
		return scalarShape("None")
	case len(blocks) == 1:
		return blocks[0]
	}
	list := &Shape{List: true}
	for _, block := range blocks {
		list.Items = list.Items.Merged(block)
	}
	return list
}

func (s *Shape) isNone() bool {
	return len(s.Types) == 1 && s.Types[0] == "None" && !s.List && !s.Object && !s.Map
}

// A scanner reads JSON without building it. After what it cannot read, or when
// its steps are spent, it is at the end.
type scanner struct {
	data   []byte
	pos    int
	steps  int
	within int // steps for what the texts say
	bad    bool
	cut    bool // the data are the beginning of something longer
	names  *fieldNames
}

func (s *scanner) spent() bool { return s.steps <= 0 }

// end makes the scanner stop everywhere.
func (s *scanner) end(bad bool) {
	s.bad = s.bad || bad && !s.cut && !s.spent()
	s.steps, s.pos = 0, len(s.data)
}

// step takes one from the steps; it reports false when there are none.
func (s *scanner) step() bool {
	if s.steps--; s.steps <= 0 {
		s.end(false)
		return false
	}
	return true
}

// peek returns the next byte that is not a space, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// object calls member for each, which must read its value.
func (s *scanner) object(member func(key string)) {
	s.elements('{', '}', func(int) {
		key := s.str(256)
		if s.peek() != ':' {
			s.end(true)
			return
		}
		s.pos++
		member(key)
	})
}

func (s *scanner) array(item func(i int)) { s.elements('[', ']', item) }

func (s *scanner) elements(open, end byte, element func(i int)) {
	if s.peek() != open || !s.step() {
		s.end(true)
		return
	}
	s.pos++
	if s.peek() == end {
		s.pos++
		return
	}
	for i := 0; s.step(); i++ {
		element(i)
		switch s.peek() {
		case end:
			s.pos++
			return
		case ',':
			s.pos++
		default:
			s.end(true)
		}
	}
}

// str reads a string: at most limit bytes of it, decoded.
func (s *scanner) str(limit int) string {
	text, ok := decoded(s.rawString(), limit)
	s.bad = s.bad || !ok
	return text
}

// decoded is the beginning of a string that stands between quotes as raw.
func decoded(raw []byte, limit int) (text string, ok bool) {
	if len(raw) > limit {
		raw = wholeEscapes(raw[:limit])
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	quoted := append(append([]byte{'"'}, raw...), '"')
	ok = json.Unmarshal(quoted, &text) == nil
	return text, ok
}

// rawString returns what stands between the quotes.
func (s *scanner) rawString() []byte {
	if s.peek() != '"' || !s.step() {
		s.end(true)
		return nil
	}
	start := s.pos + 1
	for i := start; ; {
		n := bytes.IndexByte(s.data[i:], '"')
		if n < 0 {
			s.end(true)
			return nil
		}
		i += n
		backslashes := 0
		for i-backslashes > start && s.data[i-backslashes-1] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			s.pos = i + 1
			return s.data[start:i]
		}
		i++
	}
}

// wholeEscapes cuts an escape sequence or a character that was cut in two.
func wholeEscapes(raw []byte) []byte {
	if i := bytes.LastIndexByte(raw[max(0, len(raw)-12):], '\\'); i >= 0 {
		raw = raw[:max(0, len(raw)-12)+i]
		for len(raw) > 0 && raw[len(raw)-1] == '\\' {
			raw = raw[:len(raw)-1]
		}
	}
	for n := 0; n < utf8.UTFMax && len(raw) > 0 && !utf8.Valid(raw[max(0, len(raw)-utf8.UTFMax):]); n++ {
		raw = raw[:len(raw)-1]
	}
	return raw
}

// skip passes a value.
func (s *scanner) skip() {
	for depth := 0; s.step(); {
		switch s.peek() {
		case '{', '[':
			depth++
			s.pos++
		case '}', ']':
			depth--
			s.pos++
		case ',', ':':
			s.pos++
		case '"':
			s.rawString()
		default:
			s.literal()
		}
		if depth <= 0 {
			return
		}
	}
}

// literal reads a number or a word; what Python reads beyond JSON too.
func (s *scanner) literal() string {
	s.peek()
	start := s.pos
	for s.pos < len(s.data) && strings.IndexByte(",]}: \t\r\n\"[{", s.data[s.pos]) < 0 {
		s.pos++
	}
	if s.pos == start {
		s.end(true)
		return ""
	}
	return string(s.data[start:min(s.pos, start+64)])
}

// value reads a value for its shape; beyond some depth it is not looked at.
func (s *scanner) value(depth int) *Shape {
	if depth >= maxShapeDepth {
		s.skip()
		return nil
	}
	switch s.peek() {
	case '{':
		return s.record(depth)
	case '[':
		shape := &Shape{List: true}
		s.array(func(i int) {
			if i >= maxObserveItems {
				s.skip()
				return
			}
			shape.Items = shape.Items.Merged(s.value(depth + 1))
		})
		return shape
	case '"':
		s.rawString()
		return scalarShape("str")
	}
	return s.scalar(s.literal())
}

func (s *scanner) scalar(text string) *Shape {
	switch text {
	case "null":
		return scalarShape("None")
	case "true", "false":
		return scalarShape("bool")
	case "NaN", "Infinity", "-Infinity":
		return scalarShape("float")
	}
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		s.end(true)
		return nil
	}
	if strings.ContainsAny(text, ".eE") {
		return scalarShape("float")
	}
	return scalarShape("int")
}

// record reads an object, and decides whether its keys are names or data.
func (s *scanner) record(depth int) *Shape {
	shape := &Shape{Object: true}
	index := make(map[string]int)
	odd, count, start := 0, 0, s.pos
	var values *Shape // of those whose keys are no names, or too many
	s.object(func(key string) {
		if count++; count > maxObserveKeys {
			s.skip()
			return
		}
		value := s.value(depth + 1)
		i, twice := index[key]
		switch {
		case s.spent() && value == nil:
		case twice:
			shape.Fields[i].Shape = value // the last one counts, in Python too
		case !fieldLike(key):
			odd++
			values = values.Merged(value)
		default:
			index[key] = len(shape.Fields)
			shape.Fields = append(shape.Fields, ShapeField{Name: key, Shape: value})
		}
	})
	shape.Partial = s.spent()
	many := len(shape.Fields) > maxOwnKeys || sharedForm(shape.Fields)
	among := odd > 0 && count > 2 && shape.scalars() && values.like(shape.Fields[0].Shape) // those that are data
	if count > maxObserveKeys || odd > 0 && 2*odd >= count || among || many && shape.alike() || shape.dataLike() {
		shape.toMap()
		shape.Values = shape.Values.Merged(values)
		return shape
	}
	shape.More = odd > 0 || len(shape.Fields) > maxShapeFields
	shape.Fields = shape.Fields[:min(len(shape.Fields), maxShapeFields)]
	shape.guess(s.names, s.data[start:s.pos])
	return shape
}

// sharedForm reports whether several fields look as if they were entries of one
// table: objects.
func sharedForm(fields []ShapeField) bool {
	const few = 4
	return len(fields) >= few && fields[0].Shape != nil && fields[0].Shape.Object && len(fields[0].Shape.Fields) > 1
}

// block reads a content block as the SDK does, and reports whether it is an
// image or a sound.
func (s *scanner) block() (shape *Shape, media bool) {
	start := s.pos
	var text []byte
	var resource *Shape
	kind := ""
	if s.peek() != '{' {
		s.end(true)
		return nil, false
	}
	s.object(func(key string) {
		switch key {
		case "type":
			kind = s.str(32)
		case "text":
			text = s.textOrSkip()
		case "resource":
			resource = s.resource()
		default:
			s.skip()
		}
	})
	switch {
	case s.spent():
		return nil, false
	case kind == "image":
		return scalarShape("Image"), true
	case kind == "audio":
		return scalarShape("Audio"), true
	case kind == "text":
		return s.text(text, true), false
	case kind == "resource" && resource != nil:
		return resource, len(resource.Types) == 1 && (resource.Types[0] == "Image" || resource.Types[0] == "Audio")
	}
	again := &scanner{data: s.data[start:s.pos], steps: s.steps, names: s.names}
	shape = again.value(0)
	s.steps = min(s.steps, again.steps)
	return shape, false
}

// resource reads what an embedded resource holds; nil if that is nothing.
func (s *scanner) resource() *Shape {
	var text []byte
	hasText, blob, mime := false, false, ""
	if s.peek() != '{' {
		s.skip()
		return nil
	}
	s.object(func(key string) {
		switch key {
		case "text":
			hasText = s.peek() == '"'
			text = s.textOrSkip()
		case "mimeType":
			mime = s.str(128)
		default:
			blob = blob || key == "blob"
			s.skip()
		}
	})
	kind, _, _ := strings.Cut(mime, ";")
	kind = strings.TrimSpace(kind)
	switch {
	case s.spent():
		return nil
	case hasText && (strings.HasSuffix(kind, "/json") || strings.HasSuffix(kind, "+json")):
		return s.text(text, false)
	case hasText:
		return scalarShape("str")
	case blob && strings.HasPrefix(kind, "image/"):
		return scalarShape("Image")
	case blob && strings.HasPrefix(kind, "audio/"):
		return scalarShape("Audio")
	case blob:
		return scalarShape("bytes")
	}
	return nil
}

// textOrSkip returns what stands between the quotes of a string; of another
// value nothing.
func (s *scanner) textOrSkip() []byte {
	if s.peek() == '"' {
		return s.rawString()
	}
	s.skip()
	return nil
}

// text returns the shape of a text: of what it says, if it is JSON; of that,
// only objects and arrays count if they must.
func (s *scanner) text(raw []byte, structured bool) *Shape {
	plain := scalarShape("str")
	begin := bytes.TrimLeft(raw[:min(len(raw), 200)], " \\nrt")
	if len(begin) == 0 || structured && begin[0] != '{' && begin[0] != '[' {
		return plain
	}
	text, ok := decoded(raw, maxObserveText)
	if !ok {
		return plain
	}
	inner := &scanner{data: []byte(text), steps: s.within, cut: len(raw) > maxObserveText, names: s.names}
	shape := inner.value(0)
	rest := inner.peek()
	s.within = inner.steps
	if inner.bad || rest != 0 || shape == nil {
		return plain
	}
	return shape
}
