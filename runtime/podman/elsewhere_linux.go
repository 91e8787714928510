package podman

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// elsewhere says why this kernel's /proc does not show the containers of the
// service at uri, or "" if it does. A socket may be forwarded, from a virtual
// machine or by ssh; then podman is not the one who listens, and the other
// machine's name, memory and kernel tell it from this one. Should all of that be
// the same, no sandbox can start: what /proc shows would not be what was asked for.
func elsewhere(uri string, listener *unix.Ucred, info hostInfo) string {
	if scheme, _, _ := strings.Cut(uri, "://"); scheme != "unix" {
		return "the service is reached by " + scheme
	}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil || info.Host.Kernel != unix.ByteSliceToString(uts.Release[:]) {
		return "the service runs on another kernel"
	}
	if listener.Pid == 0 { // the id of a process in a parent of our PID namespace
		return "the service runs outside of this container"
	}
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", listener.Pid))
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
