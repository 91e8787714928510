package docker

import (
	"context"
	"net"
	"strings"

	"github.com/docker/docker/api/types/system"
	"golang.org/x/sys/unix"
)

// elsewhere says why this kernel's /proc does not show the daemon's containers,
// or "" if it does.
func elsewhere(ctx context.Context, host string, info system.Info) (string, error) {
	path, local := strings.CutPrefix(host, "unix://")
	if !local {
		scheme, _, _ := strings.Cut(host, "://")
		return "the daemon is reached by " + scheme, nil
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return "", err
	}
	switch {
	case strings.Contains(info.OperatingSystem, "Docker Desktop"):
		return "the daemon runs in Docker Desktop's virtual machine", nil
	case info.KernelVersion != unix.ByteSliceToString(uts.Release[:]):
		return "the daemon runs on another kernel", nil
	}
	visible, err := peerVisible(ctx, path)
	if err != nil || visible {
		return "", err
	}
	return "the daemon runs outside of this container", nil
}

// peerVisible reports whether whoever made the socket has an id in our PID
// namespace. Those of its parents have none.
func peerVisible(ctx context.Context, path string) (bool, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return false, err
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return false, err
	}
	var cred *unix.Ucred
	var sockErr error
	if err := raw.Control(func(fd uintptr) {
		cred, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return false, err
	}
	if sockErr != nil {
		return false, sockErr
	}
	return cred.Pid != 0, nil
}
