package bridge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// clients are those with a session of the protocol over HTTP.
type clients struct {
	most  int
	ended func(id string) // hears that a client is gone

	mu  sync.Mutex
	all map[string]*httpClient // by their session's id
}

type httpClient struct {
	session *mcp.ServerSession
	gone    chan struct{} // closed when its calls are to end

	// Guarded by clients.mu:
	leaving bool
	calls   int
	used    time.Time
}

func newClients(most int, ended func(string)) *clients {
	return &clients{most: most, ended: ended, all: map[string]*httpClient{}}
}

// middleware counts the calls of each client, and ends them with it.
func (c *clients) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, ok := req.GetSession().(*mcp.ServerSession)
		if !ok || session.ID() == "" {
			return next(ctx, method, req)
		}
		client, err := c.begin(session)
		if err != nil {
			return nil, err
		}
		defer c.end(client)
		ctx, cancel := until(ctx, client.gone)
		defer cancel()
		return next(ctx, method, req)
	}
}

// begin counts a call of session. If that is new and there is no room, the
// client idle longest has to go.
func (c *clients) begin(session *mcp.ServerSession) (*httpClient, error) {
	c.mu.Lock()
	client := c.all[session.ID()]
	if client != nil {
		defer c.mu.Unlock()
		client.calls++
		client.used = time.Now()
		return client, nil
	}
	crowded, idlest := c.crowded()
	if crowded && idlest == nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("%d clients are at work, the most allowed: try later", c.most)
	}
	client = &httpClient{session: session, gone: make(chan struct{}), calls: 1, used: time.Now()}
	c.all[session.ID()] = client
	if crowded {
		idlest.leave()
	}
	c.mu.Unlock()
	go c.watch(client) // until the SDK has closed the session
	if crowded {
		_ = idlest.session.Close()
	}
	return client, nil
}

func (c *clients) end(client *httpClient) {
	c.mu.Lock()
	defer c.mu.Unlock()
	client.calls--
	client.used = time.Now()
}

// watch waits until a session is closed, by its client, by the SDK for being
// idle, or by us.
func (c *clients) watch(client *httpClient) {
	_ = client.session.Wait()
	id := client.session.ID()
	c.cancel(id)
	c.mu.Lock()
	delete(c.all, id)
	c.mu.Unlock()
	c.ended(id)
}

// cancel ends the calls of a client.
func (c *clients) cancel(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.all[id]; client != nil {
		client.leave()
	}
}

// leave ends the calls of a client. clients.mu is held.
func (c *httpClient) leave() {
	if !c.leaving {
		c.leaving = true
		close(c.gone)
	}
}

// crowded reports whether there are too many clients for one more. If so, it
// returns the one idle longest, which may have to go, or nil. c.mu is held.
func (c *clients) crowded() (bool, *httpClient) {
	var idlest *httpClient
	staying := 0
	for _, client := range c.all {
		if client.leaving {
			continue
		}
		staying++
		if client.calls == 0 && (idlest == nil || client.used.Before(idlest.used)) {
			idlest = client
		}
	}
	return staying >= c.most, idlest
}
