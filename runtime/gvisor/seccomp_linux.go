package gvisor

import (
	"encoding/json"
	"fmt"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// parseSeccomp reads a profile in the engines' format, which is that of the OCI
// configuration, and puts it into what gVisor understands.
//
// gVisor knows one error, EPERM, whatever errno a rule asks for. But a rule that
// asks for a tracer, where there is none, means ENOSYS, there as in Linux; and
// there is none, for the profile lets nobody trace. So ENOSYS, which makes the C
// library use an older call, stays what it is; any other error is EPERM.
func parseSeccomp(profile []byte) (*specs.LinuxSeccomp, error) {
	var seccomp specs.LinuxSeccomp
	if err := json.Unmarshal(profile, &seccomp); err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	if seccomp.DefaultAction != specs.ActErrno {
		return nil, fmt.Errorf("seccomp profile: its default action is %q, want %s", seccomp.DefaultAction, specs.ActErrno)
	}
	seccomp.DefaultAction = refusal(seccomp.DefaultAction, seccomp.DefaultErrnoRet)
	for i := range seccomp.Syscalls {
		s := &seccomp.Syscalls[i]
		s.Action = refusal(s.Action, s.ErrnoRet)
	}
	return &seccomp, nil
}

func refusal(action specs.LinuxSeccompAction, errno *uint) specs.LinuxSeccompAction {
	if action == specs.ActErrno && errno != nil && *errno == uint(unix.ENOSYS) {
		return specs.ActTrace
	}
	return action
}
