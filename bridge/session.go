package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// maxReason bounds what a sandbox says of itself, in characters.
const maxReason = 500

// A session runs the cells of one name, one after the other, in one sandbox at
// a time.
type session struct {
	bridge  *Bridge
	name    string // "" is the connection's own
	program string // that the client is, by its own word
	// transient sessions are not there any more for the next bridge.
	transient bool
	turn      chan struct{}  // holds a token while a cell runs
	waiting   chan struct{}  // a token for each call that waits for its turn
	reading   chan struct{}  // holds a token while out[n] is answered
	closing   chan struct{}  // closed by close
	wg        sync.WaitGroup // the turns
	calls     int            // being answered; guarded by bridge.mu

	mu      sync.Mutex
	closed  bool
	kernel  *kernel // nil before the first cell and after a death
	notice  string  // to be told with the next result
	cell    int     // number of the latest cell
	running *execution
	missed  *execution // ended while no call waited for it: told with the next result
	outputs transcripts
	upload  upload
	late    lateOutput
	muted   bool            // output is of no interest
	used    time.Time       // when the latest turn ended
	idle    *time.Timer     // stops the sandbox; nil before the first turn's end
	sleep   *hibernation    // nil until it is needed, and where nothing is saved
	saving  *kernel         // that saves though nobody waits for it
	pause   *time.Timer     // saves; nil before the first turn's end
	granted map[string]bool // tools that the user has allowed for this session: see toolOf

	telling sync.Mutex // held while the kernel is told of a cell's clock
}

// leastPatience is how long a call waits for its cell, or for an image, however
// long it has waited for something else: most cells are short.
const leastPatience = 5 * time.Second

// An execution is one cell, from the moment it has its turn.
type execution struct {
	cell    int
	timeout time.Duration
	started time.Time
	done    chan struct{}
	outcome outcome // set before done is closed

	// Guarded by session.mu, under which done is closed:
	output  *transcript
	shown   int     // how much of output earlier calls have shown
	waiting int     // calls
	kept    *Result // what there is to show, if the rest was dropped
	sent    bool    // to the kernel, which can be told to interrupt it
	stopped bool    // by interruptCode
	reset   bool    // by session.reset()

	questions questions

	standingTold bool // the kernel knows that the clock stands still; guarded by session.telling

	toReset bool // its code is resetCode
	more    bool // its code does not end with resetCode
}

// interruptCode is the code of a call that stops the running cell instead of
// waiting for its end. Nothing of it is run: code would have to wait its turn.
const interruptCode = "session.interrupt()"

func newSession(b *Bridge, name string) *session {
	return &session{
		bridge:  b,
		name:    name,
		turn:    make(chan struct{}, 1),
		waiting: make(chan struct{}, b.opts.MaxWaiting),
		reading: make(chan struct{}, 1),
		closing: make(chan struct{}),
		used:    time.Now(),
	}
}

// run runs a cell, or waits for the one that runs if there is no code. The
// error says why no cell was run.
//
// What a call waits for before its cell starts, its turn and a sandbox, is taken
// from the time after which it answers that the cell is still running, so that
// no client waits longer than it is told; it is not taken from the cell's.
func (s *session) run(ctx context.Context, req Request) (Result, error) {
	patience := s.bridge.opts.Yield
	until := time.Now().Add(patience)
	req.until = until
	switch {
	case req.reply != nil:
		return s.resume(ctx, req)
	case isInterrupt(req.Code):
		return s.interrupt(ctx, req), nil
	case req.Code == "":
		e := s.join(req.asker)
		if e == nil {
			return Result{}, errors.New("`code` is empty and nothing is running in this session: send code to run")
		}
		defer s.follow(e, req.Working)()
		return s.await(ctx, e, nil, req), nil
	}
	e, k, err := s.wait(ctx, req, patience)
	if err != nil {
		return Result{}, err
	}
	if least := time.Now().Add(min(patience, leastPatience)); until.Before(least) {
		req.until = least
	}
	req.owner = true
	defer s.follow(e, req.Working)()
	return s.await(ctx, e, k, req), nil
}

// wait waits for the session's turn and starts a cell.
func (s *session) wait(ctx context.Context, req Request, patience time.Duration) (*execution, *kernel, error) {
	w := startWaiting(req.Working, s.turnText)
	defer w.stop()
	if err := s.takeTurn(ctx, patience); err != nil {
		return nil, nil, err
	}
	w.next("starting a sandbox")
	req.Progress = w.pulling(req.Progress)
	e, k, err := s.begin(ctx, req)
	if err != nil {
		s.endTurn()
	}
	return e, k, err
}

