package bridge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/proxy"
)

const (
	// maxPause bounds how long the clock of one cell stands still for questions:
	// what else it does meanwhile costs it no time.
	maxPause = 10 * time.Minute
	// settleQuestion is how long a question waits for others that are the same,
	// to be asked together with them.
	settleQuestion = 100 * time.Millisecond
	// maxQuestions bounds how often one cell may have its user asked, and
	// maxDeclined how often in vain.
	maxQuestions = 30
	maxDeclined  = 3
)

// An Approver is the proxy.Approver for a proxy that is a Bridge's Tools: it asks
// the user of the client whose cell makes the call, and nobody else. It needs
// nothing to be made.
type Approver struct{}

type askingKey struct{}

// withApprovals returns a context for serving the callbacks of a session: it says
// who is asked about the calls that come that way.
func withApprovals(ctx context.Context, s *session) context.Context {
	return context.WithValue(ctx, askingKey{}, s)
}

// Approve implements [proxy.Approver].
func (Approver) Approve(ctx context.Context, call proxy.ApprovalRequest) (bool, error) {
	s, ok := ctx.Value(askingKey{}).(*session)
	if !ok {
		return false, notAsked("nobody can be asked here", proxy.ApprovalHint())
	}
	return s.approve(ctx, call)
}

// notAsked is the error of a call about which the user is not asked.
func notAsked(why, hint string) *proxy.Error {
	return &proxy.Error{Kind: proxy.Policy, Message: "it needs the user's approval, and " + why, Hint: hint}
}

// A verdict is what became of a question.
type verdict string

const (
	allowedOnce    verdict = "allowed once"
	allowedSession verdict = "allowed for this session"
	declined       verdict = "declined"
	dismissed      verdict = "dismissed" // without an answer
)

// A question is about calls that are the same, one or several. The session's mu
// guards it.
type question struct {
	call    proxy.ApprovalRequest
	calls   int  // that wait for the answer
	settled bool // it may be asked

	by     *carrier           // who asks it; nil if nobody does just now
	handed int                // number of the latest call there was when it was given to the client
	cancel context.CancelFunc // withdraws it; nil unless by waits for the client

	answered chan struct{} // closed when verdict or err is set
	verdict  verdict
	err      error
}

// A carrier is a call of the tool that waits for a cell, and so has a client whose
// user can be asked.
type carrier struct {
	asker  *asker
	number int    // in the order in which calls began to wait
	ticket string // of the question that was given to the client with the call's result; or ""
}

// questions are what a cell has its user asked. The session's mu guards them.
type questions struct {
	pending  []*question // the first is asked, the others wait for that
	asked    int
	declined int
	closed   bool          // no more are asked
	asker    *asker        // of the latest call that waited; nil if it had none
	changed  chan struct{} // closed when a call that waits has to look again
	carriers int           // there have been

	standing time.Time     // since when the clock stands still; zero while it runs
	stood    time.Duration // how long it stood still before that
	most     *time.Timer   // lets it go on
}

// approve asks about a call of the cell that runs.
func (s *session) approve(ctx context.Context, call proxy.ApprovalRequest) (bool, error) {
	s.mu.Lock()
	e := s.running
	if s.granted[toolOf(call)] {
		s.mu.Unlock()
		s.logDecision(e, call, "allowed before for this session")
		return true, nil
	}
	if err := refusal(e); err != nil {
		s.mu.Unlock()
		s.logDecision(e, call, "not asked: "+err.Message)
		return false, err
	}
	q := s.pose(e, call)
	s.mu.Unlock()
	select {
	case <-q.answered:
	case <-ctx.Done():
		s.abandon(e, q)
		return false, ctx.Err()
	}
	return q.verdict == allowedOnce || q.verdict == allowedSession, q.err
}

// toolOf is what is allowed for a session.
func toolOf(call proxy.ApprovalRequest) string {
	return call.Server + "\n" + call.Definition + "\n" + call.Tool
}

