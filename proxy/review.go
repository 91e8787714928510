package proxy

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// review marks the tools of a new toolset that changed since the user has
// approved them, or saw them first.
func (u *upstream) review(set *toolset) *toolset {
	catalog := u.proxy.opts.Catalog
	if catalog == nil {
		return set
	}
	changed, err := catalog.Review(u.server, set.tools)
	if err != nil {
		u.logger.Warn("what tools there are is not remembered", "error", err)
	}
	set.changed, set.reviewed = changed, catalog.ReviewState(u.server)
	if len(changed) == 0 {
		return set
	}
	if n := u.warned.add(changed); n > 0 {
		u.logger.Warn("tools are not what they were when they were approved", "tools", n, "blocked", u.proxy.opts.BlockChanged,
			"command", "mcp-bridge servers approve "+quoteName(u.server.Name))
	}
	set.docs = slices.Clone(set.docs)
	for i, doc := range set.docs {
		if change, ok := changed[doc.Name]; ok {
			set.docs[i] = doc.Changed(change.Since, u.proxy.opts.BlockChanged)
		}
	}
	return set
}

// warned are the changes that the user has been told of. Its methods may be called
// concurrently.
type warned struct {
	mu    sync.Mutex
	about map[string]string // tools to what they changed to
}

// add returns how many of these changes are new to the user.
func (w *warned) add(changed map[string]discovery.Change) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.about == nil {
		w.about = map[string]string{}
	}
	for name, change := range changed {
		if w.about[name] != change.Digest {
			w.about[name] = change.Digest
			n++
		}
	}
	return n
}

// isOutdated reports whether the user may have approved what changed.
func (t *toolset) isOutdated(u *upstream) bool {
	return t != nil && len(t.changed) > 0 && !u.proxy.opts.Catalog.ReviewState(u.server).Same(t.reviewed)
}

// toolsChanged has searches and sandboxes look again.
func (p *Proxy) toolsChanged() {
	p.index.invalidate()
	p.tellChange()
}

// withheld reports whether nothing is to be shown of a tool but that it changed.
func (u *upstream) withheld(set *toolset, name string) bool {
	_, changed := set.changed[name]
	return changed && u.proxy.opts.BlockChanged
}

// refuseChanged returns the error for a call of a tool that is withheld. What is
// known may be older than the session: then it is asked first.
func (u *upstream) refuseChanged(ctx context.Context, s *session, name string) error {
	if !u.proxy.opts.BlockChanged || u.proxy.opts.Catalog == nil {
		return nil
	}
	if !u.listedOf(s) {
		if _, _, err := u.list(ctx, s); err != nil {
			return err
		}
	}
	set := u.known()
	if set == nil || !u.withheld(set, name) {
		return nil
	}
	u.logger.Info("tool call denied", "tool", quoteName(name), "decision", "denied", "by", "on-change")
	return errorf(Policy, "the user can look at it and approve it: mcp-bridge servers approve "+quoteName(u.server.Name),
		"%s was not called: it is not what the user approved since %s", u.tool(name), set.changed[name].Since.UTC().Format(time.DateOnly))
}

// changedNote says of a server that tools of it changed, "" if none did.
func (u *upstream) changedNote(set *toolset) string {
	if len(set.changed) == 0 {
		return ""
	}
	var since time.Time
	for _, change := range set.changed {
		if since.IsZero() || change.Since.Before(since) {
			since = change.Since
		}
	}
	return fmt.Sprintf("%d of its tools changed since %s; the user can look at them and approve them: mcp-bridge servers approve %s",
		len(set.changed), since.UTC().Format(time.DateOnly), quoteName(u.server.Name))
}