func isInterrupt(code string) bool { return strings.TrimSpace(code) == interruptCode }

// waits reports whether code is no cell, but about the one that runs.
func waits(code string) bool { return code == "" || isInterrupt(code) }

// interrupt stops the running cell, waits for its end and shows it.
func (s *session) interrupt(ctx context.Context, req Request) Result {
	e := s.join(req.asker)
	if e == nil {
		return Result{Text: "Nothing is running in this session."}
	}
	if k := s.markStopped(e); k != nil {
		k.interrupt(e.cell)
	}
	s.stopAsking(e)
	defer s.follow(e, req.Working)()
	return s.await(ctx, e, nil, req)
}

// markStopped notes that e is to be stopped. It returns the kernel that has to
// be told, or nil if begin will see to it, or the cell has ended.
func (s *session) markStopped(e *execution) *kernel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != e {
		return nil
	}
	e.stopped = true
	if !e.sent {
		return nil
	}
	return s.kernel
}

// markSent notes that the kernel has e. It reports whether it was to be stopped
// before.
func (s *session) markSent(e *execution) (stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.sent = true
	return e.stopped
}

// join returns the cell that runs, or that ended unseen, for one more call to
// await, or nil if there is none.
func (s *session) join(a *asker) *execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.running
	if e == nil {
		e, s.missed = s.missed, nil
	}
	if e != nil {
		e.waiting++
		e.questions.asker = a
	}
	return e
}

// leave ends a call's wait for e. It reports whether e has ended, and if so the
// call is to show it.
func (s *session) leave(e *execution) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.waiting--
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// takeTurn waits until no cell runs, for a while. Each turn taken must be ended.
func (s *session) takeTurn(ctx context.Context, patience time.Duration) error {
	if err := s.enter(ctx, patience); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		<-s.turn
		return errClosing
	}
	s.wg.Add(1)
	for _, timer := range []*time.Timer{s.idle, s.pause} {
		if timer != nil {
			timer.Stop()
		}
	}
	return nil
}

func (s *session) enter(ctx context.Context, patience time.Duration) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	default:
	}
	s.yieldTurn()
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return fmt.Errorf("this session is busy and %d calls wait for it already: try later, or name another session",
			cap(s.waiting))
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cancelled while waiting for the session: %w", context.Cause(ctx))
	case <-timeout.C:
		return s.busy(patience)
	case <-s.closing:
		return errClosing
	}
}

// busy is the error of a call that has waited in vain for its turn.
func (s *session) busy(waited time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := "the session is busy"
	if e := s.running; e != nil {
		what = fmt.Sprintf("cell %d is still running, %s", e.cell, e.soFar())
	}
	return fmt.Errorf("%s, and this code was not run, having waited %s for its turn: send it again, "+
		"wait for the cell with an empty `code`, stop it with `%s` as the code, or name another session",
		what, inSeconds(waited), interruptCode)
}

func (s *session) endTurn() {
	s.mu.Lock()
	s.used = time.Now()
	if timeout := s.bridge.opts.IdleTimeout; timeout > 0 && s.kernel != nil && !s.closed {
		if s.idle == nil {
			s.idle = time.AfterFunc(timeout, s.stopIdle)
		}
		s.idle.Reset(timeout)
	}
	if s.sleep != nil && s.kernel != nil && !s.closed {
		if s.pause == nil {
			s.pause = time.AfterFunc(checkpointDelay, s.saveIdle)
		}
		s.pause.Reset(checkpointDelay)
	}
	s.mu.Unlock()
	<-s.turn
	s.wg.Done()
}

// begin starts a cell, and a sandbox for it where there is none. If it
// succeeds, the turn ends with the cell.
func (s *session) begin(ctx context.Context, req Request) (*execution, *kernel, error) {
	if asksReset(req) {
		if err := s.discardSaved(); err != nil {
			return nil, nil, err
		}
		s.renew(ctx)
	}
	e, k, err := s.send(ctx, req)
	if _, ok := errors.AsType[notSentError](err); ok { // the sandbox ended just now: as if it had been found so
		e, k, err = s.send(ctx, req)
	}
	return e, k, err
}

