// Package inputs keeps the values that users were asked for, such as tokens: in
// the keyring of the system, and where there is none in a file that nobody else
// can read.
package inputs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/importer"
)

const (
	service  = "mcp-bridge"
	fileName = "inputs.json"
	stamp    = "inputs.changed" // what is in the keyring tells nobody that it changed
	maxFile  = 4 << 20
	maxValue = 64 << 10

	readTime  = 3 * time.Second // a keyring that is locked must not keep servers waiting
	writeTime = 2 * time.Minute // time to unlock it
)

// A Keyring is where a system keeps secrets.
type Keyring interface {
	Set(service, user, password string) error
	Get(service, user string) (string, error)
	Delete(service, user string) error
}

// A Store has values by ID.
type Store struct {
	dir     string  // of the file; empty for none
	keyring Keyring // nil if there is none
}

// Open returns the store whose file is in a folder, which may be "". It touches
// nothing yet.
func Open(dir string, goos string, lookup func(string) (string, bool)) *Store {
	s := &Store{dir: dir}
	if hasKeyring(goos, lookup) {
		s.keyring = system{}
	}
	return s
}

// WithKeyring is Open with a keyring of the caller's choice; nil is none.
func WithKeyring(dir string, k Keyring) *Store { return &Store{dir: dir, keyring: k} }

// system is the keyring of this system.
type system struct{}

func (system) Set(service, user, password string) error { return keyring.Set(service, user, password) }
func (system) Get(service, user string) (string, error) { return keyring.Get(service, user) }
func (system) Delete(service, user string) error        { return keyring.Delete(service, user) }

// hasKeyring reports whether it is worth asking: on Linux only where a session
// bus runs, as asking would start one otherwise.
func hasKeyring(goos string, lookup func(string) (string, bool)) bool {
	if off, _ := lookup("MCP_BRIDGE_NO_KEYRING"); off != "" && off != "0" {
		return false
	}
	switch goos {
	case "darwin", "windows":
		return true
	}
	if address, _ := lookup("DBUS_SESSION_BUS_ADDRESS"); address != "" {
		return !strings.HasPrefix(address, "disabled:")
	}
	dir, _ := lookup("XDG_RUNTIME_DIR")
	info, err := os.Stat(filepath.Join(dir, "bus"))
	return filepath.IsAbs(dir) && err == nil && info.Mode()&fs.ModeSocket != 0
}

// Files change when a value does.
func (s *Store) Files() []string {
	if s.dir == "" {
		return nil
	}
	return []string{filepath.Join(s.dir, fileName), filepath.Join(s.dir, stamp)}
}

// Changed tells bridges that run that values were set or forgotten.
func (s *Store) Changed() error {
	if s.dir == "" {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, stamp), []byte(time.Now().UTC().Format(time.RFC3339Nano)+"\n"), 0o600)
}

// Get returns a value, and false if there is none that can be read.
func (s *Store) Get(id string) (string, bool) {
	if values, err := s.read(); err == nil {
		if value, ok := values[id]; ok {
			return value, true
		}
	}
	if s.keyring == nil {
		return "", false
	}
	value, err := within(readTime, func() (string, error) { return s.keyring.Get(service, user(id)) })
	return value, err == nil
}

// Set keeps a value, and says where.
func (s *Store) Set(id, value string) (where string, err error) {
	if len(value) > maxValue {
		return "", fmt.Errorf("the value is longer than %d KiB", maxValue>>10)
	}
	var ringErr error
	if s.keyring != nil {
		_, ringErr = within(writeTime, func() (string, error) { return "", s.keyring.Set(service, user(id), value) })
		if ringErr == nil {
			return "the keyring", s.change(func(values map[string]string) { delete(values, id) })
		}
	}
	if s.dir == "" {
		return "", errors.Join(errors.New("there is no folder to keep it in"), ringErr)
	}
	if err := s.change(func(values map[string]string) { values[id] = value }); err != nil {
		return "", err
	}
	return filepath.Join(s.dir, fileName), nil
}

// Forget removes a value. It is no error that there is none.
func (s *Store) Forget(id string) error {
	if s.keyring != nil {
		_, err := within(writeTime, func() (string, error) { return "", s.keyring.Delete(service, user(id)) })
		if _, there := s.Get(id); err != nil && !errors.Is(err, keyring.ErrNotFound) && there {
			return err
		}
	}
	return s.change(func(values map[string]string) { delete(values, id) })
}

func user(id string) string { return "input:" + id }

// within is f, but for so long only.
func within(limit time.Duration, f func() (string, error)) (string, error) {
	type result struct {
		value string
		err   error
	}
	done := make(chan result, 1)
	go func() { // ends with the keyring's answer, or with the program
		value, err := f()
		done <- result{value, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
		return "", errors.New("the keyring does not answer")
	}
}

// read returns what the file has.
func (s *Store) read() (map[string]string, error) {
	values := map[string]string{}
	if s.dir == "" {
		return values, nil
	}
	path := filepath.Join(s.dir, fileName)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return values, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		err = fmt.Errorf("%s is not a file of values", path)
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path) //nolint:gosec // in the user's state directory
	if err == nil {
		err = json.Unmarshal(data, &values)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if values == nil { // it says null
		values = map[string]string{}
	}
	return values, nil
}

// change writes the file anew if f changes what it has.
func (s *Store) change(f func(map[string]string)) error {
	values, err := s.read()
	if err != nil {
		return err
	}
	before, err := json.MarshalIndent(values, "", "  ")
	if err != nil {
		return err
	}
	f(values)
	after, err := json.MarshalIndent(values, "", "  ")
	if err != nil || string(before) == string(after) {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	path := filepath.Join(s.dir, fileName)
	current, err := os.ReadFile(path) //nolint:gosec // as above
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		current = nil
	}
	return importer.Replace(path, current, after, 0o600)
}
