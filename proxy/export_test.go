package proxy

// LimitUnread makes the bounds on unread results smaller.
func (p *Proxy) LimitUnread(all, each int) { p.unread = newBudget(all, each) }