// send sends a cell to the session's sandbox, and starts one where there is none.
// If the error is a notSentError, nothing of the cell has run.
func (s *session) send(ctx context.Context, req Request) (*execution, *kernel, error) {
	k, err := s.ensureKernel(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	unused := k.unused()
	e := s.open(req.Timeout, req.asker)
	e.toReset = asksReset(req) // before it is sent
	s.noteBegan()
	e.more = !strings.HasSuffix(strings.TrimSpace(req.Code), resetCode)
	opts := &s.bridge.opts
	t := task{
		cell: e.cell, code: req.Code, context: req.Context, timeout: req.Timeout, grace: opts.Grace, valueLimit: opts.OutputLimit,
		mode: opts.OutputMode,
	}
	s.bridge.keepFiles(ctx, k, &t)
	done, err := k.execute(ctx, t)
	if err != nil {
		s.setEnded(e, outcome{err: err})
		if unused && k.isDead() { // nothing is lost with it, and nothing to be told
			k.close()
			s.dropKernel()
		}
		return nil, nil, err
	}
	if s.markSent(e) {
		k.interrupt(e.cell)
	}
	go s.conclude(e, k, done) // ends the turn, which s.wg counts
	return e, k, nil
}

func asksReset(req Request) bool { return strings.TrimSpace(req.Code) == resetCode }

// open makes the next cell the running one.
func (s *session) open(timeout time.Duration, a *asker) *execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cell++
	s.running = &execution{
		cell: s.cell, timeout: timeout, started: time.Now(),
		output: s.outputs.begin(s.cell), done: make(chan struct{}), waiting: 1,
		questions: questions{asker: a, changed: make(chan struct{})},
	}
	return s.running
}

func (s *session) setEnded(e *execution, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.outcome = o
	s.running = nil
	if e.waiting == 0 {
		s.missed = e
	}
	s.endAsking(e)
	close(e.done)
}

// conclude records how a cell ended and ends its turn. A sandbox that died with
// the cell is gone before the next turn.
func (s *session) conclude(e *execution, k *kernel, done <-chan outcome) {
	defer s.endTurn()
	o := <-done
	if e.toReset && !s.isReset(e, o) { // its Python is past doing it
		k.fail(errReset)
		o = outcome{err: errReset}
	}
	s.setEnded(e, o)
	if o.err != nil {
		k.close()
		s.upload.drop()
		s.dropKernel()
	}
}

func (s *session) dropKernel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kernel = nil
}

// await waits for a cell's end, until req.until, and returns what is to be shown. k
// is nil for a call that only waits: if its client leaves, the cell goes on. The
// call counts in e.waiting already. What the cell asks the user meanwhile goes to
// the call's client, and takes none of the time.
func (s *session) await(ctx context.Context, e *execution, k *kernel, req Request) Result {
	c := s.carry(e, req.asker)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer s.release(e, c)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	yield := time.NewTimer(time.Hour)
	defer yield.Stop()
	s.mu.Lock()
	stood := e.questions.stoodStill()
	s.mu.Unlock()
	cancelled := ctx.Done()
	for {
		q, changed := s.claim(e, c)
		switch {
		case q == nil:
		case req.asker.elicit != nil:
			asking.Go(func() { s.ask(ctx, e, q, c) })
		case req.round() >= maxRounds:
			return s.progressOrResult(ctx, e)
		case s.leave(e):
			return s.result(ctx, e)
		default:
			return s.handOver(e, q, c, &req)
		}
		yield.Stop()
		if left, standing := s.patienceLeft(e, req.until, stood); !standing {
			yield.Reset(left)
		}
		select {
		case <-e.done:
			s.leave(e)
			r := s.result(ctx, e)
			s.noteUnheard(ctx, e)
			return r
		case <-changed:
		case <-yield.C:
			return s.progressOrResult(ctx, e)
		case <-cancelled:
			if k == nil {
				return s.progressOrResult(ctx, e)
			}
			k.interrupt(e.cell)
			s.stopAsking(e)
			cancelled = nil
		case <-s.closing:
			s.leave(e)
			return failure(errClosing)
		}
	}
}

func (s *session) progressOrResult(ctx context.Context, e *execution) Result {
	if s.leave(e) {
		return s.result(ctx, e)
	}
	return s.progress(ctx, e)
}

