package discovery

import (
	"math"
	"strconv"
	"strings"
)

func (k *check) array(schema, value *jsonNode, depth int) *violation {
	if !value.is(kindArray) {
		return nil
	}
	count := float64(len(value.items))
	if least, ok := numberOf(schema.get("minItems")); ok && count < least {
		return fault(func() string { return "expected at least " + schema.get("minItems").text + " items, got " + got(value) })
	}
	if most, ok := numberOf(schema.get("maxItems")); ok && count > most {
		return fault(func() string { return "expected at most " + schema.get("maxItems").text + " items, got " + got(value) })
	}
	first, rest := schema.get("prefixItems").list(), schema.get("items")
	if rest.is(kindArray) { // of draft 7
		first, rest = rest.items, schema.get("additionalItems")
	}
	for i, item := range value.items {
		of := rest
		if i < len(first) {
			of = first[i]
		}
		if of == nil {
			break
		}
		if v := k.value(of, item, depth+1); v != nil {
			v.path = append([]step{{index: i}}, v.path...)
			return v
		}
	}
	k.unsure = k.unsure || schema.get("contains") != nil || schema.get("unevaluatedItems") != nil
	if isTrue(schema.get("uniqueItems")) {
		return k.unique(value)
	}
	return nil
}

func (k *check) unique(value *jsonNode) *violation {
	const most = 100
	if len(value.items) > most {
		k.unsure = true
		return nil
	}
	for i, item := range value.items {
		if !k.spend(1 + i) {
			return nil
		}
		for j, other := range value.items[:i] {
			// Numbers that are equal as floats may differ, as may what holds them.
			scalar := item.kind != kindNumber && item.kind != kindArray && item.kind != kindObject
			if item.kind == other.kind && (scalar || item.is(kindNumber)) && item.text == other.text {
				return fault(func() string {
					return "expected items that differ, but [" + strconv.Itoa(j) + "] and [" + strconv.Itoa(i) + "] are both " + got(item)
				})
			}
			k.unsure = k.unsure || !scalar
		}
	}
	return nil
}

func (k *check) object(schema, value *jsonNode, depth int) *violation {
	if !value.is(kindObject) {
		return nil
	}
	for _, name := range schema.get("required").list() {
		if !k.spend(1) {
			return nil
		}
		if name.is(kindString) && value.get(name.text) == nil {
			return fault(func() string { return k.lacks(schema, value, name.text) })
		}
	}
	for _, m := range schema.get("dependentRequired").children() {
		if !k.spend(1) {
			return nil
		}
		if value.get(m.key) == nil {
			continue
		}
		for _, name := range m.value.list() {
			if !k.spend(1) {
				return nil
			}
			if name.is(kindString) && value.get(name.text) == nil {
				return fault(func() string { return k.lacks(schema, value, name.text) + ", which " + shownKey(m.key) + " needs" })
			}
		}
	}
	count := float64(len(value.members))
	if least, ok := numberOf(schema.get("minProperties")); ok && count < least {
		return fault(func() string {
			return "expected at least " + schema.get("minProperties").text + " keys, got " + got(value)
		})
	}
	if most, ok := numberOf(schema.get("maxProperties")); ok && count > most {
		return fault(func() string {
			return "expected at most " + schema.get("maxProperties").text + " keys, got " + got(value)
		})
	}
	for _, key := range []string{"propertyNames", "unevaluatedProperties", "dependentSchemas", "dependencies"} {
		k.unsure = k.unsure || schema.get(key) != nil
	}
	return k.members(schema, value, depth)
}

// lacks says that a key is missing, and which was perhaps meant to be it.
func (k *check) lacks(schema, value *jsonNode, name string) string {
	properties := schema.get("properties")
	var others []string
	for _, m := range value.members[:min(len(value.members), 100)] {
		if properties.get(m.key) == nil {
			others = append(others, m.key)
		}
	}
	text := "missing key " + shownKey(name)
	if near := Nearest(name, others, 1); len(near) > 0 {
		text += " (there is " + shownKey(near[0]) + ")"
	}
	return text
}

// members checks what properties, patternProperties and additionalProperties
// say of each member.
func (k *check) members(schema, value *jsonNode, depth int) *violation {
	properties, more := schema.get("properties"), schema.get("additionalProperties")
	matched := schema.get("patternProperties")
	k.unsure = k.unsure || matched != nil
	if properties == nil && more == nil {
		return nil
	}
	for _, m := range value.members {
		if !k.spend(1) {
			return nil
		}
		of := properties.get(m.key)
		if of == nil && len(matched.children()) > 0 {
			continue
		}
		if of == nil && more.is(kindBool) && more.text == "false" {
			return fault(func() string { return unknownKey(m.key, properties) })
		}
		if of == nil {
			of = more
		}
		if v := k.value(of, m.value, depth+1); v != nil {
			v.path = append([]step{{key: m.key, index: -1}}, v.path...)
			return v
		}
	}
	return nil
}

