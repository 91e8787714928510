package runtimetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

//go:embed syscalls.py
var syscalls string

// A Syscall is one system call to be made in a sandbox.
type Syscall struct {
	Number int
	Args   [6]uint64
	Int80  bool // by the 32-bit convention of x86, without arguments
}

// A SyscallOutcome is what came of it.
type SyscallOutcome struct {
	Errno  int  // 0 for success, and for a call that did not return
	Killed bool // the caller died of SIGSYS
	Died   bool // the caller died of another signal
}

// Syscalls makes the calls in the sandbox, each in a process of its own.
func (p *Peer) Syscalls(t testing.TB, calls []Syscall) []SyscallOutcome {
	t.Helper()
	const atOnce = 100 // so that an answer comes in time even if some block
	var outcomes []SyscallOutcome
	for len(calls) > 0 {
		some := calls[:min(atOnce, len(calls))]
		calls = calls[len(some):]
		var code strings.Builder
		code.WriteString(syscalls + "\nresult = [\n")
		for _, c := range some {
			how := "native"
			if c.Int80 {
				how = "int80"
			}
			args, err := json.Marshal(c.Args)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&code, "outcome(%s, %d, %s),\n", how, c.Number, args)
		}
		code.WriteString("]\n")
		got, ok := p.Eval(t, code.String()).([]any)
		if !ok || len(got) != len(some) {
			t.Fatalf("outcomes of %d calls: %v", len(some), got)
		}
		for _, o := range got {
			errno, _ := o.(float64)
			outcomes = append(outcomes, SyscallOutcome{Errno: int(errno), Killed: o == "killed", Died: o == "died"})
		}
	}
	return outcomes
}
