package bridge

import "context"

// until returns a context that is done when ended is closed, too. The caller
// must call stop, as of any context.
func until(ctx context.Context, ended <-chan struct{}) (_ context.Context, stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		select {
		case <-ended:
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}
