package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// maxAsking is how many calls may wait for an answer of a user at a time, of all
// sandboxes.
const maxAsking = 1024

// An Approver asks the user before a tool is called whose server's definition
// wants that. It may be called concurrently.
type Approver interface {
	// Approve reports whether the user allows the call. It may take as long as
	// people do, and ends with ctx, which has the values of that of ServeCallbacks
	// or Call. An error says why the user was not asked; an *Error reaches the
	// sandbox as it is.
	Approve(ctx context.Context, call ApprovalRequest) (bool, error)
}

// An ApprovalRequest is a call as it is shown to the user: printable, on one
// line each, bounded, and without the secrets of the server's definition.
type ApprovalRequest struct {
	Server    string
	Tool      string
	Arguments string // JSON; what is not printable is escaped in it, and what is cut off is told
	ID        string // the same for the same definition, tool and arguments, and for no other
	// Definition is the server's fingerprint: under the same name another one is
	// another server, for which what was said of the first one does not count.
	Definition string
}

// A permit is what a call was allowed to send. It outlives an attempt that has
// not reached the server: nobody is asked twice for one call.
type permit struct {
	id    string
	begun time.Time // when the call began, had nobody been asked
}

// denied returns the error for a tool that the server's definition takes away,
// nil for others.
func (u *upstream) denied(tool string) *Error {
	field := u.server.Denied(tool)
	if field == "" {
		return nil
	}
	return errorf(Policy, `it can be changed in "`+field+`" of the server's definition, by the user alone`,
		"%s is not to be called: the user's configuration does not allow it", u.tool(tool))
}

// refuseDenied is denied for a call of a tool given by any name, and logs it.
func (u *upstream) refuseDenied(tool string) error {
	name := tool
	if set := u.known(); set != nil && set.names[tool] != "" {
		name = set.names[tool]
	}
	e := u.denied(name)
	if e == nil {
		return nil
	}
	u.logger.Info("tool call denied", "tool", quoteName(name), "decision", "denied", "by", u.server.Denied(name))
	return e
}

// shown are the tools that are there for anybody.
func (u *upstream) shown(set *toolset) []discovery.ToolDoc {
	if len(u.server.DenyTools)+len(u.server.AllowTools) == 0 {
		return set.docs
	}
	shown := []discovery.ToolDoc{}
	for _, doc := range set.docs {
		if u.server.Denied(doc.Name) == "" {
			shown = append(shown, doc)
		}
	}
	return shown
}

// approved asks the user if the call has to be, and does not return before an
// answer. No time but ctx's bounds it.
func (u *upstream) approved(ctx context.Context, name string, args json.RawMessage, p *permit) error {
	if !u.server.NeedsApproval(name) {
		return nil
	}
	what := u.tool(name) + " was not called: "
	call := u.approvalRequest(name, args)
	if p.id == call.ID {
		return nil
	}
	approver := u.proxy.opts.Approver
	if approver == nil {
		return errorf(Policy, approvalHint, "%sit needs the user's approval, and nobody can be asked here", what)
	}
	select {
	case u.proxy.asking <- struct{}{}:
		defer func() { <-u.proxy.asking }()
	default:
		return errorf(Busy, "wait for some of them first", "%s%d calls wait for the user's approval already", what, maxAsking)
	}
	since := time.Now()
	ok, err := approver.Approve(ctx, call)
	p.begun = p.begun.Add(time.Since(since))
	switch e, own := errors.AsType[*Error](err); {
	case ctx.Err() != nil:
		return doneError(ctx, u.tool(name))
	case own:
		return &Error{Kind: e.Kind, Message: what + e.Message, Hint: e.Hint, Err: err}
	case err != nil:
		u.logger.Warn("the user was not asked", "tool", quoteName(name), "error", err)
		return &Error{Kind: Policy, Message: what + "it needs the user's approval, who could not be asked", Hint: approvalHint, Err: err}
	case !ok:
		return errorf(Policy, "do not call it again unless the user asks for it", "%sthe user declined", what)
	}
	p.id = call.ID
	return nil
}

// approvalHint is what the user can change if he cannot be asked.
const approvalHint = `the user can list the tool in "autoApprove" of the server's definition, or take it out of "approve"`

// ApprovalHint says what the user can change to be asked no more.
func ApprovalHint() string { return approvalHint }

func (u *upstream) approvalRequest(name string, args json.RawMessage) ApprovalRequest {
	hash := sha256.New()
	definition := u.server.Fingerprint()
	for _, part := range [][]byte{[]byte(u.server.Name), {0}, []byte(definition), {0}, []byte(name), {0}, args} { // names have no zero
		hash.Write(part)
	}
	return ApprovalRequest{
		Server: printable(u.server.Name), Tool: printable(name),
		Arguments: u.text.arguments(args), ID: hex.EncodeToString(hash.Sum(nil)), Definition: definition,
	}
}