// refusal says why a cell cannot have its user asked, nil if it can. The session's
// mu is held.
func refusal(e *execution) *proxy.Error {
	switch {
	case e == nil:
		return notAsked("no cell is running for which the user could be asked", "make the call in a cell that waits for it")
	case e.questions.closed:
		return notAsked("the cell is being stopped", "")
	case e.questions.asker == nil:
		return notAsked("nobody can be asked here", proxy.ApprovalHint())
	case e.questions.asker.cannot != "":
		return notAsked(e.questions.asker.cannot, proxy.ApprovalHint()+", or use a client that supports elicitation")
	case e.questions.declined >= maxDeclined:
		return notAsked(fmt.Sprintf("the user has declined %d calls of this cell: no more are asked about", maxDeclined),
			"do not try others unless the user asks for it")
	case e.questions.asked >= maxQuestions:
		return notAsked(fmt.Sprintf("this cell has asked about %d already, the most allowed", maxQuestions),
			"make the other calls in another cell")
	}
	return nil
}

// pose returns the question about a call. It is one that others wait for if that
// is not asked yet: an answer counts for as many calls as the user was told of.
// s.mu is held.
func (s *session) pose(e *execution, call proxy.ApprovalRequest) *question {
	for _, q := range e.questions.pending {
		if q.call.ID == call.ID && q.by == nil {
			q.calls++
			return q
		}
	}
	q := &question{call: call, calls: 1, answered: make(chan struct{})}
	e.questions.pending = append(e.questions.pending, q)
	e.questions.asked++
	time.AfterFunc(settleQuestion, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		q.settled = true
		e.questions.wake()
	})
	return q
}

// wake has the calls that wait for a cell look again. The session's mu is held.
func (q *questions) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// carry makes a carrier of a call that waits for e. It must be released.
func (s *session) carry(e *execution, a *asker) *carrier {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.questions.carriers++
	return &carrier{asker: a, number: e.questions.carriers}
}

// claim returns the question that c is to ask now, or nil, and when to look again.
// One that was given to a client with a result is asked anew by a call that began
// after that: it is not the one that brings an answer.
func (s *session) claim(e *execution, c *carrier) (*question, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := &e.questions
	if !c.asker.able() || all.closed || len(all.pending) == 0 {
		return nil, all.changed
	}
	q := all.pending[0]
	if !q.settled || q.by != nil && (q.by.ticket == "" || c.number <= q.handed) {
		return nil, all.changed
	}
	q.by = c
	s.stand(e)
	return q, all.changed
}

// answer takes the answer to a question, if it is c that asks it: others are late.
func (s *session) answer(e *execution, q *question, c *carrier, v verdict, err *proxy.Error) {
	s.mu.Lock()
	if q.by != c || !slices.Contains(e.questions.pending, q) {
		s.mu.Unlock()
		return
	}
	log := s.settle(e, q, v, err)
	s.mu.Unlock()
	s.tellClock(e)
	for _, q := range log {
		s.logDecision(e, q.call, q.decision())
	}
}

// settle answers q, and what else the answer says something of. It returns what is
// answered. s.mu is held.
func (s *session) settle(e *execution, q *question, v verdict, err *proxy.Error) []*question {
	all := &e.questions
	if v == allowedSession {
		if s.granted == nil {
			s.granted = map[string]bool{}
		}
		s.granted[toolOf(q.call)] = true
	}
	if v == declined || v == dismissed {
		all.declined++
	}
	var settled, rest []*question
	for _, other := range all.pending {
		verdict, why := v, err
		switch {
		case other == q:
		case v == allowedSession && toolOf(other.call) == toolOf(q.call):
		case (v == declined || v == dismissed) && other.call.ID == q.call.ID:
		case all.declined >= maxDeclined:
			verdict, why = "", refusal(e)
		default:
			rest = append(rest, other)
			continue
		}
		other.close(verdict, why)
		settled = append(settled, other)
	}
	all.pending = rest
	s.goOn(e)
	all.wake()
	return settled
}

// close sets what became of q.
func (q *question) close(v verdict, err *proxy.Error) {
	q.verdict, q.by = v, nil
	if err != nil {
		q.err = err
	}
	if q.cancel != nil {
		q.cancel()
	}
	close(q.answered)
}

func (q *question) decision() string {
	if q.err != nil {
		return "not asked: " + q.err.Error()
	}
	return string(q.verdict)
}

