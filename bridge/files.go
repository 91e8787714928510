package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/store"
	"github.com/mcp-bridge/mcp-bridge/bridge/internal/workspace"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

const (
	maxFileChunk  = 1 << 20 // bytes of a file that a sandbox sends or gets at a time
	maxDeleted    = 10_000  // files in one request
	fetchPerSec   = 20 << 20
	maxFetchExtra = 15 * time.Second
)

// Size writes a number of bytes for people, as results do.
func Size(n int64) string { return workspace.Size(n) }

// keptFiles opens the workspace on the host when it is first needed.
type keptFiles struct {
	quota int64

	mu    sync.Mutex
	store *workspace.Store // nil until it was opened
	err   error            // why it cannot be
}

// openFiles returns the workspace, or why there is none, in words for the model.
func (b *Bridge) openFiles() (*workspace.Store, error) {
	k := &b.files
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.store != nil || k.err != nil {
		return k.store, k.err
	}
	if k.quota < 0 {
		k.err = &proxy.Error{Kind: proxy.Unavailable, Message: "files are not kept: the bridge was told not to"}
		return nil, k.err
	}
	state, err := b.openStore()
	if err != nil {
		return nil, err // which may be mended meanwhile
	}
	k.store, err = workspace.Open(workspace.Options{
		Dir: filepath.Join(state.Dir(), "workspace"), Quota: workspace.Quota{Bytes: k.quota}, Logger: b.log,
	})
	if err != nil {
		b.log.Warn("workspace cannot be used", "error", err)
		k.err = &proxy.Error{Kind: proxy.Unavailable, Message: "files are not kept: the bridge cannot use its folder for them"}
	}
	return k.store, k.err
}

// goneText says what is gone with a sandbox.
func (b *Bridge) goneText() string {
	if _, err := b.openFiles(); err != nil {
		return "All variables and files are gone"
	}
	return "All variables are gone; files are those that were kept after the last cell that was not cut short"
}

// A KeptFile is a file of the workspace on the host.
type KeptFile struct {
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// KeptFiles returns the files of the workspace in a state directory, and the
// folder they are in, which is made if it is not there.
func KeptFiles(ctx context.Context, stateDir string) (dir string, files []KeptFile, err error) {
	state, err := store.Open(stateDir)
	if err != nil {
		return "", nil, err
	}
	kept, err := workspace.Open(workspace.Options{Dir: filepath.Join(state.Dir(), "workspace")})
	if err != nil {
		return "", nil, err
	}
	for _, f := range kept.List(ctx).Files {
		files = append(files, KeptFile(f))
	}
	return kept.Dir(), files, kept.Close()
}

// close lets go of the workspace.
func (k *keptFiles) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.store == nil {
		return nil
	}
	return k.store.Close()
}

// keepFiles tells a cell what version the host's files have, by which the kernel
// knows whether there is something to fetch. If there is, that is not to take up
// the cell's time.
func (b *Bridge) keepFiles(ctx context.Context, k *kernel, t *task) {
	store, err := b.openFiles()
	if err != nil {
		return
	}
	version := store.Version(ctx)
	t.workspace = &version
	if version == k.filesVersion {
		return
	}
	k.filesVersion = version
	t.timeout += min(time.Duration(store.List(ctx).Bytes)*time.Second/fetchPerSec, maxFetchExtra)
}

// keepLast has a sandbox that is about to end send the files that its last cell has
// not: those of a cell that was killed, and of processes that outlived theirs. It needs
// the turn. The interrupt at the end of the time ends it; the grace is long, for a kill
// would lose what is to be saved yet.
func (s *session) keepLast(ctx context.Context, k *kernel, timeout time.Duration) {
	store, err := s.bridge.openFiles()
	if err != nil || k.isDead() || s.cell == 0 {
		return
	}
	version := store.Version(ctx)
	_, err = ask(ctx, k, task{kind: "keep", cell: s.cell, timeout: timeout, grace: stopTimeout, workspace: &version})
	if err != nil {
		s.bridge.log.Info("files not kept at the end", "error", err)
	}
}

// An upload is the file that a session's sandbox is sending: one at a time.
type upload struct {
	mu      sync.Mutex
	current *workspace.Upload // nil for none
}

// drop forgets a file that was sent in part.
func (u *upload) drop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.abort()
}

func (u *upload) abort() {
	if u.current != nil {
		u.current.Abort()
		u.current = nil
	}
}

