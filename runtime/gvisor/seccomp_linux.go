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
	seccomp.Syscalls = append(initSignals(), seccomp.Syscalls...)
	return &seccomp, nil
}

// initSignals protects PID 1 from its own sandbox. Linux ignores signals from
// inside to the first process of a PID namespace, gVisor delivers them. The
// first rule that fits counts, and only half of the register is looked at, as by
// the call itself.
func initSignals() []specs.LinuxSyscall {
	eperm := uint(unix.EPERM)
	return []specs.LinuxSyscall{{
		Names:    []string{"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open"},
		Action:   specs.ActErrno,
		ErrnoRet: &eperm,
		Args:     []specs.LinuxSeccompArg{{Index: 0, Value: 1<<32 - 1, ValueTwo: 1, Op: specs.OpMaskedEqual}},
	}}
}

func refusal(action specs.LinuxSeccompAction, errno *uint) specs.LinuxSeccompAction {
	if action == specs.ActErrno && errno != nil && *errno == uint(unix.ENOSYS) {
		return specs.ActTrace
	}
	return action
}
