// Package seccomp is the readable form of the profile that every sandbox runs
// under: which system calls are allowed, with which arguments, and why. The
// profile itself, ../seccomp.json, is generated from it.
//
// It is an allowlist: a call that nothing is said about does not exist.
package seccomp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:generate go run ./generate ../seccomp.json

// Actions and operators of the engines' format, as far as we use it.
const (
	Allow = "SCMP_ACT_ALLOW"
	Errno = "SCMP_ACT_ERRNO"

	equal       = "SCMP_CMP_EQ"
	notEqual    = "SCMP_CMP_NE"
	maskedEqual = "SCMP_CMP_MASKED_EQ"
)

// A Profile is in the JSON format that Podman and Docker read.
type Profile struct {
	DefaultAction   string `json:"defaultAction"`
	DefaultErrnoRet uint   `json:"defaultErrnoRet"`
	// Architectures stays empty: then the filter is for the machine's own
	// alone, and kills whoever calls by another ABI, such as int 0x80 or x32 on
	// x86-64. Naming both of ours would build two filters on every machine.
	Architectures []string `json:"architectures"`
	Syscalls      []Rule   `json:"syscalls"`
}

// A Rule says what becomes of calls to which all of its arguments apply.
type Rule struct {
	Comment  string   `json:"comment,omitempty"`
	Names    []string `json:"names"`
	Action   string   `json:"action"`
	ErrnoRet uint     `json:"errnoRet,omitempty"`
	Args     []Arg    `json:"args,omitempty"`
}

// An Arg compares one of a call's arguments, all 64 bits of it, with Value; or,
// masked with Value, with ValueTwo.
type Arg struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo,omitempty"`
	Op       string `json:"op"`
}

// Build returns the profile.
func Build() Profile {
	p := Profile{DefaultAction: Errno, DefaultErrnoRet: enosys, Architectures: []string{}}
	for _, g := range allowed {
		p.add(Rule{Comment: g.why, Names: strings.Fields(g.names), Action: Allow})
	}
	p.callerOnly()
	p.processes()
	p.sockets()
	p.devices()
	p.merging()
	p.terminals()
	for _, r := range refused {
		p.add(refuse(r.why, r.errno, strings.Fields(r.names)))
	}
	for _, g := range absent {
		p.add(refuse(g.why, enosys, strings.Fields(g.names)))
	}
	return p
}

func (p *Profile) add(rules ...Rule) { p.Syscalls = append(p.Syscalls, rules...) }

// callerOnly allows calls on the caller itself: the supervisor has the same
// uid, and must keep its limits, processors and priority.
func (p *Profile) callerOnly() {
	names := []string{"prlimit64", "sched_setaffinity"}
	p.add(
		allow("of the caller alone: the supervisor has the same uid", names, Arg{0, 0, 0, equal}),
		refuse("and of nobody else", eperm, names, Arg{0, 0, 0, notEqual}),
	)
	// PRIO_PROCESS and 0, the caller; PRIO_USER would be everybody here.
	names = []string{"setpriority"}
	p.add(
		allow("of the caller alone", names, Arg{0, 0, 0, equal}, Arg{1, 0, 0, equal}),
		refuse("and of nobody else", eperm, names, Arg{0, 0, 0, notEqual}),
		refuse("and of nobody else", eperm, names, Arg{1, 0, 0, notEqual}),
	)
}

// processes allows new processes and threads, but no new namespaces.
func (p *Profile) processes() {
	var all uint64
	for _, flag := range newNamespaces {
		all |= flag
	}
	names := []string{"clone"}
	p.add(allow("processes and threads", names, Arg{0, all, 0, maskedEqual}))
	for _, flag := range newNamespaces {
		p.add(refuse("but no namespaces", enosys, names, Arg{0, flag, flag, maskedEqual}))
	}
	const query = 0xffffffff
	names = []string{"personality"}
	p.add(
		allow("the execution domain can be asked for", names, Arg{0, query, 0, equal}),
		refuse("and not be changed", enosys, names, Arg{0, query, 0, notEqual}),
	)
}

