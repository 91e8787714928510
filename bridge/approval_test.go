package bridge_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/bridge"
	"github.com/mcp-bridge/mcp-bridge/proxy"
	"github.com/mcp-bridge/mcp-bridge/sandbox-image/wire"
)

// guarded are Tools every call of which needs approval. A call's params are
// {"tool": NAME, "arguments": TEXT}.
type guarded struct{}

func (guarded) ServeCallbacks(ctx context.Context, conn *wire.Conn, _ map[string]proxy.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var mu sync.Mutex
	calls := map[int64]context.CancelFunc{}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for {
		m, err := conn.Receive()
		if err != nil {
			return err
		}
		var params struct {
			ID              int64
			Tool, Arguments string
		}
		if err := json.Unmarshal(m.Params, &params); err != nil {
			return err
		}
		mu.Lock()
		if m.Method == "cancel" {
			calls[params.ID]()
			mu.Unlock()
			continue
		}
		callCtx, cancel := context.WithCancel(ctx)
		calls[m.ID] = cancel
		mu.Unlock()
		wg.Go(func() {
			defer cancel()
			resp := &wire.Message{ID: m.ID}
			ok, err := bridge.Approver{}.Approve(callCtx, proxy.ApprovalRequest{
				Server: "srv", Tool: params.Tool, Arguments: params.Arguments, ID: params.Tool + params.Arguments,
				Definition: strings.TrimRight(params.Arguments, "0123456789"),
			})
			switch {
			case err != nil:
				resp.Error = &wire.Error{Code: -32000, Message: err.Error()}
			default:
				resp.Result = toJSON(map[bool]string{true: "called", false: "the user declined"}[ok])
			}
			mu.Lock()
			defer mu.Unlock()
			_ = conn.Send(resp)
		})
	}
}

// approveAll makes calls in parallel, each TOOL or TOOL:ARGUMENTS, and returns what each
// came to.
func (k *kernel) approveAll(c *cell, calls []string) {
	type answer struct {
		id   int64
		text string
	}
	answers := make(chan answer, len(calls))
	go func() {
		for range calls {
			m, err := k.callback.Receive()
			if err != nil {
				return
			}
			a := answer{id: m.ID}
			if m.Error != nil {
				a.text = m.Error.Message
			} else if json.Unmarshal(m.Result, &a.text) != nil {
				panic(string(m.Result))
			}
			answers <- a
		}
	}()
	for i, call := range calls {
		tool, arguments, _ := strings.Cut(call, ":")
		_ = k.callback.Send(&wire.Message{ID: int64(i + 1), Method: "tools/call", Params: toJSON(object{"tool": tool, "arguments": arguments})})
	}
	results := make([]string, len(calls))
	for range calls {
		select {
		case a := <-answers:
			results[a.id-1] = calls[a.id-1] + " " + a.text
			continue
		case <-c.interrupted:
		case <-k.box.gone:
			return
		}
		for i := range calls { // as the REPL does
			_ = k.callback.Send(&wire.Message{Method: "cancel", Params: toJSON(object{"id": i + 1})})
		}
		for slices.Contains(results, "") {
			select {
			case a := <-answers:
				results[a.id-1] = calls[a.id-1] + " " + a.text
			case <-k.box.gone:
				return
			}
		}
		k.answer(c, object{"interrupted": "cancel"}, object{"status": "error", "error": object{"traceback": "KeyboardInterrupt"}})
		return
	}
	k.answer(c, nil, object{"value": object{"text": strings.Join(results, "\n")}})
}

// An office is a Bridge with guarded tools, and a client.
type office struct {
	*mcp.ClientSession

	engine *engine
	log    *lockedBuffer

	mu    sync.Mutex
	asked []string // messages
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// answers is how a person answers a question.
type answers func(ctx context.Context, message string) (action, decision string)

func always(action, decision string) answers {
	return func(context.Context, string) (string, string) { return action, decision }
}

// never takes its time, and notes when it is told to stop.
func never(stopped *atomic.Bool) answers {
	return func(ctx context.Context, _ string) (string, string) {
		<-ctx.Done()
		stopped.Store(true)
		return "accept", "session" // too late
	}
}

func (o *office) options(a answers) *mcp.ClientOptions {
	if a == nil {
		return nil
	}
	return &mcp.ClientOptions{ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		o.mu.Lock()
		o.asked = append(o.asked, req.Params.Message)
		o.mu.Unlock()
		action, decision := a(ctx, req.Params.Message)
		result := &mcp.ElicitResult{Action: action}
		if decision != "" {
			result.Content = map[string]any{"decision": decision}
		}
		return result, nil
	}}
}

