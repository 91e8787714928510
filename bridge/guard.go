package bridge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// A guard keeps away whoever is not meant to reach the Bridge over HTTP, before
// anything of a request but its header is read. Web pages are kept away twice:
// they have no token, and even a page that is served on this machine, or whose
// name was made to mean it, is none of our clients.
type guard struct {
	next  http.Handler
	hosts []string
	token *[sha256.Size]byte // nil if none is asked for
}

func newGuard(opts HTTPOptions, next http.Handler) *guard {
	g := &guard{next: next, hosts: opts.Hosts}
	if opts.Token != "" {
		sum := sha256.Sum256([]byte(opts.Token))
		g.token = &sum
	}
	return g
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, why := g.check(w, r)
	if status == 0 && !enter(r.Context()) {
		status, why = http.StatusServiceUnavailable, "too many connections"
	}
	if status == 0 {
		status, why = readBody(w, r)
	}
	if status != 0 {
		// The server reads what is left of a body, and would wait for it.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusedTimeout))
		w.Header().Set("Connection", "close")
		http.Error(w, why, status)
		return
	}
	g.next.ServeHTTP(newPatient(w), r)
}

// check returns the status to refuse a request with, or zero.
func (g *guard) check(w http.ResponseWriter, r *http.Request) (int, string) {
	switch {
	case !g.isOurs(r):
		return http.StatusForbidden, "this Host is not served here"
	case !isOwnOrigin(r):
		return http.StatusForbidden, "web pages are not served here"
	case r.URL.Path != HTTPPath:
		return http.StatusNotFound, "MCP is at " + HTTPPath
	case !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodDelete}, r.Method):
		w.Header().Set("Allow", "GET, POST, DELETE")
		return http.StatusMethodNotAllowed, "method not allowed"
	case !g.isAuthorized(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		return http.StatusUnauthorized, "a bearer token is needed"
	}
	return 0, ""
}

// isOurs reports whether the Host is an address of this machine, or a name that
// was configured: a page whose name was made to mean this machine has its own
// name there.
func (g *guard) isOurs(r *http.Request) bool {
	host := hostOf(r.Host)
	if slices.Contains(g.hosts, host) {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	self := at.Addr().Unmap()
	if host == "localhost" {
		return self.IsLoopback()
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	address = address.Unmap()
	return address.WithZone("") == self.WithZone("") || address.IsLoopback() && self.IsLoopback()
}

// hostOf is a Host header without the port.
func hostOf(header string) string {
	if host, _, err := net.SplitHostPort(header); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(header, "["), "]")
}

// isOwnOrigin reports whether a request is from no web page, or one of this very
// host and port, of which there is none.
func isOwnOrigin(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if origin != "http://"+r.Host && origin != "https://"+r.Host {
			return false
		}
	}
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return false
		}
	}
	return true
}

func (g *guard) isAuthorized(r *http.Request) bool {
	if g.token == nil {
		return true
	}
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	sum := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// readBody reads all of a request, so that the rest of its life can take as long
// as a cell does.
func readBody(w http.ResponseWriter, r *http.Request) (int, string) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLine))
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return http.StatusRequestEntityTooLarge, errTooLong.Error()
	}
	if err != nil {
		return http.StatusBadRequest, "the request was not read"
	}
	_ = control.SetReadDeadline(time.Time{})
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		return http.StatusBadRequest, "batches are not part of MCP: send one message a request"
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return 0, ""
}

// A patient writer waits a while for its client to take what is written, each
// time, and not for ever.
type patient struct {
	http.ResponseWriter

	control *http.ResponseController
}

func newPatient(w http.ResponseWriter) *patient {
	p := &patient{ResponseWriter: w, control: http.NewResponseController(w)}
	p.extend()
	return p
}

func (p *patient) extend() { _ = p.control.SetWriteDeadline(time.Now().Add(writeTimeout)) }

func (p *patient) Write(data []byte) (int, error) {
	p.extend()
	return p.ResponseWriter.Write(data)
}

// Flush implements [http.Flusher].
func (p *patient) Flush() {
	p.extend()
	_ = p.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// A limited listener has places for so many connections that were let in; more
// wait. As many others may be there that have not sent a header that lets them in
// yet: they take no place, and a new one takes the place of the oldest of them.
// So strangers who keep their connections open cannot keep anybody else out.
type limited struct {
	net.Listener

	places chan struct{}

	mu      sync.Mutex
	waiting []*limitedConn // not let in yet, oldest first
}

func newLimited(l net.Listener, most int) *limited {
	return &limited{Listener: l, places: make(chan struct{}, most)}
}

// Accept implements [net.Listener].
func (l *limited) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: conn, listener: l, closed: make(chan struct{})}
	var oldest *limitedConn
	l.mu.Lock()
	l.waiting = append(l.waiting, c)
	if len(l.waiting) > cap(l.places) {
		oldest = l.waiting[0]
	}
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return c, nil
}

// remove reports whether c was not let in yet; it does not wait any more.
func (l *limited) remove(c *limitedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, c)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return true
}

type limitedConn struct {
	net.Conn

	listener *limited
	letIn    bool // only its own requests look at it, one after the other
	once     sync.Once
	closed   chan struct{}
}

// connKey is the key of a request's *limitedConn in its context.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// enter waits for a place for the connection of a request that is authorized,
// which the connection has until it is closed. It reports false if that was
// closed meanwhile.
func enter(ctx context.Context) bool {
	c, _ := ctx.Value(connKey{}).(*limitedConn)
	if c == nil || c.letIn {
		return true
	}
	select {
	case c.listener.places <- struct{}{}:
	case <-c.closed:
		return false
	case <-ctx.Done():
		return false
	}
	if !c.listener.remove(c) { // it was closed at this moment
		<-c.listener.places
		return false
	}
	c.letIn = true
	return true
}

// Close implements [net.Conn].
func (c *limitedConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		if !c.listener.remove(c) {
			<-c.listener.places
		}
	})
	return c.Conn.Close()
}
