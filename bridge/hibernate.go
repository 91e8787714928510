package bridge

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/store"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// What is saved of sessions is made and read by the Python in a sandbox; here it
// is bytes. A session has the latest that was saved, until it is saved again.
const (
	savedEntries = 64
	savedTotal   = 1 << 30
	savedFor     = 30 * 24 * time.Hour
	// savedHead is what a saved state may have beside the pickles that
	// Options.StateLimit bounds: the text of cells, and names.
	savedHead = 4 << 20
	maxCell   = 1 << 50

	loadChunk = 3 << 20 // bytes of a piece, before they are base64

	restoreTimeout = 20 * time.Second
	restoreGrace   = 3 * time.Second
	stopTimeout    = 10 * time.Second // to save before an idle sandbox is stopped
	stopGrace      = 2 * time.Second
	// Clients give a server 2 to 5 seconds to end.
	closeTurn    = 700 * time.Millisecond // for a running cell to end once it is interrupted
	closeTimeout = 2 * time.Second
	closeKeep    = time.Second // of these, for files
	closeGrace   = 800 * time.Millisecond

	// A session is saved, too, when it has been idle for a moment, so that
	// little is lost if the bridge is killed; at once if that takes no time, and
	// else after a longer rest.
	checkpointDelay = 2 * time.Second
	checkpointLimit = 1 << 20 // bytes
	checkpointTime  = time.Second
	checkpointRest  = 30 * time.Second // from one that was too much to one of everything
	checkpointGrace = 30 * time.Second // a kill would lose what it is to save
	checkpointShare = 20               // it may take one part in so many of the time
)

// A hibernation is what keeps a session when its sandbox goes.
type hibernation struct {
	area      *store.Area
	began     *store.Area // see noteBegan
	key       string
	hold      *store.Hold
	temporary bool // another bridge has the session's own key: not for the next one

	// Guarded by the session's turn:
	pending string      // unless it is "", there may be something to restore, and it says from before what
	saved   int         // the latest cell that is in what was saved
	lost    [][2]string // names that could not be saved then, and why
	large   int         // the cell after which there was too much for a quick checkpoint
	next    time.Time   // no checkpoint before
	cut     int         // the cell that was interrupted because the bridge ends

	mu       sync.Mutex
	transfer *transfer // nil unless a kernel saves or restores
	known    savedInfo // zero if nothing is saved
	off      bool      // by session.forget()
	begun    int       // the latest cell that has begun
	noting   bool      // begun is being written
}

// A transfer is a saved state on its way.
type transfer struct {
	loading bool
	data    []byte
	limit   int
}

// savedInfo stands before the saved bytes.
type savedInfo struct {
	Cell  int       `json:"cell"`
	Names int       `json:"names"`
	Time  time.Time `json:"time"`
	Size  int       `json:"size"`
	// Interrupted is the cell that ran when the bridge ended, or 0.
	Interrupted int `json:"interrupted,omitempty"`
}

// errNotKept is why nothing is saved where that is no trouble.
var errNotKept = errors.New("nothing is saved here")