func (o *office) questions() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.asked)
}

// inOffice runs test in a bubble, with a client of that protocol over stdio whose
// user answers so; nil cannot be asked.
func inOffice(t *testing.T, version string, opts bridge.Options, a answers, test func(t *testing.T, o *office)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &office{engine: &engine{}, log: &lockedBuffer{}}
		opts := opts
		opts.Engine, opts.Image, opts.Tools = o.engine, "image", guarded{}
		opts.Logger = slog.New(slog.NewTextHandler(o.log, nil))
		b := bridge.New(opts)
		in, toBridge := io.Pipe()
		fromBridge, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- b.Serve(t.Context(), in, out) }()
		var err error
		o.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "test"}, o.options(a)).Connect(t.Context(),
			&mcp.IOTransport{Reader: fromBridge, Writer: toBridge}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		test(t, o)
		_ = o.Close()
		_ = toBridge.Close()
		if err := <-served; err != nil && !errors.Is(err, io.ErrClosedPipe) { // the client reads no late answer
			t.Errorf("Serve returned %v", err)
		}
		b.Close()
		_ = out.Close()
		synctest.Wait()
		if _, open := o.engine.started(); open != 0 {
			t.Errorf("%d sandboxes are left", open)
		}
	})
}

func (o *office) run(t *testing.T, arguments object) string {
	t.Helper()
	r, err := o.CallTool(t.Context(), &mcp.CallToolParams{Name: "run_python", Arguments: arguments})
	if err != nil {
		t.Fatalf("%v: %v", arguments, err)
	}
	return textOf(r)
}

func textOf(r *mcp.CallToolResult) string {
	var texts []string
	for _, c := range r.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	return strings.Join(texts, "\n")
}

// protocols are one in which servers send requests, and the one in which they do
// not.
var protocols = []string{"2025-11-25", "2026-07-28"}

func TestApprovals(t *testing.T) {
	tests := []struct {
		name      string
		answers   answers
		code      string
		want      string
		questions int
		log       string
	}{
		{"once", always("accept", "once"), "approve a:1", "a:1 called", 1, "allowed once"},
		{"once is once", always("accept", "once"), "approve a:1 a:2", "a:1 called\na:2 called", 2, "allowed once"},
		{"session", always("accept", "session"), "approve a:1 a:2 b:1", "a:1 called\na:2 called\nb:1 called", 2, "allowed for this session"},
		{"deny", always("accept", "deny"), "approve a:1", "a:1 the user declined", 1, "declined"},
		{"decline", always("decline", ""), "approve a:1", "a:1 the user declined", 1, "declined"},
		{"cancel", always("cancel", ""), "approve a:1", "a:1 the user declined", 1, "dismissed"},
		{"accepted without a decision", always("accept", ""), "approve a:1", "a:1 the user declined", 1, "declined"},
		{"declined with one", always("decline", "session"), "approve a:1", "a:1 the user declined", 1, "declined"},
		{"the same at once", always("accept", "once"), "approve a:1 a:1 a:1", "a:1 called\na:1 called\na:1 called", 1, "allowed once"},
		{"the same refused", always("decline", ""), "approve a:1 a:1", "a:1 the user declined\na:1 the user declined", 1, "declined"},
		{"nobody to ask", nil, "approve a:1", "a:1 it needs the user's approval, and this client cannot ask for it: it does not support MCP elicitation", 0, "not asked"},
	}
	for _, version := range protocols {
		for _, test := range tests {
			t.Run(version+"/"+test.name, func(t *testing.T) {
				inOffice(t, version, bridge.Options{}, test.answers, func(t *testing.T, o *office) {
					begin := time.Now()
					if got := o.run(t, object{"code": test.code}); got != test.want {
						t.Errorf("got %q, want %q", got, test.want)
					}
					if took := time.Since(begin); took > time.Second {
						t.Errorf("it took %v", took)
					}
					if asked := o.questions(); len(asked) != test.questions {
						t.Errorf("asked %q", asked)
					}
					if !strings.Contains(o.log.String(), test.log) || !strings.Contains(o.log.String(), "server=srv tool=a") {
						t.Errorf("the log is %s", o.log)
					}
					if got := o.run(t, object{"code": "value 1"}); got != "1" {
						t.Errorf("afterwards: %q", got)
					}
				})
			})
		}
	}
}

