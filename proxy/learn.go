package proxy

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

const (
	// Of each tool the first few results are looked at, and then as many as cost
	// no more than this share of the time of its calls.
	alwaysObserved = 3
	observedShare  = 50 // one in 50: 2 %

	// saveDelay is how long after something new was learned it is saved.
	saveDelay = 10 * time.Second
)

// lessons are what was learned of the results of a server's tools.
type lessons struct {
	mu     sync.Mutex
	of     map[string]*lesson // nil until the catalog has been asked
	saving bool               // something in the background will
}

// A lesson is what was learned of one tool.
type lesson struct {
	discovery.Learned
	calls int
	took  time.Duration // the calls
	spent time.Duration // on learning
	new   bool          // not saved yet
}

// withLessons returns set with what was learned of its tools as their return
// types. The caller may hold the lock of the toolbox.
func (u *upstream) withLessons(set *toolset) *toolset {
	if !u.proxy.opts.LearnShapes {
		return set
	}
	l := &u.lessons
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = make(map[string]*lesson)
		if u.proxy.opts.Catalog != nil {
			for name, learned := range u.proxy.opts.Catalog.Shapes(u.server) {
				l.of[name] = &lesson{Learned: learned}
			}
		}
	}
	shapes := make(map[string]discovery.Learned, len(l.of))
	for name, lesson := range l.of {
		shapes[name] = lesson.Learned
	}
	return set.learned(shapes)
}

// learned returns the toolset with shapes of results, as far as they are about
// its tools as these are.
func (t *toolset) learned(shapes map[string]discovery.Learned) *toolset {
	newer := *t
	newer.docs = slices.Clone(t.docs)
	for name, learned := range shapes {
		if i, ok := t.learnable(name); ok && learned.Shape != nil && t.definitions[i] == learned.Definition {
			newer.docs[i] = t.docs[i].WithShape(learned.Shape)
		}
	}
	return &newer
}

// learnable returns the place of a tool, if its server leaves open what it returns.
func (t *toolset) learnable(name string) (int, bool) {
	i, ok := t.index[name]
	return i, ok && t.docs[i].Learnable()
}

// shapeOf returns what was learned of a tool, nil for nothing.
func (u *upstream) shapeOf(set *toolset, i int) *discovery.Shape {
	l := &u.lessons
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.of[set.tools[i].Name]; known != nil && known.Definition == set.definitions[i] {
		return known.Shape
	}
	return nil
}

// learn looks at the result of a call that took so long. It keeps nothing of it
// but its form.
func (u *upstream) learn(ctx context.Context, name string, result json.RawMessage, took time.Duration) {
	set := u.known()
	if !u.proxy.opts.LearnShapes || set == nil {
		return
	}
	i, ok := set.learnable(name)
	if !ok {
		return
	}
	learned := discovery.Learned{Definition: set.definitions[i]}
	begun := time.Now()
	if !u.due(name, learned.Definition, took) {
		return
	}
	learned.Shape = discovery.Observe(result, set.tools[i].Description+" "+string(set.tools[i].InputSchema))
	if learned.Shape, ok = u.note(name, learned, begun); !ok {
		return
	}
	u.tools.mu.Lock()
	if u.tools.set != nil {
		u.tools.set = u.tools.set.learned(map[string]discovery.Learned{name: learned})
	}
	u.tools.mu.Unlock()
	u.saveLater(ctx)
}

// due reports whether a result of the tool is worth its cost.
func (u *upstream) due(name, definition string, took time.Duration) bool {
	l := &u.lessons
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of[name]
	if known == nil || known.Definition != definition {
		known = &lesson{Learned: discovery.Learned{Definition: definition}}
		l.of[name] = known
	}
	known.calls++
	known.took += took
	return known.calls <= alwaysObserved || known.spent*observedShare <= known.took
}

// note keeps what was learned of one result since begun. It returns what is
// known of all, and whether that is new.
func (u *upstream) note(name string, learned discovery.Learned, begun time.Time) (*discovery.Shape, bool) {
	l := &u.lessons
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.of[name]
	if known == nil || known.Definition != learned.Definition {
		return nil, false // the tool has changed meanwhile
	}
	merged := known.Shape.Merged(learned.Shape)
	known.spent += time.Since(begun)
	if merged.Equal(known.Shape) {
		return nil, false
	}
	known.Shape, known.new = merged, true
	return merged, true
}

// saveLater saves what was learned soon, or when the proxy is closed.
func (u *upstream) saveLater(ctx context.Context) {
	l := &u.lessons
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.saving || u.proxy.opts.Catalog == nil {
		return
	}
	l.saving = u.proxy.background(ctx, func(ctx context.Context) {
		_ = sleep(ctx, saveDelay)
		u.saveLessons()
	})
}

func (u *upstream) saveLessons() {
	l := &u.lessons
	l.mu.Lock()
	l.saving = false
	learned := make(map[string]discovery.Learned)
	for name, lesson := range l.of {
		if lesson.new {
			learned[name] = lesson.Learned
			lesson.new = false
		}
	}
	l.mu.Unlock()
	set := u.known()
	if set == nil || len(learned) == 0 {
		return
	}
	if err := u.proxy.opts.Catalog.PutShapes(u.server, set.tools, learned); err != nil {
		u.logger.Warn("the forms of results were not saved", "error", err)
	}
}