// hibernate makes the session's hibernation, if there is to be one. It needs the
// turn.
func (s *session) hibernate() *hibernation {
	b := s.bridge
	if s.sleep != nil || !b.opts.Hibernate {
		return s.sleep
	}
	st, err := b.openStore()
	if err != nil {
		return nil // the log has it
	}
	h := &hibernation{key: s.savedKey(), pending: "the bridge was restarted"}
	h.began = openBegan(st)
	h.area = st.Area("sessions", store.Limits{
		Entries: savedEntries, EntryBytes: int64(b.opts.StateLimit + savedHead), TotalBytes: savedTotal,
	})
	if s.transient {
		h.key, h.temporary, h.pending = h.key+" "+rand.Text(), true, ""
	}
	h.hold, err = h.area.TryHold(h.key)
	if errors.Is(err, store.ErrBusy) {
		h.key, h.temporary, h.pending = h.key+" "+rand.Text(), true, ""
		h.hold, err = h.area.TryHold(h.key)
	}
	if err != nil {
		b.log.Warn("sessions are not saved", "error", err)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sleep = h
	return h
}

// savedKey is under which the session is saved: a name means another session in
// another directory, and to another client if it is the connection's own.
func (s *session) savedKey() string {
	kind, who := "named "+s.name, ""
	if s.name == "" {
		kind, who = "own", s.program
	}
	sum := sha256.Sum256([]byte(s.bridge.opts.Directory + "\x00" + who))
	return kind + " " + hex.EncodeToString(sum[:12])
}

// end lets go of what is saved. Nothing else may use h any more.
func (h *hibernation) end() error {
	if h == nil {
		return nil
	}
	var err error
	if h.temporary {
		err = h.discard()
	}
	return errors.Join(err, h.hold.Close())
}

// discard forgets what is saved.
func (h *hibernation) discard() error {
	h.setKnown(savedInfo{})
	if err := h.area.Delete(h.key); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

func (h *hibernation) setKnown(info savedInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = info
}

// status says what is saved, and whether more will be.
func (h *hibernation) status() (known savedInfo, off bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known, h.off
}

// begin makes h ready for a kernel's requests; finish returns what came of them.
func (h *hibernation) begin(t *transfer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.transfer = t
}

func (h *hibernation) finish() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.transfer
	h.transfer = nil
	return t.data
}

// A savedReport is what a kernel says of a save or a restore. Cells could have
// written it.
type savedReport struct {
	Names []string    `json:"names"`
	Count int         `json:"count"`
	Lost  [][2]string `json:"lost"`
	Whole bool        `json:"whole"` // nothing was left out for its size, or for want of time
	Short bool        `json:"short"` // something was for want of time
}

// ask has a kernel do what is no cell: save or restore, or keep files.
func ask(ctx context.Context, k *kernel, t task) (savedReport, error) {
	var r savedReport
	done, err := k.execute(ctx, t)
	if err != nil {
		return r, err
	}
	o := <-done
	switch {
	case o.err != nil:
		return r, o.err
	case o.Lost != "":
		return r, &lostError{shorten(o.Lost, maxReason, "nothing")}
	case o.Cell.Status != "ok" && o.Cell.Error != nil:
		return r, fmt.Errorf("%s", firstLine(o.Cell.Error.Type+": "+o.Cell.Error.Message))
	case o.Cell.Status != "ok" || o.Cell.Value == nil || json.Unmarshal([]byte(o.Cell.Value.Text), &r) != nil:
		return r, errors.New("the kernel did not say how it went")
	}
	return r, nil
}

// A lostError says that the REPL is gone.
type lostError struct{ reason string }

func (e *lostError) Error() string { return "the Python process ended: " + e.reason }

// save keeps what the session's cells have made. It needs the turn.
func (s *session) save(ctx context.Context, k *kernel, t task) (savedReport, error) {
	h := s.sleep
	if h == nil || k.isDead() {
		return savedReport{}, errNotKept
	}
	if _, off := h.status(); off {
		return savedReport{}, errNotKept
	}
	t.kind, t.cell = "save", s.cell
	h.begin(&transfer{limit: t.limit + savedHead})
	r, err := ask(ctx, k, t)
	data := h.finish()
	if err != nil {
		return r, err
	}
	if s.isCheckpoint() && (r.Short || !r.Whole && t.limit < s.bridge.opts.StateLimit) {
		return r, nil // what there is already may have more
	}
	if len(data) == 0 {
		err = h.discard()
	} else {
		info := savedInfo{Cell: s.cell, Names: r.Count, Time: time.Now().UTC().Truncate(time.Second), Size: len(data), Interrupted: h.cut}
		if err = h.put(h.key, append(append(mustJSON(info), '\n'), data...)); err == nil {
			h.setKnown(info)
		}
	}
	if err != nil {
		s.bridge.log.Warn("session not saved", "error", err)
		return r, errors.New("the bridge could not write it")
	}
	h.saved, h.lost = s.cell, r.Lost
	return r, nil
}

// put stores data, for which the oldest states of other sessions make room.
func (h *hibernation) put(key string, data []byte) error {
	for range savedEntries + 1 {
		err := h.area.Put(key, data)
		if !errors.Is(err, store.ErrFull) {
			return err
		}
		if int64(len(data)) > h.area.Limits().EntryBytes || !h.deleteOldest(h.area) {
			return err
		}
	}
	return store.ErrFull
}

// deleteOldest deletes another session's entry.
func (h *hibernation) deleteOldest(area *store.Area) bool {
	entries, err := area.List()
	if err != nil {
		return false
	}
	entries = slices.DeleteFunc(entries, func(e store.Entry) bool { return e.Key == h.key })
	if len(entries) == 0 {
		return false
	}
	oldest := slices.MinFunc(entries, func(a, b store.Entry) int { return a.Modified.Compare(b.Modified) })
	return area.Delete(oldest.Key) == nil
}

// expire deletes what nobody has used for long.
func (h *hibernation) expire() {
	entries, err := h.area.List()
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Key != h.key && time.Since(e.Modified) > savedFor {
			_ = h.area.Delete(e.Key)
		}
	}
}

