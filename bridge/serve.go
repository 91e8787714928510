package bridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

const (
	// drainTime is how long calls may go on after the client has closed its
	// end: long enough for what was piped in to be answered.
	drainTime = 2 * time.Second
	// maxCalls bounds the calls that are being answered: those that wait for the
	// same cell have no other bound.
	maxCalls = 1024
	// sessionKey is where a result's _meta has the name of the session, for
	// programs.
	sessionKey = "io.mcp-bridge/session"
	// settleTime is how long a message that was just read may take to become
	// a call.
	settleTime = 100 * time.Millisecond
)

// Serve speaks MCP over in and out until the client closes in, or ctx is done.
// Calls that run then are cut short. With the client's first message it begins
// to keep Options.Warm spare sandboxes. It closes neither the Bridge nor out.
func (b *Bridge) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err := b.server(ctx, ownScope).Run(ctx, stdio{in: in, out: out, drain: func() { b.drain(ctx) }})
	if errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// An untilDone logs nothing once it is done: that a server is ended by whoever
// wanted it to end is no error.
type untilDone struct {
	slog.Handler

	done func() error
}

func (h untilDone) Enabled(ctx context.Context, level slog.Level) bool {
	return h.done() == nil && h.Handler.Enabled(ctx, level)
}

func (h untilDone) WithAttrs(attrs []slog.Attr) slog.Handler {
	return untilDone{h.Handler.WithAttrs(attrs), h.done}
}

func (h untilDone) WithGroup(name string) slog.Handler {
	return untilDone{h.Handler.WithGroup(name), h.done}
}

// drain waits until no call runs any more, for a while.
func (b *Bridge) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	tick := time.NewTicker(settleTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if b.calls.Load() == 0 {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// A scope says which sessions the calls of a client mean.
type scope struct {
	client string // see Request.client
	issued bool   // names are given by us, with the answer to a call that has none
}

// ownScope is that of the only client there is.
func ownScope(*mcp.CallToolRequest) scope { return scope{} }

// instructions tell a client's model what the tool's description cannot.
func (b *Bridge) instructions() string {
	var targets []string
	for _, bind := range b.opts.Binds {
		targets = append(targets, bind.Target)
	}
	if len(targets) == 0 {
		return ""
	}
	return "In run_python, folders of the user's are at " + strings.Join(targets, ", ") + ", read-only."
}

// server returns an MCP server with the one tool. Calls end when ctx does.
func (b *Bridge) server(ctx context.Context, scopeOf func(*mcp.CallToolRequest) scope) *mcp.Server {
	capabilities := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
	if b.keepsFiles() {
		capabilities.Resources = &mcp.ResourceCapabilities{ListChanged: true}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "mcp-bridge", Version: b.opts.Version}, &mcp.ServerOptions{
		Logger:       slog.New(untilDone{b.log.Handler(), ctx.Err}),
		Capabilities: capabilities,
		Instructions: b.instructions(),
		PageSize:     filesPerPage,
	})
	if b.keepsFiles() {
		b.addResources(server)
	}
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			b.pool.begin(ctx) // there is a client
			return next(ctx, method, req)
		}
	})
	b.entry.show(ctx, b.tool, func(tool *mcp.Tool) {
		server.AddTool(tool, func(callCtx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			callCtx, cancel := context.WithCancel(callCtx)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return b.call(callCtx, req, scopeOf(req)), nil
		})
	})
	return server
}

// call answers tools/call. What is wrong with the arguments is told to the
// model, which can mend it, and not as a protocol error, which it never sees.
func (b *Bridge) call(ctx context.Context, req *mcp.CallToolRequest, in scope) *mcp.CallToolResult {
	defer b.calls.Add(-1)
	if b.calls.Add(1) > maxCalls {
		return b.toolResult(failure(fmt.Errorf("%d calls are being answered already, the most allowed: try later", maxCalls)))
	}
	request, err := b.request(ctx, req, in)
	if err != nil {
		return b.toolResult(failure(err))
	}
	issued := in.issued && request.Session == ""
	switch {
	case request.reply != nil && in.issued:
		request.Session, request.known = request.reply.session, true
	case issued:
		request.Session = newSessionName()
	}
	r := b.answer(ctx, request)
	if r.inquiry != nil {
		return r.inquiry.inputRequired()
	}
	if issued && r.Err == nil {
		r.Text += fmt.Sprintf("\n[session %q: pass it as `session` to go on with these variables]", request.Session)
		r.details.Session = request.Session
	}
	result := b.toolResult(r)
	if in.issued && r.Err == nil {
		result.Meta = mcp.Meta{sessionKey: request.Session}
	}
	return result
}

