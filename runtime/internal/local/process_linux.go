package local

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Process is another process, held by a descriptor: unlike a pid it never
// comes to mean a different one.
type Process struct {
	PID  int
	file *os.File
	done chan struct{} // closed when the process has exited or Close was called
	end  chan struct{} // closed when the watching goroutine has returned
}

// OpenProcess returns the process with the given id, which need not be a child.
// The caller must Close it.
func OpenProcess(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	p := &Process{
		PID: pid, file: os.NewFile(uintptr(fd), "pidfd"),
		done: make(chan struct{}), end: make(chan struct{}),
	}
	raw, err := p.file.SyscallConn()
	if err != nil {
		p.file.Close()
		return nil, err
	}
	go p.watch(raw)
	return p, nil
}

// watch waits until the descriptor becomes readable, which is when the process exits.
func (p *Process) watch(raw syscall.RawConn) {
	defer close(p.end)
	defer close(p.done)
	// The error can only be that Close closed the file.
	_ = raw.Read(func(fd uintptr) bool { return exited(int(fd)) })
}

func exited(fd int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // descriptors are small
		if err != unix.EINTR {
			return err != nil || n > 0
		}
	}
}

// Done is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// Alive reports whether the process has not exited yet.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
	}
	alive := false
	p.control(func(fd int) { alive = !exited(fd) })
	return alive
}

// Kill sends SIGKILL and waits for the exit or ctx.
func (p *Process) Kill(ctx context.Context) error {
	var err error
	p.control(func(fd int) { err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) })
	if err != nil && err != unix.ESRCH {
		return fmt.Errorf("kill process %d: %w", p.PID, err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close releases the descriptor. It does not touch the process.
func (p *Process) Close() error {
	err := p.file.Close()
	<-p.end
	return err
}

// control runs f on the descriptor, unless it is closed.
func (p *Process) control(f func(fd int)) {
	if raw, err := p.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
