package runtimetest

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

//go:embed observe.py
var observe string

// MutateOptions tell [Mutate] about the engine.
type MutateOptions struct {
	// Start starts a sandbox whose request, on its way to the engine, is changed
	// by change.
	Start func(t *testing.T, change func(request map[string]any)) (runtime.Sandbox, error)
	// Unnoticed are the settings, by their path, of which a running sandbox
	// shows nothing if they are weakened, with the reason why that is no harm. It is for the
	// golden test of the request to hold them.
	Unnoticed map[string]string
	// Weaker are texts that are weaker than others, beside those that everybody
	// knows. It may be nil.
	Weaker map[string]string
}

// Mutate weakens each setting of an engine's request in turn, and demands that
// the engine, attestation or a look from inside notices. It walks the request
// that is really made, so that no setting can be forgotten.
func Mutate(t *testing.T, opts MutateOptions) {
	var request map[string]any
	usual := look(t, opts, func(r map[string]any) { request = clone(r) })
	if usual.refused != nil {
		t.Fatalf("without a change: %v", usual.refused)
	}
	caught := map[string]string{} // by setting
	for _, m := range opts.mutations(request) {
		if _, done := caught[m.setting]; done {
			continue
		}
		by := look(t, opts, m.apply).against(usual)
		if _, unnoticed := opts.Unnoticed[m.setting]; by != "" && unnoticed {
			by = look(t, opts, m.apply).against(usual) // was it for another reason?
		}
		if by != "" {
			caught[m.setting] = m.name + ": " + by
		}
	}
	settings := opts.settings(request)
	for _, setting := range settings {
		why, unnoticed := opts.Unnoticed[setting]
		switch by := caught[setting]; {
		case by == "" && !unnoticed:
			t.Errorf("%-45s NOT NOTICED", setting)
		case by != "": // which may depend on the machine, where it need not be noticed
			t.Logf("%-45s %s", setting, by)
		default:
			t.Logf("%-45s golden test: %s", setting, why)
		}
	}
	for setting := range opts.Unnoticed {
		if !slices.Contains(settings, setting) {
			t.Errorf("%s is not a setting", setting)
		}
	}
	t.Logf("%d settings, %d noticed in a sandbox, %d by the golden test of the request", len(settings), len(caught), len(settings)-len(caught))
}

// A view is what is seen of one sandbox.
type view struct {
	refused error
	inside  map[string]any
}

func look(t *testing.T, opts MutateOptions, change func(map[string]any)) view {
	t.Helper()
	sandbox, err := opts.Start(t, change)
	if err != nil {
		return view{refused: err}
	}
	defer sandbox.Close()
	seen, raised, err := NewPeer(sandbox).Try(observe)
	if inside, ok := seen.(map[string]any); ok && err == nil {
		return view{inside: inside}
	}
	return view{refused: fmt.Errorf("observe: %s: %w", raised, errors.Join(err, errors.New("no answer")))}
}

// Observe returns what a sandbox sees of its surroundings, which is the same in
// every sandbox of one spec.
func Observe(t testing.TB, p *Peer) map[string]any {
	t.Helper()
	seen, ok := p.Eval(t, observe).(map[string]any)
	if !ok {
		t.Fatal("observed nothing")
	}
	return seen
}

// against says what is seen that is not as usual, "" for nothing.
func (v view) against(usual view) string {
	if v.refused != nil {
		text := v.refused.Error()
		if _, facts, ok := strings.Cut(text, "attest sandbox: "+runtime.ErrUnsupported.Error()+": "); ok {
			return "attestation: " + brief(facts)
		}
		return "refused: " + brief(text)
	}
	for key, value := range v.inside {
		if got, want := fmt.Sprint(value), fmt.Sprint(usual.inside[key]); got != want {
			return "probe: " + key + " is " + brief(got)
		}
	}
	return ""
}

func brief(text string) string {
	text, _, _ = strings.Cut(strings.ReplaceAll(text, "\n", " "), "; ")
	if len(text) > 120 {
		text = text[:120] + "…"
	}
	return text
}

// A mutation is one way to weaken a setting.
type mutation struct {
	setting, name string
	apply         func(request map[string]any)
}

