package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// maxLateOutput bounds what is kept of output that came between two cells.
const maxLateOutput = 64 << 10

// A session runs the cells of one name, one after the other, in one sandbox at
// a time.
type session struct {
	bridge  *Bridge
	turn    chan struct{} // holds a token while a cell runs
	waiting chan struct{} // a token for each call that waits for its turn
	life    context.Context
	end     context.CancelFunc // ends life: interrupts whatever runs
	wg      sync.WaitGroup     // the turns

	mu      sync.Mutex
	closed  bool
	kernel  *kernel // nil before the first cell and after a death
	notice  string  // to be told with the next result
	cell    int     // number of the latest cell
	running *execution
	outputs transcripts
	late    []byte // output that came while no cell ran
}

// An execution is one cell, from the moment it has its turn.
type execution struct {
	cell    int
	output  *transcript // guarded by session.mu
	shown   int         // how much of output earlier calls have shown
	done    chan struct{}
	outcome outcome // set before done is closed
}

func newSession(b *Bridge) *session {
	life, end := context.WithCancel(context.Background()) //nolint:forbidigo // a session outlives the call that opens it; close ends it
	return &session{
		bridge:  b,
		turn:    make(chan struct{}, 1),
		waiting: make(chan struct{}, b.opts.MaxWaiting),
		life:    life,
		end:     end,
	}
}

// run runs a cell, or waits for the one that runs if there is no code. The
// error says why no cell was run.
func (s *session) run(ctx context.Context, req Request) (Result, error) {
	if req.Code == "" {
		e := s.current()
		if e == nil {
			return Result{}, errors.New("`code` is empty and nothing is running in this session: send code to run")
		}
		return s.await(ctx, e, nil), nil
	}
	if err := s.takeTurn(ctx); err != nil {
		return Result{}, err
	}
	e, k, err := s.begin(ctx, req)
	if err != nil {
		s.endTurn()
		return Result{}, err
	}
	return s.await(ctx, e, k), nil
}

func (s *session) current() *execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// takeTurn waits until no cell runs. Each turn taken must be ended.
func (s *session) takeTurn(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		<-s.turn
		return errClosing
	}
	s.wg.Add(1)
	return nil
}

func (s *session) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return fmt.Errorf("this session is busy and %d calls wait for it already: try later, or name another session",
			cap(s.waiting))
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cancelled while waiting for the session: %w", context.Cause(ctx))
	case <-s.life.Done():
		return errClosing
	}
}

func (s *session) endTurn() {
	<-s.turn
	s.wg.Done()
}

// begin starts a cell, and a sandbox for it where there is none. If it
// succeeds, the turn ends with the cell.
func (s *session) begin(ctx context.Context, req Request) (*execution, *kernel, error) {
	k, err := s.ensureKernel(ctx)
	if err != nil {
		return nil, nil, err
	}
	e := s.open()
	opts := &s.bridge.opts
	done, err := k.execute(ctx, e.cell, req.Code, req.Timeout, opts.Grace, opts.OutputLimit)
	if err != nil {
		s.setRunning(nil)
		return nil, nil, err
	}
	go s.conclude(e, k, done) // ends the turn, which s.wg counts
	return e, k, nil
}

// open makes the next cell the running one.
func (s *session) open() *execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cell++
	s.running = &execution{cell: s.cell, output: s.outputs.begin(s.cell), done: make(chan struct{})}
	return s.running
}

func (s *session) setRunning(e *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = e
}

// conclude records how a cell ended and ends its turn. A sandbox that died with
// the cell is gone before the next turn.
func (s *session) conclude(e *execution, k *kernel, done <-chan outcome) {
	defer s.endTurn()
	o := <-done
	s.mu.Lock()
	e.outcome = o
	s.running = nil
	if o.err != nil {
		s.kernel = nil
	}
	s.mu.Unlock()
	close(e.done)
	if o.err != nil {
		k.close()
	}
}

// await waits for a cell's end as long as a client is willing to, and returns
// what is to be shown. k is nil for a call that only waits: if its client
// leaves, the cell goes on.
func (s *session) await(ctx context.Context, e *execution, k *kernel) Result {
	yield := time.NewTimer(s.bridge.opts.Yield)
	defer yield.Stop()
	cancelled := ctx.Done()
	for {
		select {
		case <-e.done:
			return s.result(e)
		case <-yield.C:
			return s.progress(e)
		case <-cancelled:
			if k == nil {
				return s.progress(e)
			}
			k.interrupt(e.cell)
			cancelled = nil
		case <-s.life.Done():
			return failure(errClosing)
		}
	}
}

// ensureKernel returns the session's live kernel, starting one if need be. It
// needs the turn.
func (s *session) ensureKernel(ctx context.Context) (*kernel, error) {
	if k := s.liveKernel(); k != nil {
		return k, nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.life, stop)()
	k, err := startKernel(ctx, kernelOptions{
		engine:   s.bridge.opts.Engine,
		image:    s.bridge.opts.Image,
		limits:   s.bridge.opts.Limits,
		tools:    s.bridge.opts.Tools,
		handlers: map[string]proxy.Handler{"output/read": s.readOutput},
		output:   s.onOutput,
		lost:     s.onLost,
		log:      s.bridge.log,
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kernel = k // close finds it here, even if it has begun
	if s.closed {
		return nil, errClosing
	}
	return k, nil
}

// liveKernel returns the kernel, or nil after removing what is left of a dead
// one. It died between cells, so the next result has to say so.
func (s *session) liveKernel() *kernel {
	s.mu.Lock()
	k := s.kernel
	s.mu.Unlock()
	if k == nil {
		return nil
	}
	select {
	case <-k.dead:
	default:
		return k
	}
	k.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kernel = nil
	s.notice = fmt.Sprintf("Note: %v since the last cell and was replaced. All variables and files are gone.", k.err)
	return nil
}

// onLost hears that the REPL is gone. If a cell runs, its outcome will say so.
func (s *session) onLost(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		s.notice = fmt.Sprintf("Note: the Python process ended since the last cell: %s. All variables are gone; files in the workspace are kept.", reason)
	}
}

// onOutput takes what a sandbox printed.
func (s *session) onOutput(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.running.output.write(text)
		return
	}
	s.late = append(s.late, text[:min(len(text), maxLateOutput-len(s.late))]...)
}

// readOutput answers out[n].
func (s *session) readOutput(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	var query struct {
		Cell int `json:"cell"`
	}
	if err := json.Unmarshal(params, &query); err != nil {
		return nil, &proxy.Error{Kind: proxy.Invalid, Message: "out[n] takes the number of a cell"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := s.outputs.read(query.Cell)
	if err != nil {
		return nil, &proxy.Error{Kind: proxy.Invalid, Message: err.Error()}
	}
	return mustJSON(map[string]string{"text": text}), nil
}

// close ends what runs, removes the sandbox and waits for both.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	running := s.kernel
	s.mu.Unlock()
	s.end()
	if running != nil {
		running.close()
	}
	s.wg.Wait()
	if s.kernel != nil { // one that was being started; no turn is left to change it
		s.kernel.close()
	}
}
