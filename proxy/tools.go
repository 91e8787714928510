package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/stdio"
)

// Bounds on what a server may list.
const (
	maxPages       = 50
	maxTools       = 2_000
	maxNameBytes   = 256
	maxDescription = 64 << 10
	maxSchema      = 1 << 20
	maxListing     = 16 << 20 // all of it
)

const (
	// changeDelay is how long more changes of a server's tools are waited for
	// after the first; as long as there are more, it doubles.
	changeDelay    = 200 * time.Millisecond
	maxChangeDelay = 10 * time.Second
)

// A toolset is what a server offers. It does not change, but for what it holds
// ready.
type toolset struct {
	tools       []discovery.Tool
	docs        []discovery.ToolDoc
	names       map[string]string // names, identifiers and aliases to names
	index       map[string]int    // names to places in tools and docs
	definitions []string          // of tools, as Tool.Definition has them
	complete    bool              // false if the server has more than the bounds allow

	changed  map[string]discovery.Change // tools that are not what the user has approved
	reviewed discovery.ReviewState       // as of when

	checkers *checkers
}

func newToolset(server discovery.Server, tools []discovery.Tool, complete bool) *toolset {
	set := &toolset{
		tools:    tools,
		docs:     discovery.Document(server, tools),
		names:    make(map[string]string, 2*len(tools)),
		index:    make(map[string]int, len(tools)),
		complete: complete,
		checkers: &checkers{},
	}
	for _, doc := range set.docs {
		for _, alias := range doc.Aliases {
			set.names[alias] = doc.Name
		}
	}
	for _, doc := range set.docs { // an identifier wins over another tool's alias
		set.names[doc.Ident] = doc.Name
	}
	for _, tool := range tools {
		set.definitions = append(set.definitions, tool.Definition())
	}
	for i, doc := range set.docs { // a name wins over another tool's identifier
		set.names[doc.Name] = doc.Name
		if _, ok := set.index[doc.Name]; !ok {
			set.index[doc.Name] = i
		}
	}
	return set
}

func candidates(docs []discovery.ToolDoc) []string {
	names := make([]string, len(docs))
	for i, doc := range docs {
		names[i] = doc.Name
	}
	return names
}

// A toolbox holds the current toolset of an upstream.
type toolbox struct {
	mu       sync.Mutex
	loaded   bool     // the catalog has been asked
	set      *toolset // nil if nothing is known
	listing  *flight[*toolset]
	listedOf *session // whom listing asks

	first    *flight[*toolset] // the listing a search began
	failedAt time.Time         // when that failed
}

// known returns what is known of u's tools without asking the server, nil if
// nothing is.
func (u *upstream) known() *toolset {
	t := &u.tools
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.loaded && u.proxy.opts.Catalog != nil {
		if entry, ok := u.proxy.opts.Catalog.Get(u.server); ok && t.set == nil {
			t.set = u.withLessons(u.review(newToolset(u.server, entry.Tools, len(entry.Tools) < maxTools)))
		}
	}
	t.loaded = true
	if t.set.isOutdated(u) { // the user has approved something
		t.set = u.withLessons(u.review(newToolset(u.server, t.set.tools, t.set.complete)))
		u.proxy.later(u.proxy.toolsChanged)
	}
	return t.set
}

// resolve returns the name of a tool that is given by any of its names. It
// asks the server before it calls one unknown.
func (u *upstream) resolve(ctx context.Context, s *session, tool string) (string, error) {
	if set := u.known(); set != nil {
		if name, ok := set.names[tool]; ok {
			return name, nil
		}
	}
	set, begun, err := u.list(ctx, s)
	if err == nil && !begun && set.names[tool] == "" { // that one may have missed a change
		set, _, err = u.list(ctx, s)
	}
	if err != nil {
		return "", err
	}
	if name, ok := set.names[tool]; ok {
		return name, nil
	}
	if !set.complete && len(tool) <= maxNameBytes {
		return tool, nil
	}
	return "", u.noTool(set, tool)
}

func (u *upstream) noTool(set *toolset, tool string) *Error {
	return errorf(UnknownTool, DidYouMean(tool, candidates(u.shown(set)), "see dir() of the server, or tools.search()"),
		"server %s has no tool %s", quoteName(u.server.Name), quoteName(tool))
}

