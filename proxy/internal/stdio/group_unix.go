//go:build unix

package stdio

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A group is a process group led by a guard: a shell that does nothing but
// wait for the end of a pipe that we hold, and then kills its own group. So the
// server and everything it started die with us however we die, kill -9
// included, and as long as the guard is not reaped the group's id cannot become
// somebody else's.
//
// PR_SET_PDEATHSIG would reach the server alone (not the node behind npx), on
// Linux alone, and fires when the thread that forked it ends.
type group struct {
	guard *exec.Cmd
	hold  *os.File // the guard lives until this is closed
}

const guardScript = `trap "" HUP INT TERM; read -r _; kill -KILL 0`

func newGroup() (*group, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	guard := exec.Command("/bin/sh", "-c", guardScript, "mcp-bridge-guard") //nolint:noctx // lives as long as its server
	guard.Dir = "/"
	guard.Env = []string{}
	guard.Stdin = r
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := guard.Start(); err != nil {
		_ = w.Close()
		return nil, err
	}
	return &group{guard: guard, hold: w}, nil
}

// member returns the attributes of a process that is born into the group.
func (g *group) member() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: g.guard.Process.Pid}
}

// terminate asks every process of the group to end. The guard ignores it.
func (g *group) terminate(*os.Process) { _ = syscall.Kill(-g.guard.Process.Pid, syscall.SIGTERM) }

// kill ends every process of the group, the guard too.
func (g *group) kill(*os.Process) { _ = syscall.Kill(-g.guard.Process.Pid, syscall.SIGKILL) }

// end reaps the guard, which must have been killed or have no company left, and
// waits a moment for the company: killed processes die in their own time.
func (g *group) end() {
	_ = g.hold.Close()
	_ = g.guard.Wait()
	const step = 2 * time.Millisecond
	for waited := time.Duration(0); waited < reapGrace; waited += step {
		if syscall.Kill(-g.guard.Process.Pid, 0) != nil {
			return
		}
		time.Sleep(step)
	}
}
