package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/proxy/internal/upstreamtest"
)

// A user answers questions as f does.
type user struct {
	f func(context.Context) (bool, error)

	mu    sync.Mutex
	asked []proxy.ApprovalRequest
}

func (u *user) Approve(ctx context.Context, call proxy.ApprovalRequest) (bool, error) {
	u.mu.Lock()
	u.asked = append(u.asked, call)
	u.mu.Unlock()
	return u.f(ctx)
}

func says(ok bool, err error) *user {
	return &user{f: func(context.Context) (bool, error) { return ok, err }}
}

// withPolicy is a proxy over one server named "good".
func withPolicy(t *testing.T, approver proxy.Approver, policy discovery.Server, opts proxy.Options) *proxy.Proxy {
	t.Helper()
	server := testServer(t, upstreamtest.Good)
	server.AllowTools, server.DenyTools, server.Approve, server.AutoApprove = policy.AllowTools, policy.DenyTools, policy.Approve, policy.AutoApprove
	opts.Servers, opts.Approver = []discovery.Server{server}, approver
	p := proxy.New(opts)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// What is denied is not there, and a call by name says why.
func TestDeniedTools(t *testing.T) {
	t.Parallel()
	p := withPolicy(t, nil, discovery.Server{AllowTools: []string{"e*", "stats"}, DenyTools: []string{"env*"}}, proxy.Options{})
	denied := func(tool, field string) {
		t.Helper()
		_, err := p.Call(t.Context(), "good", tool, nil)
		wantError(t, err, proxy.Policy, "is not to be called: the user's configuration does not allow it", "by the user alone", field)
	}
	denied("environment", "tools.deny") // nothing is listed yet, nor does the server run
	if state := p.Servers()[0].State; state != "idle" {
		t.Errorf("the server is %s", state)
	}
	docs, err := p.Tools(t.Context(), "good")
	if err != nil || fmt.Sprint(toolNames(docs)) != "[echo stats]" {
		t.Errorf("listed: %q, %v", toolNames(docs), err)
	}
	if n := p.Servers()[0].Tools; n == nil || *n != 2 {
		t.Errorf("counted: %v", n)
	}
	denied("environment", "tools.deny")
	denied("sleep", "tools.allow")
	found, err := p.Search(t.Context(), "environment working directory sleep", 10)
	for _, hit := range found.Hits {
		if hit.Tool == "environment" || hit.Tool == "sleep" {
			t.Errorf("found: %+v", hit)
		}
	}
	if err != nil {
		t.Error(err)
	}
	_, err = p.Describe(t.Context(), "good", "environment", discovery.Full)
	wantError(t, err, proxy.Policy)
	if e := wantError(t, func() error { _, err := p.Call(t.Context(), "good", "environmen", nil); return err }(), proxy.Policy); e == nil {
		t.Error("no error")
	}
	_, err = p.Call(t.Context(), "good", "ech", nil)
	wantError(t, err, proxy.UnknownTool, `did you mean "echo"?`)
	if got := call(t, p, "good", "echo", `{"text":"x"}`).text(); got != "x" {
		t.Errorf("echo says %q", got)
	}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		approver proxy.Approver
		kind     proxy.Kind // "" if the call is made
		words    []string
	}{
		{"allowed", says(true, nil), "", nil},
		{"declined", says(false, nil), proxy.Policy, []string{`tool "echo" of server "good" was not called: the user declined`}},
		{"no approver", nil, proxy.Policy, []string{"needs the user's approval, and nobody can be asked here", `"autoApprove"`}},
		{"own error", says(true, &proxy.Error{Kind: proxy.Busy, Message: "too many"}), proxy.Busy, []string{"was not called: too many"}},
		{"other error", says(true, errors.New("at /home/x")), proxy.Policy, []string{"who could not be asked"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := withPolicy(t, test.approver, discovery.Server{Approve: []string{"*"}, AutoApprove: []string{"stats"}}, proxy.Options{})
			_, err := p.Call(t.Context(), "good", "echo", json.RawMessage(`{"text":"x"}`))
			if test.kind == "" && err != nil || test.kind != "" && err == nil {
				t.Fatalf("error: %v", err)
			}
			if err != nil {
				wantError(t, err, test.kind, test.words...)
			}
			call(t, p, "good", "stats", "") // exempt
			if u, ok := test.approver.(*user); ok && (len(u.asked) != 1 || u.asked[0].Tool != "echo" || u.asked[0].Arguments != `{"text": "x"}`) {
				t.Errorf("asked: %+v", u.asked)
			}
		})
	}
}

// Nobody is asked about a call that would be refused anyway, or is denied.
func TestApprovalComesLast(t *testing.T) {
	t.Parallel()
	u := says(true, nil)
	p := withPolicy(t, u, discovery.Server{Approve: []string{"*"}, DenyTools: []string{"crash"}}, proxy.Options{})
	for _, tool := range []string{"echo", "crash", "nonsense"} {
		if _, err := p.Call(t.Context(), "good", tool, json.RawMessage(`{"txet":1}`)); err == nil {
			t.Errorf("%s was called", tool)
		}
	}
	if len(u.asked) > 0 {
		t.Errorf("asked: %+v", u.asked)
	}
}

// The time of a call does not run while the user thinks, and a call that nobody
// waits for any more asks nobody any more.
func TestApprovalTakesItsTime(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Second
	thinking := make(chan struct{})
	asked := make(chan bool)
	u := &user{f: func(ctx context.Context) (bool, error) {
		if _, bounded := ctx.Deadline(); bounded {
			t.Error("the user has to hurry")
		}
		asked <- true
		select {
		case <-thinking:
			return true, nil
		case <-ctx.Done():
			asked <- false
			return false, ctx.Err()
		}
	}}
	p := withPolicy(t, u, discovery.Server{Approve: []string{"*"}}, proxy.Options{CallTimeout: limit})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.Call(ctx, "good", "echo", json.RawMessage(`{"text":"x"}`))
		ended <- err
	}()
	<-asked
	cancel()
	<-asked
	wantError(t, <-ended, proxy.Closed)
	go func() {
		_, err := p.Call(t.Context(), "good", "echo", json.RawMessage(`{"text":"x"}`))
		ended <- err
	}()
	<-asked
	close(thinking)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