// listFiles answers workspace/list: what is kept, with the files themselves if
// they are asked for, each as its path, size and time in nanoseconds.
func (s *session) listFiles(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var query struct {
		Files bool `json:"files"`
	}
	if json.Unmarshal(params, &query) != nil {
		return nil, malformed()
	}
	store, err := s.bridge.openFiles()
	if err != nil {
		return nil, err
	}
	listing := store.List(ctx)
	reply := map[string]any{
		"version": listing.Version, "whole": listing.Whole, "bytes": listing.Bytes, "max_bytes": store.Quota().Bytes, "max_files": store.Quota().Files,
	}
	if !query.Files {
		reply["files"] = len(listing.Files)
		return mustJSON(reply), nil
	}
	files := make([][3]any, len(listing.Files))
	for i, f := range listing.Files {
		files[i] = [3]any{f.Path, f.Size, f.Modified.UnixNano()}
	}
	reply["files"] = files
	return mustJSON(reply), nil
}

// getFile answers workspace/get: a part of a file.
func (s *session) getFile(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	var query struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
	}
	if json.Unmarshal(params, &query) != nil {
		return nil, malformed()
	}
	store, err := s.bridge.openFiles()
	if err != nil {
		return nil, err
	}
	data, file, err := store.Read(query.Path, query.Offset, maxFileChunk)
	if err != nil {
		return nil, fileError(err)
	}
	return mustJSON(map[string]any{"data": data, "size": file.Size, "modified": file.Modified.UnixNano()}), nil
}

// putFile answers workspace/put: the next part of a file, which becomes visible
// with its last.
func (s *session) putFile(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var query struct {
		Path     string `json:"path"`
		Size     int64  `json:"size"`
		Modified int64  `json:"modified"`
		Offset   int64  `json:"offset"`
		Data     []byte `json:"data"`
	}
	if json.Unmarshal(params, &query) != nil || len(query.Data) > maxFileChunk {
		return nil, malformed()
	}
	store, err := s.bridge.openFiles()
	if err != nil {
		return nil, err
	}
	file := workspace.File{Path: query.Path, Size: query.Size, Modified: time.Unix(0, query.Modified)}
	u := &s.upload
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.current; query.Offset == 0 && (c == nil || c.File() != file || c.Written() > 0) {
		u.abort()
		if u.current, err = store.Begin(ctx, file); err != nil {
			u.current = nil
			return nil, fileError(err)
		}
	}
	if c := u.current; c == nil || c.File() != file || c.Written() != query.Offset {
		u.abort()
		return nil, &proxy.Error{Kind: proxy.Invalid, Message: "this is not the next part of a file"}
	}
	if err := u.current.Write(query.Data); err != nil {
		u.abort()
		return nil, fileError(err)
	}
	if u.current.Written() < file.Size || query.Offset == 0 && len(query.Data) == 0 && file.Size > 0 {
		return json.RawMessage("{}"), nil
	}
	kept, change, err := u.current.Commit(ctx)
	u.current = nil
	if err != nil {
		return nil, fileError(err)
	}
	return mustJSON(map[string]any{
		"version": change.Version, "previous": change.Previous, "size": kept.Size, "modified": kept.Modified.UnixNano(),
	}), nil
}

// deleteFiles answers workspace/delete, of files as workspace/list gives them.
func (s *session) deleteFiles(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var query struct {
		Files []fileRecord `json:"files"`
	}
	if json.Unmarshal(params, &query) != nil || len(query.Files) > maxDeleted {
		return nil, malformed()
	}
	store, err := s.bridge.openFiles()
	if err != nil {
		return nil, err
	}
	files := make([]workspace.File, len(query.Files))
	for i, f := range query.Files {
		files[i] = workspace.File(f)
	}
	change, err := store.Delete(ctx, files)
	if err != nil {
		return nil, fileError(err)
	}
	return mustJSON(map[string]int64{"version": change.Version, "previous": change.Previous}), nil
}

// A fileRecord is a file as a list of path, size and time.
type fileRecord workspace.File

// UnmarshalJSON implements [json.Unmarshaler].
func (f *fileRecord) UnmarshalJSON(data []byte) error {
	var modified int64
	fields := []any{&f.Path, &f.Size, &modified}
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) != len(fields) {
		return errors.New("a file is a list of three")
	}
	for i, part := range parts {
		if err := json.Unmarshal(part, fields[i]); err != nil {
			return err
		}
	}
	f.Modified = time.Unix(0, modified)
	return nil
}

func malformed() error {
	return &proxy.Error{Kind: proxy.Invalid, Message: "the request's parameters are malformed"}
}

// fileError is what a sandbox hears of an error of the workspace.
func fileError(err error) error {
	if e, ok := errors.AsType[*workspace.Error](err); ok {
		return &proxy.Error{Kind: proxy.Invalid, Message: e.Text}
	}
	return err
}
