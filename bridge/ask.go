package bridge

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/proxy"
)

const (
	// maxRounds is how many questions a client is given one after the other with
	// the results of one call: SDKs give up after ten.
	maxRounds = 8
	// inputKey names the question in a result, and its answer.
	inputKey = "approval"
	// decisionKey is the field of a form with the user's decision.
	decisionKey = "decision"

	maxRequestState = 512 // bytes of what a client gives back
)

// An asker is how the user of a client can be asked. Of a nil one nobody can.
type asker struct {
	cannot string // why that cannot be; or ""
	// elicit asks and waits; nil if questions go with results, for which there is
	// reply.
	elicit func(ctx context.Context, message string) (verdict, error)
}

func (a *asker) able() bool { return a != nil && a.cannot == "" }

// askerOf returns how the user of a call's client can be asked. Since protocol
// 2026-07-28 servers send no requests: there a question is the result of the call,
// and the client calls again with the answer.
func askerOf(req *mcp.CallToolRequest) *asker {
	params := req.Session.InitializeParams()
	if params == nil || params.Capabilities == nil || params.Capabilities.Elicitation == nil {
		return &asker{cannot: "this client cannot ask for it: it does not support MCP elicitation"}
	}
	if e := params.Capabilities.Elicitation; e.Form == nil && e.URL != nil {
		return &asker{cannot: "this client cannot ask for it: it supports no MCP elicitation by forms"}
	}
	if params.ProtocolVersion >= sessionlessFrom {
		return &asker{}
	}
	return &asker{elicit: func(ctx context.Context, message string) (verdict, error) {
		result, err := req.Session.Elicit(ctx, elicitation(message))
		if err != nil {
			return "", err
		}
		return verdictOf(result), nil
	}}
}

func elicitation(message string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: mustJSON(map[string]any{
		"type": "object",
		"properties": map[string]any{decisionKey: map[string]any{
			"type": "string", "title": "Decision",
			"enum":      []string{"once", "session", "deny"},
			"enumNames": []string{"Allow this call", "Allow this tool for this session", "Deny"},
		}},
		"required": []string{decisionKey},
	})}
}

// verdictOf reads an answer. Nothing but the word for it allows anything.
func verdictOf(result *mcp.ElicitResult) verdict {
	decision, _ := result.Content[decisionKey].(string)
	switch {
	case result.Action == "accept" && decision == "once":
		return allowedOnce
	case result.Action == "accept" && decision == "session":
		return allowedSession
	case result.Action == "cancel":
		return dismissed
	}
	return declined
}

// message is what the user reads. What a cell or a server has chosen stands on
// lines of its own, quoted.
func (s *session) message(q *question, cell int) string {
	times := ""
	if q.calls > 1 {
		times = fmt.Sprintf(", %d times", q.calls)
	}
	in := ""
	if s.name != "" {
		in = fmt.Sprintf(" of session %q", s.name)
	}
	return fmt.Sprintf("Python code that the model wrote (cell %d%s) wants to call tool %q of server %q%s, with these arguments:\n%s",
		cell, in, q.call.Tool, q.call.Server, times, q.call.Arguments)
}

// ask asks q and waits for the answer.
func (s *session) ask(ctx context.Context, e *execution, q *question, c *carrier) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if q.by != c { // it was withdrawn at this moment
		s.mu.Unlock()
		return
	}
	q.cancel = cancel
	message := s.message(q, e.cell)
	s.mu.Unlock()
	s.tellClock(e)
	v, err := c.asker.elicit(ctx, message)
	switch {
	case ctx.Err() != nil: // nobody waits for it any more, or another call will ask
		s.release(e, c)
	case err != nil:
		s.bridge.log.Warn("the client did not ask its user", "session_id", s.name, "error", err)
		s.answer(e, q, c, "", notAsked("the client failed to ask for it", proxy.ApprovalHint()))
	default:
		s.answer(e, q, c, v, nil)
	}
}

