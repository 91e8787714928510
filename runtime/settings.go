package runtime

import (
	"encoding/json"
	"reflect"
)

// Settings are what an engine says of a container that the kernel does not show
// of the container's process.
type Settings struct {
	Privileged  bool
	LogDriver   string // "none" writes nothing to the host's disk
	Restart     string // policy; "" and "no" are never
	AutoRemove  bool   // the container goes with its program
	Healthcheck bool   // the engine runs a command in it from time to time
	Devices     int    // the host's, that were added
	Seccomp     []byte // the profile in JSON; nil where the engine does not tell
}

// settings demands what the spec wants, and that no setting is unknown.
func (a *attestation) settings(got *Settings) {
	if !a.Settings {
		return
	}
	if got == nil {
		a.differ("settings", "unknown", "known")
		return
	}
	a.equal("privileged", got.Privileged, false)
	a.equal("log driver", got.LogDriver, "none")
	if got.Restart != "" {
		a.equal("restart policy", got.Restart, "no")
	}
	a.equal("automatic removal", got.AutoRemove, true)
	if got.Healthcheck {
		a.differ("health check", "on", "off")
	}
	if got.Devices != 0 {
		a.differ("devices", "added", "none")
	}
	if told := got.Seccomp != nil || !a.UnknownProfile; told && !a.ours(got.Seccomp) {
		a.differ("seccomp profile", "another", "the given one")
	}
}

// ours reports whether a profile has the spec's rules.
func (a *attestation) ours(profile []byte) bool {
	given, err1 := decodeProfile(profile)
	wanted, err2 := decodeProfile(a.spec.Seccomp)
	return err1 == nil && err2 == nil && reflect.DeepEqual(given, wanted)
}

// A seccompProfile is the part of a profile that decides. Engines drop comments,
// and name the architecture where none is.
type seccompProfile struct {
	DefaultAction string
	Syscalls      []struct {
		Names    []string
		Action   string
		ErrnoRet *uint
		Args     []struct {
			Index           uint
			Value, ValueTwo uint64
			Op              string
		}
	}
}

func decodeProfile(data []byte) (seccompProfile, error) {
	var p seccompProfile
	err := json.Unmarshal(data, &p)
	for i, call := range p.Syscalls {
		if len(call.Args) == 0 {
			p.Syscalls[i].Args = nil
		}
	}
	return p, err
}