// noteUnheard has the next result say what a client that has cancelled its call
// will not hear: that all variables are gone.
func (s *session) noteUnheard(ctx context.Context, e *execution) {
	o := &e.outcome
	if ctx.Err() == nil || o.err == nil && o.Lost == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.err != nil {
		s.notice = s.bridge.replacedText(o.err)
	} else {
		s.notice = endedText(o.Lost)
	}
}

func (b *Bridge) replacedText(why error) string {
	return fmt.Sprintf("Note: the sandbox was replaced: %v. %s.", why, b.goneText())
}

func endedText(reason string) string {
	return fmt.Sprintf("Note: the Python process ended since the last cell: %s. All variables are gone; files in the workspace are kept.", reason)
}

// ensureKernel returns the session's live kernel, starting one if need be. It
// needs the turn.
func (s *session) ensureKernel(ctx context.Context, req Request) (*kernel, error) {
	if k := s.liveKernel(); k != nil {
		return k, nil
	}
	ctx, stop := until(ctx, s.closing)
	defer stop()
	k, err := s.bridge.withImage(ctx, req, func() (*kernel, error) { return s.newKernel(ctx) })
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.kernel = k // close finds it here, even if it has begun
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, errClosing
	}
	s.restore(ctx, k)
	if !k.isDead() {
		return k, nil
	}
	k.close() // what was saved was too much for it, and is not tried again
	s.dropKernel()
	return s.ensureKernel(ctx, req)
}

// newKernel returns a spare sandbox, or starts one.
func (s *session) newKernel(ctx context.Context) (*kernel, error) {
	b := s.bridge
	ctx = withApprovals(ctx, s)
	user := kernelUser{
		tools:    b.opts.Tools,
		handlers: s.handlers(),
		output:   s.onOutput,
		lost:     s.onLost,
	}
	if k := b.pool.take(ctx, user); k != nil {
		return k, nil
	}
	place, err := b.place(ctx)
	if err != nil {
		return nil, err
	}
	k, err := b.startKernel(ctx, place)
	if err != nil {
		return nil, err
	}
	b.pool.recovered()
	if err := k.serve(ctx, user); err != nil {
		k.close()
		return nil, err
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
	if !k.isDead() {
		return k
	}
	k.close()
	s.upload.drop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kernel = nil
	s.notice = s.bridge.replacedText(k.err)
	return nil
}

// onLost hears that the REPL is gone, which no outcome tells.
func (s *session) onLost(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = endedText(shorten(reason, maxReason, "nothing"))
}

// onOutput takes what a sandbox printed, by a thread of that cell if it is not
// 0. A thread's cell is what the sandbox says, and no more than a name for it.
func (s *session) onOutput(text string, cell int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ofThread := 0 < cell && cell <= s.cell
	switch {
	case s.muted:
		return
	case s.running != nil && (!ofThread || cell == s.running.cell):
		s.running.output.write(text)
		return
	case !ofThread:
		cell = s.cell // the latest: it was after that
	}
	s.late.add(cell, ofThread, text)
	s.outputs.writeLate(cell, text)
}

// readOutput answers out[n].
//
// What it builds is large, and a cell may ask often: one at a time, and none for
// a cell that has gone.
func (s *session) readOutput(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	var query struct {
		Cell int `json:"cell"`
	}
	if err := json.Unmarshal(params, &query); err != nil {
		return nil, &proxy.Error{Kind: proxy.Invalid, Message: "out[n] takes the number of a cell"}
	}
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, &proxy.Error{Kind: proxy.Closed, Message: "cancelled"}
	}
	s.mu.Lock()
	text, err := s.outputs.read(query.Cell)
	s.mu.Unlock()
	if err != nil {
		return nil, &proxy.Error{Kind: proxy.Invalid, Message: err.Error()}
	}
	return mustJSON(map[string]string{"text": text}), nil
}

// close ends what runs, removes the sandbox and waits for both.
func (s *session) close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	if s.idle != nil {
		s.idle.Stop()
	}
	if s.pause != nil {
		s.pause.Stop()
	}
	running := s.kernel
	s.mu.Unlock()
	if running != nil {
		s.saveLast(running)
		running.close()
	}
	s.wg.Wait()
	if s.kernel != nil { // one that was being started; no turn is left to change it
		s.kernel.close()
	}
	s.upload.drop()
	if err := s.sleep.end(); err != nil {
		s.bridge.log.Warn("the session's saved state is not let go of", "error", err)
	}
}
