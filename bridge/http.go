package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// HTTPPath is where MCP is served.
	HTTPPath = "/mcp"

	// sessionlessFrom is the protocol version from which on requests over HTTP
	// belong to no session of the protocol.
	sessionlessFrom = "2026-07-28"

	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"

	headerTimeout  = 10 * time.Second // to send a request's header
	bodyTimeout    = 30 * time.Second // to send its body
	writeTimeout   = 30 * time.Second // to take a part of an answer
	refusedTimeout = time.Second      // to send the rest of one that is refused
	idleTimeout    = 2 * time.Minute  // between two requests
	maxHeader      = 32 << 10         // bytes

	// maxReplay bounds, in bytes, what is kept of answers for clients that lost
	// their connection and come back.
	maxReplay = 16 << 20
)

// HTTPOptions configure ServeOverHTTP. Zero fields take the defaults they name.
type HTTPOptions struct {
	Token          string        // every request must have it, as a bearer token; "" asks for none
	Hosts          []string      // names in the Host header to answer to, beside addresses of this machine
	SessionTimeout time.Duration // after which an unused session is forgotten; 24 h
	MaxConnections int           // with a request that was authorized, and as many without; 256
	MaxClients     int           // with a session of the protocol; 256
}

// ServeOverHTTP speaks MCP over Streamable HTTP with whoever connects to
// listener, until ctx is done. It closes the listener, and not the Bridge.
//
// A client with a session of the protocol (Mcp-Session-Id) has run_python's
// sessions to itself, and they end with it. From protocol version 2026-07-28 on
// there is none: a call that names no session of run_python begins one, and its
// answer has the name. Names cannot be guessed, and none but those are accepted.
func (b *Bridge) ServeOverHTTP(ctx context.Context, listener net.Listener, opts HTTPOptions) error {
	setDefault(&opts.SessionTimeout, 24*time.Hour)
	setDefault(&opts.MaxConnections, 256)
	setDefault(&opts.MaxClients, 256)
	h := b.newHTTP(ctx, opts)
	server := &http.Server{
		Handler:           newGuard(opts, h),
		ConnContext:       withConn,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(b.log.Handler(), slog.LevelDebug),
	}
	var wg sync.WaitGroup
	wg.Go(func() { b.expireSessions(ctx, opts.SessionTimeout) })
	stopped := make(chan struct{})
	wg.Go(func() {
		defer close(stopped)
		<-ctx.Done()
		h.end(ctx, server)
	})
	err := server.Serve(newLimited(listener, opts.MaxConnections))
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err) // the rest ends with ctx
	}
	wg.Wait()
	return nil
}

// An httpHandler hands requests to the SDK's handler of the protocol that they
// speak.
type httpHandler struct {
	bridge      *Bridge
	clients     *clients
	sessions    *mcp.Server
	withSession http.Handler
	sessionless http.Handler
}

func (b *Bridge) newHTTP(ctx context.Context, opts HTTPOptions) *httpHandler {
	h := &httpHandler{bridge: b, clients: newClients(opts.MaxClients, b.endClient)}
	h.sessions = b.server(ctx, func(req *mcp.CallToolRequest) scope { return scope{client: req.Session.ID()} })
	h.sessions.AddReceivingMiddleware(h.clients.middleware)
	log := slog.New(untilDone{b.log.Handler(), ctx.Err})
	replay := mcp.NewMemoryEventStore(nil)
	replay.SetMaxBytes(maxReplay)
	h.withSession = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.sessions }, &mcp.StreamableHTTPOptions{
		Logger:                     log,
		EventStore:                 replay,
		SessionTimeout:             opts.SessionTimeout,
		MaxRequestBodyBytes:        maxLine,
		DisableLocalhostProtection: true, // guard is stricter
	})
	sessionless := b.server(ctx, func(*mcp.CallToolRequest) scope { return scope{client: sessionlessClient, issued: true} })
	h.sessionless = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sessionless }, &mcp.StreamableHTTPOptions{
		Stateless:                    true,
		Logger:                       log,
		MaxRequestBodyBytes:          maxLine,
		DisableLocalhostProtection:   true,
		PropagateRequestCancellation: true, // there, closing the connection is how a call is cancelled
	})
	return h
}

func (h *httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	if id == "" && r.Header.Get(versionHeader) >= sessionlessFrom {
		h.sessionless.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodDelete {
		h.clients.cancel(id) // or the SDK would wait for its calls
	}
	h.withSession.ServeHTTP(w, r)
}

// end closes every connection, after a while for what is under way: its calls
// have been cancelled.
func (h *httpHandler) end(ctx context.Context, server *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	h.bridge.drain(ctx)
	for session := range h.sessions.Sessions() {
		go session.Close() // it waits for calls, which end with the Bridge at the latest
	}
	if err := server.Shutdown(ctx); err != nil {
		_ = server.Close()
	}
}

// sessionlessClient stands for all clients without a session of the protocol.
// They do not share sessions as long as they keep their names to themselves.
const sessionlessClient = "sessionless"

// endClient closes the sessions of a client that is gone.
func (b *Bridge) endClient(client string) {
	b.closeSessions(func(name string, _ *session) bool { return strings.HasPrefix(name, client+"/") })
}

// expireSessions closes, until ctx is done, sessions of our naming that nobody
// has used for so long.
func (b *Bridge) expireSessions(ctx context.Context, after time.Duration) {
	tick := time.NewTicker(max(after/10, time.Second))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.closeSessions(func(name string, s *session) bool {
				used, _ := s.state()
				return strings.HasPrefix(name, sessionlessClient+"/") && s.calls == 0 && len(s.turn) == 0 && time.Since(used) > after
			})
		case <-ctx.Done():
			return
		}
	}
}

// closeSessions forgets the sessions that which, called with b.mu held, picks,
// and closes them, for which Close waits.
func (b *Bridge) closeSessions(which func(key string, s *session) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, s := range b.sessions {
		if which(key, s) {
			delete(b.sessions, key)
			b.leaving.Go(s.close)
		}
	}
}