func unknownKey(key string, properties *jsonNode) string {
	var names []string
	for _, m := range properties.children()[:min(len(properties.children()), 500)] {
		names = append(names, m.key)
	}
	text := "unknown key " + shownKey(key)
	if near := Nearest(key, names, 2); len(near) > 0 {
		for i := range near {
			near[i] = shownKey(near[i])
		}
		return text + "; did you mean " + strings.Join(near, " or ") + "?"
	}
	var shown []string
	for _, name := range names[:min(len(names), 20)] {
		shown = append(shown, shownKey(name))
	}
	if len(shown) > 0 {
		text += "; the keys are " + strings.Join(shown, ", ")
	}
	return text
}

// combined checks allOf, anyOf and oneOf. That more than one of oneOf fits is
// let pass: servers mean anyOf more often than not.
func (k *check) combined(schema, value *jsonNode, depth int) *violation {
	for _, part := range schema.get("allOf").list() {
		if v := k.value(part, value, depth+1); v != nil {
			return v
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		choices := schema.get(key).list()
		if len(choices) == 0 || value.is(kindNull) && isTrue(schema.get("nullable")) {
			continue
		}
		k.unsure = k.unsure || key == "oneOf"
		if v := k.anyOf(schema, choices, value, depth); v != nil {
			return v
		}
	}
	return nil
}

// anyOf returns nil if one of the choices fits, or else what is wrong by the
// one that was probably meant.
func (k *check) anyOf(schema *jsonNode, choices []*jsonNode, value *jsonNode, depth int) *violation {
	var best *violation
	highest := math.MinInt
	for _, choice := range choices {
		v := k.value(choice, value, depth+1)
		if v == nil || k.steps < 0 { // or there are none left for the others
			return nil
		}
		if likely := k.likeness(choice, value) + len(v.path); likely > highest {
			best, highest = v, likely
		}
	}
	if highest >= 0 && (len(choices) == 1 || len(best.path) > 0 || value.is(kindObject)) {
		return best
	}
	return k.wrong(schema, value)
}

// likeness says how much a value looks as if it was meant to fit a choice:
// nothing if it is of another type, more if what tells choices apart agrees.
func (k *check) likeness(choice, value *jsonNode) int {
	const otherType, sameTag = -100, 10
	for range maxSchemaDepth {
		ref := choice.get("$ref")
		if ref == nil || !k.spend(1) {
			break
		}
		choice = k.checker.doc.lookup(ref.str())
	}
	alone := check{checker: k.checker, steps: 100}
	if choice == nil || alone.kind(choice, value, 0) != nil {
		return otherType
	}
	score := 0
	for _, m := range choice.get("properties").children() {
		if !k.spend(1) {
			break
		}
		tag := m.value.get("const")
		if values := m.value.get("enum").list(); len(values) == 1 {
			tag = values[0]
		}
		have := value.get(m.key)
		switch {
		case tag == nil || have == nil:
		case alone.equal(tag, have, 0):
			score += sameTag
		default:
			score -= sameTag
		}
	}
	return max(score, otherType/2)
}

// conditional checks if, then, else and not, where it is sure of the condition.
func (k *check) conditional(schema, value *jsonNode, depth int) *violation {
	if condition := schema.get("if"); condition != nil {
		branch := "then"
		switch holds, sure := k.holds(condition, value, depth); {
		case !sure:
			k.unsure = true
			return nil
		case !holds:
			branch = "else"
		}
		if v := k.value(schema.get(branch), value, depth+1); v != nil {
			return v
		}
	}
	if excluded := schema.get("not"); excluded != nil {
		switch holds, sure := k.holds(excluded, value, depth); {
		case !sure:
			k.unsure = true
		case holds:
			return fault(func() string { return got(value) + " is ruled out by the tool's schema" })
		}
	}
	return nil
}

// holds reports whether a value fits a schema, and whether that is certain.
func (k *check) holds(schema, value *jsonNode, depth int) (holds, sure bool) {
	outer := k.unsure
	k.unsure = false
	v := k.value(schema, value, depth+1)
	sure = v != nil || !k.unsure
	k.unsure = outer
	return v == nil, sure
}
