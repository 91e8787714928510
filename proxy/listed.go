package proxy

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds on what a server may list of one kind, apart from tools. A sandbox can have as
// many listings at a time as requests, each of which holds its things.
const (
	maxListed      = 2_000
	maxListedBytes = 2 << 20
)

// A kindOf describes what a server lists beside tools.
type kindOf struct {
	method string
	member string // of a page, and of what a sandbox gets
	id     string // the member that each thing has to have, a string
	what   string
	offers func(*mcp.ServerCapabilities) bool
	list   func(context.Context, *mcp.ClientSession) error
}

func resources() kindOf {
	return kindOf{
		method: "resources/list", member: "resources", id: "uri", what: "resources", offers: offersResources,
		list: func(ctx context.Context, server *mcp.ClientSession) error {
			_, err := server.ListResources(ctx, &mcp.ListResourcesParams{})
			return err
		},
	}
}

func templates() kindOf {
	return kindOf{
		method: "resources/templates/list", member: "resourceTemplates", id: "uriTemplate", what: "resource templates", offers: offersResources,
		list: func(ctx context.Context, server *mcp.ClientSession) error {
			_, err := server.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{})
			return err
		},
	}
}

func prompts() kindOf {
	return kindOf{
		method: "prompts/list", member: "prompts", id: "name", what: "prompts", offers: offersPrompts,
		list: func(ctx context.Context, server *mcp.ClientSession) error {
			_, err := server.ListPrompts(ctx, &mcp.ListPromptsParams{})
			return err
		},
	}
}

func offersResources(c *mcp.ServerCapabilities) bool { return c.Resources != nil }
func offersPrompts(c *mcp.ServerCapabilities) bool   { return c.Prompts != nil }

// Things are what a server lists, as the JSON objects that it sent.
type things struct {
	list []json.RawMessage
	ids  []string // of each
	note string   // says so if that is not all
}

// listAll asks a server for all things of a kind, within bounds. A glance is no
// use of the session: see session.retire.
func (u *upstream) listAll(ctx context.Context, s *session, kind kindOf, glance bool) (*things, error) {
	if err := u.offers(s, kind.what, kind.offers); err != nil {
		return nil, err
	}
	all := &things{}
	cursor, size, hidden := "", 0, 0
	defer func() {
		if hidden > 0 && all.note == "" {
			all.note = fmt.Sprintf("%d of the %s are left out: their names have characters that are not seen", hidden, kind.what)
		}
	}()
	seen := map[string]bool{}
	for range maxPages {
		raw, err := u.send(withKey(ctx, cursor), s, request{
			method: kind.method, stub: `{"` + kind.member + `":[]}`, send: kind.list, glance: glance,
			what: "listing the " + kind.what + " of server " + quoteName(u.server.Name),
		})
		if err != nil {
			return nil, err
		}
		page, next, err := readPage(raw, kind.member)
		if err != nil {
			return nil, errorf(Refused, "", "server %s listed its %s in a form that MCP does not know", quoteName(u.server.Name), kind.what)
		}
		for _, thing := range page {
			id, ok := idOf(thing, kind.id)
			if !ok {
				continue
			}
			if !isShowable(id) {
				hidden++
				continue
			}
			thing = cleanThing(thing)
			if size += len(thing); len(all.list) >= maxListed || size > maxListedBytes {
				all.note = fmt.Sprintf("the server has more %s than the %d shown", kind.what, len(all.list))
				return all, nil
			}
			all.list, all.ids = append(all.list, thing), append(all.ids, id)
		}
		if next == "" {
			return all, nil
		}
		if seen[next] {
			break
		}
		seen[next] = true
		cursor = next
	}
	all.note = "the server's list does not end; this is its beginning"
	return all, nil
}

// offers returns an error if the server of s does not have a capability.
func (u *upstream) offers(s *session, what string, has func(*mcp.ServerCapabilities) bool) error {
	if hello := s.mcp.InitializeResult(); hello != nil && hello.Capabilities != nil && has(hello.Capabilities) {
		return nil
	}
	return errorf(Unsupported, "", "server %s offers no %s", quoteName(u.server.Name), what)
}

func readPage(raw json.RawMessage, member string) (page []json.RawMessage, next string, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, "", err
	}
	if err := json.Unmarshal(members[member], &page); err != nil {
		return nil, "", err
	}
	if cursor := members["nextCursor"]; cursor != nil {
		err = json.Unmarshal(cursor, &next)
	}
	return page, next, err
}

// idOf returns the member of a thing by which it is asked for.
func idOf(thing json.RawMessage, member string) (string, bool) {
	var members map[string]json.RawMessage
	var id string
	if json.Unmarshal(thing, &members) != nil || json.Unmarshal(members[member], &id) != nil {
		return "", false
	}
	return id, id != ""
}

// MarshalJSON returns what a sandbox gets, under "items".
func (t *things) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Items []json.RawMessage `json:"items"`
		Note  string            `json:"note,omitempty"`
	}{nonNil(t.list), t.note})
}
