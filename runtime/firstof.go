package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
)

// A FirstOf is the first of several engines that works: the one on which the
// first sandbox starts, which is all the probing there is. It stays with that
// engine as long as it lives. It is safe for concurrent use.
type FirstOf struct {
	engines []Engine
	chosen  func(Engine, []*Error)
	probing chan struct{} // holds a token while a Start probes: others wait for what it finds

	mu      sync.Mutex
	choice  Engine // nil before the first sandbox
	lacking Engine // the first that missed its image when the last probing failed
}

var _ Engine = (*FirstOf)(nil)

// NewFirstOf returns an engine over others, in order of preference. It closes
// them. chosen is called once, with the engine that was taken and why those
// before it were not; it may be nil.
func NewFirstOf(engines []Engine, chosen func(e Engine, failed []*Error)) *FirstOf {
	if chosen == nil {
		chosen = func(Engine, []*Error) {}
	}
	return &FirstOf{engines: slices.Clone(engines), chosen: chosen, probing: make(chan struct{}, 1)}
}

// Name returns "auto".
func (*FirstOf) Name() string { return "auto" }

// Check returns nil if one of the engines can start sandboxes from image.
func (f *FirstOf) Check(ctx context.Context, image string) error {
	if e := f.taken(); e != nil {
		return e.Check(ctx, image)
	}
	_, _, err := firstThat(ctx, f.engines, "check", func(e Engine) error { return e.Check(ctx, image) })
	return err
}

// Start implements [Engine]. If no engine can start the sandbox, the error
// wraps a [*NoneError].
func (f *FirstOf) Start(ctx context.Context, spec Spec) (Sandbox, error) {
	if e := f.taken(); e != nil {
		return e.Start(ctx, spec)
	}
	select {
	case f.probing <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if e := f.taken(); e != nil { // another Start has found it
		<-f.probing
		return e.Start(ctx, spec)
	}
	defer func() { <-f.probing }()
	return f.probe(ctx, spec)
}

// probe starts a sandbox on the first engine that can.
func (f *FirstOf) probe(ctx context.Context, spec Spec) (Sandbox, error) {
	var box Sandbox
	e, failed, err := firstThat(ctx, f.engines, "start sandbox", func(e Engine) (err error) {
		box, err = e.Start(ctx, spec)
		return err
	})
	f.mu.Lock()
	f.choice, f.lacking = e, nil
	if i := slices.IndexFunc(failed, func(e *Error) bool { return errors.Is(e, ErrImageMissing) }); i >= 0 {
		f.lacking = f.engines[i]
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f.chosen(e, failed)
	return box, nil
}

func (f *FirstOf) taken() Engine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.choice
}

// Pull gets an image where the last Start missed nothing else, or, if none was
// tried, on the first engine that keeps images.
func (f *FirstOf) Pull(ctx context.Context, image string, progress func(PullProgress)) error {
	f.mu.Lock()
	candidates := slices.Concat([]Engine{f.choice, f.lacking}, f.engines)
	f.mu.Unlock()
	for _, e := range candidates {
		if store, ok := e.(interface {
			Pull(context.Context, string, func(PullProgress)) error
		}); ok {
			return store.Pull(ctx, image, progress)
		}
	}
	return &Error{Engine: f.Name(), Op: "pull " + image, Err: fmt.Errorf("%w: none keeps images", ErrUnavailable)}
}

// Sweep sweeps every engine there is. One that is not there has nothing to
// sweep, which is no error.
func (f *FirstOf) Sweep(ctx context.Context) (int, error) {
	counts, errs := make([]int, len(f.engines)), make([]error, len(f.engines))
	var wg sync.WaitGroup
	for i, e := range f.engines {
		wg.Go(func() { counts[i], errs[i] = e.Sweep(ctx) })
	}
	wg.Wait()
	total := 0
	for i, err := range errs {
		total += counts[i]
		if errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnsupported) || lacksTransport(err) {
			errs[i] = nil
		}
	}
	return total, errors.Join(errs...)
}

// Close closes every engine.
func (f *FirstOf) Close() error {
	var errs []error
	for _, e := range f.engines {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}

// firstThat tries engines until one can do something. Only what another engine
// may do better makes it go on; with a single engine the error is its own. The
// failures are those of the first engines, in order.
func firstThat(ctx context.Context, engines []Engine, op string, try func(Engine) error) (Engine, []*Error, error) {
	var failed []*Error
	for _, e := range engines {
		err := try(e)
		if err == nil {
			return e, failed, nil
		}
		if ctx.Err() != nil || len(engines) == 1 || !anothersChance(err) {
			return nil, failed, err
		}
		failed = append(failed, failureOf(e.Name(), op, err))
	}
	return nil, failed, noneOf(op, failed)
}

// failureOf is err as an error of an engine.
func failureOf(engine, op string, err error) *Error {
	if failure, ok := errors.AsType[*Error](err); ok {
		return failure
	}
	return &Error{Engine: engine, Op: op, Err: err}
}

// noneOf is the error of an operation that none of several engines can do.
func noneOf(op string, failed []*Error) error {
	none := &NoneError{Failures: failed}
	return &Error{Engine: "auto", Op: op, Err: none, Hint: none.hint(os.Geteuid() == 0)}
}

func anothersChance(err error) bool {
	for _, reason := range []error{ErrUnavailable, ErrImageMissing, ErrUnsupported, ErrNoProgram, ErrNoBinds} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return lacksTransport(err)
}

func lacksTransport(err error) bool {
	_, ok := errors.AsType[*transportError](err)
	return ok
}

// A NoneError says why none of several engines can do what was asked. It wraps
// what each of them said.
type NoneError struct {
	Failures []*Error // one of each engine, in order of preference
}

// NewNoneError returns the error of op, which failed on every engine: on each
// as errs say. With one engine it is that engine's own.
func NewNoneError(op string, errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	var failed []*Error
	for _, err := range errs {
		failed = append(failed, failureOf("engine", op, err))
	}
	return noneOf(op, failed)
}

func (e *NoneError) Error() string {
	reasons := make([]string, len(e.Failures))
	for i, f := range e.Failures {
		reasons[i] = f.Reason()
	}
	return "no engine can run sandboxes here: " + strings.Join(reasons, "; ")
}

// Unwrap returns the engines' errors.
func (e *NoneError) Unwrap() []error {
	errs := make([]error, len(e.Failures))
	for i, f := range e.Failures {
		errs[i] = f
	}
	return errs
}