// follow keeps the toolset up to date while a session lives.
func (u *upstream) follow(ctx context.Context, s *session) {
	onChange(ctx, s.changed, func() { u.relist(ctx, s) })
}

// relist lists the tools for nobody in particular.
func (u *upstream) relist(ctx context.Context, s *session) {
	_, _, err := u.list(ctx, s)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errNotSent) && !u.proxy.isClosed() {
		u.logger.Warn("tools were not listed", "error", err)
	}
}

// onChange calls list at once, and after changes until ctx is done: soon after
// one that comes alone, more and more rarely when they do not end.
func onChange(ctx context.Context, changed <-chan struct{}, list func()) {
	delay := changeDelay
	for ctx.Err() == nil {
		list()
		listed := time.Now()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		if time.Since(listed) > maxChangeDelay {
			delay = changeDelay
		}
		_ = sleep(ctx, delay)
		delay = min(2*delay, maxChangeDelay)
	}
}

// list asks s for its tools. Concurrent callers share one listing; it reports
// whether this one began it. ctx bounds the wait, not the listing.
func (u *upstream) list(ctx context.Context, s *session) (set *toolset, begun bool, err error) {
	t := &u.tools
	t.mu.Lock()
	f := t.listing
	if begun = f == nil || t.listedOf != s || f.landed(); begun {
		f = newFlight[*toolset]()
		t.listing, t.listedOf = f, s
		started := u.proxy.background(ctx, func(ctx context.Context) { f.land(u.listNow(ctx, s)) })
		if !started {
			f.land(nil, closedError())
		}
	}
	t.mu.Unlock()
	set, err = f.wait(ctx, "listing the tools of server "+quoteName(u.server.Name))
	return set, begun, err
}

// listFailure returns why the last listing failed, nil if it did not, or the server
// was never asked, for the proxy was ending it.
func (u *upstream) listFailure() *Error {
	t := &u.tools
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listing == nil || !t.listing.landed() || t.listing.err == nil || errors.Is(t.listing.err, errNotSent) {
		return nil
	}
	return asError(t.listing.err)
}

// listNow asks the server and stores the answer.
func (u *upstream) listNow(ctx context.Context, s *session) (*toolset, error) {
	ctx, cancel := context.WithTimeout(ctx, u.proxy.opts.StartTimeout)
	defer cancel()
	if !s.usage.hold() {
		return nil, u.broken(ctx, s, "its tools", false, errNotSent)
	}
	defer s.usage.end()
	l := &listing{}
	err := l.collect(ctx, s)
	if l.tooDeep > 0 {
		u.logger.Warn("tools were left out: they are nested too deep", "tools", l.tooDeep, "levels", stdio.MaxDepth)
	}
	if rpcErr, ok := errors.AsType[*jsonrpc.Error](err); ok && rpcErr.Code == jsonrpc.CodeMethodNotFound {
		err = nil // a server without tools
	}
	switch {
	case err == nil || len(l.tools) > 0:
		if err != nil {
			u.logger.Warn("only a part of the tools was listed", "tools", len(l.tools), "error", err)
		}
	case u.proxy.isClosed():
		return nil, closedError()
	case ctx.Err() != nil:
		return nil, errorf(ServerFailed, "try again later", "server %s did not list its tools within %v",
			quoteName(u.server.Name), u.proxy.opts.StartTimeout)
	case s.over():
		return nil, &Error{Kind: ServerFailed, Err: err, Message: fmt.Sprintf("server %s %s while listing its tools%s",
			quoteName(u.server.Name), s.why(), u.quoteTail(s.proc.Tail()))}
	default:
		return nil, &Error{Kind: ServerFailed, Err: err, Message: fmt.Sprintf("server %s did not list its tools: %s",
			quoteName(u.server.Name), u.text.clean(err.Error(), refusalShown))}
	}
	return u.store(l.tools, err == nil && !l.truncated), nil
}

