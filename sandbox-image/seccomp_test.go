package sandboximage_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// profile is the part of the engines' format that we use.
type profile struct {
	DefaultAction   string
	DefaultErrnoRet int
	Architectures   []string
	Syscalls        []rule
}

type rule struct {
	Names    []string
	Action   string
	ErrnoRet int
	Args     []arg
}

type arg struct {
	Index           int
	Value, ValueTwo uint64
	Op              string
}

func readProfile(t *testing.T) profile {
	t.Helper()
	data, err := os.ReadFile("seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	var p profile
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSeccompIsAnAllowlist(t *testing.T) {
	p := readProfile(t)
	if p.DefaultAction != "SCMP_ACT_ERRNO" || p.DefaultErrnoRet != 38 {
		t.Errorf("default is %s %d, want ENOSYS", p.DefaultAction, p.DefaultErrnoRet)
	}
	// With no architecture named, the filter is for the native one alone and
	// kills whoever uses another, such as int 0x80 on amd64.
	if len(p.Architectures) != 0 {
		t.Errorf("architectures %v, want none named", p.Architectures)
	}
	for _, r := range p.Syscalls {
		if r.Action != "SCMP_ACT_ALLOW" && (r.Action != "SCMP_ACT_ERRNO" || r.ErrnoRet == 0) {
			t.Errorf("%v: action %s %d", r.Names, r.Action, r.ErrnoRet)
		}
	}
}

// TestSeccompRules holds that no call is allowed by two rules of which one is
// wider, which would make the narrower one void.
func TestSeccompRules(t *testing.T) {
	type seen struct{ plain, narrowed bool }
	calls := map[string]seen{}
	for _, r := range readProfile(t).Syscalls {
		for _, name := range r.Names {
			s := calls[name]
			if s.plain || s.narrowed && len(r.Args) == 0 {
				t.Errorf("%s has a rule without arguments and another one", name)
			}
			calls[name] = seen{len(r.Args) == 0, len(r.Args) > 0}
		}
	}
}

func TestSeccompRefuses(t *testing.T) {
	p := readProfile(t)
	for _, name := range []string{
		"unshare", "setns", "clone3", "mount", "umount2", "move_mount", "open_tree", "fsopen", "pivot_root", "chroot",
		"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
		"keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd",
		"io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "io_submit",
		"name_to_handle_at", "open_by_handle_at", "seccomp", "memfd_secret", "vmsplice", "splice", "tee", "modify_ldt",
		"adjtimex", "clock_adjtime", "clock_settime", "settimeofday", "mbind", "set_mempolicy", "move_pages", "migrate_pages",
		"shmget", "semget", "msgget", "mq_open", "setuid", "setgid", "setresuid", "setresgid", "setgroups", "capset",
		"chown", "fchownat", "setxattr", "mlock", "mlockall", "sched_setscheduler", "fanotify_init", "syslog", "quotactl",
		"acct", "swapon", "reboot", "init_module", "finit_module", "kexec_load", "execveat", "cachestat", "mincore",
		"iopl", "ioperm", "uselib", "vhangup", "lookup_dcookie", "nfsservctl", "sethostname", "remap_file_pages",
	} {
		for _, r := range p.Syscalls {
			if slices.Contains(r.Names, name) && r.Action == "SCMP_ACT_ALLOW" {
				t.Errorf("%s is allowed", name)
			}
		}
	}
}

// TestSeccompArguments looks at the calls that are allowed in part.
func TestSeccompArguments(t *testing.T) {
	const newNamespaces = 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000 | 0x00020000
	equal := func(index int, value uint64) arg { return arg{Index: index, Value: value, Op: "SCMP_CMP_EQ"} }
	masked := func(index int, mask, value uint64) arg {
		return arg{Index: index, Value: mask, ValueTwo: value, Op: "SCMP_CMP_MASKED_EQ"}
	}
	want := map[string][]arg{
		"clone":             {masked(0, newNamespaces, 0)},
		"socket":            {equal(0, 1)},
		"socketpair":        {equal(0, 1)},
		"personality":       {equal(0, 0xffffffff)},
		"mknod":             {masked(1, 0xf000, 0x1000)},
		"mknodat":           {masked(2, 0xf000, 0x1000)},
		"prlimit64":         {equal(0, 0)}, // of the caller: not of PID 1, which has its uid
		"sched_setaffinity": {equal(0, 0)},
		"setpriority":       {equal(0, 0), equal(1, 0)},
	}
	for _, r := range readProfile(t).Syscalls {
		if r.Action != "SCMP_ACT_ALLOW" || len(r.Args) == 0 {
			continue
		}
		for _, name := range r.Names {
			switch name {
			case "ioctl":
				checkIoctl(t, r)
				continue
			case "madvise", "prctl": // all but one number, bit by bit: see package seccomp
				continue
			}
			if !slices.Equal(r.Args, want[name]) {
				t.Errorf("%s is allowed with %+v, want %+v", name, r.Args, want[name])
			}
			delete(want, name)
		}
	}
	for name := range want {
		t.Errorf("%s is not allowed at all", name)
	}
}

// checkIoctl demands single requests, compared in their low 32 bits: a filter
// sees 64, of which the kernel ignores the upper half.
func checkIoctl(t *testing.T, r rule) {
	t.Helper()
	if len(r.Args) != 1 || r.Args[0].Index != 1 || r.Args[0].Op != "SCMP_CMP_MASKED_EQ" || r.Args[0].Value != 0xffffffff {
		t.Errorf("ioctl is allowed with %+v", r.Args)
		return
	}
	if request := r.Args[0].ValueTwo; request == 0x5412 || request == 0x541c { // TIOCSTI, TIOCLINUX
		t.Errorf("ioctl %#x is allowed", request)
	}
}