// newSessionName returns a name that nobody guesses.
func newSessionName() string { return strings.ToLower(rand.Text()) }

// request reads what a call asks for.
func (b *Bridge) request(ctx context.Context, req *mcp.CallToolRequest, in scope) (Request, error) {
	request, err := parseArguments(req.Params.Arguments)
	if err != nil {
		return request, err
	}
	if request.Context, err = contextOf(req.Params.Meta); err != nil {
		return request, err
	}
	if request.reply, err = replyOf(req); err != nil {
		return request, err
	}
	if in.issued && request.Session == "" && waits(request.Code) {
		return request, errors.New("a call that waits for a cell, or stops it, needs the `session` in which that runs")
	}
	request.client, request.known = in.client, in.issued && request.Session != ""
	request.program = programOf(req)
	request.asker = askerOf(req)
	if p := progressOf(ctx, req); p != nil {
		request.Progress, request.Working = p.pull, p.line
	}
	return request, nil
}

func (b *Bridge) answer(ctx context.Context, request Request) Result {
	r := b.Run(ctx, request)
	engineErr, ok := errors.AsType[*runtime.Error](r.Err)
	if ok && b.refusal.isNew(r.Err.Error()) { // the model is told less than the operator needs
		b.log.Warn("cell not run", "session_id", request.logged(), "error", r.Err, "hint", engineErr.Hint)
	}
	if r.Err == nil {
		b.refusal.isNew("")
	}
	return r
}

// programOf is what the client calls itself.
func programOf(req *mcp.CallToolRequest) string {
	if params := req.Session.InitializeParams(); params != nil && params.ClientInfo != nil {
		return params.ClientInfo.Name
	}
	return ""
}

// A lastText is what was last said of something, so that it is said once as
// long as it is the same.
type lastText struct {
	mu   sync.Mutex
	text string
}

func (l *lastText) isNew(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.text != text
	l.text = text
	return changed
}

const (
	// serverNames bounds how much of the description the servers' names take,
	// in tokens: with it the whole entry stays below 200.
	serverNames = 40
	longestName = 32 // characters
)

// tool returns the one entry of tools/list, with these servers in it.
func (b *Bridge) tool(servers []string) *mcp.Tool {
	return &mcp.Tool{
		Name: "run_python",
		Description: "Run Python in a persistent sandbox (no network). Its `tools` reach all MCP servers" +
			listServers(servers) + ": tools.search(\"send mail\") finds, tools.<server>.<tool>(arg=...) calls " +
			"and returns data; help(tools) explains. Variables persist. You see prints and the last expression.",
		InputSchema: mustJSON(map[string]any{
			"type": "object",
			"properties": map[string]any{
				"code":    map[string]any{"type": "string"},
				"timeout": map[string]any{"type": "number", "description": fmt.Sprintf("seconds, default %v, max %v", b.opts.Timeout.Seconds(), b.opts.MaxTimeout.Seconds())},
				"session": map[string]any{"type": "string", "description": "name of a separate sandbox"},
			},
			"required":             []string{"code"},
			"additionalProperties": false,
		}),
	}
}

// listServers names servers for the model, as many as fit.
func listServers(names []string) string {
	var b strings.Builder
	shown, tokens := 0, 0
	for _, name := range names {
		cost := tokensOf(name)
		if len(name) > longestName || tokens+cost > serverNames {
			continue
		}
		tokens += cost
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name)
		shown++
	}
	switch {
	case len(names) == 0:
		return ""
	case shown == len(names):
		return " (" + b.String() + ")"
	case shown == 0:
		return fmt.Sprintf(" (%d)", len(names))
	default:
		return fmt.Sprintf(" (%s, %d more)", b.String(), len(names)-shown)
	}
}

// tokensOf guesses, rather high, what a name and a comma cost: a token for two
// letters of a kind or three digits, and one for everything else.
func tokensOf(name string) int {
	count, run, last := 1, 0, 0
	for _, r := range name {
		kind, most := 0, 1
		switch {
		case 'a' <= r && r <= 'z':
			kind, most = 1, 2
		case 'A' <= r && r <= 'Z':
			kind, most = 2, 2
		case '0' <= r && r <= '9':
			kind, most = 3, 3
		}
		if run++; kind != last || run > most {
			count, run = count+1, 1
		}
		last = kind
	}
	return count
}
