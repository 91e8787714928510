package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"sync"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

// An Engine starts sandboxes through a [Driver]. It is safe for concurrent use.
type Engine struct {
	opts Options
	fail Failures
	self local.Owner

	// turn is held while the driver and the fields below it are used: a mutex
	// that a context can stop waiting for.
	turn   chan struct{}
	home   *local.Home // nil until needed
	closed bool

	ids struct {
		sync.Mutex
		taken map[int64]bool
	}
}

// New returns an engine. It starts nothing yet.
func New(opts Options) (*Engine, error) {
	e := &Engine{opts: opts, fail: Failures(opts.Name), turn: make(chan struct{}, 1)}
	e.ids.taken = map[int64]bool{}
	var err error
	if e.self, err = local.Self(); err != nil {
		return nil, e.fail.New("open engine", fmt.Errorf("%w: %w", runtime.ErrUnavailable, err), "")
	}
	return e, nil
}

// Name implements [runtime.Engine].
func (e *Engine) Name() string { return e.opts.Name }

// Image returns the image that spec means by image.
func (e *Engine) Image(image string) string {
	if image == "" {
		return e.opts.DefaultImage
	}
	return image
}

// Sweep implements [runtime.Engine]. It also removes the host directories of
// dead owners.
func (e *Engine) Sweep(ctx context.Context) (int, error) {
	const op = "sweep"
	api, err := e.Connect(ctx)
	if err != nil {
		return 0, e.fail.Wrap(op, err)
	}
	all, err := api.List(ctx, local.LabelOwner, strconv.Itoa(e.self.UID))
	removed, errs := e.sweep(ctx, api, all, api.Remove)
	if err != nil { // the rest is swept all the same
		errs = append(errs, e.opts.Driver.Explain(op, "", err))
	}
	if v, ok := api.(Volumes); ok { // by now without their containers
		volumes, err := v.ListVolumes(ctx, local.LabelOwner, strconv.Itoa(e.self.UID))
		if err != nil {
			errs = append(errs, e.opts.Driver.Explain(op, "", err))
		}
		n, more := e.sweep(ctx, api, volumes, v.RemoveVolume)
		removed, errs = removed+n, append(errs, more...)
	}
	errs = append(errs, local.SweepHomes(e.opts.RuntimeDir, e.self))
	return removed, e.fail.Wrap(op, errors.Join(errs...))
}

// sweep removes those of all whose owners are dead.
func (e *Engine) sweep(ctx context.Context, api API, all []Listed, remove func(context.Context, string) error) (removed int, errs []error) {
	for _, one := range all {
		owner, ours := local.OwnerFromLabels(one.Labels)
		if !ours || !e.self.Outlived(owner) {
			continue
		}
		if api.Host().Remote && owner.Boot != e.self.Boot {
			continue // perhaps not of an earlier boot, but of another machine that uses this service, too
		}
		switch err := remove(ctx, one.ID); {
		case err == nil:
			removed++
			e.opts.Logger.InfoContext(ctx, "orphan removed", "sandbox_id", one.Labels[local.LabelSandbox], "owner_pid", owner.PID)
		case !errors.Is(err, ErrNotFound):
			errs = append(errs, err)
		}
	}
	return removed, errs
}

// Close implements [runtime.Engine].
func (e *Engine) Close() error {
	e.turn <- struct{}{}
	defer e.unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	e.opts.Driver.Close()
	if e.home != nil {
		return e.fail.Wrap("close", e.home.Remove())
	}
	return nil
}

// Connect returns a client of a service that answers.
func (e *Engine) Connect(ctx context.Context) (API, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.unlock()
	return e.opts.Driver.Connect(ctx, func() (string, error) {
		home, err := e.ensureHome()
		if err != nil {
			return "", err
		}
		return home.Path, nil
	})
}

// ensureHome returns the engine's directory, another one if somebody has removed
// it. e is locked.
func (e *Engine) ensureHome() (*local.Home, error) {
	if e.home == nil || e.home.Gone() {
		home, err := local.NewHome(e.opts.RuntimeDir, e.self)
		if err != nil {
			return nil, e.fail.New("create runtime directory", err, "name a directory of your own that others cannot enter")
		}
		e.home = home
	}
	return e.home, nil
}

// newSandboxDir makes the host's directory of a sandbox.
func (e *Engine) newSandboxDir(ctx context.Context, id string, spec runtime.Spec) (*local.SandboxDir, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	home, err := e.ensureHome()
	e.unlock()
	if err != nil {
		return nil, err
	}
	return home.NewSandboxDir(id, spec.Files, spec.Seccomp)
}

func (e *Engine) lock(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if e.closed {
		e.unlock()
		return runtime.ErrClosed
	}
	return nil
}

func (e *Engine) unlock() { <-e.turn }

// takeUID returns an id that no other sandbox of this engine has. Those of
// other processes are unlikely to have it, and nothing rests on it: it keeps
// apart what the kernel counts by user.
func (e *Engine) takeUID(first, last int64) (int64, error) {
	e.ids.Lock()
	defer e.ids.Unlock()
	for range 1000 {
		n, err := rand.Int(rand.Reader, big.NewInt(last-first+1))
		if err != nil {
			return 0, err
		}
		if uid := first + n.Int64(); !e.ids.taken[uid] {
			e.ids.taken[uid] = true
			return uid, nil
		}
	}
	return 0, errors.New("no free user id")
}

func (e *Engine) returnUID(uid int64) {
	e.ids.Lock()
	defer e.ids.Unlock()
	delete(e.ids.taken, uid)
}