// An inquiry is a question as a result of a call.
type inquiry struct {
	message string
	state   string // what the client gives back with the answer
}

// handOver gives q to the client with the result of its call, whose place the call
// with the answer takes.
func (s *session) handOver(e *execution, q *question, c *carrier, req *Request) Result {
	reply := reply{session: req.Session, cell: e.cell, round: req.round() + 1, owner: req.owner, ticket: randomHex()}
	s.mu.Lock()
	c.ticket, q.handed = reply.ticket, e.questions.carriers
	message := s.message(q, e.cell)
	s.mu.Unlock()
	s.tellClock(e)
	return Result{inquiry: &inquiry{message: message, state: reply.String()}}
}

// A reply is what a call says that brings the answer to a question.
type reply struct {
	session string
	cell    int
	round   int
	owner   bool   // the cell ends if the call is cancelled
	ticket  string // of the question
	verdict verdict
}

// String is what the client is given. It keeps nothing secret, and who changes it
// changes nothing but his own call: what counts is the ticket, which nobody guesses,
// and the session, in which only its own client's calls look.
func (r *reply) String() string {
	return fmt.Sprintf("%d.%d.%t.%s.%s", r.cell, r.round, r.owner, r.ticket, r.session)
}

// replyOf returns the reply in a call, or nil if it has none.
func replyOf(req *mcp.CallToolRequest) (*reply, error) {
	state := req.Params.RequestState
	if state == "" {
		return nil, nil
	}
	parts := strings.SplitN(state, ".", 5)
	if len(state) > maxRequestState || len(parts) != 5 {
		return nil, errBadState
	}
	r := &reply{owner: parts[2] == "true", ticket: parts[3], session: parts[4]}
	var err error
	if r.cell, err = strconv.Atoi(parts[0]); err != nil || r.cell < 1 {
		return nil, errBadState
	}
	if r.round, err = strconv.Atoi(parts[1]); err != nil || r.round < 1 || r.ticket == "" {
		return nil, errBadState
	}
	if answer, ok := req.Params.InputResponses[inputKey].(*mcp.ElicitResult); ok {
		r.verdict = verdictOf(answer)
	}
	return r, nil
}

var errBadState = errors.New("the call's requestState is none of this server's: nothing was run")

// round is how many questions were asked with the results of one call so far.
func (r *Request) round() int {
	if r.reply == nil {
		return 0
	}
	return r.reply.round
}

// rejoin returns the cell that a reply is about, for one more call to await, having
// taken the answer, or nil if it has ended and been shown.
func (s *session) rejoin(r *reply) (*execution, *kernel) {
	s.mu.Lock()
	e := s.running
	k := s.kernel
	if e == nil || e.cell != r.cell {
		e, k = nil, nil
		if s.missed != nil && s.missed.cell == r.cell {
			e, s.missed = s.missed, nil
		}
	}
	if e == nil {
		s.mu.Unlock()
		return nil, nil
	}
	e.waiting++
	var q *question
	var by *carrier
	for _, pending := range e.questions.pending {
		if pending.by != nil && pending.by.ticket == r.ticket && r.verdict != "" {
			q, by = pending, pending.by
		}
	}
	s.mu.Unlock()
	if q != nil {
		s.answer(e, q, by, r.verdict, nil)
	}
	if !r.owner {
		k = nil
	}
	return e, k
}

// resume goes on with a call whose result was a question.
func (s *session) resume(ctx context.Context, req Request) (Result, error) {
	e, k := s.rejoin(req.reply)
	if e == nil {
		return Result{}, fmt.Errorf("cell %d has ended while its user was asked, and another call has shown its result: nothing was run", req.reply.cell)
	}
	req.owner = req.reply.owner
	defer s.follow(e, req.Working)()
	return s.await(ctx, e, k, req), nil
}

// inputRequired is the result that asks the client's user.
func (q *inquiry) inputRequired() *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:       []mcp.Content{},
		InputRequests: mcp.InputRequestMap{inputKey: elicitation(q.message)},
		RequestState:  q.state,
	}
}
