package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/proxy/internal/stdio"
)

const (
	// tailShown and refusalShown bound what is quoted of a server, in bytes.
	tailShown    = 2_000
	refusalShown = 4_000
)

// Call calls a tool and returns the server's CallToolResult as the JSON it
// sent, isError included. The server and the tool may be given by their names
// or by their Python identifiers; args is a JSON object, or nil for none. What
// the tool's schema rules out is not sent: see [discovery.Checker]. The server is
// started if it does not run. ctx bounds it all; when it is done the server is
// told that nobody waits any more.
//
// What the server's definition denies is not called, and what it wants approved
// is when Options.Approver says so: no other time than ctx's runs meanwhile.
//
// Errors are *[Error].
func (p *Proxy) Call(ctx context.Context, server, tool string, args json.RawMessage) (json.RawMessage, error) {
	if _, err := p.upstream(server); err != nil {
		return nil, err
	}
	args, err := checkArguments(args)
	if err != nil {
		return nil, err
	}
	p.calls.Add(1)
	defer p.calls.Add(-1)
	allowed := permit{begun: time.Now()}
	var asked *running
	return twice(ctx, func() (json.RawMessage, error) {
		u, err := p.upstream(server)
		if err != nil {
			return nil, err
		}
		if asked != u.running {
			allowed.id, asked = "", u.running // what was allowed was not allowed to another server
		}
		return u.call(ctx, tool, args, &allowed)
	})
}

func checkArguments(args json.RawMessage) (json.RawMessage, error) {
	args = bytes.TrimSpace(args)
	if len(args) == 0 || string(args) == "null" {
		return json.RawMessage("{}"), nil
	}
	if args[0] != '{' || !json.Valid(args) {
		return nil, errorf(Invalid, "pass the tool's parameters by name", "arguments must be a JSON object")
	}
	return args, nil
}

func (u *upstream) call(ctx context.Context, tool string, args json.RawMessage, allowed *permit) (json.RawMessage, error) {
	s, name, args, err := u.prepare(ctx, tool, args, allowed)
	if err != nil {
		return nil, err
	}
	if err := u.approved(ctx, name, args, allowed); err != nil {
		return nil, err
	}
	ctx, cancel := u.proxy.limitSince(ctx, allowed.begun)
	defer cancel()
	begun := time.Now()
	raw, err := u.send(ctx, s, request{
		method: "tools/call", stub: `{"content":[]}`, what: u.tool(name), hint: "check the tool's signature and parameters",
		send: func(ctx context.Context, server *mcp.ClientSession) error {
			_, err := server.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
			return err
		},
	})
	if err == nil {
		u.learn(ctx, name, raw, time.Since(begun))
	}
	return raw, err
}

// prepare does what comes before a call, and returns what is called and sent.
func (u *upstream) prepare(ctx context.Context, tool string, args json.RawMessage, allowed *permit) (*session, string, json.RawMessage, error) {
	ctx, cancel := u.proxy.limitSince(ctx, allowed.begun)
	defer cancel()
	if err := u.refuseDenied(tool); err != nil {
		return nil, "", nil, err
	}
	s, err := u.session(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	name, err := u.resolve(ctx, s, tool)
	if err != nil {
		return nil, "", nil, err
	}
	if err := u.refuseDenied(name); err != nil { // by a name that was not known
		return nil, "", nil, err
	}
	if err := u.refuseChanged(ctx, s, name); err != nil {
		return nil, "", nil, err
	}
	args, err = u.checked(ctx, s, name, args)
	return s, name, args, err
}

// tool names a tool of u in messages.
func (u *upstream) tool(name string) string {
	return "tool " + quoteName(name) + " of server " + quoteName(u.server.Name)
}

// quoteTail returns the end of a server's own output for the end of a message.
func (u *upstream) quoteTail(tail string) string {
	if tail = u.text.clean(tail, tailShown); tail == "" {
		return ""
	}
	return "; its last output was:\n" + tail
}

// startError is the error for a server that did not start.
func (u *upstream) startError(ctx context.Context, err error) *Error {
	name := quoteName(u.server.Name)
	failure, connected := errors.AsType[*connectError](err)
	switch {
	case u.proxy.isClosed():
		return closedError()
	case errors.Is(err, errRemote):
		return u.remoteError()
	case errors.Is(err, stdio.ErrDir):
		return &Error{
			Kind: ServerFailed, Err: err, Message: "server " + name + " cannot start: its working directory does not exist",
			Hint: `the user has to correct "cwd" in the server's definition`,
		}
	case errors.Is(err, stdio.ErrCommand) && strings.ContainsAny(u.server.Command, " \t"):
		return &Error{
			Kind: ServerFailed, Err: err,
			Message: fmt.Sprintf("server %s cannot start: command %s was not found, or cannot be run", name, quoteName(u.commandName())),
			Hint:    `the user has to give only the program as "command" in the server's definition, and what follows it as "args"`,
		}
	case errors.Is(err, stdio.ErrCommand):
		return &Error{
			Kind: ServerFailed, Err: err,
			Message: fmt.Sprintf("server %s cannot start: command %s was not found, or cannot be run", name, quoteName(u.commandName())),
			Hint:    `the user has to install it, or give its full path as "command" in the server's definition`,
		}
	case !connected:
		return &Error{Kind: ServerFailed, Err: err, Message: "server " + name + " cannot start: " + u.text.clean(err.Error(), refusalShown)}
	}
	what := "broke the MCP protocol while starting: " + u.text.clean(err.Error(), refusalShown)
	switch {
	case failure.exited != "":
		what = "exited while starting (" + failure.exited + ")"
	case failure.refused:
		what = "refused the MCP handshake: " + u.text.clean(err.Error(), refusalShown)
	case ctx.Err() != nil:
		what = fmt.Sprintf("did not answer the MCP handshake within %v", u.proxy.opts.StartTimeout)
	}
	return &Error{
		Kind: ServerFailed, Err: err,
		Message: "server " + name + " " + what + u.quoteTail(failure.tail),
		Hint:    "the user has to check the server's definition; calls try again after a short while",
	}
}

// remoteError is what there is to say of a server with a url, also before its use.
func (u *upstream) remoteError() *Error {
	return &Error{
		Kind: ServerFailed, Err: errRemote, Message: "server " + quoteName(u.server.Name) + " cannot be used: " + errRemote.Error(),
		Hint: `the user can define it with a "command" that forwards, such as npx -y mcp-remote and the url`,
	}
}

func isRPCError(err error) bool {
	_, ok := errors.AsType[*jsonrpc.Error](err)
	return ok
}
