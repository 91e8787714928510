package proxy

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Options configures a [Proxy]. Only Servers is needed.
type Options struct {
	Servers []discovery.Server // the configured servers, disabled ones included
	Catalog *discovery.Catalog // remembers tools between runs; nil for no memory
	Logger  *slog.Logger       // nil for none
	Version string             // of the bridge, told to servers

	// ServerEnv are variables for every server that is started; those of its own
	// definition win.
	ServerEnv map[string]string

	StartTimeout time.Duration // from a server's start to the end of its handshake, and for listing its tools; default 30 s
	ProbeTimeout time.Duration // for a server's answer to the first request of protocol 2026-07-28; default 3 s
	CallTimeout  time.Duration // of a call, start included; 0 leaves it to the caller's context

	// SearchWait is how long a search waits for servers that it has to start
	// because nothing is known of them; default 15 s.
	SearchWait time.Duration

	// LearnShapes keeps the form of the results of tools that do not declare it,
	// never a value of them, and shows it as their return type.
	LearnShapes bool

	// BlockChanged refuses calls of tools that are not what the user has approved, and
	// shows nothing of them; else they are only marked. See [discovery.Catalog.Review].
	BlockChanged bool

	// Approver asks the user before calls of tools whose server's definition wants
	// that; without one they are refused.
	Approver Approver

	IdleTimeout  time.Duration // of a server that does not say; 0 is for ever
	DrainTimeout time.Duration // for the calls of a server whose definition has changed; default 2 min

	MaxInFlight     int // requests of one callback connection at a time; default 64
	ListConcurrency int // servers started at a time to be searched; default 4

	// CatalogAge is how old the catalog's entry of a server may be before Fill asks
	// the server again; default 7 days.
	CatalogAge time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	if o.StartTimeout <= 0 {
		o.StartTimeout = 30 * time.Second
	}
	if o.ProbeTimeout <= 0 {
		o.ProbeTimeout = 3 * time.Second
	}
	if o.SearchWait <= 0 {
		o.SearchWait = 15 * time.Second
	}
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = 2 * time.Minute
	}
	if o.CatalogAge <= 0 {
		o.CatalogAge = 7 * 24 * time.Hour
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 64
	}
	if o.ListConcurrency <= 0 {
		o.ListConcurrency = 4
	}
	return o
}

// A Proxy holds the upstream servers. Its methods may be called concurrently.
// The caller must Close it.
type Proxy struct {
	opts   Options
	roster atomic.Pointer[roster]
	notes  atomic.Pointer[map[string]string] // on servers, by name
	index  indexCache

	unread *budget // for the results that sandboxes have yet to read

	asking  chan struct{} // holds a token for every call that waits for the user's approval
	listers chan struct{} // holds a token for every server being listed for a search

	calls atomic.Int64 // of Call, under way

	mu      sync.Mutex
	closed  bool
	closing chan struct{}  // closed by Close
	work    sync.WaitGroup // everything in the background; Close waits
	parked  []*session     // started for a search; the oldest first
	serving map[*callbacks]struct{}

	reloading sync.Mutex    // held by Reload
	reloaded  chan struct{} // holds a token when Fill has to look again
}

// New returns a Proxy. It starts nothing: a server starts when it is needed.
func New(opts Options) *Proxy {
	opts = opts.withDefaults()
	p := &Proxy{
		opts:    opts,
		listers: make(chan struct{}, opts.ListConcurrency),
		asking:  make(chan struct{}, maxAsking),
		closing: make(chan struct{}),
		unread:  newBudget(maxAllUnread, maxUnread),
		serving: make(map[*callbacks]struct{}),

		reloaded: make(chan struct{}, 1),
	}
	p.roster.Store(p.newRoster(opts.Servers, nil))
	return p
}

// Close ends every server with everything it started, and waits until they are
// gone, about two seconds at most. Calls in flight fail. It is idempotent, and
// always returns nil.
func (p *Proxy) Close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
	}
	p.mu.Unlock()
	p.work.Wait()
	return nil
}

