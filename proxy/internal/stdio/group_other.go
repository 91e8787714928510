//go:build !unix

package stdio

import (
	"os"
	"syscall"
)

// A group is the server's process alone: there are no process groups here.
type group struct{}

func newGroup() (*group, error) { return &group{}, nil }

func (*group) member() *syscall.SysProcAttr { return nil }

func (*group) terminate(*os.Process) {}

func (*group) kill(p *os.Process) { _ = p.Kill() }

func (*group) end() {}
