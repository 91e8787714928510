package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

// A process is a running runsc. It is the parent of the sandbox's kernel, which
// gVisor calls the Sentry, and all of them die with this program: each has
// asked the kernel for SIGKILL when its parent dies.
type process struct {
	cmd    *exec.Cmd
	cgroup *local.OwnCgroup // nil where there is none
	stderr container.Tail   // of runsc and of the program
	done   chan struct{}    // closed when runsc is gone
	code   int              // its exit code, set before
}

// flags are those of every runsc. What is the default of this version is there
// all the same where the hardening rests on it.
func flags(state string) []string {
	return []string{
		"--root=" + state,
		"--platform=systrap",
		"--network=none",        // a loopback interface of its own
		"--host-uds=none",       // no socket of the host
		"--host-fifo=none",      // no named pipe
		"--overlay2=none",       // what is read-only stays so, and nothing gets onto the disk
		"--oci-seccomp=true",    // our profile, inside
		"--directfs=false",      // the Sentry runs as nobody, in a user namespace, without capabilities
		"--ignore-cgroups=true", // they are ours to make
		"--character-device-policy=emulated-only",
		"--gofer-network-namespace=new", // not one that stays mounted
		"--allow-flag-override=false",
		"--allow-suid=false",
		"--net-raw=false",
		"--debug=false",
		"--watchdog-action=log",
		"--host-settings=ignore",
	}
}

// containerID is what runsc calls a sandbox: one letter, for each has a state
// directory to itself, and the path of a socket in that has room for 107 bytes.
const containerID = "s"

// newProcess prepares runsc for the bundle in dir.
func newProcess(runsc, dir string, passed []*os.File) *process {
	p := &process{done: make(chan struct{}), code: -1}
	args := append(flags(filepath.Join(dir, "state")), "run", "--bundle="+dir)
	for i := range passed {
		const first = 3 // of those that are passed, here and in the sandbox
		args = append(args, fmt.Sprintf("--pass-fd=%d:%d", first+i, first+i))
	}
	p.cmd = exec.Command(runsc, append(args, containerID)...) //nolint:gosec,noctx // checkHelper has looked at it; it outlives the context of the start
	p.cmd.Env = []string{"PATH=/usr/bin:/bin"}
	p.cmd.Dir = "/"
	p.cmd.Stderr = &p.stderr
	p.cmd.ExtraFiles = passed
	p.cmd.WaitDelay = time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		unprivileged(p.cmd.SysProcAttr)
	}
	return p
}

// unprivileged gives runsc a user namespace in which it is nobody, with the
// capabilities that it uses while it sets up the sandbox. It can do so itself,
// with --rootless, but then the Sentry keeps some of them.
func unprivileged(attr *syscall.SysProcAttr) {
	attr.Cloneflags = syscall.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getegid(), Size: 1}}
	attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}
	attr.AmbientCaps = []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SYS_PTRACE, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP,
	}
}

// start starts runsc, in the control group if there is one.
func (p *process) start() error {
	started := make(chan error, 1)
	go p.run(started)
	return <-started
}

// run starts runsc and waits for its end. The kernel sends Pdeathsig when the
// thread that started a process ends, so this goroutine keeps its thread until
// then, and takes it along: it may be in the wrong control group.
func (p *process) run(started chan<- error) {
	goruntime.LockOSThread()
	defer close(p.done)
	err := p.startHere()
	started <- err
	if p.cmd.Process == nil {
		return
	}
	if err != nil { // it runs, but in the wrong place
		_ = p.cmd.Process.Kill()
	}
	_ = p.cmd.Wait() // how it ended is in its state
	if state := p.cmd.ProcessState; state != nil {
		p.code = exitCode(state)
	}
}

func (p *process) startHere() error {
	if p.cgroup != nil {
		return p.cgroup.Start(p.cmd)
	}
	return p.cmd.Start()
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// sentry returns the sandbox's kernel: the child of runsc that calls itself so.
func (p *process) sentry() (*local.Process, error) {
	for _, pid := range childrenOf(p.cmd.Process.Pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.HasPrefix(string(line), "runsc-sandbox\x00") {
			return local.OpenProcess(pid)
		}
	}
	return nil, errors.New("runsc has no sandbox process")
}

// childrenOf lists the children of a process of ours, whichever thread made them.
func childrenOf(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var children []int
	for _, list := range lists {
		data, err := os.ReadFile(list) //nolint:gosec // below /proc
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// kill ends everything and waits for it.
func (p *process) kill(ctx context.Context) error {
	if p.cmd.Process == nil {
		return nil
	}
	// By descriptors, taken before the parent goes, or none would know of them.
	var family []*local.Process
	for _, pid := range childrenOf(p.cmd.Process.Pid) {
		if child, err := local.OpenProcess(pid); err == nil {
			family = append(family, child)
		}
	}
	_ = p.cmd.Process.Kill() // it may be gone
	var errs []error
	for _, child := range family {
		errs = append(errs, child.Kill(ctx), child.Close())
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("runsc is still there: %w", context.Cause(ctx)))
	}
	return errors.Join(errs...)
}