// What the user reads says what is called, with what, and how often.
func TestApprovalMessage(t *testing.T) {
	inOffice(t, protocols[0], bridge.Options{}, always("accept", "once"), func(t *testing.T, o *office) {
		o.run(t, object{"code": `approve delete:{"path":"/x"} delete:{"path":"/x"}`, "session": "work"})
		want := `Python code that the model wrote (cell 1 of session "work") wants to call tool "delete" of server "srv", 2 times, with these arguments:` +
			"\n" + `{"path":"/x"}`
		if got := o.questions(); len(got) != 1 || got[0] != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
	})
}

// What is allowed for a session counts in that, and in no other.
func TestApprovalForASession(t *testing.T) {
	for _, version := range protocols {
		inOffice(t, version, bridge.Options{}, always("accept", "session"), func(t *testing.T, o *office) {
			for _, session := range []string{"one", "two", "one", "two"} {
				if got := o.run(t, object{"code": "approve a:1", "session": session}); got != "a:1 called" {
					t.Errorf("%s: %q", session, got)
				}
			}
			if asked := o.questions(); len(asked) != 2 || !strings.Contains(asked[0], `"one"`) || !strings.Contains(asked[1], `"two"`) {
				t.Errorf("asked %q", asked)
			}
			if !strings.Contains(o.log.String(), "allowed before for this session") {
				t.Errorf("the log is %s", o.log)
			}
		})
	}
}

// What is allowed for a session is a tool of one definition: a server that is
// started in another way is another one.
func TestApprovalForASessionIsOfADefinition(t *testing.T) {
	inOffice(t, protocols[0], bridge.Options{}, always("accept", "session"), func(t *testing.T, o *office) {
		for _, call := range []string{"a:1", "a:new1", "a:1", "a:new1"} { // the definition is what stands before the 1
			o.run(t, object{"code": "approve " + call})
		}
		if asked := o.questions(); len(asked) != 2 {
			t.Errorf("asked %q", asked)
		}
	})
}

// However much a cell asks for, its user is asked a few times.
func TestApprovalFlood(t *testing.T) {
	var many []string
	for i := range 60 {
		many = append(many, fmt.Sprintf("a:%d", i))
	}
	flood := object{"code": "approve " + strings.Join(many, " ")}
	inOffice(t, protocols[0], bridge.Options{}, always("decline", ""), func(t *testing.T, o *office) {
		got := o.run(t, flood)
		if n := len(o.questions()); n != 3 || strings.Count(got, "the user declined") != 3 || strings.Count(got, "no more are asked about") != 27 {
			t.Errorf("%d questions: %s", n, got)
		}
		if got := o.run(t, object{"code": "approve b:1"}); got != "b:1 the user declined" || len(o.questions()) != 4 {
			t.Errorf("the next cell: %q", got)
		}
	})
	inOffice(t, protocols[0], bridge.Options{}, always("accept", "once"), func(t *testing.T, o *office) {
		got := o.run(t, flood)
		if n := len(o.questions()); n != 30 || strings.Count(got, "called") != 30 || strings.Count(got, "this cell has asked about 30 already") != 30 {
			t.Errorf("%d questions: %s", n, got)
		}
	})
}

// While a person thinks, neither the cell's time runs nor the call's.
func TestApprovalStopsTheClock(t *testing.T) {
	for _, version := range protocols {
		t.Run(version, func(t *testing.T) {
			slow := func(context.Context, string) (string, string) {
				time.Sleep(5 * time.Minute)
				return "accept", "once"
			}
			inOffice(t, version, bridge.Options{Timeout: time.Second, Yield: 10 * time.Second}, slow, func(t *testing.T, o *office) {
				if got := o.run(t, object{"code": "approve a:1"}); got != "a:1 called" {
					t.Errorf("got %q", got)
				}
				if got := o.clocks(); !strings.HasPrefix("1 false, 1 true", got) || got == "" { // the cell may end before it is told the second
					t.Errorf("the supervisor was told %q", got)
				}
			})
		})
	}
}

// clocks is what the only sandbox was told of its cells' clocks.
func (o *office) clocks() string {
	b := o.engine.all()[0]
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.clocks, ", ")
}

