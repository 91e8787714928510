package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// find starts the finder on a terminal; what it prints goes to stdout.
func find(t *testing.T, x *terminalOf, env []string, stdout *buffer) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary, "tools", "search")
	cmd.Env, cmd.Dir = env, t.TempDir()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = x.tty, stdout, x.tty
	x.start(t, cmd)
	return cmd
}

// sees has the finder draw its window anew until all parts are in it: otherwise it
// draws only what has changed.
func (x *terminalOf) sees(t *testing.T, parts ...string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		from := len(x.shown.String())
		x.types(t, "\x0c") // ^L
		time.Sleep(50 * time.Millisecond)
		text := x.shown.String()[from:]
		missing := ""
		for _, part := range parts {
			if !strings.Contains(text, part) {
				missing = part
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the window has no %q: %q", missing, text)
		}
	}
}

// ended waits for a program and returns its exit code.
func ended(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode()
		} else if err != nil {
			t.Error(err)
		}
		return 0
	case <-time.After(patience):
		t.Fatal("it has not ended")
		return -1
	}
}

// TestFinder finds a tool among 10,000 of hostile servers on a terminal that
// changes its size, and prints its call.
func TestFinder(t *testing.T) {
	t.Parallel()
	tools := github()
	for s := range 10 {
		name := fmt.Sprintf("many%d", s)
		for i := range 1000 {
			tools[name] = append(tools[name], discovery.Tool{
				Name: fmt.Sprintf("thing_%d_%d", s, i), Description: "Does thing. " + evil,
				InputSchema: json.RawMessage(`{"properties":{"x":{"type":"string"}}}`),
			})
		}
	}
	var stdout buffer
	x := newTerminal(t)
	cmd := find(t, x, remembered(t, tools), &stdout)
	x.sees(t, "10005 tools")
	x.types(t, "crate isue")
	x.sees(t, "> crate isue", "github.create_issue(title: str", "Create an issue.")
	x.resize(t, 30, 5)
	x.sees(t, "github.create_issue(title: …")
	x.resize(t, 1, 1)
	x.resize(t, 120, 40)
	x.sees(t, "github.create_issue(title: str", " │ ", "Create an issue.")
	x.types(t, "\x1b[B\x1b[A\r") // down and up
	if code := ended(t, cmd); code != exitOK || stdout.String() != "mcp-bridge tools call github.create_issue title=…\n" {
		t.Errorf("exit code %d, stdout %q", code, stdout.String())
	}
	lacks(t, x.shown.String(), "\x1b]0;", "\x1b[2J\u202e", "\u202e")
}

// TestFinderLeft leaves the finder while a server still lists its tools, and where
// there are none.
func TestFinderLeft(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		servers map[string]definition
		sees    string
		keys    string
	}{
		"no servers":    {map[string]definition{}, "no tools", "\x1b"},
		"slow server":   {map[string]definition{"slow": {Command: "sleep", Args: []string{"600"}}}, "servers still listing theirs: 1", "\x03"},
		"broken server": {map[string]definition{"broken": {Command: "/nonexistent"}}, "servers that failed: 1", "x\x1b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout buffer
			x := newTerminal(t)
			s := setup{servers: test.servers}
			cmd := s.command(t, "tools", "search")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = x.tty, &stdout, x.tty
			cmd.Env = append(cmd.Env, "TERM=xterm")
			x.start(t, cmd)
			x.sees(t, test.sees)
			x.types(t, test.keys)
			if code := ended(t, cmd); code != exitInterrupted || stdout.String() != "" {
				t.Errorf("exit code %d, stdout %q", code, stdout.String())
			}
			x.waits(t, 0, "\x1b[?1049l") // the user's own screen again
		})
	}
}

// TestHostileCatalogOnTerminal shows texts of hostile servers on a terminal, in a
// pager, and in a pipe that is to have colours.
func TestHostileCatalogOnTerminal(t *testing.T) {
	t.Parallel()
	env := remembered(t, github())
	for _, args := range [][]string{
		{"tools", "list"},
		{"tools", "list", "--json"},
		{"tools", "search", "create", "issue"},
		{"tools", "search", "create", "issue", "--json"},
		{"tools", "describe", "github.create_issue"},
		{"tools", "describe", "github.create_issue", "--detail=full"},
		{"tools", "describe", "github.create_issue", "--detail=full", "--pager=head"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t)
			x.resize(t, 60, 6)
			var piped buffer
			on := exec.Command(binary, args...)
			on.Stdin, on.Stdout, on.Stderr = x.tty, x.tty, x.tty
			through := exec.Command(binary, append(args, "--color=always")...)
			through.Stdout = &piped
			for _, cmd := range []*exec.Cmd{on, through} {
				cmd.Env, cmd.Dir = env, t.TempDir()
				if err := cmd.Run(); err != nil {
					t.Errorf("%v: %v", cmd.Args, err)
				}
			}
			x.waits(t, 0, "create_issue")
			for _, text := range []string{x.shown.String(), piped.String()} {
				lacks(t, text, "\x1b]", "\x07", "\x1b[2J", "\u202e")
			}
			contains(t, piped.String(), "create_issue")
		})
	}
}
