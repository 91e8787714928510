package bridge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/store"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// stateLimits are the areas that cells may write to, by name.
func stateLimits() map[string]store.Limits {
	return map[string]store.Limits{
		"memory": {Entries: 2_000, EntryBytes: 1 << 20, TotalBytes: 64 << 20},
		"skills": {Entries: 500, EntryBytes: 512 << 10, TotalBytes: 64 << 20},
	}
}

// PrepareStateDir makes the directory that Options.StateDir is to be, or says
// why it cannot be used.
func PrepareStateDir(dir string) error {
	_, err := store.Open(dir)
	return err
}

// A keeper opens the state directory when it is first needed.
type keeper struct {
	dir string // "" keeps nothing

	mu     sync.Mutex
	store  *store.Store // nil until it was opened
	warned bool
}

// open returns the store. The error is for the model; the cause is in the log.
func (b *Bridge) openStore() (*store.Store, error) {
	k := &b.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.store != nil {
		return k.store, nil
	}
	unavailable := &proxy.Error{
		Kind: proxy.Unavailable, Message: "nothing is kept across sessions here: the bridge has no state directory",
		Hint: "to mend it on the host: mcp-bridge run --state-dir",
	}
	if k.dir == "" {
		return nil, unavailable
	}
	s, err := store.Open(k.dir)
	if err != nil {
		if !k.warned {
			b.log.Warn("state directory cannot be used", "error", err)
		}
		k.warned = true
		unavailable.Message = "nothing is kept across sessions here: the bridge cannot use its state directory"
		unavailable.Hint = "to mend it on the host, see the bridge's log, or give another one: mcp-bridge run --state-dir"
		return nil, unavailable
	}
	k.store = s
	return s, nil
}

// An envelope is what is stored: the writer in the first line, then the value.
type envelope struct {
	Session string    `json:"session"` // its name; "" is one without
	Time    time.Time `json:"time"`
	value   []byte
}

func (e envelope) bytes() []byte {
	return append(append(mustJSON(e), '\n'), e.value...)
}

// openEnvelope returns nothing for what is not stored in one.
func openEnvelope(data []byte) envelope {
	var e envelope
	line, value, ok := bytes.Cut(data, []byte("\n"))
	if !ok || json.Unmarshal(line, &e) != nil {
		return envelope{}
	}
	e.value = value
	return e
}

// A stateQuery are the parameters of all methods of state.
type stateQuery struct {
	Area  string  `json:"area"`
	Key   string  `json:"key"`
	Value *string `json:"value"` // put
	// Expect is the version that the value must have to be changed; "" is none.
	Expect *string `json:"expect"` // put, delete; may be absent
}

// area returns the area that a request is about.
func (b *Bridge) area(params json.RawMessage) (*store.Area, stateQuery, error) {
	var q stateQuery
	if json.Unmarshal(params, &q) != nil {
		return nil, q, &proxy.Error{Kind: proxy.Invalid, Message: "the request's parameters are malformed"}
	}
	limits, ok := stateLimits()[q.Area]
	if !ok {
		return nil, q, &proxy.Error{Kind: proxy.Invalid, Message: "there is no such area"}
	}
	s, err := b.openStore()
	if err != nil {
		return nil, q, err
	}
	return s.Area(q.Area, limits), q, nil
}

// stateGet answers state/get: the value, or null, its version, and which session
// has written it when.
func (s *session) stateGet(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	area, q, err := s.bridge.area(params)
	if err != nil {
		return nil, err
	}
	data, err := area.Get(q.Key)
	if errors.Is(err, store.ErrNotFound) {
		return json.RawMessage(`{"value":null,"version":""}`), nil
	}
	if err != nil {
		return nil, s.bridge.stateError(err)
	}
	e := openEnvelope(data)
	if e.value == nil {
		return nil, s.bridge.stateError(fmt.Errorf("read %.80q: %w", q.Key, store.ErrDamaged))
	}
	return mustJSON(map[string]any{
		"value": string(e.value), "version": versionOf(e.value), "session": e.Session, "time": e.Time.Unix(),
	}), nil
}

