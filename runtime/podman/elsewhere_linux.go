package podman

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// probe connects to the unix socket at path once, and returns who listens. The
// bindings try three times with pauses in between, so they are not asked before
// this succeeds.
func probe(ctx context.Context, path string) (*listener, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var sockErr error
	if err := raw.Control(func(fd uintptr) {
		cred, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	if sockErr != nil {
		return nil, sockErr
	}
	return &listener{pid: int(cred.Pid), uid: int(cred.Uid)}, nil
}

// elsewhere says why this kernel's /proc does not show the containers of the
// service at uri, or "" if it does. A socket may be forwarded, from a virtual
// machine or by ssh; then podman is not the one who listens, and the other
// machine's name, memory and kernel tell it from this one. Should all of that be
// the same, no sandbox can start: what /proc shows would not be what was asked for.
func elsewhere(uri string, by *listener, info hostInfo) string {
	if scheme, _, _ := strings.Cut(uri, "://"); scheme != "unix" {
		return "the service is reached by " + scheme
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil || info.Host.Kernel != unix.ByteSliceToString(uts.Release[:]) {
		return "the service runs on another kernel"
	}
	if by.pid == 0 { // the id of a process in a parent of our PID namespace
		return "the service runs outside of this container"
	}
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", by.pid))
	if err != nil {
		return "the process that listens at its socket is gone"
	}
	name := strings.TrimSpace(string(comm))
	if name == "podman" || sameMachine(info, unix.ByteSliceToString(uts.Nodename[:])) {
		return ""
	}
	return fmt.Sprintf("%q listens at its socket, and it leads to another machine", container.Sanitize(name))
}

// sameMachine compares what the service says of its machine with this one.
func sameMachine(info hostInfo, hostname string) bool {
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err != nil {
		return false
	}
	return info.Host.Hostname == hostname && info.Host.MemTotal == s.Totalram*uint64(s.Unit)
}
