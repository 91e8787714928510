//go:build unix

package stdio_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-bridge/mcp-bridge/proxy/internal/stdio"
)

func start(t *testing.T, script string) *stdio.Process {
	t.Helper()
	p, err := stdio.Start(stdio.Options{Command: "sh", Args: []string{"-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

func request(t *testing.T, params string) *jsonrpc.Request {
	t.Helper()
	id, err := jsonrpc.MakeID("1")
	if err != nil {
		t.Fatal(err)
	}
	return &jsonrpc.Request{ID: id, Method: "m", Params: []byte(params)}
}

func TestMessagesPassAndNoiseIsKept(t *testing.T) {
	p := start(t, `echo starting; cat; echo bye >&2`)
	for range 2 {
		if err := p.Conn().Write(t.Context(), request(t, `{"n":12345678901234567890}`)); err != nil {
			t.Fatal(err)
		}
		msg, err := p.Conn().Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := string(msg.(*jsonrpc.Request).Params); got != `{"n":12345678901234567890}` {
			t.Errorf("params came back as %s", got)
		}
	}
	if status := p.ExitStatus(); status != "" {
		t.Errorf("exit status of a running server is %q", status)
	}
	p.Stop()
	if got := p.Tail(); got != "starting\nbye\n" {
		t.Errorf("tail is %q", got)
	}
	if status := p.ExitStatus(); status != "exit status 0" {
		t.Errorf("exit status is %q: the server was not left to end by itself", status)
	}
}

func TestWriteToAServerThatDoesNotRead(t *testing.T) {
	p := start(t, `sleep 0.5; cat >/dev/null`)
	large := `"` + strings.Repeat("x", 1<<20) + `"`
	for range 2 { // the first is half sent, the second not at all
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := p.Conn().Write(ctx, request(t, large))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Write returned %v, want the deadline", err)
		}
	}
	// When the server reads again, so can others write.
	if err := p.Conn().Write(t.Context(), request(t, large)); err != nil {
		t.Error(err)
	}
}

// What is half sent when its caller leaves is finished, not cut off.
func TestAbandonedMessageIsFinished(t *testing.T) {
	// The server reads one byte, says so, and waits; then it sends all back.
	gate := filepath.Join(t.TempDir(), "gate")
	p := start(t, `dd bs=1 count=1 >&2 2>/dev/null; until [ -e '`+gate+`' ]; do sleep 0.01; done; printf '{'; exec cat`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	abandoned := make(chan error, 1)
	go func() { abandoned <- p.Conn().Write(ctx, request(t, `"`+strings.Repeat("x", 1<<20)+`"`)) }()
	for p.Tail() != "{" {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-abandoned; !errors.Is(err, context.Canceled) {
		t.Fatalf("Write returned %v, want context.Canceled", err)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Conn().Write(t.Context(), request(t, `"next"`)) }()
	for _, want := range []int{1<<20 + 2, len(`"next"`)} {
		msg, err := p.Conn().Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := len(msg.(*jsonrpc.Request).Params); got != want {
			t.Fatalf("got params of %d bytes, want %d", got, want)
		}
	}
}

func TestEndlessLine(t *testing.T) {
	p := start(t, `printf '{"jsonrpc":"2.0","id":"x","result":"'; head -c 70000000 /dev/zero | tr '\0' x; printf '"}\n'; echo '{"jsonrpc":"2.0","method":"after"}'; sleep 60`)
	msg, err := p.Conn().Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resp, ok := msg.(*jsonrpc.Response)
	if !ok || resp.ID.Raw() != "x" || resp.Error == nil || !strings.Contains(resp.Error.Error(), "64 MiB") {
		t.Errorf("got %+v, want an error response to x", msg)
	}
	if msg, err = p.Conn().Read(t.Context()); err != nil || msg.(*jsonrpc.Request).Method != "after" {
		t.Errorf("then came %+v, %v", msg, err)
	}
}

func TestStopUnblocksReadAndIsPrompt(t *testing.T) {
	p := start(t, `trap "" TERM; while :; do sleep 1; done`)
	done := make(chan error, 1)
	go func() {
		_, err := p.Conn().Read(t.Context())
		done <- err
	}()
	begun := time.Now()
	p.Stop()
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("Stop took %v", took)
	}
	if err := <-done; err == nil {
		t.Error("Read returned a message")
	}
	if status := p.ExitStatus(); status != "signal: killed" {
		t.Errorf("exit status is %q", status)
	}
	if err := p.Conn().Write(t.Context(), request(t, "1")); err == nil {
		t.Error("Write after Stop succeeded")
	}
}

// A process that left the group does not hold up Stop.
func TestStopDespiteARunaway(t *testing.T) {
	p := start(t, `setsid sleep 5 & cat`)
	begun := time.Now()
	p.Stop()
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("Stop took %v", took)
	}
}

func TestCommandLookup(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "tool")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho ok >&2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		opts stdio.Options
		want error
	}{
		{"PATH of the definition", stdio.Options{Command: "tool", Env: map[string]string{"PATH": "/nowhere:" + dir}}, nil},
		{"relative to the working directory", stdio.Options{Command: "./tool", Dir: dir}, nil},
		{"absolute", stdio.Options{Command: script}, nil},
		{"not in PATH", stdio.Options{Command: "tool"}, stdio.ErrCommand},
		{"not in its own PATH", stdio.Options{Command: "sh", Env: map[string]string{"PATH": dir}}, stdio.ErrCommand},
		{"a folder", stdio.Options{Command: dir}, stdio.ErrCommand},
		{"no working directory", stdio.Options{Command: script, Dir: dir + "/gone"}, stdio.ErrDir},
		{"working directory is a file", stdio.Options{Command: script, Dir: script}, stdio.ErrDir},
		{"no program", stdio.Options{Command: "./tool", Dir: "/"}, stdio.ErrCommand},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := stdio.Start(test.opts)
			if !errors.Is(err, test.want) {
				t.Fatalf("Start returned %v, want %v", err, test.want)
			}
			if err == nil {
				<-p.Exited()
				p.Stop()
				if got := p.Tail(); got != "ok\n" {
					t.Errorf("it said %q", got)
				}
			}
		})
	}
}
