package main_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// callWith calls run_python with more in the request's _meta.
func (c *client) callWith(t *testing.T, meta mcp.Meta, args arguments) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	result, err := c.CallTool(ctx, &mcp.CallToolParams{Meta: meta, Name: "run_python", Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return replyOf(result)
}

// TestInterruptCode stops a cell that has outlasted its call.
func TestInterruptCode(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{args: []string{"--yield", "2"}})
	c.run(t, "import time; kept = 'kept'")
	r := c.call(t, arguments{"code": "print('begun')\nwhile True: time.sleep(0.1)", "timeout": 100})
	contains(t, r.text, "begun", "cell 2 is still running", "at most 100 s", "`session.interrupt()`")
	r = c.call(t, arguments{"code": "session.interrupt()"})
	contains(t, r.text, "KeyboardInterrupt", "Interrupted by session.interrupt(). Variables are kept.")
	if !r.isError {
		t.Error("an interrupted cell is no error")
	}
	c.wants(t, "session.interrupt()", "Nothing is running in this session.")
	c.wants(t, "kept", "'kept'")
}

// TestProgressInTheQueue tells a client what its call waits for.
func TestProgressInTheQueue(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 100)
	c := connectHearing(t, setup{}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			heard <- r.Params.Message
		},
	})
	c.run(t, "import os, time")
	first := make(chan struct{})
	go func() {
		defer close(first)
		_, _ = c.try(t.Context(), arguments{"code": "while True: time.sleep(0.1)", "timeout": 100})
	}()
	params := &mcp.CallToolParams{Name: "run_python", Arguments: arguments{"code": "1"}}
	params.SetProgressToken("token")
	second := make(chan struct{})
	go func() {
		defer close(second)
		for { // it may be the first to get there
			if r, err := c.CallTool(t.Context(), params); err != nil || r.IsError {
				return
			}
			select {
			case <-first:
				return
			default:
			}
		}
	}()
	select {
	case line := <-heard:
		contains(t, line, "waiting for cell ", " to end, for ")
	case <-time.After(patience):
		t.Error("the client heard nothing")
	}
	c.call(t, arguments{"code": "session.interrupt()"})
	<-first
	<-second
}

// TestContext passes data along with a cell, that no model has to write.
func TestContext(t *testing.T) {
	t.Parallel()
	c := connect(t, setup{})
	const key = "io.mcp-bridge/context"
	c.wants(t, "context", "{}")
	r := c.callWith(t, mcp.Meta{key: map[string]any{"user": map[string]any{"id": 7}, "tags": []string{"ü"}}}, arguments{"code": "context.user.id, context['tags']"})
	if r.isError || r.text != "(7, ['ü'])" {
		t.Errorf("the cell saw %q", r.text)
	}
	c.wants(t, "context", "{}") // it was for that cell
	for _, bad := range []struct {
		value any
		told  string
	}{
		{float64(1 << 60), "2**53"},
		{strings.Repeat("x", 5<<20), "at most 4194304"},
	} {
		r := c.callWith(t, mcp.Meta{key: bad.value}, arguments{"code": "context"})
		if !r.isError {
			t.Errorf("was accepted: %.200s", r.text)
		}
		contains(t, r.text, bad.told, "context")
	}
	c.wants(t, "context", "{}")
}

func TestExecContext(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data.json")
	if err := os.WriteFile(file, []byte(`{"n": [1, 12345678901234567890]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args  []string
		stdin string
		want  string
		code  int
	}{
		{[]string{"--context", file, "-c", "context.n"}, "", "[1, 12345678901234567890]\n", 0},
		{[]string{"--context-json", `"text"`, "-c", "context"}, "", "'text'\n", 0},
		{[]string{"--context", "-", "-c", "context"}, "[]", "[]\n", 0},
		{[]string{"--context", "-", "-"}, "[]", "not both", 2},
		{[]string{"--context", file, "--context-json", "1", "-c", "1"}, "", "not both", 2},
		{[]string{"--context", "/nonexistent/x", "-c", "1"}, "", "no such file", 2},
		{[]string{"--context-json", "{", "-c", "1"}, "", "not JSON", 2},
	} {
		s := setup{}
		cmd := s.command(t, append([]string{"exec"}, test.args...)...)
		cmd.Stdin = strings.NewReader(test.stdin)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(string(out), test.want) {
			t.Errorf("exec %q: exit %d, %s", test.args, code, out)
		}
	}
}
