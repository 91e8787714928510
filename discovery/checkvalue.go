package discovery

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A check is one look at one value. It is right about what it refuses; unsure
// says that it may have let something pass that the schema rules out.
type check struct {
	checker *Checker
	steps   int       // still allowed
	until   time.Time // for ever, if zero
	unsure  bool
}

// textPerStep is how many bytes that are only counted take as long as a step.
const textPerStep = 1_000

// spend takes steps from those allowed. It reports false, and the check is not
// sure any more, once there are none.
func (k *check) spend(steps int) bool {
	const betweenLooks = 256 // at the clock, in steps
	before := k.steps
	k.steps = max(k.steps-steps, -1)
	if !k.until.IsZero() && k.steps/betweenLooks != before/betweenLooks && time.Now().After(k.until) {
		k.steps = -1
	}
	k.unsure = k.unsure || k.steps < 0
	return k.steps >= 0
}

// value returns what is wrong with a value, nil if nothing is. The path of a
// violation leads from this value to the one that is meant.
func (k *check) value(schema, value *jsonNode, depth int) *violation {
	if !k.spend(1) || depth > maxCheckDepth {
		k.unsure = true
		return nil
	}
	if schema.is(kindBool) && schema.text == "false" {
		return fault(func() string { return "is not allowed here" })
	}
	if !schema.is(kindObject) {
		return nil
	}
	k.unsure = k.unsure || schema.get("$dynamicRef") != nil || schema.get("$recursiveRef") != nil
	if ref := schema.get("$ref"); ref != nil {
		if v := k.referred(ref, value, depth); v != nil || k.checker.doc.draft7 {
			return v
		}
	}
	for _, part := range []func(schema, value *jsonNode, depth int) *violation{
		k.kind, k.constant, k.scalar, k.array, k.object, k.combined, k.conditional,
	} {
		if v := part(schema, value, depth); v != nil {
			return v
		}
	}
	return nil
}

func (k *check) referred(ref, value *jsonNode, depth int) *violation {
	target := k.checker.doc.lookup(ref.str())
	if target == nil || k.checker.doc.nested { // a part with a name of its own counts from there
		k.unsure = true
		return nil
	}
	return k.value(target, value, depth+1)
}

// wrong is the violation that a value is not what its schema describes.
func (k *check) wrong(schema, value *jsonNode) *violation {
	doc := k.checker.doc
	return fault(func() string {
		expected := newRenderer(doc).typeOf(schema, 0)
		text := expected.text(2 * maxEnumLength)
		if text == anyType {
			return got(value) + " does not fit the tool's schema"
		}
		return "expected " + text + ", got " + got(value) + meant(schema, value)
	})
}

// meant names the value of an enumeration that a string is near to.
func meant(schema, value *jsonNode) string {
	if !value.is(kindString) {
		return ""
	}
	var values []string
	for _, item := range schema.get("enum").list() {
		if item.is(kindString) && len(values) < 1000 {
			values = append(values, item.text)
		}
	}
	near := Nearest(value.text, values, 1)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + pythonQuoted(near[0]) + "?"
}

// list returns the items of an array, none of anything else.
func (n *jsonNode) list() []*jsonNode {
	if n == nil {
		return nil
	}
	return n.items
}

func (k *check) kind(schema, value *jsonNode, _ int) *violation {
	declared := schema.get("type")
	var names []string
	switch {
	case declared.is(kindString):
		names = []string{declared.text}
	case declared.is(kindArray):
		for _, item := range declared.items {
			names = append(names, item.str())
		}
	}
	k.spend(len(names) / 8)
	if len(names) == 0 || value.is(kindNull) && isTrue(schema.get("nullable")) {
		return nil
	}
	for _, name := range names {
		if k.isOf(value, name) {
			return nil
		}
	}
	return k.wrong(schema, value)
}

// isOf reports whether a value is of a type of JSON Schema; it is of one that
// there is not.
func (k *check) isOf(value *jsonNode, name string) bool {
	switch name {
	case "string":
		return value.is(kindString)
	case "number":
		return value.is(kindNumber)
	case "integer":
		k.spend(len(value.text) / textPerStep)
		return value.is(kindNumber) && wholeNumber(value.text)
	case "boolean":
		return value.is(kindBool)
	case "null":
		return value.is(kindNull)
	case "object":
		return value.is(kindObject)
	case "array":
		return value.is(kindArray)
	}
	k.unsure = true
	return true
}

// wholeNumber reports whether a number is an integer, 3.0 and 1e3 too.
func wholeNumber(text string) bool {
	if !strings.ContainsAny(text, ".eE") {
		return true
	}
	f, err := strconv.ParseFloat(text, 64)
	return err != nil || math.IsInf(f, 0) || f == math.Trunc(f) // too large to tell is large enough
}

func (k *check) constant(schema, value *jsonNode, _ int) *violation {
	if values := schema.get("enum"); values.is(kindArray) && len(values.items) > 0 {
		nullable := value.is(kindNull) && isTrue(schema.get("nullable"))
		same := func(n *jsonNode) bool { return k.equal(n, value, 0) }
		if !nullable && !slices.ContainsFunc(values.items, same) {
			return k.wrong(schema, value)
		}
	}
	if constant := schema.get("const"); constant != nil && !k.equal(constant, value, 0) {
		return k.wrong(schema, value)
	}
	return nil
}