// restore brings back what was saved, in a kernel that has run no cell. It needs
// the turn. What cannot be read is set aside, so that it is tried once. It does
// not look at ctx's end: a restore that is cut short would be no restore.
func (s *session) restore(ctx context.Context, k *kernel) {
	ctx = context.WithoutCancel(ctx)
	h := s.hibernate()
	if h == nil || h.pending == "" {
		return
	}
	why := h.pending
	h.pending = ""
	data, err := h.area.Get(h.key)
	if errors.Is(err, store.ErrNotFound) {
		h.expire()
		_ = h.began.Delete(h.key) // the numbers of cells begin anew
		return
	}
	line, state, ok := bytes.Cut(data, []byte("\n"))
	var info savedInfo
	if err == nil && (!ok || json.Unmarshal(line, &info) != nil || info.Cell < 0 || info.Cell > maxCell) {
		err = store.ErrDamaged
	}
	var r savedReport
	latest := 0
	if err == nil {
		latest = h.latestBegan()
		s.setCell(max(info.Cell, latest))
		s.setMuted(true) // what a __setstate__ prints belongs to no cell
		h.begin(&transfer{loading: true, data: state})
		t := task{kind: "restore", cell: s.cell, timeout: restoreTimeout, grace: restoreGrace, limit: s.bridge.opts.StateLimit}
		s.bridge.keepFiles(ctx, k, &t) // what is restored may import one
		r, err = ask(ctx, k, t)
		h.finish()
		s.setMuted(false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		h.saved = s.cell
		h.setKnown(info)
		s.notice = restoredText(why, gapText(info, latest), info.Time, r)
	case s.closed: // it is no fault of what was saved
	default:
		s.bridge.log.Warn("session not restored", "error", err)
		aside := errors.Join(h.put(h.key+" failed", data), h.discard())
		if aside != nil {
			s.bridge.log.Warn("what was not restored is not set aside", "error", aside)
		}
		s.notice = fmt.Sprintf("Note: what was saved of this session before %s could not be restored: %s. %s.",
			why, firstLine(modelText(err)), s.bridge.goneText())
	}
}

func (s *session) setMuted(muted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = muted
}

// setCell has the numbers of cells go on from those of an earlier sandbox.
func (s *session) setCell(cell int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cell > s.cell {
		s.cell = cell
		s.outputs.skipTo(cell)
	}
}

// saveIdle is called when the session has been idle for a moment.
func (s *session) saveIdle() {
	select {
	case s.turn <- struct{}{}:
	default:
		return // a cell runs
	}
	s.mu.Lock()
	k, h := s.kernel, s.sleep
	var wait time.Duration
	if h != nil {
		wait = time.Until(h.next)
	}
	if s.closed || k == nil || h == nil || h.saved >= s.cell || wait > 0 {
		if wait > 0 && !s.closed {
			s.pause.Reset(wait)
		}
		s.mu.Unlock()
		<-s.turn
		return
	}
	s.wg.Add(1)
	s.saving = k
	s.mu.Unlock()
	defer s.wg.Done()
	defer func() { <-s.turn }() // the session stays as idle as it was
	begin := time.Now()
	t := task{timeout: checkpointTime, grace: checkpointGrace, limit: min(checkpointLimit, s.bridge.opts.StateLimit-1)}
	full := h.large == s.cell
	if full {
		t.timeout, t.limit = stopTimeout, s.bridge.opts.StateLimit
	}
	r, err := s.save(outliving(), k, t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saving = nil
	if lost, ok := errors.AsType[*lostError](err); ok {
		s.notice = endedText(lost.reason)
	}
	now := time.Now()
	h.next = now.Add(checkpointShare * now.Sub(begin))
	if err == nil && !r.Whole && !full && !s.closed {
		h.large = s.cell
		s.pause.Reset(checkpointRest)
	}
	if s.idle != nil && !s.closed { // it may have found the turn taken
		s.idle.Reset(max(time.Until(s.used.Add(s.bridge.opts.IdleTimeout)), time.Millisecond))
	}
}

// isCheckpoint reports whether a save is one that nobody waits for.
func (s *session) isCheckpoint() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saving != nil
}

// yieldTurn ends a save that nobody waits for. It reports whether there is one.
func (s *session) yieldTurn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saving == nil {
		return false
	}
	s.saving.interrupt(s.cell)
	return true
}

