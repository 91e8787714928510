package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of checking the arguments of one call. What is beyond them is not
// checked: the server does that too.
const (
	maxCheckSteps   = 50_000
	maxCheckTime    = 200 * time.Millisecond
	maxCheckDepth   = 100
	maxCheckedNodes = 200_000   // values of the arguments
	maxCheckedBytes = 16 << 20  // of the arguments
	maxCheckSchema  = 256 << 10 // bytes of a schema
	maxShownValue   = 40        // characters of a value in a message
)

// An ArgumentError says which argument of a call is wrong, and how. Its text is
// fit to be shown, and ends without a full stop.
type ArgumentError struct {
	Argument string // the path, like labels[2].name; empty if it concerns all of them
	Problem  string // "expected str, got int 3"
}

func (e *ArgumentError) Error() string {
	if e.Argument == "" {
		return e.Problem
	}
	return "argument " + e.Argument + ": " + e.Problem
}

// A Checker checks the arguments of one tool against its inputSchema before
// they are sent. It is safe for concurrent use.
//
// It refuses only what the schema rules out: a keyword it does not know, a
// reference out of the schema and whatever is too large or too deep pass. So do
// those that the server may read differently, such as a pattern that Go cannot.
//
// It is not a validator off the shelf because those have no bounds: an anyOf in
// an anyOf in an anyOf … keeps them busy for ever, and a schema that refers to
// itself overflows the stack, which no Go program survives.
type Checker struct {
	doc      *schemaDoc
	params   []Param
	numbers  map[string]int       // of params, by their names
	schemas  map[string]*jsonNode // of parameters
	names    map[string]string    // further names of parameters to their names
	open     bool
	patterns patterns
}

var errLargeSchema = errors.New("the schema is too large")

// NewChecker returns the checker of a tool that is documented as doc. It fails
// if the schema cannot be used; nil, which checks nothing, is then what to use.
func NewChecker(t Tool, doc ToolDoc) (*Checker, error) {
	if len(t.InputSchema) > maxCheckSchema {
		return nil, errLargeSchema
	}
	root, err := parseJSON(t.InputSchema, maxSchemaValues)
	if err != nil {
		return nil, err
	}
	if !root.is(kindObject) {
		return nil, fmt.Errorf("the schema is %s", root.kind)
	}
	c := &Checker{
		doc: newSchemaDoc(root), params: doc.Params, open: doc.Open,
		names: make(map[string]string), numbers: make(map[string]int), schemas: make(map[string]*jsonNode),
	}
	_, f := newRenderer(c.doc).params()
	for _, p := range f.list {
		c.schemas[p.name] = p.schema
	}
	for i, p := range doc.Params {
		c.numbers[p.Name] = i
		for _, name := range append([]string{p.Ident}, p.Aliases...) {
			c.names[name] = p.Name
		}
	}
	for _, p := range doc.Params {
		delete(c.names, p.Name)
	}
	c.patterns.compile(root)
	return c, nil
}

// Check returns the arguments to send: args as they are, to the byte, except
// that parameters given by another of their names get their own, and that an
// optional one is left out if it is null and may not be, which is how Python
// says "not given". The error is an *ArgumentError.
func (c *Checker) Check(args json.RawMessage) (json.RawMessage, error) {
	if c == nil || len(args) > maxCheckedBytes {
		return args, nil
	}
	value, err := parseJSON(args, maxCheckedNodes)
	if errors.Is(err, errTooManyValues) {
		return args, nil
	}
	if err != nil || !value.is(kindObject) {
		return nil, &ArgumentError{Problem: "arguments must be a JSON object"}
	}
	k := check{checker: c, steps: maxCheckSteps, until: time.Now().Add(maxCheckTime)}
	value, changed := c.renamed(value.indexedAll())
	value, dropped := k.withoutNulls(value)
	if err := c.unknown(value); err != nil {
		return nil, err
	}
	if err := c.missing(value); err != nil {
		return nil, err
	}
	if v := k.value(c.doc.root, value, 0); v != nil {
		return nil, v.error()
	}
	if changed || dropped {
		args = joined(args, value)
	}
	return args, nil
}

// renamed gives parameters their own names.
func (c *Checker) renamed(value *jsonNode) (*jsonNode, bool) {
	if c.open || len(c.names) == 0 {
		return value, false
	}
	var members []jsonMember
	for i, m := range value.members {
		name, ok := c.names[m.key]
		if !ok || value.get(name) != nil {
			continue
		}
		if members == nil {
			members = slices.Clone(value.members)
		}
		members[i].key = name
	}
	if members == nil {
		return value, false
	}
	renamed := &jsonNode{kind: kindObject, members: members}
	renamed.indexed()
	return renamed, true
}