// equal reports whether two values are the same JSON, or may be.
func (k *check) equal(a, b *jsonNode, depth int) bool {
	if !k.spend(1) || depth > maxCheckDepth {
		k.unsure = true
		return true
	}
	if a.kind != b.kind {
		return false
	}
	switch a.kind {
	case kindNumber:
		k.spend(len(b.text) / textPerStep)
		return a.text == b.text || sameNumber(a.text, b.text)
	case kindArray:
		if len(a.items) != len(b.items) {
			return false
		}
		for i := range a.items {
			if !k.equal(a.items[i], b.items[i], depth+1) {
				return false
			}
		}
		return true
	case kindObject:
		if len(a.members) != len(b.members) {
			return false
		}
		for _, m := range a.members {
			if other := b.get(m.key); other == nil || !k.equal(m.value, other, depth+1) {
				return false
			}
		}
		return true
	}
	return a.text == b.text
}

// sameNumber compares as floats do, so that large integers may count as the
// same though they differ.
func sameNumber(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err != nil || err2 != nil || x == y
}

// scalar checks the bounds of numbers and strings.
func (k *check) scalar(schema, value *jsonNode, _ int) *violation {
	switch value.kind {
	case kindNumber:
		return k.number(schema, value)
	case kindString:
		return k.text(schema, value)
	}
	return nil
}

// exact is up to where floats tell integers apart.
const exact = 1 << 53

func (k *check) number(schema, value *jsonNode) *violation {
	k.spend(len(value.text) / textPerStep)
	x, err := strconv.ParseFloat(value.text, 64)
	if err != nil {
		k.unsure = true
		return nil
	}
	// Rounding keeps the order, so what is beyond a bound as a float is beyond it.
	// What is equal to it may not be, if it is large.
	beyond := func(bound float64, above, exclusive bool) bool {
		if x == bound {
			return exclusive && math.Abs(x) < exact
		}
		return (x > bound) == above
	}
	for _, b := range []struct {
		key, exclusive, says string
		above                bool
	}{{"minimum", "exclusiveMinimum", "at least", false}, {"maximum", "exclusiveMaximum", "at most", true}} {
		if bound, ok := numberOf(schema.get(b.key)); ok {
			says, strict := b.says, isTrue(schema.get(b.exclusive)) // of draft 4
			if strict {
				says = map[bool]string{true: "less than", false: "more than"}[b.above]
			}
			if beyond(bound, b.above, strict) {
				return fault(func() string { return "expected " + says + " " + schema.get(b.key).text + ", got " + got(value) })
			}
		}
		if bound, ok := numberOf(schema.get(b.exclusive)); ok && beyond(bound, b.above, true) {
			says := map[bool]string{true: "less than", false: "more than"}[b.above]
			return fault(func() string { return "expected " + says + " " + schema.get(b.exclusive).text + ", got " + got(value) })
		}
	}
	return k.multiple(schema, value, x)
}

// multiple checks integers only: whether 0.3 is a multiple of 0.1 is a matter
// of how the server calculates.
func (k *check) multiple(schema, value *jsonNode, x float64) *violation {
	factor := schema.get("multipleOf")
	if factor == nil {
		return nil
	}
	f, ok := numberOf(factor)
	if !ok || f < 1 || f != math.Trunc(f) || f >= exact || math.Abs(x) >= exact {
		k.unsure = true
		return nil
	}
	if math.Mod(x, f) != 0 {
		return fault(func() string { return "expected a multiple of " + factor.text + ", got " + got(value) })
	}
	return nil
}

func numberOf(n *jsonNode) (float64, bool) {
	if !n.is(kindNumber) {
		return 0, false
	}
	f, err := strconv.ParseFloat(n.text, 64)
	return f, err == nil
}

func (k *check) text(schema, value *jsonNode) *violation {
	length := -1
	count := func() float64 {
		if length < 0 {
			k.spend(len(value.text) / textPerStep)
			length = utf8.RuneCountInString(value.text)
		}
		return float64(length)
	}
	if least, ok := numberOf(schema.get("minLength")); ok && count() < least {
		return fault(func() string {
			return "expected at least " + schema.get("minLength").text + " characters, got " + got(value)
		})
	}
	if most, ok := numberOf(schema.get("maxLength")); ok && count() > most {
		return fault(func() string {
			return "expected at most " + schema.get("maxLength").text + " characters, got " + strconv.Itoa(length)
		})
	}
	pattern := schema.get("pattern")
	if !pattern.is(kindString) {
		return nil
	}
	known, ok := k.checker.patterns.known[pattern.text]
	if cost := known.cost(len(value.text)); !ok || len(value.text) > maxMatchedText || cost > k.steps || !k.spend(cost) {
		k.unsure = true
		return nil
	}
	if !known.re.MatchString(value.text) {
		return fault(func() string {
			return "expected a match of the pattern " + pythonQuoted(pattern.text) + ", got " + got(value)
		})
	}
	return nil
}
