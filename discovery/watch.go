package discovery

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// A change counts when nothing has happened for so long: a save is several
	// steps, and often of several files.
	quietTime = 100 * time.Millisecond
	// maxQuiet is how long it may take until then.
	maxQuiet = time.Second
	// pollTime is how often everything is read where changes are not told.
	pollTime = 5 * time.Second
)

// Watch calls f with what Load finds, at once and whenever it is something
// else, until ctx is done. Calls come one after the other. It returns ctx's error.
//
// A definition that cannot be used any more (the file is damaged, or is just
// being written) stays what it was before, until it can, or is removed;
// Config.Problems says what is wrong, and Config.Kept which servers that concerns.
// Folders and files may come and go, and be symbolic links. Where the system does
// not tell of changes everything is read every few seconds.
func Watch(ctx context.Context, opts LoadOptions, f func(*Config)) error {
	var last *Config
	for {
		w := newWatcher(opts) // first, so that nothing that happens after loading is missed
		config := Load(opts)
		if last != nil {
			config.keep(last)
		}
		if last == nil || !config.same(last) {
			f(config)
		}
		last = config
		err := w.wait(ctx)
		w.close()
		if err != nil {
			return err
		}
	}
}

// A watcher sees changes of what can be read with some options, as things are
// when it is made.
type watcher struct {
	paths   *watchPaths
	system  *fsnotify.Watcher // nil if there is none
	partial bool              // it does not see everything
}

func newWatcher(opts LoadOptions) *watcher {
	w := &watcher{paths: pathsToWatch(opts)}
	system, err := fsnotify.NewWatcher()
	if err != nil {
		w.partial = true
		return w
	}
	w.system = system
	for _, dir := range w.paths.dirs {
		if system.Add(dir) != nil {
			w.partial = true
		}
	}
	return w
}

func (w *watcher) close() {
	if w.system != nil {
		_ = w.system.Close()
	}
}

// wait returns when something has changed and no more does, or with ctx's error.
func (w *watcher) wait(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	note := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.follow(ctx, note)
	}()
	err := settle(ctx, changed)
	cancel()
	<-done
	return err
}

// follow calls note for every change, until ctx is done.
func (w *watcher) follow(ctx context.Context, note func()) {
	var events chan fsnotify.Event
	var failures chan error
	var poll <-chan time.Time
	if w.system != nil {
		events, failures = w.system.Events, w.system.Errors
	}
	if w.partial {
		timer := time.NewTimer(pollTime)
		defer timer.Stop()
		poll = timer.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll:
			note()
		case event, ok := <-events:
			switch {
			case !ok:
				events = nil
			case w.paths.concerns(event.Name):
				note()
			}
		case err, ok := <-failures:
			switch {
			case !ok:
				failures = nil
			case errors.Is(err, fsnotify.ErrEventOverflow):
				note() // what happened is lost, and may be anything
			case poll == nil:
				poll = time.After(pollTime)
			}
		}
	}
}

// settle waits for a change, and until no more come, or there have been some for
// maxQuiet.
func settle(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	most := time.NewTimer(maxQuiet)
	defer most.Stop()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		select {
		case <-changed:
			quiet.Reset(quietTime)
		case <-quiet.C:
			return nil
		case <-most.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// keep puts back the definitions of last that cannot be read now, in the places
// where they were.
func (c *Config) keep(last *Config) {
	var unread []string // files and folders
	single := map[[2]string]bool{}
	for _, p := range c.Problems {
		switch {
		case errors.Is(p.Err, ErrSelf), errors.Is(p.Err, errDuplicate), errors.Is(p.Err, fs.ErrNotExist): // no bad edit
		case p.Server != "":
			single[[2]string{p.File, p.Server}] = true
		case p.File != "":
			unread = append(unread, p.File)
		}
	}
	if len(unread)+len(single) == 0 {
		return
	}
	index := make(map[string]int, len(c.Servers))
	for i, s := range c.Servers {
		index[s.Name] = i
	}
	for i, old := range last.Servers {
		if !single[[2]string{old.File, old.Name}] && !slices.Contains(unread, old.File) && !slices.Contains(unread, filepath.Dir(old.File)) {
			continue
		}
		at, there := index[old.Name]
		switch {
		case there && (c.Servers[at].File == old.File || comesFirst(c.Servers[at].File, old.File)):
			continue // this one could be read, or counts anyway
		case there:
			c.Servers[at] = old // a later file's counts only if this one is gone
		default:
			at = placeAfter(last.Servers[:i], index)
			c.Servers = slices.Insert(c.Servers, at, old)
			for j := at; j < len(c.Servers); j++ {
				index[c.Servers[j].Name] = j
			}
		}
		c.Kept = append(c.Kept, old.Name)
	}
	if len(c.Kept) > 0 {
		c.assignIdents()
	}
}

// comesFirst reports whether one file is read before another of the same folder.
func comesFirst(file, other string) bool {
	return filepath.Dir(file) == filepath.Dir(other) && file < other
}

// placeAfter is where what came after these goes now.
func placeAfter(before []Server, index map[string]int) int {
	for _, s := range slices.Backward(before) {
		if at, ok := index[s.Name]; ok {
			return at + 1
		}
	}
	return 0
}

// same reports whether two configurations say the same.
func (c *Config) same(other *Config) bool {
	return slices.EqualFunc(c.Servers, other.Servers, Server.Equal) && slices.Equal(c.Kept, other.Kept) &&
		slices.EqualFunc(c.Problems, other.Problems, func(a, b Problem) bool { return a.String() == b.String() })
}