// withoutNulls leaves out nulls where the schema has a parameter that is
// neither required nor may be null.
func (k *check) withoutNulls(value *jsonNode) (*jsonNode, bool) {
	c := k.checker
	var kept []jsonMember
	for _, m := range value.members {
		i, ok := c.numbers[m.key]
		if ok && m.value.is(kindNull) && !c.params[i].Required && k.value(c.schemas[m.key], m.value, 0) != nil {
			continue
		}
		kept = append(kept, m)
	}
	if len(kept) == len(value.members) {
		return value, false
	}
	without := &jsonNode{kind: kindObject, members: kept}
	without.indexed()
	return without, true
}

// joined writes the members again, their values as they stand in args.
func joined(args json.RawMessage, value *jsonNode) json.RawMessage {
	out := []byte{'{'}
	for i, m := range value.members {
		if i > 0 {
			out = append(out, ',')
		}
		key, _ := json.Marshal(m.key) // a string: cannot fail
		out = append(append(out, key...), ':')
		out = append(out, args[m.value.offset:m.value.end]...)
	}
	return append(out, '}')
}

// unknown refuses arguments that a tool does not name, unless it says that it
// takes others: a misspelt one would go through and do nothing.
func (c *Checker) unknown(value *jsonNode) error {
	if c.open {
		return nil
	}
	for _, m := range value.members {
		if _, ok := c.numbers[m.key]; !ok {
			return c.noSuchArgument(m.key, value)
		}
	}
	return nil
}

func (c *Checker) noSuchArgument(key string, value *jsonNode) error {
	if name := c.names[key]; name != "" {
		return &ArgumentError{Problem: "argument " + shownKey(name) + " is given twice, as " + shownKey(key) + " too"}
	}
	problem := "unknown argument " + shownKey(key)
	var free, all []string
	for _, p := range c.params {
		all = append(all, p.Ident)
		if value.get(p.Name) == nil && len(free) < 500 {
			free = append(free, p.Ident)
		}
	}
	if near := Nearest(key, free, 2); len(near) > 0 {
		problem += "; did you mean " + strings.Join(near, " or ") + "?"
	} else if len(all) > 0 {
		problem += "; the arguments are " + strings.Join(all[:min(len(all), 20)], ", ")
	}
	return &ArgumentError{Argument: "", Problem: problem}
}

// missing names all required arguments that are not there.
func (c *Checker) missing(value *jsonNode) error {
	var names []string
	for _, p := range c.params {
		if p.Required && value.get(p.Name) == nil {
			text := p.Ident
			if p.Type != anyType {
				text += ": " + p.Type
			}
			names = append(names, text)
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return &ArgumentError{Problem: "missing argument " + names[0]}
	}
	return &ArgumentError{Problem: "missing arguments " + strings.Join(names[:min(len(names), 10)], ", ")}
}

// shownKey is a key of a value as it stands in a message.
func shownKey(key string) string {
	if isIdentifier(key) {
		return key
	}
	return pythonQuoted(key)
}

// A violation is what is wrong with one value.
type violation struct {
	path []step
	say  func() string // called only for what is reported: most are not, within anyOf
}

func fault(say func() string) *violation { return &violation{say: say} }

// A step leads into a value: to the member of a name, or, without one, to an item.
type step struct {
	key   string
	index int // -1 for a member
}

func (v *violation) error() error {
	return &ArgumentError{Argument: pathText(v.path), Problem: v.say()}
}

func pathText(path []step) string {
	const most = 12
	var b strings.Builder
	for i, s := range path {
		switch {
		case i == most:
			b.WriteString("…")
			return b.String()
		case s.index >= 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case !isIdentifier(s.key):
			b.WriteString("[" + pythonQuoted(s.key) + "]")
		case i > 0:
			b.WriteString("." + s.key)
		default:
			b.WriteString(s.key)
		}
	}
	return b.String()
}

// got describes a value in a message: its type, and its beginning.
func got(n *jsonNode) string {
	kind := typeOfValue(n)
	switch {
	case n.is(kindNull):
		return "None"
	case n.is(kindArray):
		return kind + " of " + strconv.Itoa(len(n.items))
	case n.is(kindObject) && len(n.members) == 0:
		return "an empty dict"
	case n.is(kindObject):
		var keys []string
		for _, m := range n.members[:min(len(n.members), 5)] {
			keys = append(keys, shownKey(m.key))
		}
		return kind + " with " + strings.Join(keys, ", ")
	}
	text := n.text
	if len(text) > 4*maxShownValue {
		text = strings.ToValidUTF8(text[:4*maxShownValue], "") + "…"
	}
	return kind + " " + pythonLiteral(&jsonNode{kind: n.kind, text: truncate(text, maxShownValue)})
}