// mutations weakens every leaf of a request: what is on goes off, numbers become
// larger or go, texts and elements of lists go.
func (opts MutateOptions) mutations(request map[string]any) []mutation {
	var all []mutation
	walk(request, nil, func(path []string, value any) {
		add := func(name string, with any) {
			all = append(all, mutation{strings.Join(path, "."), name, func(r map[string]any) { put(r, path, with) }})
		}
		switch value := value.(type) {
		case bool:
			add(fmt.Sprint(!value), !value)
		case float64:
			if value == 0 {
				add("1048576", float64(1<<20))
				return
			}
			add("quadrupled", 4*value)
			add("dropped", nil)
		default:
			if text, ok := value.(string); ok {
				if weaker := cmp.Or(opts.Weaker[text], opposite(text)); weaker != "" {
					add(weaker, weaker)
				}
			}
			if path[len(path)-1] == "nsmode" || strings.HasSuffix(path[len(path)-1], "Mode") {
				add("host", "host")
			}
			add("dropped", nil)
		}
		// A field that holds nothing else goes as a whole, too: an engine may
		// make more of nothing than of an empty list.
		for above := path[:1]; len(above) < len(path); above = path[:len(above)+1] {
			if leavesBelow(request, above) == 1 {
				all = append(all, mutation{strings.Join(path, "."), strings.Join(above, ".") + " dropped", func(r map[string]any) { put(r, above, nil) }})
				break
			}
		}
	})
	return all
}

// opposites of a mount's options, and of a flag's values.
var opposites = map[string]string{
	"nodev": "dev", "noexec": "exec", "nosuid": "suid", "ro": "rw",
	"true": "false", "false": "true",
}

// opposite turns an option or a flag around; "" if there is nothing to turn.
func opposite(text string) string {
	flag, value, ok := strings.Cut(text, "=")
	if !ok || !strings.HasPrefix(flag, "--") {
		return opposites[text]
	}
	if other := opposites[value]; other != "" {
		return flag + "=" + other
	}
	return ""
}

// leavesBelow counts the leaves below a path.
func leavesBelow(request map[string]any, above []string) int {
	n := 0
	walk(request, nil, func(path []string, _ any) {
		if len(path) > len(above) && slices.Equal(path[:len(above)], above) {
			n++
		}
	})
	return n
}

func (opts MutateOptions) settings(request map[string]any) []string {
	seen := map[string]bool{}
	for _, m := range opts.mutations(request) {
		seen[m.setting] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// walk calls visit for every leaf of a request. Elements of lists are named by
// what they are about, for their order is nobody's promise.
func walk(value any, path []string, visit func([]string, any)) {
	at := func(step string) []string { return append(slices.Clone(path), step) }
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if key == "seccomp" { // of which the rules have tests of their own
				visit(at(key), v)
				continue
			}
			walk(v, at(key), visit)
		}
		if len(value) == 0 {
			visit(path, value)
		}
	case []any:
		for _, v := range value {
			if _, fields := v.(map[string]any); fields {
				walk(v, at(elementName(v)), visit)
			}
			visit(at(elementName(v)), v)
		}
	case nil:
	case string:
		if options := strings.Split(value, ","); isOptions(options) {
			for _, o := range options {
				visit(at(elementName(o)), o)
			}
			return
		}
		visit(path, value)
	default:
		visit(path, value)
	}
}

// isOptions reports whether a text's parts are the options of a mount.
func isOptions(parts []string) bool { return slices.Contains(parts, "noexec") }

// elementName names an element of a list.
func elementName(v any) string {
	fields, ok := v.(map[string]any)
	if !ok {
		text, _, _ := strings.Cut(fmt.Sprint(v), "{") // without the text of a profile
		if option, number, ok := strings.Cut(text, "="); ok && strings.Trim(number, "0123456789") == "" {
			text = option // the number may be another one each time
		}
		return "[" + text + "]"
	}
	for _, key := range []string{"destination", "Target", "type", "Name", "container_id"} {
		if name, ok := fields[key]; ok {
			return fmt.Sprintf("[%v]", name)
		}
	}
	return "[]"
}

// put sets the value at a path, or removes it if there is none.
func put(container any, path []string, value any) any {
	step, last := path[0], len(path) == 1
	switch c := container.(type) {
	case map[string]any:
		switch {
		case !last:
			c[step] = put(c[step], path[1:], value)
		case value == nil:
			delete(c, step)
		default:
			c[step] = value
		}
		return c
	case []any:
		i := slices.IndexFunc(c, func(v any) bool { return elementName(v) == step })
		if i < 0 {
			return c
		}
		switch {
		case last && value == nil:
			return slices.Delete(c, i, i+1)
		case last:
			c[i] = value
			return c
		}
		c[i] = put(c[i], path[1:], value)
		return c
	case string:
		var options []any
		for o := range strings.SplitSeq(c, ",") {
			options = append(options, o)
		}
		var left []string
		for _, o := range put(options, path, value).([]any) {
			left = append(left, fmt.Sprint(o))
		}
		return strings.Join(left, ",")
	}
	return container
}

func clone(request map[string]any) map[string]any {
	var copied map[string]any
	data, err := json.Marshal(request)
	if err == nil {
		err = json.Unmarshal(data, &copied)
	}
	if err != nil {
		panic(err) // it came as JSON
	}
	return copied
}
