package main_test

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRunOnTerminal starts run as a person does who does not know it yet.
func TestRunOnTerminal(t *testing.T) {
	t.Parallel()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	fd := int(control.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	typed, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer typed.Close()
	s := setup{}
	cmd := s.command(t, "run")
	var stdout, stderr buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = typed, &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	bridges.add(cmd.Process.Pid)
	if _, err := control.WriteString("\x04"); err != nil { // ^D
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
	contains(t, stderr.String(), "run speaks MCP on stdin", "mcp-bridge exec")
	if stdout.String() != "" {
		t.Errorf("stdout has %q", stdout.String())
	}
}
