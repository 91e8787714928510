//go:build linux

package docker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// TestRemote uses the daemon as if it were on another machine.
func TestRemote(t *testing.T) {
	for name, reach := range map[string]func(*testing.T) (host string, cut func()){
		"tcp": overTCP,
		"ssh": overSSH,
	} {
		t.Run(name, func(t *testing.T) {
			host, cut := reach(t)
			dir := shortDir(t)
			engine, err := docker.New(docker.Options{Host: host, RuntimeDir: dir + "/rt"})
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			if err := engine.Check(t.Context(), image()); err != nil {
				t.Fatal(err)
			}
			sandbox, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t)))
			if err != nil {
				t.Fatal(err)
			}
			defer sandbox.Close()
			if got := sandbox.Transport(); got != runtime.TransportStdio {
				t.Errorf("transport %s", got)
			}
			if _, err := os.Stat(dir + "/rt"); err == nil {
				t.Error("a directory was made for a sandbox that is elsewhere")
			}
			if mounts := cli(t, "inspect", "--format", "{{len .HostConfig.Mounts}} {{len .Mounts}}", sandbox.ID()); strings.TrimSpace(mounts) != "0 0" {
				t.Errorf("mounts: %s", mounts)
			}
			if got := runtimetest.NewPeer(sandbox).Eval(t, "result = 1"); got != 1.0 {
				t.Errorf("answer %v", got)
			}
			cut() // as when the network is gone: the sandbox must end by itself
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if exit, err := sandbox.Wait(ctx); err != nil {
				t.Errorf("wait: %+v, %v", exit, err)
			}
			if _, err := sandbox.Control().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("read: %v, want EOF", err)
			}
			within(t, 10*time.Second, "the container of the lost sandbox is gone", func() bool {
				return len(containers(t, "io.mcp-bridge.sandbox", sandbox.ID())) == 0
			})
		})
	}
}

// TestRemoteExit tells how the program of a sandbox elsewhere has ended.
func TestRemoteExit(t *testing.T) {
	host, _ := overTCP(t)
	engine, err := docker.New(docker.Options{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	for code, want := range map[string]runtime.Exit{
		"import os; os._exit(7)": {Code: 7},
		"x = b'x' * (1 << 30)":   {Code: 137, OOMKilled: true},
	} {
		sandbox, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t)))
		if err != nil {
			t.Fatal(err)
		}
		_, _, _ = runtimetest.NewPeer(sandbox).Try(code)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if got, err := sandbox.Wait(ctx); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", code, got, err, want)
		}
		if err := sandbox.Close(); err != nil {
			t.Error(err)
		}
	}
}

// overTCP makes the daemon reachable through a port of the loopback device.
func overTCP(t *testing.T) (host string, cut func()) {
	t.Helper()
	socket := hostPath(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", socket)
			if err != nil {
				near.Close()
				continue
			}
			mu.Lock()
			open = append(open, near, far)
			mu.Unlock()
			go relay(far.(*net.UnixConn), near)
			go relay(near.(*net.TCPConn), far)
		}
	}()
	cut = func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
	}
	t.Cleanup(cut)
	return "tcp://" + l.Addr().String(), cut
}

func relay(to interface {
	io.Writer
	CloseWrite() error
}, from io.Reader,
) {
	_, _ = io.Copy(to, from)
	_ = to.CloseWrite()
}

// overSSH puts a program in ssh's place that does on this machine what the real
// one would have done on another.
func overSSH(t *testing.T) (host string, cut func()) {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
case "$*" in *"-- elsewhere docker system dial-stdio") ;; *) echo "unexpected: $*" >&2; exit 1 ;; esac
echo $$ >>` + dir + `/pids
DOCKER_HOST=unix://` + hostPath(t) + ` exec docker system dial-stdio
`
	if err := os.WriteFile(dir+"/ssh", []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return "ssh://somebody@elsewhere", func() {
		pids, err := os.ReadFile(dir + "/pids")
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(dir + "/ssh")
		for pid := range strings.FieldsSeq(string(pids)) {
			kill(t, pid)
		}
	}
}

// kill ends a child that we have started, if it still runs.
func kill(t *testing.T, pid string) {
	t.Helper()
	cmdline, err := os.ReadFile("/proc/" + pid + "/cmdline")
	if err != nil || !strings.Contains(string(cmdline), "dial-stdio") {
		return
	}
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}
