package proxy

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	// fillDelay is how long after its begin Fill starts the first server: what a
	// client wants first comes first.
	fillDelay = 5 * time.Second
	// fillers is how many servers are started at a time.
	fillers = 2
	// fillQuiet is how long it then waits when a call is under way.
	fillQuiet = 500 * time.Millisecond
)

// Fill asks the servers for their tools of which the catalog knows nothing, or
// what is older than Options.CatalogAge: in the background, two at a time, while
// nothing is called. Servers that it starts are stopped again, unless somebody
// else uses them by then. It looks again when the servers are configured anew, and
// every hour. It does nothing without a catalog, and ends with the proxy.
func (p *Proxy) Fill(ctx context.Context) { p.fillAfter(ctx, fillDelay) }

func (p *Proxy) fillAfter(ctx context.Context, delay time.Duration) {
	if p.opts.Catalog == nil {
		return
	}
	p.background(ctx, func(ctx context.Context) {
		tried := map[*running]time.Time{}
		if sleep(ctx, delay) != nil {
			return
		}
		for {
			p.fillNow(ctx, tried)
			again := time.NewTimer(time.Hour)
			select {
			case <-p.reloaded:
			case <-again.C:
			case <-ctx.Done():
			}
			again.Stop()
			if sleep(ctx, fillQuiet) != nil {
				return
			}
		}
	})
}

// fillNow asks every server that has to be, but for those that were tried within
// Options.CatalogAge: one that cannot be listed is not started every hour.
func (p *Proxy) fillNow(ctx context.Context, tried map[*running]time.Time) {
	places := make(chan struct{}, fillers)
	all := p.all().order
	maps.DeleteFunc(tried, func(r *running, _ time.Time) bool {
		return !slices.ContainsFunc(all, func(u *upstream) bool { return u.running == r })
	})
	for _, u := range all {
		if u.server.Disabled || time.Since(tried[u.running]) < p.opts.CatalogAge || !u.isUnknown() {
			continue
		}
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		for p.calls.Load() > 0 {
			if sleep(ctx, fillQuiet) != nil {
				return
			}
		}
		tried[u.running] = time.Now()
		p.background(ctx, func(ctx context.Context) {
			defer func() { <-places }()
			u.fill(ctx)
		})
	}
	for range fillers { // all are done
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// isUnknown reports whether the catalog has nothing of the server, or nothing new.
func (u *upstream) isUnknown() bool {
	age, ok := u.proxy.opts.Catalog.Age(u.server)
	return !ok || age > u.proxy.opts.CatalogAge
}

// fill lists the server's tools, which stores them.
func (u *upstream) fill(ctx context.Context) {
	s, err := u.session(ctx)
	if err != nil {
		return // it has been logged
	}
	if _, _, err := u.list(ctx, s); err != nil {
		u.logger.Debug("the catalog was not filled", "error", err)
	}
	for s.usage.isUnused() { // it may be listed once more, as at every start
		s.retire()
		if sleep(ctx, fillQuiet) != nil {
			return
		}
	}
}
