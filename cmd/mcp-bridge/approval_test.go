package main_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// guardedSetup has a server some of whose tools need approval, or are denied.
func guardedSetup(t *testing.T) setup {
	d := specialServer(t)
	d.Approve = []string{"touch", "odd*"}
	d.Tools = map[string][]string{"deny": {"crash", "big"}}
	return setup{servers: map[string]definition{"special": d}, args: []string{"--log-level=info"}}
}

// A person answers questions one after the other.
type person struct {
	mu       sync.Mutex
	messages []string
	says     []mcp.ElicitResult // the rest of the answers; declines after that
	thinks   time.Duration      // before the first answer
}

func saysOf(decision string) mcp.ElicitResult {
	return mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}
}

func (p *person) answer(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages = append(p.messages, req.Params.Message)
	select {
	case <-time.After(p.thinks):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.thinks = 0
	if len(p.says) == 0 {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	says := p.says[0]
	p.says = p.says[1:]
	return &says, nil
}

func (p *person) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.messages)
}

// connectAt is connectHearing with a version of the protocol.
func connectAt(t *testing.T, s setup, opts *mcp.ClientOptions, version string) *client {
	t.Helper()
	cmd := s.command(t, "run")
	c := &client{cmd: cmd, stderr: &buffer{}}
	cmd.Stderr = c.stderr
	var err error
	c.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, opts).Connect(t.Context(),
		&mcp.CommandTransport{Command: cmd, TerminateDuration: 20 * time.Second}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, c.stderr)
	}
	bridges.add(cmd.Process.Pid)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestApprovals asks a person before calls of a real server, who thinks for longer
// than the cell may take.
func TestApprovals(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := &person{thinks: 12 * time.Second, says: []mcp.ElicitResult{saysOf("once"), saysOf("deny"), saysOf("session")}}
			c := connectAt(t, guardedSetup(t), &mcp.ClientOptions{ElicitationHandler: p.answer}, version)
			c.run(t, "touched = lambda: tools.special.stats().touched\ntouched()") // the server is up
			r := c.call(t, arguments{"code": "tools.special.touch()", "timeout": 10})
			if r.isError || !strings.Contains(r.text, "touched") {
				t.Errorf("allowed: %s", r.text)
			}
			contains(t, c.fails(t, `tools.special.odd_name(class_="\u202ex")`), `PolicyError: tool "odd-name" of server "special" was not called: the user declined`)
			c.wants(t, "tools.special.touch(), tools.special.touch(); touched()", "3")
			if heard := p.heard(); len(heard) != 3 || !strings.Contains(heard[1], `tool "odd-name" of server "special", with these arguments:`+"\n"+`{"class": "\u{202e}x"}`) {
				t.Errorf("asked %q", heard)
			}
			contains(t, c.stderr.String(), "decision=\"allowed once\"", "decision=declined", "decision=\"allowed for this session\"", "decision=\"allowed before for this session\"")
		})
	}
}

// TestApprovalIsCancelled gives up a call while its user is asked, who answers
// all the same.
func TestApprovalIsCancelled(t *testing.T) {
	t.Parallel()
	asked, stopped := make(chan struct{}), make(chan struct{})
	hesitate := func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		close(asked)
		<-ctx.Done()
		close(stopped)
		says := saysOf("session")
		return &says, nil
	}
	c := connectAt(t, guardedSetup(t), &mcp.ClientOptions{ElicitationHandler: hesitate}, "2025-11-25")
	c.run(t, "kept = 'kept'")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.try(ctx, arguments{"code": "tools.special.touch()"})
	}()
	<-asked
	cancel()
	<-ended
	<-stopped
	contains(t, c.run(t, "kept, tools.special.stats().touched"), "('kept', 0)")
	lacks(t, c.stderr.String(), "decision=\"allowed")
}

// TestPolicyWithoutQuestions is what a client hears that cannot ask its user, and
// of what is denied.
func TestPolicyWithoutQuestions(t *testing.T) {
	t.Parallel()
	s := guardedSetup(t)
	c := connect(t, s)
	contains(t, c.fails(t, "tools.special.touch()"), "PolicyError", "needs the user's approval", "does not support MCP elicitation", `"autoApprove"`)
	contains(t, c.fails(t, `tools.call("special", "crash", {})`), "PolicyError", "the user's configuration does not allow it", `"tools.deny"`)
	contains(t, c.fails(t, "tools.special.crash()"), "UnknownTool")
	c.wants(t, "[t.name for t in tools.special if t.name in ('crash', 'big', 'touch')], [h.tool for h in tools.search('crash end server') if h.tool == 'crash']", "(['touch'], [])")
	c.wants(t, "tools.special.stats().touched", "0")

	// Who types a call in needs nobody's approval, and is denied what is denied.
	if got := shell(t, &s, "tools", "call", "special.touch"); got.code != 0 || !strings.Contains(got.stdout, "touched") {
		t.Errorf("tools call: %+v", got)
	}
	if got := shell(t, &s, "tools", "call", "special.crash"); got.code == 0 || !strings.Contains(got.stderr, `does not allow it`) || !strings.Contains(got.stderr, `hint: it can be changed in "tools.deny"`) {
		t.Errorf("tools call of what is denied: %+v", got)
	}
	if got := shell(t, &s, "exec", "-c", "tools.special.touch()"); got.code == 0 || !strings.Contains(got.stderr+got.stdout, "nobody can be asked here") {
		t.Errorf("exec: %+v", got)
	}
}