// release ends what c asks without an answer: another call may ask it.
func (s *session) release(e *execution, c *carrier) {
	s.mu.Lock()
	for _, q := range e.questions.pending {
		if q.by == c && c.ticket == "" {
			s.withdraw(e, q)
		}
	}
	s.mu.Unlock()
	s.tellClock(e)
}

// withdraw takes a question back from its client. s.mu is held.
func (s *session) withdraw(e *execution, q *question) {
	if q.by == nil {
		return
	}
	if q.cancel != nil {
		q.cancel()
	}
	q.by, q.cancel = nil, nil
	s.goOn(e)
	e.questions.wake()
}

// abandon ends the wait of a call that is not to be made any more.
func (s *session) abandon(e *execution, q *question) {
	s.mu.Lock()
	q.calls--
	i := slices.Index(e.questions.pending, q)
	gone := q.calls == 0 && i >= 0
	if gone {
		s.withdraw(e, q)
		e.questions.pending = slices.Delete(e.questions.pending, i, i+1)
		e.questions.wake()
	}
	s.mu.Unlock()
	s.tellClock(e)
	if gone {
		s.logDecision(e, q.call, "withdrawn")
	}
}

// stopAsking withdraws what a cell asks, which is being stopped.
func (s *session) stopAsking(e *execution) {
	s.mu.Lock()
	e.questions.closed = true
	for _, q := range e.questions.pending {
		s.withdraw(e, q)
	}
	s.mu.Unlock()
	s.tellClock(e)
}

// endAsking refuses what a cell asked that has ended. s.mu is held.
func (s *session) endAsking(e *execution) {
	all := &e.questions
	all.closed = true
	for _, q := range all.pending {
		q.close("", notAsked("its cell has ended", ""))
	}
	all.pending = nil
	s.goOn(e)
}

// stand stops the clock of a cell, unless that stood still for long enough. s.mu
// is held, as for goOn; tellClock is to follow both.
func (s *session) stand(e *execution) {
	all := &e.questions
	left := maxPause - all.stood
	if !all.standing.IsZero() || left <= 0 {
		return
	}
	since := time.Now()
	all.standing = since
	all.most = time.AfterFunc(left, func() {
		s.mu.Lock()
		if all.standing.Equal(since) {
			s.goOn(e)
		}
		s.mu.Unlock()
		s.tellClock(e)
	})
}

func (s *session) goOn(e *execution) {
	all := &e.questions
	if all.standing.IsZero() {
		return
	}
	all.most.Stop()
	all.stood += time.Since(all.standing)
	all.standing = time.Time{}
	all.wake()
}

// tellClock tells the kernel whether the clock of a cell stands still. It takes a
// lock of its own: what the kernel says takes s.mu, and must not wait for what it
// is told.
func (s *session) tellClock(e *execution) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	standing, k := !e.questions.standing.IsZero(), s.kernel
	s.mu.Unlock()
	if k != nil && e.standingTold != standing {
		e.standingTold = standing
		k.clock(e.cell, !standing)
	}
}

// stoodStill is how long the clock of a cell has stood still so far.
func (q *questions) stoodStill() time.Duration {
	if q.standing.IsZero() {
		return q.stood
	}
	return q.stood + time.Since(q.standing)
}

// patienceLeft is how long a call may go on waiting that began to when the clock
// of its cell had stood still for so long; standing says that it does now.
func (s *session) patienceLeft(e *execution, until time.Time, before time.Duration) (left time.Duration, standing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(until) + e.questions.stoodStill() - before, !e.questions.standing.IsZero()
}

// asking says what a cell waits for, if it is the user; else "". The session's mu
// is held.
func (e *execution) asking() string {
	if len(e.questions.pending) == 0 || e.questions.closed {
		return ""
	}
	q := e.questions.pending[0]
	return fmt.Sprintf("waiting for the user's approval to call tool %q of server %q", q.call.Tool, q.call.Server)
}

// logDecision is the record of what was allowed, by whom, and what not.
func (s *session) logDecision(e *execution, call proxy.ApprovalRequest, decision string) {
	cell := 0
	if e != nil {
		cell = e.cell
	}
	s.bridge.log.Info("tool call approval", "session_id", s.name, "cell", cell, "server", call.Server, "tool", call.Tool, "decision", decision)
}
