package inputs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/inputs"
)

// ring is a keyring in memory; broken is one that is locked.
type ring struct {
	values map[string]string
	broken bool
}

var errLocked = errors.New("locked")

func (r *ring) Set(service, user, value string) error {
	if r.broken {
		return errLocked
	}
	r.values[service+"/"+user] = value
	return nil
}

func (r *ring) Get(service, user string) (string, error) {
	if value, ok := r.values[service+"/"+user]; ok && !r.broken {
		return value, nil
	}
	return "", keyring.ErrNotFound
}

func (r *ring) Delete(service, user string) error {
	delete(r.values, service+"/"+user)
	return nil
}

func TestKeyring(t *testing.T) {
	dir := t.TempDir()
	r := &ring{values: map[string]string{}}
	s := inputs.WithKeyring(dir, r)
	if _, ok := s.Get("a"); ok {
		t.Error("there is a value before one is set")
	}
	where, err := s.Set("a", "s3cret")
	if err != nil || where != "the keyring" || r.values["mcp-bridge/input:a"] != "s3cret" {
		t.Errorf("%q, %v, %v", where, err, r.values)
	}
	if value, ok := s.Get("a"); !ok || value != "s3cret" {
		t.Errorf("%q, %v", value, ok)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("there is a file: %v, %v", left, err)
	}
	if err := s.Forget("a"); err != nil {
		t.Error(err)
	}
	if _, ok := s.Get("a"); ok {
		t.Error("it is not forgotten")
	}
}

// Where the keyring does not take it, a file does that only the user can read;
// and once the keyring does, the file no longer has it.
func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	r := &ring{values: map[string]string{}, broken: true}
	s := inputs.WithKeyring(dir, r)
	for id, value := range map[string]string{"a": "first", "b": "ü\n"} {
		where, err := s.Set(id, value)
		if err != nil || where != filepath.Join(dir, "inputs.json") {
			t.Fatalf("%q, %v", where, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "inputs.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if value, ok := inputs.WithKeyring(dir, nil).Get("b"); !ok || value != "ü\n" {
		t.Errorf("%q, %v", value, ok)
	}
	r.broken = false
	if where, err := s.Set("a", "second"); err != nil || where != "the keyring" {
		t.Errorf("%q, %v", where, err)
	}
	if value, ok := s.Get("a"); !ok || value != "second" {
		t.Errorf("%q, %v", value, ok)
	}
	if err := s.Forget("b"); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "inputs.json")); err != nil || strings.TrimSpace(string(data)) != "{}" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	if _, err := inputs.WithKeyring(dir, nil).Set("a", strings.Repeat("x", 65<<10)); err == nil {
		t.Error("any length is kept")
	}
	if _, err := inputs.WithKeyring("", nil).Set("a", "x"); err == nil {
		t.Error("it is kept nowhere")
	}
	if err := os.WriteFile(filepath.Join(dir, "inputs.json"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := inputs.WithKeyring(dir, nil)
	if _, ok := s.Get("a"); ok {
		t.Error("a damaged file has values")
	}
	if _, err := s.Set("a", "x"); err == nil {
		t.Error("a damaged file is overwritten")
	}
}

// A file that says null has no values, and gets them.
func TestNull(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "inputs.json"), []byte("null"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := inputs.WithKeyring(dir, nil)
	if _, err := s.Set("a", "x"); err != nil {
		t.Fatal(err)
	}
	if value, ok := s.Get("a"); !ok || value != "x" {
		t.Errorf("%q, %v", value, ok)
	}
}

// No session bus is started by looking for a keyring.
func TestOpenWithoutABus(t *testing.T) {
	s := inputs.Open(t.TempDir(), "linux", func(name string) (string, bool) { return t.TempDir(), name == "XDG_RUNTIME_DIR" })
	if where, err := s.Set("a", "x"); err != nil || filepath.Base(where) != "inputs.json" {
		t.Errorf("%q, %v", where, err)
	}
}
