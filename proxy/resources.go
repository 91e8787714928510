package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const maxURI = 8_192 // bytes

// ReadResource reads a resource and returns the server's ReadResourceResult as
// the JSON it sent. Without a server it is the one that lists the resource, or
// a template that fits: see owner. Otherwise as [Proxy.Call].
//
// Errors are *[Error].
func (p *Proxy) ReadResource(ctx context.Context, server, uri string) (json.RawMessage, error) {
	if uri == "" || len(uri) > maxURI {
		return nil, errorf(Invalid, "", "a resource is given by its URI, of up to %d bytes", maxURI)
	}
	ctx, cancel := p.limit(ctx)
	defer cancel()
	u, err := p.serverOf(ctx, server, uri)
	if err != nil {
		return nil, err
	}
	return u.offered(ctx, resources(), request{
		method: "resources/read", stub: `{"contents":[]}`, hint: "see tools.resources() for what there is",
		what: "resource " + quoteName(uri) + " of server " + quoteName(u.server.Name),
		send: func(ctx context.Context, server *mcp.ClientSession) error {
			_, err := server.ReadResource(withKey(ctx, uri), &mcp.ReadResourceParams{})
			return err
		},
	})
}

func (p *Proxy) serverOf(ctx context.Context, server, uri string) (*upstream, error) {
	if server != "" {
		return p.upstream(server)
	}
	return p.owner(ctx, uri)
}

// An offer says how well a server fits a URI.
type offer int

const (
	unknown offer = iota // it could not be asked
	noOffer
	template // one of its templates fits
	listed   // it lists the resource
)

// owner finds the server that has a resource: those that run are asked first, and the
// others, a few at a time, only if none of them has it. It waits
// Options.SearchWait at most.
func (p *Proxy) owner(ctx context.Context, uri string) (*upstream, error) {
	if p.isClosed() {
		return nil, closedError()
	}
	wait, cancel := context.WithTimeout(ctx, p.opts.SearchWait)
	defer cancel()
	var running, others []*upstream
	for _, u := range p.all().order {
		switch state, _ := u.state(); state {
		case "disabled":
		case "ready":
			running = append(running, u)
		default:
			others = append(others, u)
		}
	}
	wait = context.WithValue(wait, shareKey{}, (*share)(nil)) // which is for one result at a time
	var silent []*upstream
	for _, group := range [][]*upstream{running, others} {
		found, unasked := p.offering(wait, group, uri)
		silent = append(silent, unasked...)
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return nil, errorf(Invalid, "say which: tools.read(uri, server=…)", "several servers have a resource %s: %s", quoteName(uri), quoteServers(found))
		}
	}
	if ctx.Err() != nil {
		return nil, doneError(ctx, "looking for resource "+quoteName(uri))
	}
	missing := ""
	if len(silent) > 0 {
		missing = "; not asked, for they did not start in time, or failed: " + quoteServers(silent)
	}
	return nil, errorf(NotFound, "see tools.resources(), or say whose it is: tools.read(uri, server=…)", "no server lists a resource %s%s", quoteName(uri), missing)
}

// offering returns the servers that fit uri best, and those that could not be asked.
func (p *Proxy) offering(ctx context.Context, servers []*upstream, uri string) (found, unasked []*upstream) {
	flights := make([]*flight[offer], len(servers))
	for i, u := range servers {
		f := newFlight[offer]()
		flights[i] = f
		started := p.background(ctx, func(closing context.Context) {
			f.land(u.offerOf(ctx, closing, uri), nil)
		})
		if !started {
			f.land(unknown, nil)
		}
	}
	best := template
	for i, f := range flights {
		fits, _ := f.wait(ctx, "") // unknown if it takes too long
		if fits == unknown {
			unasked = append(unasked, servers[i])
		}
		if fits > best {
			best, found = fits, nil
		}
		if fits == best {
			found = append(found, servers[i])
		}
	}
	return found, unasked
}

// offerOf asks a server, when it is its turn.
func (u *upstream) offerOf(ctx, closing context.Context, uri string) offer {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(closing, cancel)()
	select {
	case u.proxy.listers <- struct{}{}:
		defer func() { <-u.proxy.listers }()
	case <-ctx.Done():
		return unknown
	}
	state, _ := u.state()
	s, err := u.session(ctx)
	if err != nil {
		return unknown
	}
	if state != "ready" {
		defer u.proxy.park(s)
	}
	if u.offers(s, "resources", offersResources) != nil {
		return noOffer
	}
	all, err := u.listAll(ctx, s, resources(), true)
	if err == nil && slices.Contains(all.ids, uri) {
		return listed
	}
	forms, none := u.listAll(ctx, s, templates(), true) // which servers need not have
	if none == nil && slices.ContainsFunc(forms.ids, func(t string) bool { return fits(t, uri) }) {
		return template
	}
	if err != nil {
		return unknown
	}
	return noOffer
}

// fits reports whether uri could be made from an RFC 6570 template: what stands
// between its expressions has to be there, in order.
func fits(template, uri string) bool {
	literal, rest, more := strings.Cut(template, "{")
	uri, ok := strings.CutPrefix(uri, literal)
	for ok && more {
		_, rest, ok = strings.Cut(rest, "}")
		if !ok {
			return false // it is no template
		}
		literal, rest, more = strings.Cut(rest, "{")
		if !more {
			return strings.HasSuffix(uri, literal)
		}
		_, uri, ok = strings.Cut(uri, literal)
	}
	return ok && uri == ""
}

func quoteServers(servers []*upstream) string {
	const shown = 10
	more := ""
	if len(servers) > shown {
		more = fmt.Sprintf(" and %d more", len(servers)-shown)
		servers = servers[:shown]
	}
	names := make([]string, len(servers))
	for i, u := range servers {
		names[i] = quoteName(u.server.Name)
	}
	return strings.Join(names, ", ") + more
}

func (c *callbacks) resourcesRead(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var read struct {
		Server string `json:"server"`
		URI    string `json:"uri"`
	}
	if err := decodeParams(params, &read); err != nil {
		return nil, err
	}
	return c.proxy.ReadResource(ctx, read.Server, read.URI)
}

func (c *callbacks) resourcesList(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	return c.list(ctx, params, resources())
}

func (c *callbacks) resourcesTemplates(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	return c.list(ctx, params, templates())
}

func (c *callbacks) list(ctx context.Context, params json.RawMessage, kind kindOf) (json.RawMessage, error) {
	var list struct {
		Server string `json:"server"`
		Brief  bool   `json:"brief"` // do not wait for a server that has just failed to start
	}
	if err := decodeParams(params, &list); err != nil {
		return nil, err
	}
	if list.Brief {
		if u, err := c.proxy.upstream(list.Server); err == nil {
			if failed := u.resting(); failed != nil {
				return nil, failed
			}
		}
	}
	all, err := c.proxy.listThings(ctx, list.Server, kind)
	if err != nil {
		return nil, err
	}
	return c.marshal(ctx, all)
}

func (p *Proxy) listThings(ctx context.Context, server string, kind kindOf) (*things, error) {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	return twice(ctx, func() (*things, error) {
		u, err := p.upstream(server)
		if err != nil {
			return nil, err
		}
		s, err := u.session(ctx)
		if err != nil {
			return nil, err
		}
		return u.listAll(ctx, s, kind, false)
	})
}
