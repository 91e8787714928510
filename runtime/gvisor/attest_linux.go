package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

// sentryTasks is how many tasks of the host a sandbox may have on top of the
// processes inside: the threads of runsc and of the Sentry, and those in which
// systrap runs the processes inside, of which there are two for each.
func sentryTasks(pids int64) int64 { return 64 + 2*pids }

// limit makes the control group around the whole sandbox.
func (s *sandbox) limit(ctx context.Context, home *local.Home) error {
	l := s.spec.Limits
	group, err := home.NewOwnCgroup(ctx, s.id, runtime.CgroupLimits{
		MemoryBytes: l.MemoryBytes, PIDs: l.PIDs + sentryTasks(l.PIDs), MilliCPUs: l.MilliCPUs(),
	})
	if err == nil {
		s.cgroup = group
		return nil
	}
	if errors.Is(err, local.ErrNoCgroup) && s.spec.AllowUnlimited {
		return nil // attest says what is not in force
	}
	s.engine.log.InfoContext(ctx, "no control group", "sandbox_id", s.id, "error", err)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // where it was is of no interest
	}
	return failures.New("limit sandbox", fmt.Errorf("%w: memory limit: this user cannot make control groups: %w", runtime.ErrUnsupported, err), noLimitsHint)
}

// attest compares what is in force with the spec: inside the sandbox by the
// word of its kernel, through the program's report; and what confines that
// kernel by the host's.
func (s *sandbox) attest(report runtime.Report) error {
	var err error
	if s.sentry, err = s.process.sentry(); err != nil {
		select {
		case <-s.exited:
			return s.exitError()
		default:
		}
		return failures.New("attest sandbox", fmt.Errorf("%w: %w", runtime.ErrUnsupported, err), "")
	}
	inside, err := insideFacts(report)
	if err != nil {
		return failures.New("attest sandbox", fmt.Errorf("%w: %w", runtime.ErrUnsupported, err), "")
	}
	outside, err := local.ReadFacts(s.sentry.PID)
	images, err2 := s.attestImages()
	err = errors.Join(err, err2)
	if !s.sentry.Alive() {
		return s.exitError()
	}
	if err != nil {
		return failures.New("attest sandbox", fmt.Errorf("%w: %w", runtime.ErrUnsupported, err), "the sandbox must be in this PID namespace, and /proc must show it")
	}
	inside.Cgroup = outside.Cgroup
	want := runtime.Expectation{
		Spec: s.spec, UID: int64(s.uid), GID: int64(s.uid), Transport: s.transport,
		OwnKernel: true, ExtraTasks: sentryTasks(s.spec.Limits.PIDs),
	}
	differences := slices.Concat(runtime.Attest(want, inside), sentryDifferences(outside), images)
	if !strings.Contains(report["version"], "gvisor") {
		differences = append(differences, runtime.Difference{Fact: "kernel", Got: "another one", Want: "gVisor"})
	}
	if len(differences) > 0 {
		return refuse(differences...)
	}
	s.warnUnlimited(outside.Cgroup)
	return nil
}

// insideFacts are what the report says of PID 1.
func insideFacts(report runtime.Report) (runtime.Facts, error) {
	if _, there := report["ns/cgroup"]; !there {
		// gVisor has no cgroup namespaces; which one it would be is not looked at.
		report = maps.Clone(report)
		report["ns/cgroup"] = "none"
	}
	return local.ReportFacts(report)
}

// sentryDifferences holds against the host's facts what must confine the
// Sentry, should somebody break out of the kernel that it is: nobody's user id,
// no capabilities, its own system call filter, namespaces of its own with
// nothing in them, and as its whole file system an empty directory. It shares
// the control group's namespace, but has no file system to see that by.
func sentryDifferences(got runtime.Facts) []runtime.Difference {
	var found []runtime.Difference
	differ := func(fact, got, want string) {
		found = append(found, runtime.Difference{Fact: "Sentry's " + fact, Got: got, Want: want})
	}
	if got.UID != nobody || got.GID != nobody {
		differ("uid and gid", fmt.Sprintf("%d and %d", got.UID, got.GID), "nobody")
	}
	if got.Caps != (runtime.Caps{}) {
		differ("capabilities", fmt.Sprintf("%x", got.Caps), "none")
	}
	if !got.NoNewPrivs {
		differ("no_new_privs", "off", "on")
	}
	if got.Seccomp != 2 {
		differ("seccomp mode", strconv.Itoa(got.Seccomp), "2")
	}
	for _, kind := range []string{"ipc", "mnt", "net", "pid", "user", "uts"} {
		if id := got.Namespaces[kind]; id == "" || id == got.HostNamespaces[kind] {
			differ(kind+" namespace", "the host's", "its own")
		}
	}
	if slices.ContainsFunc(got.Interfaces, func(name string) bool { return name != "lo" }) {
		differ("network interfaces", strings.Join(got.Interfaces, " "), "lo at most")
	}
	if len(got.Devices) > 0 {
		differ("devices", strings.Join(got.Devices, " "), "none")
	}
	for _, m := range got.Mounts {
		if m.Point != "/" || m.Type != "tmpfs" || !m.ReadOnly {
			differ("mount "+m.Point, m.String(), "nothing but a read-only tmpfs at /")
		}
	}
	return found
}

// nobody is the user id that a Sentry has, in its user namespace and, if we are
// root, outside of it.
const nobody = 65534

// warnUnlimited says which limits are not in force, where that is allowed.
func (s *sandbox) warnUnlimited(got runtime.CgroupLimits) {
	if !s.spec.AllowUnlimited {
		return
	}
	for _, d := range runtime.AttestLimits(s.spec, runtime.CgroupLimits{
		MemoryBytes: got.MemoryBytes, SwapBytes: got.SwapBytes, MilliCPUs: got.MilliCPUs, PIDs: min(got.PIDs, s.spec.Limits.PIDs),
	}) {
		s.engine.log.Warn("limit not in force", "sandbox_id", s.id, "fact", d.Fact, "got", d.Got, "want", d.Want)
	}
}
