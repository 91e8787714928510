package runtime_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestEveryFactIsFalsified holds that the tables of falsified facts leave none
// out: a field that is added to the facts, or to a part of them, fails this test
// until something falsifies it.
func TestEveryFactIsFalsified(t *testing.T) {
	falsified := map[string]bool{}
	compare := func(change func(*runtime.Facts)) {
		f := facts()
		change(&f)
		differences("", reflect.ValueOf(facts()), reflect.ValueOf(f), falsified)
	}
	for _, change := range falsifications() {
		compare(change)
	}
	for point, changes := range mountFalsifications() {
		for _, change := range changes {
			compare(func(f *runtime.Facts) {
				change(&f.Mounts[slices.IndexFunc(f.Mounts, func(m runtime.Mount) bool { return m.Point == point })])
			})
		}
	}
	// A mount that is added has a place that it should not have.
	compare(func(f *runtime.Facts) { f.Mounts[0].Point = "/host" })

	all := map[string]bool{}
	leaves("", reflect.TypeFor[runtime.Facts](), all)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !falsified[name] {
			t.Errorf("nothing falsifies %s", name)
		}
	}
	// By kind and by name, where facts are lists or maps.
	named := map[string]bool{}
	for name := range falsifications() {
		name, _, _ = strings.Cut(name, " (")
		named[name] = true
	}
	for kind := range facts().Namespaces {
		if !named[kind+" namespace"] {
			t.Errorf("nothing falsifies the %s namespace", kind)
		}
	}
	for limit := range (runtime.Limits{}).WithDefaults().Rlimits() {
		if !named["rlimit "+limit] && !named["hard rlimit "+limit] {
			t.Errorf("nothing falsifies rlimit %s", limit)
		}
	}
	t.Logf("%d facts in %d fields, each falsified", len(named)+len(mountFalsifications()), len(all))
	if facts := len(named) + len(mountFalsifications()); facts < 18 {
		t.Errorf("%d facts, want at least 18", facts)
	}
}

// leaves collects the fields of a type, down to those that have none.
func leaves(name string, typ reflect.Type, into map[string]bool) {
	switch typ.Kind() {
	case reflect.Struct:
		for field := range typ.Fields() {
			leaves(name+"."+field.Name, field.Type, into)
		}
	case reflect.Slice, reflect.Map, reflect.Pointer:
		leaves(name, typ.Elem(), into)
	default:
		into[name] = true
	}
}

// differences collects the fields in which two values differ.
func differences(name string, a, b reflect.Value, into map[string]bool) {
	switch a.Kind() {
	case reflect.Struct:
		for field := range a.NumField() {
			differences(name+"."+a.Type().Field(field).Name, a.Field(field), b.Field(field), into)
		}
	case reflect.Slice:
		for i := range max(a.Len(), b.Len()) {
			if i >= a.Len() || i >= b.Len() {
				into[name] = true
				continue
			}
			differences(name, a.Index(i), b.Index(i), into)
		}
	case reflect.Map:
		for _, key := range slices.Concat(a.MapKeys(), b.MapKeys()) {
			if x, y := a.MapIndex(key), b.MapIndex(key); x.IsValid() && y.IsValid() {
				differences(name, x, y, into)
			} else {
				into[name] = true
			}
		}
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			into[name] = a.IsNil() != b.IsNil()
			return
		}
		differences(name, a.Elem(), b.Elem(), into)
	default:
		if fmt.Sprint(a) != fmt.Sprint(b) {
			into[name] = true
		}
	}
}