// saveAndStop saves the session before its sandbox is stopped. It needs the
// turn, and returns what the next result has to say.
func (s *session) saveAndStop(k *kernel, why string) string {
	s.keepLast(outliving(), k, stopTimeout)
	gone := fmt.Sprintf("Note: the sandbox was stopped %s. %s.", why, s.bridge.goneText())
	h := s.sleep
	if h == nil {
		return gone
	}
	if h.saved < s.cell {
		_, err := s.save(outliving(), k, task{timeout: stopTimeout, grace: stopGrace, limit: s.bridge.opts.StateLimit})
		switch {
		case k.isDead():
			return s.bridge.replacedText(k.err)
		case errors.Is(err, errNotKept):
			return gone
		case err != nil:
			return gone + " The variables could not be saved: " + modelText(err) + "."
		}
	}
	if known, _ := h.status(); known.Time.IsZero() { // there was nothing to save
		if len(h.lost) > 0 {
			gone += " These could not be saved: " + listLost(h.lost) + "."
		}
		return gone
	}
	h.pending = "the sandbox was stopped " + why
	return ""
}

// saveLast saves the session as the bridge ends, and the files that it has still to
// send, if that does not take long.
func (s *session) saveLast(k *kernel) {
	s.mu.Lock()
	h, running := s.sleep, s.running
	s.mu.Unlock()
	saved := h != nil && !h.temporary
	if _, err := s.bridge.openFiles(); err != nil && !saved {
		return
	}
	s.yieldTurn()
	if running != nil {
		k.interrupt(running.cell)
	}
	select {
	case s.turn <- struct{}{}:
	case <-time.After(closeTurn):
		return
	}
	defer func() { <-s.turn }()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(outliving(), closeTimeout+closeGrace)
	defer cancel()
	defer context.AfterFunc(ctx, func() { k.fail(errClosing) })()
	s.keepLast(ctx, k, closeKeep)
	if !saved || h.saved >= s.cell {
		return
	}
	if running != nil && running.outcome.Interrupted != "" {
		h.cut = running.cell
	}
	_, err := s.save(ctx, k, task{timeout: closeTimeout - time.Since(begin), grace: closeGrace, limit: s.bridge.opts.StateLimit})
	if err != nil && !errors.Is(err, errNotKept) {
		s.bridge.log.Info("session not saved at the end", "error", err)
	}
}

