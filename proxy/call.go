package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/proxy/internal/stdio"
)

const (
	// tailShown and refusalShown bound what is quoted of a server, in bytes.
	tailShown    = 2_000
	refusalShown = 4_000
)

// errNotSent is wrapped by errors of calls that did not reach the server, so
// that it is safe to make them again.
var errNotSent = errors.New("not sent")

// Call calls a tool and returns the server's CallToolResult as the JSON it
// sent, isError included. The server and the tool may be given by their names
// or by their Python identifiers; args is a JSON object, or nil for none. The
// server is started if it does not run. ctx bounds it all; when it is done the
// server is told that nobody waits any more.
//
// Errors are *[Error].
func (p *Proxy) Call(ctx context.Context, server, tool string, args json.RawMessage) (json.RawMessage, error) {
	if p.opts.CallTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.opts.CallTimeout)
		defer cancel()
	}
	u, err := p.upstream(server)
	if err != nil {
		return nil, err
	}
	if args, err = checkArguments(args); err != nil {
		return nil, err
	}
	raw, err := u.call(ctx, tool, args)
	if errors.Is(err, errNotSent) && ctx.Err() == nil {
		raw, err = u.call(ctx, tool, args)
	}
	if err != nil {
		return nil, err
	}
	return raw, nil
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

func (u *upstream) call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	s, err := u.session(ctx)
	if err != nil {
		return nil, err
	}
	name, err := u.resolve(ctx, s, tool)
	if err != nil {
		return nil, err
	}
	if !s.use() {
		return nil, u.broken(ctx, s, name, false, errNotSent)
	}
	ctx, result := withSink(ctx, "tools/call", `{"content":[]}`)
	result.share = shareOf(ctx)
	_, err = s.mcp.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	switch out := s.gate.finish(result); {
	case out.raw != nil:
		return out.raw, nil
	case errors.Is(out.refusal, errUnread) && ctx.Err() != nil:
		return nil, doneError(ctx, u.tool(name))
	case errors.Is(out.refusal, errUnread):
		return nil, errorf(Busy, "it took effect; make fewer calls with large results at a time",
			"the result of %s was dropped: others of up to %d MiB are waiting to be read", u.tool(name), maxUnread>>20)
	case out.refusal != nil:
		return nil, u.refused(name, out.refusal)
	case ctx.Err() != nil:
		return nil, doneError(ctx, u.tool(name))
	case s.over():
		return nil, u.broken(ctx, s, name, out.sent, err)
	}
	return nil, &Error{
		Kind: ServerFailed, Err: err,
		Message: u.tool(name) + " answered with no result, or asked for input, which the bridge cannot give",
	}
}

// tool names a tool of u in messages.
func (u *upstream) tool(name string) string {
	return "tool " + quoteName(name) + " of server " + quoteName(u.server.Name)
}

// refused is the error for an error response of the server.
func (u *upstream) refused(tool string, err error) *Error {
	e := &Error{Kind: ServerFailed, Err: err}
	if rpcErr, ok := errors.AsType[*jsonrpc.Error](err); ok && rpcErr.Code == jsonrpc.CodeInvalidParams {
		e.Kind = Invalid
		e.Hint = "check the tool's signature and parameters"
	}
	e.Message = fmt.Sprintf("%s failed: %s", u.tool(tool), u.text.clean(err.Error(), refusalShown))
	return e
}

// broken is the error for a session that ended under a call.
func (u *upstream) broken(ctx context.Context, s *session, tool string, sent bool, err error) *Error {
	if u.proxy.isClosed() {
		return closedError()
	}
	s.awaitExit(ctx)
	e := &Error{Kind: ServerFailed, Err: err}
	if !sent {
		e.Err = errNotSent
		e.Message = fmt.Sprintf("server %s %s before %s was called", quoteName(u.server.Name), s.why(), u.tool(tool))
		return e
	}
	e.Message = fmt.Sprintf("server %s %s during the call of tool %s, which may or may not have taken effect%s",
		quoteName(u.server.Name), s.why(), quoteName(tool), u.quoteTail(s.proc.Tail()))
	e.Hint = "check whether it took effect before calling again; the next call starts the server anew"
	return e
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
	case errors.Is(err, stdio.ErrDir):
		return &Error{
			Kind: ServerFailed, Err: err, Message: "server " + name + " cannot start: its working directory does not exist",
			Hint: `the user has to correct "cwd" in the server's definition`,
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

func isRPCError(err error) bool {
	_, ok := errors.AsType[*jsonrpc.Error](err)
	return ok
}
