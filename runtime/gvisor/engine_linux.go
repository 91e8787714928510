package gvisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

var _ runtime.Engine = (*Engine)(nil)

// An Engine starts sandboxes on gVisor. It is safe for concurrent use.
type Engine struct {
	opts  Options
	log   *slog.Logger
	self  local.Owner
	store store

	mu     sync.Mutex
	home   *local.Home // nil until needed
	helper string      // runsc, "" until found
	closed bool

	snapshots snapshots // of mounted folders

	making sync.Mutex // one root file system at a time
	host   hostPython // the last that was used; guarded by making
}

// New returns an engine. It starts nothing yet.
func New(opts Options) (*Engine, error) {
	e := &Engine{opts: opts, log: opts.Logger}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.opts.RuntimeDir == "" {
		e.opts.RuntimeDir = local.DefaultRoot()
	}
	if err := runtime.CheckTransport(engineName, opts.Transport, runtime.TransportFD, runtime.TransportStdio); err != nil {
		return nil, err
	}
	if opts.Transport == "" || opts.Transport == runtime.TransportAuto {
		e.opts.Transport = runtime.TransportFD
	}
	dir := opts.CacheDir
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, failures.New("open engine", fmt.Errorf("no folder for root file systems: %w", err), "set HOME or XDG_CACHE_HOME")
		}
		dir = filepath.Join(cache, "mcp-bridge", "gvisor")
	}
	var err error
	if e.store.dir, err = filepath.Abs(dir); err != nil {
		return nil, failures.Wrap("open engine", err)
	}
	if e.self, err = local.Self(); err != nil {
		return nil, failures.New("open engine", fmt.Errorf("%w: %w", runtime.ErrUnavailable, err), "")
	}
	return e, nil
}

// Name implements [runtime.Engine].
func (*Engine) Name() string { return engineName }

// Check implements [runtime.Engine]. Without an image it looks for the host's
// Python, but does not make anything of it yet.
func (e *Engine) Check(ctx context.Context, image string) error {
	const op = "check"
	if _, err := e.runsc(op); err != nil {
		return err
	}
	if _, err := e.ensureHome(); err != nil {
		return failures.Wrap(op, err)
	}
	if image = e.image(image); image == "" {
		_, err := findPython(ctx, e.opts.Python)
		return err
	}
	return failures.Wrap(op, e.checkImage(image))
}

// image returns the image that a spec means by image.
func (e *Engine) image(image string) string {
	if image == "" {
		return e.opts.DefaultImage
	}
	return image
}

// runsc returns the path of the helper.
func (e *Engine) runsc(op string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return "", failures.Wrap(op, runtime.ErrClosed)
	}
	if e.helper == "" {
		path, err := findHelper(e.opts)
		if err != nil {
			return "", noHelper(op, err)
		}
		e.helper = path
	}
	return e.helper, nil
}

// ensureHome returns the engine's directory.
func (e *Engine) ensureHome() (*local.Home, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, runtime.ErrClosed
	}
	if e.home == nil {
		home, err := local.NewHome(e.opts.RuntimeDir, e.self)
		if err != nil {
			return nil, failures.New("create runtime directory", err, "name a directory of your own that others cannot enter")
		}
		e.home = home
	}
	return e.home, nil
}

// rootfs returns the root file system for an image, which it makes if need be.
func (e *Engine) rootfs(ctx context.Context, image string) (string, error) {
	e.making.Lock()
	defer e.making.Unlock()
	if image != "" {
		return e.imageRootfs(ctx, image)
	}
	if rootfs, ok := e.unchangedPython(); ok {
		return rootfs, nil
	}
	p, err := findPython(ctx, e.opts.Python)
	if err != nil {
		return "", err
	}
	key, err := p.key()
	if err != nil {
		return "", err
	}
	e.host = hostPython{python: p, key: key}
	if _, there := e.store.lookup(key); !there {
		e.log.InfoContext(ctx, "preparing the host's Python, which takes seconds the first time", "python", p.String())
	}
	return e.store.make(ctx, key, note{Names: []string{"host " + p.String()}}, func(b *builder) error { return buildPython(ctx, b, p) })
}

// hostPython is a Python of the host that a root file system was made of.
type hostPython struct {
	python python
	key    string
}

// unchangedPython returns the root file system of the last start, if it still
// is that of the host's Python: looking for one takes longer than the rest.
func (e *Engine) unchangedPython() (rootfs string, ok bool) {
	if e.host.key == "" {
		return "", false
	}
	if key, err := e.host.python.key(); err != nil || key != e.host.key {
		return "", false
	}
	return e.store.lookup(e.host.key)
}

// Sweep implements [runtime.Engine]. The processes of a dead owner have died
// with it; what can be left are control groups and directories.
func (e *Engine) Sweep(ctx context.Context) (int, error) {
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return 0, failures.Wrap("sweep", runtime.ErrClosed)
	}
	removed, err := local.SweepCgroups(ctx, e.self)
	err = errors.Join(err, local.SweepHomes(e.opts.RuntimeDir, e.self), e.store.sweep())
	return removed, failures.Wrap("sweep", err)
}

// Close implements [runtime.Engine].
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	e.snapshots.close()
	if e.home != nil {
		return failures.Wrap("close", e.home.Remove())
	}
	return nil
}
