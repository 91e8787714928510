package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Listener waits for a sandbox's two connections.
type Listener struct {
	unix *net.UnixListener
	path string
	once func() error
}

// Listen creates the socket named name in d.Socket, which the sandbox may connect to.
//
// The kernel tells the path it was bound by to whoever connects (/proc/net/unix),
// and has no room for more than 107 bytes: so the directory is named by a
// descriptor.
func (d *SandboxDir) Listen(name string) (*Listener, error) {
	dir, err := unix.Open(d.Socket, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d.Socket, err)
	}
	defer unix.Close(dir)
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir, name), Net: "unix"})
	if err != nil {
		return nil, err
	}
	socket.SetUnlinkOnClose(false) // by a name that soon means nothing
	l := &Listener{unix: socket, path: filepath.Join(d.Socket, name)}
	l.once = sync.OnceValue(l.close)
	if err := os.Chmod(l.path, 0o666); err != nil { //nolint:gosec // who may connect is decided by the directories above it and by AcceptPair
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close closes the socket and removes it from its directory. It is idempotent.
func (l *Listener) Close() error { return l.once() }

func (l *Listener) close() error {
	err := os.Remove(l.path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(l.unix.Close(), err)
}

// A Peer is the process at the other end of a connection, as the kernel
// recorded it when the connection was made.
type Peer struct{ PID, UID, GID int64 }

// AcceptPair returns the first two connections of a peer that allowed accepts,
// and closes all others. It ends with ctx.
func (l *Listener) AcceptPair(ctx context.Context, allowed func(Peer) error) (first, second *net.UnixConn, err error) {
	stop := context.AfterFunc(ctx, func() { _ = l.unix.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var conns []*net.UnixConn
	for refused := 0; len(conns) < 2; {
		c, err := l.unix.AcceptUnix()
		if err == nil {
			if err = checkPeer(c, allowed); err == nil {
				conns = append(conns, c)
				continue
			}
			c.Close()
			if refused++; refused < 16 {
				continue
			}
		}
		for _, c := range conns {
			c.Close()
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, nil, err
	}
	return conns[0], conns[1], nil
}

func checkPeer(c *net.UnixConn, allowed func(Peer) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var sockErr error
	if err := raw.Control(func(fd uintptr) {
		cred, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if sockErr != nil {
		return sockErr
	}
	return allowed(Peer{PID: int64(cred.Pid), UID: int64(cred.Uid), GID: int64(cred.Gid)})
}
