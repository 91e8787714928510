package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const maxPromptArguments = 128

// GetPrompt fills in a prompt and returns the server's GetPromptResult as the
// JSON it sent. Otherwise as [Proxy.Call].
//
// Errors are *[Error].
func (p *Proxy) GetPrompt(ctx context.Context, server, name string, args map[string]string) (json.RawMessage, error) {
	switch {
	case name == "" || len(name) > maxNameBytes:
		return nil, errorf(Invalid, "see tools.prompts(server)", "a prompt is given by its name, of up to %d bytes", maxNameBytes)
	case len(args) > maxPromptArguments:
		return nil, errorf(Invalid, "", "a prompt takes up to %d arguments", maxPromptArguments)
	}
	ctx, cancel := p.limit(ctx)
	defer cancel()
	u, err := p.upstream(server)
	if err != nil {
		return nil, err
	}
	result, err := u.offered(ctx, prompts(), request{
		method: "prompts/get", stub: `{"messages":[]}`, hint: "see tools.prompts(server) for its arguments",
		what: "prompt " + quoteName(name) + " of server " + quoteName(u.server.Name),
		send: func(ctx context.Context, server *mcp.ClientSession) error {
			_, err := server.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
			return err
		},
	})
	if refusal, ok := errors.AsType[*Error](err); ok && refusal.Kind == Refused {
		u.meantPrompt(ctx, refusal, name)
	}
	return result, err
}

// meantPrompt has the refusal of a prompt say which one was perhaps meant, if the
// server lists none of that name.
func (u *upstream) meantPrompt(ctx context.Context, refusal *Error, name string) {
	s, err := u.session(ctx)
	if err != nil {
		return
	}
	ctx = context.WithValue(ctx, shareKey{}, (*share)(nil)) // which is for one result at a time
	all, err := u.listAll(ctx, s, prompts(), true)
	if err == nil && !slices.Contains(all.ids, name) {
		refusal.Hint = DidYouMean(name, all.ids, "see tools.prompts(server) for what there is")
	}
}

func (c *callbacks) promptsList(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	return c.list(ctx, params, prompts())
}

func (c *callbacks) promptsGet(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var get struct {
		Server    string            `json:"server"`
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := decodeParams(params, &get); err != nil {
		return nil, err
	}
	return c.proxy.GetPrompt(ctx, get.Server, get.Name, get.Arguments)
}
