package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// progressPause is how often a call that waits for an image is told how far it is.
const progressPause = 250 * time.Millisecond

// A puller is an engine that can get images from a registry.
type puller interface {
	Pull(ctx context.Context, image string, progress func(runtime.PullProgress)) error
}

// A download gets the image once for all who wait for it. It does not depend on
// any of them: who gives up finds it further on the next time.
type download struct {
	puller  puller // nil if the engine is none, or the image is not to be had
	image   string
	timeout time.Duration

	mu      sync.Mutex
	closed  bool
	stop    context.CancelFunc // ends the running pull
	running *pull              // nil if there is none
	wg      sync.WaitGroup     // the running pull
}

// A pull is one attempt to get the image.
type pull struct {
	done chan struct{}
	err  error // set before done is closed

	mu       sync.Mutex
	progress runtime.PullProgress // the latest
	count    int                  // of what there was
}

func newDownload(engine runtime.Engine, image string, timeout time.Duration) *download {
	d := &download{image: image, timeout: timeout}
	// The engine's own default image, and localhost, are in no registry.
	if p, ok := engine.(puller); ok && image != "" && !strings.HasPrefix(image, "localhost/") {
		d.puller = p
	}
	return d
}

// withImage starts a sandbox. If nothing but the image is missing, it gets the
// image and starts the sandbox then.
func (b *Bridge) withImage(ctx context.Context, req Request, start func() (*kernel, error)) (*kernel, error) {
	k, err := start()
	if b.image.puller == nil || !errors.Is(err, runtime.ErrImageMissing) {
		return k, err
	}
	b.log.InfoContext(ctx, "getting the missing image", "image", b.opts.Image)
	if err := b.image.await(ctx, max(time.Until(req.until), min(b.opts.Yield, leastPatience)), req.Progress); err != nil {
		return nil, err
	}
	return start()
}

// await waits for the image, for a while, and passes on how far it is.
func (d *download) await(ctx context.Context, patience time.Duration, progress func(runtime.PullProgress)) error {
	p, err := d.begin(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(progressPause)
	defer tick.Stop()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	told := 0
	tell := func() {
		if now, count := p.latest(); progress != nil && count > told {
			told = count
			progress(now)
		}
	}
	for {
		select {
		case <-p.done:
			tell() // even of one that took no time
			return p.err
		case <-ctx.Done():
			return fmt.Errorf("cancelled while getting the image: %w", context.Cause(ctx))
		case <-timeout.C:
			now, _ := p.latest()
			return fmt.Errorf("the sandbox's image is still being downloaded%s. Nothing was run: send the code again in a while", soFar(now))
		case <-tick.C:
			tell()
		}
	}
}

func soFar(p runtime.PullProgress) string {
	switch {
	case p.Total > 0:
		return fmt.Sprintf(" (%d of %d MiB so far)", p.Done>>20, p.Total>>20)
	case p.Done > 0:
		return fmt.Sprintf(" (%d MiB so far)", p.Done>>20)
	}
	return ""
}

// begin returns the running pull, started if there is none.
func (d *download) begin(ctx context.Context) (*pull, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosing
	}
	if d.running != nil {
		return d.running, nil
	}
	p := &pull{done: make(chan struct{})}
	ctx, d.stop = context.WithTimeoutCause(context.WithoutCancel(ctx), d.timeout,
		fmt.Errorf("the image was not there after %v", d.timeout))
	d.running = p
	d.wg.Go(func() { d.run(ctx, p) })
	return p, nil
}

func (d *download) run(ctx context.Context, p *pull) {
	err := d.puller.Pull(ctx, d.image, p.note)
	if err != nil && ctx.Err() != nil {
		err = &runtime.Error{
			Engine: engineOf(err), Op: "get image", Err: fmt.Errorf("%w: %w", runtime.ErrImageMissing, context.Cause(ctx)),
			Hint: "get it beforehand with `mcp-bridge image pull " + d.image + "`, or raise --pull-timeout",
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		err = errClosing
	}
	d.stop()
	d.running = nil
	p.err = err
	close(p.done)
}

// close ends the running pull and waits for it.
func (d *download) close() {
	d.mu.Lock()
	d.closed = true
	if d.running != nil {
		d.stop()
	}
	d.mu.Unlock()
	d.wg.Wait()
}

func (p *pull) note(progress runtime.PullProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress = progress
	p.count++
}

func (p *pull) latest() (runtime.PullProgress, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress, p.count
}

// engineOf is the name of the engine that an error is of.
func engineOf(err error) string {
	if e, ok := errors.AsType[*runtime.Error](err); ok {
		return e.Engine
	}
	return ""
}
