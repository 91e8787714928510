package proxy

import "context"

// LimitUnread makes the bounds on unread results smaller.
func (p *Proxy) LimitUnread(all, each int) { p.unread = newBudget(all, each) }

// Unanswered returns for how many results of a running server somebody waits.
func (p *Proxy) Unanswered(server string) (n int) {
	g := p.all().names[server].start.value.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.asked {
		if s != nil {
			n++
		}
	}
	return n
}

// FillSoon is Fill that does not wait before it begins.
func (p *Proxy) FillSoon(ctx context.Context) { p.fillAfter(ctx, 0) }