// statePut answers state/put with the new version.
func (s *session) statePut(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	area, q, err := s.bridge.area(params)
	if err != nil {
		return nil, err
	}
	if q.Value == nil {
		return nil, &proxy.Error{Kind: proxy.Invalid, Message: "there is no value"}
	}
	e := envelope{Session: s.name, Time: time.Now().UTC().Truncate(time.Second), value: []byte(*q.Value)}
	err = area.Update(q.Key, func(old []byte) ([]byte, error) { return e.bytes(), q.check(openEnvelope(old).value) })
	if err != nil {
		return nil, s.bridge.stateError(err)
	}
	return mustJSON(map[string]string{"version": versionOf(e.value)}), nil
}

// stateDelete answers state/delete: whether there was such an entry.
func (s *session) stateDelete(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	area, q, err := s.bridge.area(params)
	if err != nil {
		return nil, err
	}
	if q.Expect == nil {
		err = area.Delete(q.Key) // also what is damaged
	} else {
		err = area.Update(q.Key, func(old []byte) ([]byte, error) { return nil, q.check(openEnvelope(old).value) })
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, s.bridge.stateError(err)
	}
	return mustJSON(map[string]bool{"deleted": err == nil}), nil
}

// stateList answers state/list. A stamp changes whenever the entry does.
func (s *session) stateList(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	area, _, err := s.bridge.area(params)
	if err != nil {
		return nil, err
	}
	entries, err := area.List()
	if err != nil {
		return nil, s.bridge.stateError(err)
	}
	type listed struct {
		Key     string `json:"key"`
		Size    int64  `json:"size"`
		Stamp   string `json:"stamp"`
		Damaged bool   `json:"damaged,omitempty"`
	}
	all := make([]listed, len(entries))
	for i, e := range entries {
		all[i] = listed{e.Key, e.Size, e.Stamp, e.Damaged}
	}
	limits := area.Limits()
	return mustJSON(map[string]any{
		"entries": all,
		"limits":  map[string]int64{"entries": int64(limits.Entries), "entry_bytes": limits.EntryBytes, "total_bytes": limits.TotalBytes},
	}), nil
}

// versionOf tells values apart; none has the version "".
func versionOf(data []byte) string {
	if data == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

// check refuses a change of another value than the one that is meant.
func (q *stateQuery) check(old []byte) error {
	if q.Expect != nil && *q.Expect != versionOf(old) {
		return &proxy.Error{Kind: proxy.Conflict, Message: "it has been changed meanwhile", Hint: "read it again, then write"}
	}
	return nil
}

// stateError is what the model learns of an error of the store: no paths.
func (b *Bridge) stateError(err error) error {
	if _, ok := errors.AsType[*proxy.Error](err); ok {
		return err
	}
	known := []struct {
		err  error
		kind proxy.Kind
		hint string
	}{
		{store.ErrFull, proxy.Full, "delete what is not needed, or keep less in one entry"},
		{store.ErrKey, proxy.Invalid, ""},
		{store.ErrDamaged, proxy.Damaged, "write or delete it"},
		{store.ErrBusy, proxy.Busy, "try again"},
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			if k.kind == proxy.Damaged { // its cause names the file
				b.log.Warn("state is damaged", "error", err)
				return &proxy.Error{Kind: k.kind, Message: "the entry is damaged", Hint: k.hint, Err: store.ErrDamaged}
			}
			return &proxy.Error{Kind: k.kind, Message: err.Error(), Hint: k.hint, Err: err}
		}
	}
	b.log.Warn("state could not be read or written", "error", err)
	return &proxy.Error{Kind: proxy.Unavailable, Message: "the bridge could not read or write its state directory", Err: err}
}
