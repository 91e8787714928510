package proxy

import (
	"context"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	// retryListing is how long a server that could not be listed is left alone.
	retryListing = time.Minute
	// maxParked is how many servers that were started only to be listed are
	// kept running, in the hope that a call follows.
	maxParked = 8

	maxQuery     = 4_000 // bytes
	defaultLimit = 8
	maxLimit     = 100
)

// Search ranks the tools of all enabled servers against query. Servers of which
// nothing is known are started and listed first, a few at a time; it waits for
// them Options.SearchWait at most, or until ctx is done, and says in the result's Note which
// ones are missing. limit is 8 if not positive, and 100 at most.
//
// Errors are *[Error].
func (p *Proxy) Search(ctx context.Context, query string, limit int) (discovery.Result, error) {
	if p.isClosed() {
		return discovery.Result{}, closedError()
	}
	if len(query) > maxQuery {
		return discovery.Result{}, errorf(Invalid, "search for a few words", "the query is over %d bytes", maxQuery)
	}
	if limit <= 0 {
		limit = defaultLimit
	}
	p.readKnown()
	note := p.listMissing(ctx)
	if ctx.Err() != nil {
		return discovery.Result{}, doneError(ctx, "search")
	}
	result := p.index.get(p).Search(query, min(limit, maxLimit))
	for i := range result.Hits {
		p.refresh(&result.Hits[i])
	}
	if note != "" {
		result.Note = strings.TrimSpace(result.Note + " " + note)
	}
	return result, nil
}

// readKnown reads what the catalog knows of all servers, on all processors: for
// the first search that is most of the work.
func (p *Proxy) readKnown() {
	if p.index.made() {
		return
	}
	work := make(chan *upstream)
	var group sync.WaitGroup
	for range goruntime.GOMAXPROCS(0) {
		group.Go(func() {
			for u := range work {
				u.known()
			}
		})
	}
	for _, u := range p.all().order {
		if !u.server.Disabled {
			work <- u
		}
	}
	close(work)
	group.Wait()
}

// listMissing lists the servers of which nothing is known, and returns a note
// on those that could not be.
func (p *Proxy) listMissing(ctx context.Context) string {
	var waiting []*upstream
	var flights []*flight[*toolset]
	var failed []string
	for _, u := range p.all().order {
		if u.server.Disabled || u.known() != nil {
			continue
		}
		if f := u.listFirst(ctx); f != nil {
			waiting, flights = append(waiting, u), append(flights, f)
		} else {
			failed = append(failed, u.server.Name)
		}
	}
	if len(waiting) == 0 && len(failed) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, p.opts.SearchWait)
	defer cancel()
	var starting []string
	for i, f := range flights {
		_, err := f.wait(ctx, "")
		switch {
		case f.landed() && f.err == nil:
		case err != nil && f.landed():
			failed = append(failed, waiting[i].server.Name)
		default:
			starting = append(starting, waiting[i].server.Name)
		}
	}
	return strings.TrimSpace(noteOn(starting, "still starting, search again:") + " " +
		noteOn(failed, "not searched because they failed, see tools.servers():"))
}

// noteOn names the first few of names.
func noteOn(names []string, what string) string {
	const shown = 10
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > shown {
		more = ", and " + strconv.Itoa(len(names)-shown) + " more"
		names = names[:shown]
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quoteName(name)
	}
	return "(" + what + " " + strings.Join(quoted, ", ") + more + ")"
}

// listFirst begins to list a server of which nothing is known. It returns nil
// if that failed a short while ago.
func (u *upstream) listFirst(ctx context.Context) *flight[*toolset] {
	t := &u.tools
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.first != nil && !t.first.landed() {
		return t.first
	}
	if t.first != nil && t.first.err != nil && time.Since(t.failedAt) < retryListing {
		return nil
	}
	f := newFlight[*toolset]()
	t.first = f
	started := u.proxy.background(ctx, func(ctx context.Context) {
		set, err := u.listOnly(ctx)
		if err != nil {
			t.mu.Lock()
			t.failedAt = time.Now()
			t.mu.Unlock()
		}
		f.land(set, err)
	})
	if !started {
		f.land(nil, closedError())
	}
	return f
}

// listOnly starts the server when it is its turn, lists it, and parks it.
func (u *upstream) listOnly(ctx context.Context) (*toolset, error) {
	select {
	case u.proxy.listers <- struct{}{}:
		defer func() { <-u.proxy.listers }()
	case <-ctx.Done():
		return nil, closedError()
	}
	s, err := u.session(ctx)
	if err != nil {
		return nil, err
	}
	defer u.proxy.park(s)
	set, _, err := u.list(ctx, s)
	return set, err
}

// park keeps a session that was made for a listing, and retires the oldest of
// too many that nobody has used since.
func (p *Proxy) park(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parked = append(p.parked, s)
	if len(p.parked) > maxParked {
		p.parked[0].retire()
		p.parked = append([]*session(nil), p.parked[1:]...)
	}
}

// refresh writes the signature of a hit as it is now: what is learned of results
// does not change what is found.
func (p *Proxy) refresh(hit *discovery.Hit) {
	u := p.all().names[hit.Server]
	if u == nil {
		return
	}
	if set := u.known(); set != nil {
		if i, ok := set.index[hit.Tool]; ok {
			hit.Signature = set.docs[i].HitSignature()
		}
	}
}

// An indexCache is the search index over what is known, made when it is needed.
type indexCache struct {
	mu      sync.Mutex
	index   *discovery.Index // nil if it has to be made
	version string           // of what is included
	source  func() (discovery.IndexedServer, string)
}

// Include has searches rank what source returns, too: what can be called, but is
// no tool of the proxy's. The string changes when the rest does; while it is empty
// there is nothing. source is called for every search.
func (p *Proxy) Include(source func() (discovery.IndexedServer, string)) {
	p.index.mu.Lock()
	defer p.index.mu.Unlock()
	p.index.source = source
}

func (c *indexCache) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index = nil
}

func (c *indexCache) made() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.index != nil
}

func (c *indexCache) get(p *Proxy) *discovery.Index {
	c.mu.Lock()
	defer c.mu.Unlock()
	var more discovery.IndexedServer
	var version string
	if c.source != nil {
		more, version = c.source()
	}
	if c.index == nil || c.version != version {
		c.version = version
		var servers []discovery.IndexedServer
		for _, u := range p.all().order {
			if u.server.Disabled {
				continue
			}
			entry := discovery.IndexedServer{Server: u.server}
			if set := u.known(); set != nil {
				entry.Tools, entry.Listed = u.shown(set), true
			}
			servers = append(servers, entry)
		}
		if version != "" {
			servers = append(servers, more)
		}
		c.index = discovery.NewIndex(servers)
	}
	return c.index
}