// kernelSave takes a piece of what a kernel saves.
func (s *session) kernelSave(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	var piece struct {
		Offset int    `json:"offset"`
		Data   []byte `json:"data"`
	}
	if json.Unmarshal(params, &piece) != nil {
		return nil, &proxy.Error{Kind: proxy.Invalid, Message: "the request's parameters are malformed"}
	}
	h, done := s.transferring(false)
	if h == nil {
		return nil, errNoTransfer()
	}
	defer done()
	t := h.transfer
	if piece.Offset != len(t.data) {
		return nil, &proxy.Error{Kind: proxy.Invalid, Message: "the pieces do not follow each other"}
	}
	if len(t.data)+len(piece.Data) > t.limit {
		return nil, &proxy.Error{Kind: proxy.Full, Message: "what is saved is too large"}
	}
	t.data = append(t.data, piece.Data...)
	return json.RawMessage("{}"), nil
}

// kernelLoad answers with a piece of what was saved.
func (s *session) kernelLoad(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	var query struct {
		Offset int `json:"offset"`
	}
	h, done := s.transferring(true)
	if h == nil {
		return nil, errNoTransfer()
	}
	defer done()
	t := h.transfer
	if json.Unmarshal(params, &query) != nil || query.Offset < 0 || query.Offset > len(t.data) {
		return nil, &proxy.Error{Kind: proxy.Invalid, Message: "there is no such piece"}
	}
	return mustJSON(map[string]any{
		"data": t.data[query.Offset:min(query.Offset+loadChunk, len(t.data))], "size": len(t.data),
	}), nil
}

// transferring returns the hibernation if a kernel saves, or loads, just now. It
// is locked until done is called.
func (s *session) transferring(loading bool) (h *hibernation, done func()) {
	s.mu.Lock()
	h = s.sleep
	s.mu.Unlock()
	if h == nil {
		return nil, nil
	}
	h.mu.Lock()
	if h.transfer == nil || h.transfer.loading != loading {
		h.mu.Unlock()
		return nil, nil
	}
	return h, h.mu.Unlock
}

func errNoTransfer() error {
	return &proxy.Error{Kind: proxy.Invalid, Message: "only the kernel itself saves and loads, and not now"}
}

// restoredText is the notice of a restore, of bounded length.
func restoredText(why, gap string, when time.Time, r savedReport) string {
	if len(r.Names) == 0 && len(r.Lost) == 0 && gap == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[restored from before %s", why)
	if ago := time.Since(when); ago > time.Minute {
		fmt.Fprintf(&b, ", %s ago", roughly(ago))
	}
	b.WriteString(gap)
	b.WriteString(": ")
	b.WriteString(listNames(r.Names))
	if len(r.Lost) > 0 {
		b.WriteString(". Not restored: ")
		b.WriteString(listLost(r.Lost))
	}
	b.WriteString("]")
	return b.String()
}

const (
	toldNames = 20
	toldLost  = 12
	toldName  = 40  // characters
	toldWhy   = 120 // characters
)

func listNames(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	var told []string
	for _, name := range names[:min(len(names), toldNames)] {
		told = append(told, tidy(name, toldName))
	}
	text := strings.Join(told, ", ")
	if len(names) > toldNames {
		text += fmt.Sprintf(", … (%s names)", grouped(len(names)))
	}
	return text
}

func listLost(lost [][2]string) string {
	var told []string
	for _, item := range lost[:min(len(lost), toldLost)] {
		told = append(told, tidy(item[0], toldName)+" ("+tidy(item[1], toldWhy)+")")
	}
	text := strings.Join(told, ", ")
	if len(lost) > toldLost {
		text += fmt.Sprintf(", and %s more", grouped(len(lost)-toldLost))
	}
	return text
}

// tidy is text on one line, cut.
func tidy(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text[:min(len(text), 4*limit)]); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return strings.ToValidUTF8(text[:min(len(text), 4*limit)], "")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return tidy(line, toldWhy)
}

// roughly says how long ago something was.
func roughly(d time.Duration) string {
	switch {
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	}
}

// outliving is the context of what nobody waits for: it has bounds of its own.
func outliving() context.Context {
	return context.Background() //nolint:forbidigo // it outlives every call
}