// That has an end: then the call answers, saying what the cell waits for, and the
// next one asks again.
func TestApprovalStopsTheClockForAWhile(t *testing.T) {
	for _, version := range protocols {
		t.Run(version, func(t *testing.T) {
			var first sync.Once
			patience := func(ctx context.Context, _ string) (string, string) {
				slow := false
				first.Do(func() { slow = true })
				if slow {
					select {
					case <-ctx.Done():
					case <-time.After(30 * time.Minute):
					}
				}
				return "accept", "once"
			}
			inOffice(t, version, bridge.Options{Timeout: time.Hour, MaxTimeout: 2 * time.Hour}, patience, func(t *testing.T, o *office) {
				begin := time.Now()
				if version == protocols[0] {
					got := o.run(t, object{"code": "approve a:1"})
					if !strings.Contains(got, `[cell 1 is still running, for 45 s now of at most 3600 s, waiting for the user's approval to call tool "a" of server "srv": call run_python`) {
						t.Errorf("got %q", got)
					}
					if took := time.Since(begin); took < 10*time.Minute || took > 12*time.Minute {
						t.Errorf("it took %v", took)
					}
					if got := o.run(t, object{"code": ""}); got != "a:1 called" {
						t.Errorf("then %q", got)
					}
				} else if got := o.run(t, object{"code": "approve a:1"}); got != "a:1 called" {
					t.Errorf("got %q", got)
				}
				if got := o.clocks(); !strings.HasPrefix("1 false, 1 true", got) || got == "" { // the cell may end before it is told the second
					t.Errorf("the supervisor was told %q", got)
				}
			})
		})
	}
}

// What a cell asks when no call waits for it, the next one that does asks.
func TestApprovalOfACellThatGoesOn(t *testing.T) {
	for _, version := range protocols {
		inOffice(t, version, bridge.Options{Yield: 50 * time.Millisecond}, always("accept", "once"), func(t *testing.T, o *office) {
			if got := o.run(t, object{"code": "approve a:1"}); !strings.Contains(got, "waiting for the user's approval to call tool") {
				t.Errorf("got %q", got)
			}
			time.Sleep(time.Second)
			if n := len(o.questions()); n != 0 {
				t.Errorf("%d questions", n)
			}
			if got := o.run(t, object{"code": "value 1"}); !strings.Contains(got, "waiting for the user's approval") || !strings.Contains(got, "this code was not run") {
				t.Errorf("another cell: %q", got)
			}
			if got := o.run(t, object{"code": ""}); got != "a:1 called" {
				t.Errorf("then %q", got)
			}
		})
	}
}

// A client that leaves takes its questions along.
func TestApprovalOfAClientThatLeaves(t *testing.T) {
	var stopped atomic.Bool
	for _, version := range protocols {
		inOffice(t, version, bridge.Options{}, never(&stopped), func(t *testing.T, o *office) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			go func() {
				_, _ = o.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: object{"code": "approve a:1 a:2"}})
			}()
			time.Sleep(time.Second)
			if n := len(o.questions()); n != 1 {
				t.Errorf("%d questions", n)
			}
		})
	}
}

// A call that its client cancels withdraws its question, whose answer counts for
// nothing any more.
func TestApprovalIsCancelled(t *testing.T) {
	var stopped atomic.Bool
	inOffice(t, protocols[0], bridge.Options{}, never(&stopped), func(t *testing.T, o *office) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = o.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: object{"code": "approve a:1"}})
		}()
		time.Sleep(time.Second)
		cancel()
		<-ended
		synctest.Wait()
		if !stopped.Load() {
			t.Error("the client still asks")
		}
		if got := o.run(t, object{"code": "value 1"}); !strings.HasSuffix(got, "1") {
			t.Errorf("the session says %q", got)
		}
		if log := o.log.String(); strings.Contains(log, "allowed") || !strings.Contains(log, "withdrawn") {
			t.Errorf("the log is %s", log)
		}
	})
}

// So does session.interrupt(), of a cell for which somebody waits or nobody does.
func TestApprovalIsInterrupted(t *testing.T) {
	for _, version := range protocols {
		t.Run(version, func(t *testing.T) {
			slow := func(ctx context.Context, _ string) (string, string) {
				select {
				case <-ctx.Done():
				case <-time.After(5 * time.Minute):
				}
				return "accept", "session"
			}
			inOffice(t, version, bridge.Options{}, slow, func(t *testing.T, o *office) {
				first := make(chan string)
				go func() { first <- o.run(t, object{"code": "approve a:1"}) }()
				time.Sleep(time.Second)
				begin := time.Now()
				if got := o.run(t, object{"code": "session.interrupt()"}); !strings.Contains(got, "Interrupted by session.interrupt()") {
					t.Errorf("got %q", got)
				}
				if took := time.Since(begin); took > time.Second {
					t.Errorf("it took %v", took)
				}
				if got := <-first; !strings.Contains(cmp.Or(got, "-"), "Interrupted") && !strings.Contains(got, "has ended") {
					t.Errorf("the call itself says %q", got)
				}
				if log := o.log.String(); strings.Contains(log, "decision=\"allowed") {
					t.Errorf("the log is %s", log)
				}
			})
		})
	}
}

