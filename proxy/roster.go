package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// errServerTimeout is why the context of a request is done that took longer than
// its server may.
var errServerTimeout = errors.New("the server's timeout")

// A roster is the configured servers at a time. It does not change.
type roster struct {
	order []*upstream          // as configured
	names map[string]*upstream // by name, by identifier and by alias
}

// all returns the servers as they are configured now.
func (p *Proxy) all() *roster { return p.roster.Load() }

// newRoster makes the servers of these definitions. What is running of the
// same ones in before goes on.
func (p *Proxy) newRoster(servers []discovery.Server, before *roster) *roster {
	all := &roster{names: make(map[string]*upstream, 2*len(servers))}
	for _, server := range servers {
		if all.names[server.Name] != nil {
			p.opts.Logger.Warn("server is configured twice", "server", server.Name)
			continue
		}
		u := p.newUpstream(server, before.named(server.Name))
		all.order = append(all.order, u)
		all.names[server.Name] = u
	}
	all.nameIdents(before)
	return all
}

// newUpstream makes a server, or takes over as much as stays of last, which may be nil.
func (p *Proxy) newUpstream(server discovery.Server, last *upstream) *upstream {
	u := &upstream{
		proxy:  p,
		server: server,
		text:   newRedactor(server),
		logger: p.opts.Logger.With("server", server.Name),
		limit:  newLimiter(server.Concurrency),
	}
	switch {
	case last == nil:
		u.running = newRunning()
	case sameProcess(server, last.server):
		u.running = last.running
		if server.Concurrency == last.server.Concurrency {
			u.limit = last.limit
		}
	default:
		u.running = newRunning()
	}
	return u
}

// sameProcess reports whether what runs of one definition will do for the other.
func sameProcess(a, b discovery.Server) bool {
	return a.Disabled == b.Disabled && a.Idle == b.Idle && a.Fingerprint() == b.Fingerprint()
}

// named returns the server of exactly that name, nil if there is none.
func (r *roster) named(name string) *upstream {
	if r == nil {
		return nil
	}
	if u := r.names[name]; u != nil && u.server.Name == name {
		return u
	}
	return nil
}

// nameIdents makes servers reachable by identifier; a name wins over another
// server's identifier. A server of before keeps the one it had there.
func (r *roster) nameIdents(before *roster) {
	names := make([]string, len(r.order))
	idents := make([]string, len(r.order))
	for i, u := range r.order {
		names[i] = u.server.Name
		switch last := before.named(names[i]); {
		case last != nil:
			idents[i] = last.server.Ident
		case before == nil:
			idents[i] = u.server.Ident // who read the definitions has chosen it
		}
	}
	idents = discovery.MoreServerIdents(names, idents)
	for i, u := range r.order {
		u.server.Ident = idents[i]
		if r.names[idents[i]] == nil {
			r.names[idents[i]] = u
		}
	}
	for i, aliases := range discovery.ServerAliases(names, idents) {
		r.order[i].aliases = aliases
		for _, alias := range aliases {
			if r.names[alias] == nil {
				r.names[alias] = r.order[i]
			}
		}
	}
}

// Reload makes servers the configured ones. A server whose definition starts
// nothing else than before goes on as it is; of all others, those that are gone
// included, the process is ended once the calls that it has are answered, and
// after Options.DrainTimeout at the latest. New calls go to the new definition at once,
// and start it. Servers keep their identifiers as long as they are configured.
// It does not wait for processes to end, and may be called concurrently.
func (p *Proxy) Reload(servers []discovery.Server) {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	before := p.all()
	now := p.newRoster(servers, before)
	changed := len(now.order) != len(before.order)
	var gone []*upstream
	for _, last := range before.order {
		u := now.named(last.server.Name)
		switch {
		case u == nil:
			last.logger.Info("server removed")
			gone = append(gone, last)
		case u.running != last.running:
			last.logger.Info("server's definition changed")
			gone = append(gone, last)
		case !u.server.Equal(last.server):
			last.logger.Debug("server's definition changed, but not what is started")
			changed = true
		}
	}
	for _, u := range now.order {
		if before.named(u.server.Name) == nil {
			u.logger.Info("server added")
			changed = true
		}
	}
	for _, last := range gone {
		changed = true
		free := last.retire()
		if u := now.named(last.server.Name); u != nil {
			u.after = free
		}
	}
	p.roster.Store(now)
	if !changed {
		return
	}
	p.toolsChanged()
	select {
	case p.reloaded <- struct{}{}:
	default:
	}
}

// SetNotes has Servers say of each server of these names what is wrong with it,
// if nothing worse is. Notes are shown to models. The caller must not change them.
func (p *Proxy) SetNotes(notes map[string]string) { p.notes.Store(&notes) }

// note is that of one server, or "".
func (p *Proxy) note(server string) string {
	if notes := p.notes.Load(); notes != nil {
		return (*notes)[server]
	}
	return ""
}

// retire ends what runs of a definition that no longer counts. The channel is
// closed when nothing does, or calls are waited for, which may take long; nil is
// as good as closed.
func (u *upstream) retire() <-chan struct{} {
	u.mu.Lock()
	close(u.retired)
	start := u.start
	u.mu.Unlock()
	if start == nil {
		return u.after
	}
	free := make(chan struct{})
	started := u.proxy.later(func() {
		waiting := true
		let := func() {
			if waiting {
				close(free)
			}
			waiting = false
		}
		defer let()
		<-start.done // soon: a start ends when the definition no longer counts
		if start.err != nil {
			return
		}
		s := start.value
		idle, busy := s.usage.close()
		if busy {
			let()
		}
		select {
		case <-idle:
		case <-time.After(u.proxy.opts.DrainTimeout):
		case <-u.proxy.closing:
		}
		s.stop("was stopped, for its definition has changed or is gone,")
		<-s.done
	})
	if !started {
		close(free)
	}
	return free
}

// retiredError is the error for whoever comes with a definition that no longer
// counts; see twice.
func (u *upstream) retiredError() *Error {
	e := errorf(ServerFailed, "call again", "server %s was configured anew meanwhile", quoteName(u.server.Name))
	e.Err = errNotSent
	return e
}

// rest stops a session that nobody uses, as its definition or Options.IdleTimeout
// want it, until ctx is done.
func (u *upstream) rest(ctx context.Context, s *session) {
	idle := u.server.Idle
	if idle == 0 {
		idle = u.proxy.opts.IdleTimeout
	}
	if idle > 0 && s.usage.closeAfter(ctx, idle) {
		u.logger.Info("server stopped: nobody has used it", "seconds", int(idle.Seconds()))
		s.stop(unusedReason)
	}
}
