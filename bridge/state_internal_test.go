package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/store"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// state asks a bridge that keeps things in dir, as a cell does.
func state(t *testing.T, dir, method, params string) (map[string]any, error) {
	t.Helper()
	b := &Bridge{log: slog.New(slog.DiscardHandler), keeper: keeper{dir: dir}}
	handler := (&session{bridge: b, name: "mine"}).handlers()[method]
	reply, err := handler(t.Context(), json.RawMessage(params))
	if err != nil {
		return nil, err
	}
	var result map[string]any
	if err := json.Unmarshal(reply, &result); err != nil {
		t.Fatalf("%s %s: %s", method, params, reply)
	}
	return result, nil
}

func wantKind(t *testing.T, err error, want proxy.Kind, text string) {
	t.Helper()
	e, ok := errors.AsType[*proxy.Error](err)
	if !ok || e.Kind != want || !strings.Contains(e.Message, text) {
		t.Errorf("the error is %v, want one of kind %s with %q", err, want, text)
	}
}

func TestStateMethods(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	ok := func(method, params, want string) map[string]any {
		t.Helper()
		result, err := state(t, dir, method, params)
		got, _ := json.Marshal(result)
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s %s: %s (%v), want %s", method, params, got, err, want)
		}
		return result
	}
	ok("state/get", `{"area":"memory","key":"k"}`, `{"value":null,"version":""}`)
	ok("state/list", `{"area":"memory"}`, `"entries":[]`)
	first := ok("state/put", `{"area":"memory","key":"k","value":"one","expect":""}`, `"version"`)["version"].(string)
	if got := ok("state/get", `{"area":"memory","key":"k"}`, `"session":"mine"`)["version"]; got != first {
		t.Errorf("the version is %v, put said %v", got, first)
	}
	ok("state/get", `{"area":"skills","key":"k"}`, `"value":null`)
	for _, expect := range []string{"", "other"} {
		_, err := state(t, dir, "state/put", `{"area":"memory","key":"k","value":"two","expect":"`+expect+`"}`)
		wantKind(t, err, proxy.Conflict, "changed")
		_, err = state(t, dir, "state/delete", `{"area":"memory","key":"k","expect":"`+expect+`x"}`)
		wantKind(t, err, proxy.Conflict, "changed")
	}
	ok("state/put", `{"area":"memory","key":"k","value":"two","expect":"`+first+`"}`, "")
	ok("state/list", `{"area":"memory"}`, `"key":"k"`)
	ok("state/delete", `{"area":"memory","key":"k"}`, `{"deleted":true}`)
	ok("state/delete", `{"area":"memory","key":"k"}`, `{"deleted":false}`)
}

func TestStateRefuses(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 1<<20+1)
	for _, test := range []struct {
		method, params string
		kind           proxy.Kind
		text           string
	}{
		{"state/get", ``, proxy.Invalid, "malformed"},
		{"state/get", `[]`, proxy.Invalid, "malformed"},
		{"state/get", `{"area":"memory","key":1}`, proxy.Invalid, "malformed"},
		{"state/get", `{"key":"k"}`, proxy.Invalid, "no such area"},
		{"state/get", `{"area":"../memory","key":"k"}`, proxy.Invalid, "no such area"},
		{"state/get", `{"area":"memory"}`, proxy.Invalid, "not a key"},
		{"state/put", `{"area":"memory","key":"` + long[:513] + `","value":""}`, proxy.Invalid, "not a key"},
		{"state/put", `{"area":"memory","key":"k"}`, proxy.Invalid, "no value"},
		{"state/put", `{"area":"memory","key":"k","value":"` + long + `"}`, proxy.Full, "one entry may have no more than 1048576"},
	} {
		_, err := state(t, dir, test.method, test.params)
		wantKind(t, err, test.kind, test.text)
	}
}

func TestStateThatCannotBeKept(t *testing.T) {
	_, err := state(t, "", "state/put", `{"area":"memory","key":"k","value":""}`)
	wantKind(t, err, proxy.Unavailable, "no state directory")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err = state(t, dir, "state/list", `{"area":"memory"}`)
		wantKind(t, err, proxy.Unavailable, "cannot use its state directory")
		if strings.Contains(err.Error(), file) {
			t.Errorf("the model learns of a path: %v", err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "memory")); err != nil {
		t.Fatal(err)
	}
	_, err = state(t, dir, "state/put", `{"area":"memory","key":"k","value":""}`)
	wantKind(t, err, proxy.Unavailable, "could not read or write")
	if strings.Contains(err.Error(), dir) {
		t.Errorf("the model learns of a path: %v", err)
	}
}

// What cannot be read is damaged, and where it is, is told to the log only.
func TestStateThatIsDamaged(t *testing.T) {
	var log bytes.Buffer
	b := &Bridge{log: slog.New(slog.NewTextHandler(&log, nil))}
	cause := &fs.PathError{Op: "read", Path: "/home/me/state/memory/k", Err: syscall.EIO}
	err := b.stateError(fmt.Errorf("read %q: %w: %w", "k", store.ErrDamaged, cause))
	wantKind(t, err, proxy.Damaged, "damaged")
	if strings.Contains(err.Error(), "/home") || errors.Is(err, syscall.EIO) {
		t.Errorf("the model learns of a path: %v", err)
	}
	if !strings.Contains(log.String(), cause.Path) {
		t.Errorf("the log says %q", log.String())
	}
}