// store replaces the toolset, here and in the catalog, if it changed.
func (u *upstream) store(tools []discovery.Tool, complete bool) *toolset {
	before := u.known()
	if before != nil && before.complete == complete && slices.EqualFunc(before.tools, tools, sameTool) {
		if catalog := u.proxy.opts.Catalog; catalog != nil {
			catalog.Renew(u.server)
		}
		return before
	}
	if catalog := u.proxy.opts.Catalog; catalog != nil {
		if err := catalog.Put(u.server, tools); err != nil {
			u.logger.Warn("tools were not saved", "error", err)
		}
	}
	set := u.review(newToolset(u.server, tools, complete))
	u.tools.mu.Lock()
	set = u.withLessons(set)
	u.tools.set = set
	u.tools.mu.Unlock()
	u.proxy.index.invalidate()
	if before != nil {
		u.proxy.tellChange()
	}
	return set
}

func sameTool(a, b discovery.Tool) bool {
	return a.Name == b.Name && a.Title == b.Title && a.Description == b.Description &&
		bytes.Equal(a.InputSchema, b.InputSchema) && bytes.Equal(a.OutputSchema, b.OutputSchema) &&
		bytes.Equal(a.Annotations, b.Annotations)
}

// A listing collects the pages of tools/list.
type listing struct {
	tools     []discovery.Tool
	truncated bool // there was more, or something unusable
	bytes     int
	tooDeep   int // tools that were left out
}

var (
	errManyPages  = fmt.Errorf("the server lists its tools on more than %d pages", maxPages)
	errSameCursor = errors.New("the server lists the same page of tools again and again")
	errNoList     = errors.New("the server answered tools/list with something else")
)

// collect asks for all pages. After an error the tools so far are there.
func (l *listing) collect(ctx context.Context, s *session) error {
	names, cursors := map[string]bool{}, map[string]bool{}
	cursor := ""
	for range maxPages {
		page, err := listPage(ctx, s, cursor)
		if err != nil {
			return err
		}
		l.add(page.Tools, names)
		cursor = page.NextCursor
		if cursor == "" || l.full() {
			l.truncated = l.truncated || cursor != ""
			return nil
		}
		if cursors[cursor] {
			return errSameCursor
		}
		cursors[cursor] = true
	}
	return errManyPages
}

func (l *listing) full() bool { return len(l.tools) >= maxTools || l.bytes >= maxListing }

func (l *listing) add(page []json.RawMessage, names map[string]bool) {
	for _, raw := range page {
		if l.full() {
			l.truncated = true
			return
		}
		tool, ok := readTool(raw)
		if !ok || names[tool.Name] { // of two tools with one name the first wins
			continue
		}
		names[tool.Name] = true
		if stdio.Depth(raw) > stdio.MaxDepth {
			l.tooDeep++
			l.truncated = true
			continue
		}
		l.bytes += len(raw)
		l.tools = append(l.tools, tool)
	}
}

type toolsPage struct {
	Tools      []json.RawMessage `json:"tools"`
	NextCursor string            `json:"nextCursor"`
}

// listPage asks for one page. It is read from the server's own bytes, for
// go-sdk would lose the order of parameters, and the whole page for one bad tool.
func listPage(ctx context.Context, s *session, cursor string) (*toolsPage, error) {
	ctx, result := withSink(ctx, "tools/list", `{"tools":[]}`)
	_, err := s.mcp.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
	raw := s.gate.finish(result).raw
	if err != nil {
		return nil, err
	}
	page := &toolsPage{}
	if raw == nil || json.Unmarshal(raw, page) != nil {
		return nil, errNoList
	}
	return page, nil
}

// readTool returns a tool that may be kept, cut where it is too large.
func readTool(raw json.RawMessage) (discovery.Tool, bool) {
	var tool discovery.Tool
	if json.Unmarshal(raw, &tool) != nil || tool.Name == "" || len(tool.Name) > maxNameBytes {
		return tool, false
	}
	if !isShowable(tool.Name) {
		return tool, false
	}
	tool.Title = firstBytes(tool.Title, maxNameBytes)
	tool.Description = firstBytes(tool.Description, maxDescription)
	for _, schema := range []*json.RawMessage{&tool.InputSchema, &tool.OutputSchema, &tool.Annotations} {
		if len(*schema) > maxSchema {
			*schema = nil
		}
		if *schema != nil { // as the catalog has it, and not a part of the whole page
			var compact bytes.Buffer
			_ = json.Compact(&compact, *schema) // valid: it has been decoded
			*schema = compact.Bytes()
		}
	}
	return tool, true
}

func firstBytes(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:limit]), nil)) + "…"
}
