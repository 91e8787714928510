package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the room for a path in sockaddr_un, without the final NUL.
const maxSocketPath = 107

// A Listener waits for a sandbox's two connections.
type Listener struct {
	unix *net.UnixListener
	path string
}

// Listen creates the socket named name in d.Socket, which the sandbox may connect to.
func (d *SandboxDir) Listen(name string) (*Listener, error) {
	path := filepath.Join(d.Socket, name)
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("path of the socket has %d bytes, at most %d are possible: choose a shorter runtime directory", len(path), maxSocketPath)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // who may connect is decided by the directories above it and by AcceptPair
		return nil, errors.Join(err, l.Close())
	}
	return &Listener{unix: l, path: path}, nil
}

// Close closes the socket and removes it from its directory.
func (l *Listener) Close() error { return l.unix.Close() }

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