// Over HTTP each client is asked about its own cells.
func TestApprovalsOverHTTP(t *testing.T) {
	for _, version := range protocols {
		t.Run(version, func(t *testing.T) {
			e := &engine{}
			overHTTPWith(t, e, bridge.Options{Tools: guarded{}}, bridge.HTTPOptions{}, func(t *testing.T, url string) {
				say := map[string]string{"yes": "session", "no": "deny"}
				offices := map[string]*office{}
				for name, decision := range say {
					o := &office{}
					c, err := mcp.NewClient(&mcp.Implementation{Name: name}, o.options(always("accept", decision))).Connect(t.Context(),
						&mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true, MaxRetries: -1}, &mcp.ClientSessionOptions{ProtocolVersion: version})
					if err != nil {
						t.Fatal(err)
					}
					o.ClientSession = c
					offices[name] = o
				}
				for range 2 {
					for name, want := range map[string]string{"yes": "a:1 called", "no": "a:1 the user declined"} {
						if got := offices[name].run(t, object{"code": "approve a:1"}); !strings.HasPrefix(got, want) {
							t.Errorf("%s: %q", name, got)
						}
					}
				}
				// Where there are no sessions of the protocol each of these calls has one of its own.
				if n := len(offices["yes"].questions()); version == protocols[0] && n != 1 || version == protocols[1] && n != 2 {
					t.Errorf("%d questions", n)
				}
				for _, o := range offices {
					_ = o.Close()
				}
			})
		})
	}
}

// Only the ticket of the question brings an answer, and what a client makes up
// brings nothing.
func TestForgedAnswers(t *testing.T) {
	o := &office{}
	synctest.Test(t, func(t *testing.T) {
		b := bridge.New(bridge.Options{Engine: &engine{}, Image: "image", Tools: guarded{}})
		in, toBridge := io.Pipe()
		fromBridge, out := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- b.Serve(t.Context(), in, out) }()
		opts := o.options(always("accept", "once"))
		opts.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
		c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, opts).Connect(t.Context(),
			&mcp.IOTransport{Reader: fromBridge, Writer: toBridge}, &mcp.ClientSessionOptions{ProtocolVersion: protocols[1]})
		if err != nil {
			t.Fatal(err)
		}
		code := object{"code": "approve a:1"}
		call := func(state string, decision string) *mcp.CallToolResult {
			params := &mcp.CallToolParams{Name: "run_python", Arguments: code, RequestState: state}
			if decision != "" {
				params.InputResponses = mcp.InputResponseMap{"approval": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}}
			}
			r, err := c.CallTool(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		asked := call("", "")
		if !asked.NeedsInput() || asked.RequestState == "" {
			t.Fatalf("got %+v", asked)
		}
		for _, state := range []string{"x", "1.1.true.y", "0.1.true.y.", "1.0.true.y.", "1.1.true..", strings.Repeat("9", 600)} {
			if got := textOf(call(state, "once")); !strings.Contains(got, "none of this server's") {
				t.Errorf("%.30q: %q", state, got)
			}
		}
		// A guess is a call that waits, and is asked itself: the old ticket is void then.
		again := call("1.1.true.0123456789abcdef.", "session")
		if !again.NeedsInput() || again.RequestState == asked.RequestState {
			t.Fatalf("got %+v", again)
		}
		late := call(asked.RequestState, "session")
		if !late.NeedsInput() {
			t.Fatalf("the late answer: %+v", late)
		}
		if got := textOf(call(late.RequestState, "deny")); got != "a:1 the user declined" {
			t.Errorf("the answer: %q", got)
		}
		if got := textOf(call(late.RequestState, "once")); !strings.Contains(got, "cell 1 has ended") {
			t.Errorf("the answer again: %q", got)
		}
		_ = c.Close()
		_ = toBridge.Close()
		<-served
		b.Close()
		_ = out.Close()
	})
}
