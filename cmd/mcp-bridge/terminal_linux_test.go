package main_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminalOf is a pseudo terminal, and what has been shown on it.
type terminalOf struct {
	control *os.File // the user's end
	tty     *os.File // the program's end
	shown   buffer
}

// newTerminal returns a terminal of 80 columns and 24 lines, gone with the test.
func newTerminal(t *testing.T) *terminalOf {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { control.Close() })
	raw, err := control.SyscallConn() // without Fd, which would make reads block for ever
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	if ctlErr := raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); ctlErr != nil || err != nil {
		t.Fatal(ctlErr, err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	term := &terminalOf{control: control, tty: tty}
	term.resize(t, 80, 24)
	go func() {
		chunk := make([]byte, 4096)
		for {
			n, err := control.Read(chunk)
			_, _ = term.shown.Write(chunk[:n])
			if err != nil {
				return
			}
		}
	}()
	return term
}

// resize gives the terminal another size, and tells who uses it.
func (x *terminalOf) resize(t *testing.T, columns, lines uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(x.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: lines}); err != nil {
		t.Fatal(err)
	}
}

// types sends what a person types.
func (x *terminalOf) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := x.control.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// waits until all parts have been shown after the first skip bytes, and returns how
// much has been shown by then.
func (x *terminalOf) waits(t *testing.T, skip int, parts ...string) int {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		text := x.shown.String()
		missing := ""
		for _, part := range parts {
			if !strings.Contains(text[skip:], part) {
				missing = part
			}
		}
		if missing == "" {
			return len(text)
		}
		if time.Now().After(deadline) {
			t.Fatalf("the terminal never showed %q; it has shown %q", missing, text[skip:])
		}
	}
}

// start starts a program that has this as its terminal.
func (x *terminalOf) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
}

// TestRunOnTerminal starts run as a person does who does not know it yet.
func TestRunOnTerminal(t *testing.T) {
	t.Parallel()
	x := newTerminal(t)
	s := setup{}
	cmd := s.command(t, "run")
	var stdout, stderr buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.tty, &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bridges.add(cmd.Process.Pid)
	x.types(t, "\x04") // ^D
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
	contains(t, stderr.String(), "run speaks MCP on stdin", "mcp-bridge exec")
	if stdout.String() != "" {
		t.Errorf("stdout has %q", stdout.String())
	}
}

// TestApproveOnTerminal shows what changed, and asks.
func TestApproveOnTerminal(t *testing.T) {
	t.Parallel()
	s := special(t)
	wasHarmless(t, &s)
	for _, c := range []struct{ answer, then string }{{"\n", "nothing is approved"}, {"y\n", "approved: 1 of special"}} {
		x := newTerminal(t)
		cmd := s.command(t, "servers", "approve", "special")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = x.tty, x.tty, x.tty
		x.start(t, cmd)
		x.waits(t, 0, "- Was harmless", "+ Gives back", "[y/N]")
		x.types(t, c.answer)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		x.waits(t, 0, c.then)
	}
	if got := shell(t, &s, "servers", "approve", "special"); got.code != 0 || !strings.Contains(got.stderr, "no tool of special changed") {
		t.Errorf("then: %+v", got)
	}
}