func (p *Proxy) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// background runs f until the proxy is closed: the context that f gets has
// ctx's values and is done when Close is called. It reports false, and does not
// run f, if the proxy is closed already.
func (p *Proxy) background(ctx context.Context, f func(context.Context)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.work.Go(func() {
		defer cancel()
		f(ctx)
	})
	p.work.Go(func() {
		select {
		case <-p.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	return true
}

// later runs f, for which Close waits, and which has to end when p.closing is
// closed. It reports false, and does not run f, if the proxy is closed already.
func (p *Proxy) later(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Go(f)
	}
	return !p.closed
}

// upstream returns the enabled server of that name or identifier.
func (p *Proxy) upstream(server string) (*upstream, error) {
	all := p.all()
	u := all.names[server]
	switch {
	case p.isClosed():
		return nil, closedError()
	case u == nil:
		names := make([]string, len(all.order))
		for i, u := range all.order {
			names[i] = u.server.Name
		}
		return nil, errorf(UnknownServer, DidYouMean(server, names, "see tools.servers()"), "there is no server %s", quoteName(server))
	case u.server.Disabled && p.note(u.server.Name) != "":
		return nil, errorf(UnknownServer, "", "server %s is not there: %s", quoteName(u.server.Name), p.note(u.server.Name))
	case u.server.Disabled:
		return nil, errorf(UnknownServer, "the user can enable it in its definition", "server %s is disabled", quoteName(u.server.Name))
	}
	return u, nil
}

// ServerInfo describes one configured server.
type ServerInfo struct {
	Name        string   `json:"name"`
	Ident       string   `json:"ident"`             // its Python identifier
	Aliases     []string `json:"aliases,omitempty"` // further names it goes by
	Description string   `json:"description"`
	Tools       *int     `json:"tools"`             // how many it offers; nil if not known
	Changed     int      `json:"changed,omitempty"` // how many of these changed since they were approved
	State       string   `json:"state"`             // idle, starting, ready, failed or disabled
	Error       string   `json:"error"`             // why it failed to start, or to list its tools, or its note; else empty
}

// Servers describes all configured servers, in their configured order. It
// starts none.
func (p *Proxy) Servers() []ServerInfo {
	all := p.all()
	infos := make([]ServerInfo, len(all.order))
	for i, u := range all.order {
		state, failed := u.state()
		infos[i] = ServerInfo{
			Name:        u.server.Name,
			Ident:       u.server.Ident,
			Aliases:     u.aliases,
			Description: u.server.Description,
			State:       state,
		}
		if failed == nil {
			failed = u.listFailure()
		}
		if failed != nil {
			infos[i].Error = failed.Message
		} else {
			infos[i].Error = p.note(u.server.Name)
		}
		if set := u.known(); set != nil {
			n := len(u.shown(set))
			infos[i].Tools, infos[i].Changed = &n, len(set.changed)
			if infos[i].Error == "" {
				infos[i].Error = u.changedNote(set)
			}
		}
	}
	return infos
}

// Describe writes the documentation of a tool, given by any of its names and
// those of its server, as [discovery.Describe] does. It starts the server if
// nothing is known of it, or of the tool, within ctx.
//
// Errors are *[Error].
func (p *Proxy) Describe(ctx context.Context, server, tool string, detail discovery.Detail) (string, error) {
	return twice(ctx, func() (string, error) {
		u, err := p.upstream(server)
		if err != nil {
			return "", err
		}
		return u.describe(ctx, tool, detail)
	})
}

func (u *upstream) describe(ctx context.Context, name string, detail discovery.Detail) (string, error) {
	set := u.known()
	if set == nil || set.names[name] == "" {
		s, err := u.session(ctx)
		if err != nil {
			return "", err
		}
		if set, _, err = u.list(ctx, s); err != nil {
			return "", err
		}
	}
	i, ok := set.index[set.names[name]]
	if !ok {
		return "", u.noTool(set, name)
	}
	if e := u.denied(set.tools[i].Name); e != nil {
		return "", e
	}
	tool, shape := set.tools[i], u.shapeOf(set, i)
	if u.withheld(set, tool.Name) {
		tool, shape = discovery.Tool{Name: tool.Name}, nil
	}
	return discovery.Describe(tool, set.docs[i], shape, detail), nil
}

// Tools describes the tools of a server, given by name or identifier. It starts
// the server if nothing is known of it, within ctx.
//
// Errors are *[Error]. The caller must not change the result.
func (p *Proxy) Tools(ctx context.Context, server string) ([]discovery.ToolDoc, error) {
	return twice(ctx, func() ([]discovery.ToolDoc, error) {
		u, err := p.upstream(server)
		if err != nil {
			return nil, err
		}
		return u.documents(ctx)
	})
}

func (u *upstream) documents(ctx context.Context) ([]discovery.ToolDoc, error) {
	if set := u.known(); set != nil {
		return u.shown(set), nil
	}
	s, err := u.session(ctx)
	if err != nil {
		return nil, err
	}
	set, _, err := u.list(ctx, s)
	if err != nil {
		return nil, err
	}
	return u.shown(set), nil
}
