package container

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// destroy undoes what start has done, however far it came.
func (s *sandbox) destroy(ctx context.Context) error {
	var errs []error
	if s.socket != nil {
		s.socket.Close() // usually is already
	}
	if s.process != nil {
		s.kill(ctx)
	}
	for _, c := range []net.Conn{s.control, s.callback} {
		if c != nil {
			c.Close()
		}
	}
	if s.created {
		s.killed.Store(s.killed.Load() || s.unfollow != nil && !s.hasEnded())
		errs = append(errs, s.remove(ctx))
	}
	s.closeStdio()
	if s.process != nil {
		s.process.Close()
		s.unwatch()
		<-s.exited
	}
	if s.unfollow != nil {
		s.unfollow()
		<-s.exited
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Remove())
	}
	if s.uid != 0 {
		s.engine.returnUID(s.uid)
	}
	err := errors.Join(errs...)
	s.engine.opts.Logger.InfoContext(ctx, "sandbox closed", "sandbox_id", s.id, "exit_code", s.exit.Code, "error", err)
	return err
}

// closeStdio ends what reads the program's output.
func (s *sandbox) closeStdio() {
	switch {
	case s.mux != nil:
		s.mux.Close()
	case s.stdio != nil:
		s.stdio.Close()
		if s.transport != runtime.TransportStdio {
			<-s.stdio.ended
		}
	}
}

// kill ends the program at once; the kernel then ends all others in its PID
// namespace. Should that not work, removing the container will.
func (s *sandbox) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	s.killed.Store(s.process.Alive())
	if err := s.process.Kill(ctx); err != nil {
		s.engine.opts.Logger.WarnContext(ctx, "program not killed", "sandbox_id", s.id, "error", err)
		return
	}
	// A program that ended by itself: how is asked of the service, which needs the
	// container for the answer, but whoever closes a sandbox does not wait for it
	// where the service is busy.
	select {
	case <-s.exited:
	case <-time.After(exitGrace):
		s.unwatch()
	}
}

// remove removes the container, which the engine, too, does when its program
// has ended: they may get in each other's way for a moment.
func (s *sandbox) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	explain := s.engine.opts.Driver.Explain
	const attempts = 10
	for attempt := 1; ; attempt++ {
		api, err := s.engine.Connect(ctx)
		if err == nil {
			err = api.Remove(ctx, s.id)
		}
		if err == nil || errors.Is(err, ErrNotFound) {
			return nil
		}
		if attempt == attempts || errors.Is(err, runtime.ErrClosed) {
			return explain("remove container", "", err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return explain("remove container", "", err)
		}
	}
}