// sockets allows AF_UNIX. Which of those can be reached is for the mount and
// network namespaces to say: a filter cannot see the address.
func (p *Profile) sockets() {
	const unix = 1
	names := []string{"socket", "socketpair"}
	p.add(
		allow("AF_UNIX is the only family", names, Arg{0, unix, 0, equal}),
		refuse("programs know what to make of this error", eafnosupport, names, Arg{0, unix, 0, notEqual}),
	)
}

// devices allows named pipes to be made, and nothing else that mknod makes.
func (p *Profile) devices() {
	const typeMask, fifo = 0xf000, 0x1000
	for _, call := range []struct {
		name string
		mode uint
	}{{"mknod", 1}, {"mknodat", 2}} {
		names := []string{call.name}
		p.add(allow("named pipes", names, Arg{call.mode, typeMask, fifo, maskedEqual}))
		for _, kind := range fileTypes {
			p.add(refuse("no devices, and open makes files", enosys, names, Arg{call.mode, typeMask, kind, maskedEqual}))
		}
	}
}

// merging keeps the kernel from joining equal pages of several sandboxes: how long
// a write to such a page takes tells what the others hold. The kernel looks at the
// lower 32 bits of these numbers, and there is no comparison for "not these bits":
// so a call passes for any bit that differs. No other number of either call ends
// in the same eight.
func (p *Profile) merging() {
	const low = 0xff
	for _, call := range []struct {
		name   string
		arg    uint
		number uint64
	}{{"madvise", 2, 12}, {"prctl", 0, 67}} { // MADV_MERGEABLE, PR_SET_MEMORY_MERGE
		names := []string{call.name}
		for bit := uint64(1); bit < low; bit <<= 1 {
			p.add(allow("all but one", names, Arg{call.arg, bit, ^call.number & bit, maskedEqual}))
		}
		p.add(refuse("memory shared with other sandboxes tells what they hold", einval, names, Arg{call.arg, low, call.number, maskedEqual}))
	}
}

// terminals allows single ioctl requests, compared in their low 32 bits: a
// filter sees 64, of which the kernel ignores the upper half.
func (p *Profile) terminals() {
	const low = 0xffffffff
	names := []string{"ioctl"}
	for _, c := range ioctls {
		p.add(allow(c.name, names, Arg{1, low, c.request, maskedEqual}))
	}
	for _, c := range typing {
		p.add(refuse(c.name+" types into a terminal", enosys, names, Arg{1, low, c.request, maskedEqual}))
	}
}

func allow(why string, names []string, args ...Arg) Rule {
	return Rule{Comment: why, Names: names, Action: Allow, Args: args}
}

func refuse(why string, errno uint, names []string, args ...Arg) Rule {
	return Rule{Comment: why, Names: names, Action: Errno, ErrnoRet: errno, Args: args}
}

// JSON returns the profile with one rule a line.
func (p Profile) JSON() ([]byte, error) {
	rules := p.Syscalls
	p.Syscalls = []Rule{}
	head, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Write(bytes.TrimSuffix(head, []byte("]\n}")))
	for i, r := range rules {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		separator := ","
		if i == len(rules)-1 {
			separator = ""
		}
		fmt.Fprintf(&out, "\n    %s%s", line, separator)
	}
	out.WriteString("\n  ]\n}\n")
	return out.Bytes(), nil
}

// A Decision is what the profile has in store for one call.
type Decision struct {
	Allowed bool
	Errno   uint // if not allowed
	Default bool // no rule applies
}

// Decide returns what becomes of a call by that name, which may be "" for a
// number that has none.
func (p Profile) Decide(name string, args [6]uint64) Decision {
	for _, r := range p.Syscalls {
		if slices.Contains(r.Names, name) && !slices.ContainsFunc(r.Args, func(a Arg) bool { return !a.applies(args) }) {
			return Decision{Allowed: r.Action == Allow, Errno: r.ErrnoRet}
		}
	}
	return Decision{Allowed: p.DefaultAction == Allow, Errno: p.DefaultErrnoRet, Default: true}
}

func (a Arg) applies(args [6]uint64) bool {
	switch got := args[a.Index]; a.Op {
	case equal:
		return got == a.Value
	case notEqual:
		return got != a.Value
	case maskedEqual:
		return got&a.Value == a.ValueTwo
	}
	return false
}
