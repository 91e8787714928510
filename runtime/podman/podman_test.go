//go:build linux

package podman_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
	sandboximage "github.com/mcp-bridge/mcp-bridge/sandbox-image"
)

// TestMain also is the bridge that TestKilledOwner kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("MCPB_TEST_VICTIM"); dir != "" {
		victim(dir)
	}
	os.Exit(m.Run())
}

func image() string {
	return cmp.Or(os.Getenv("MCP_BRIDGE_TEST_IMAGE"), "localhost/mcp-bridge-sandbox:dev")
}

func seccomp(t testing.TB) []byte {
	t.Helper()
	return sandboximage.Seccomp()
}

// open returns an engine with a service of its own.
func open(t testing.TB, dir string) runtime.Engine {
	t.Helper()
	return openWith(t, podman.Options{RuntimeDir: dir})
}

func openWith(t testing.TB, opts podman.Options) runtime.Engine {
	t.Helper()
	t.Setenv("CONTAINER_HOST", "")
	opts.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	engine, err := podman.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// cli runs podman's command line, which shares nothing with the engine but the
// containers.
func cli(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "podman", args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CONTAINER_HOST=") })
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("podman %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func containers(t testing.TB, label, value string) []string {
	t.Helper()
	return strings.Fields(cli(t, "ps", "--all", "--format", "{{.Names}}", "--filter", "label="+label+"="+value))
}

// asUser runs the test as the user that .ci/provision rootless makes.
func asUser(t *testing.T) {
	runtimetest.RunAs(t, "mcp-bridge-test", "MCP_BRIDGE_TEST_IMAGE="+image())
}

// victim starts two sandboxes, the second with a program that ignores
// end-of-file, tells their names, and waits to be killed.
func victim(dir string) {
	engine, err := podman.New(podman.Options{RuntimeDir: dir, Transport: runtime.Transport(os.Getenv("MCPB_TEST_TRANSPORT"))})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	profile, err := os.ReadFile("../../sandbox-image/seccomp.json")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, args := range [][]string{nil, {"stubborn"}} {
		sandbox, err := engine.Start(context.Background(), runtimetest.Spec(image(), profile, args...))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(sandbox.ID())
	}
	time.Sleep(time.Minute)
	os.Exit(1)
}

func TestKilledOwner(t *testing.T) {
	for _, transport := range []runtime.Transport{runtime.TransportSocket, runtime.TransportStdio} {
		t.Run(string(transport), func(t *testing.T) { testKilledOwner(t, transport) })
	}
}

func testKilledOwner(t *testing.T, transport runtime.Transport) {
	dir := shortDir(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "MCPB_TEST_VICTIM="+dir, "MCPB_TEST_TRANSPORT="+string(transport), "CONTAINER_HOST=")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	t.Cleanup(func() {
		for _, name := range containers(t, "io.mcp-bridge.pid", pid) {
			cli(t, "rm", "--force", "--time", "0", "--ignore", name)
		}
	})
	lines := bufio.NewScanner(stdout)
	var ids [2]string
	for i := range ids {
		if lines.Scan(); !strings.HasPrefix(lines.Text(), "mcpb-") {
			t.Fatalf("victim says %q", lines.Text())
		}
		ids[i] = lines.Text()
	}
	service := childrenOf(t, cmd.Process.Pid)
	if len(service) != 1 {
		t.Fatalf("victim has children %v, want its podman service", service)
	}

	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	cmd.Wait()
	within(t, 5*time.Second, "the container of a program that ends at EOF is gone", func() bool {
		return len(containers(t, "io.mcp-bridge.sandbox", ids[0])) == 0
	})
	t.Logf("container gone %v after its owner was killed", time.Since(killed).Round(time.Millisecond))
	within(t, 5*time.Second, "the service of the dead owner is gone", func() bool {
		_, err := os.Stat("/proc/" + service[0])
		return err != nil
	})
	if left := containers(t, "io.mcp-bridge.sandbox", ids[1]); len(left) != 1 {
		t.Fatalf("the stubborn program's container is gone: the test proves nothing")
	}

	engine := open(t, dir)
	defer engine.Close()
	removed, err := engine.Sweep(t.Context())
	if err != nil || removed < 1 {
		t.Errorf("sweep: %d, %v, want the stubborn program's container removed", removed, err)
	}
	if left := containers(t, "io.mcp-bridge.sandbox", ids[1]); len(left) > 0 {
		t.Errorf("swept, but still there: %v", left)
	}
	if err := engine.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("host files of the dead are still there: %v", left)
	}
}

// within waits until what is promised holds.
func within(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v it is not so that %s", limit, what)
		}
	}
}

func childrenOf(t testing.TB, pid int) []string {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	var children []string
	for _, task := range tasks {
		data, _ := os.ReadFile(task)
		children = append(children, strings.Fields(string(data))...)
	}
	return children
}

// TestServiceRestarts kills the engine's service under a running sandbox.
func TestServiceRestarts(t *testing.T) {
	engine := open(t, shortDir(t))
	defer engine.Close()
	sandbox, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Close()
	for _, pid := range childrenOf(t, os.Getpid()) {
		if comm, _ := os.ReadFile("/proc/" + pid + "/comm"); strings.TrimSpace(string(comm)) == "podman" {
			n, _ := strconv.Atoi(pid)
			p, _ := os.FindProcess(n)
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			within(t, 5*time.Second, "the service is dead", func() bool {
				_, err := os.Stat("/proc/" + pid)
				return err != nil
			})
		}
	}
	if got := runtimetest.NewPeer(sandbox).Eval(t, "result = 1"); got != 1.0 {
		t.Errorf("sandbox answers %v", got)
	}
	other, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t)))
	if err != nil {
		t.Fatalf("start after the service was killed: %v", err)
	}
	for _, s := range []runtime.Sandbox{sandbox, other} {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if left := containers(t, "io.mcp-bridge.sandbox", s.ID()); len(left) > 0 {
			t.Errorf("container left: %v", left)
		}
	}
}

// TestHost uses a service that somebody else runs.
func TestHost(t *testing.T) {
	dir := shortDir(t)
	uri := "unix://" + startService(t, dir+"/host")
	t.Setenv("CONTAINER_HOST", uri)
	engine, err := podman.New(podman.Options{RuntimeDir: dir + "/own"})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	sandbox, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := sandbox.Close(); err != nil {
		t.Error(err)
	}
}

func TestUnavailable(t *testing.T) {
	dir := shortDir(t)
	for name, test := range map[string]struct {
		setup func(t *testing.T)
		opts  podman.Options
		want  error
		says  string
	}{
		"no binary": {
			setup: func(t *testing.T) { t.Setenv("PATH", dir) },
			want:  runtime.ErrUnavailable, says: "not installed",
		},
		"broken binary": {
			setup: func(t *testing.T) { fakePodman(t, "echo database is broken >&2; exit 125") },
			want:  runtime.ErrUnavailable, says: "database is broken",
		},
		"no service": {
			setup: func(*testing.T) {},
			opts:  podman.Options{URI: "unix://" + dir + "/none"},
			want:  runtime.ErrUnavailable, says: "no such file",
		},
		"remote service": {
			setup: func(*testing.T) {},
			opts:  podman.Options{URI: "tcp://127.0.0.1:1"},
			want:  runtime.ErrUnavailable, says: "connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CONTAINER_HOST", "")
			test.setup(t)
			test.opts.RuntimeDir = dir + "/rt"
			engine, err := podman.New(test.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			_, startErr := engine.Start(t.Context(), runtimetest.Spec(image(), []byte("{}")))
			for _, err := range []error{startErr, engine.Check(t.Context(), image())} {
				e := fmt.Sprint(err)
				if runtime.HintOf(err) == "" || !strings.Contains(e, test.says) || !errors.Is(err, test.want) {
					t.Errorf("error %q (hint %q), want ErrUnavailable that says %q, with a hint", e, runtime.HintOf(err), test.says)
				}
			}
		})
	}
}

// TestHungService talks to a service that accepts and never answers.
func TestHungService(t *testing.T) {
	dir := shortDir(t)
	l, err := net.Listen("unix", dir+"/hung")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	engine, err := podman.New(podman.Options{URI: "unix://" + dir + "/hung", RuntimeDir: dir + "/rt"})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	begin := time.Now()
	_, err = engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t)))
	if !errors.Is(err, runtime.ErrUnavailable) || runtime.HintOf(err) == "" {
		t.Errorf("error %v (hint %q), want ErrUnavailable with a hint", err, runtime.HintOf(err))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := engine.Sweep(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sweep: %v, want the context's error", err)
	}
	if d := time.Since(begin); d > 15*time.Second {
		t.Errorf("took %v", d)
	}
}

// TestRuntimeDir refuses directories that others could enter.
func TestRuntimeDir(t *testing.T) {
	dir := shortDir(t)
	if err := os.Mkdir(dir+"/open", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/open", "/link"} {
		engine := open(t, dir+name)
		if _, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t))); err == nil || runtime.HintOf(err) == "" {
			t.Errorf("%s: error %v without a hint, want a refusal with one", name, err)
		}
		engine.Close()
	}
}

// BenchmarkStart compares a sandbox's way up and down with the plainest use of
// the command line, in turns.
func BenchmarkStart(b *testing.B) {
	engine := open(b, shortDir(b))
	defer engine.Close()
	spec := runtimetest.Spec(image(), seccomp(b))
	begin := time.Now()
	first, err := engine.Start(b.Context(), spec)
	if err != nil {
		b.Fatal(err)
	}
	firstStart := time.Since(begin)
	first.Close()
	var start, whole, run time.Duration
	for b.Loop() {
		begin := time.Now()
		sandbox, err := engine.Start(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		start += time.Since(begin)
		if err := sandbox.Close(); err != nil {
			b.Fatal(err)
		}
		whole += time.Since(begin)

		begin = time.Now()
		cli(b, "--runtime", "runc", "run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=512:512",
			image(), "python3", "-c", "pass")
		run += time.Since(begin)
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(b.N) }
	b.ReportMetric(float64(firstStart.Milliseconds()), "first-start-ms")
	b.ReportMetric(ms(start), "start-ms")
	b.ReportMetric(ms(whole), "start+close-ms")
	b.ReportMetric(ms(run), "podman-run-ms")
	b.ReportMetric(ms(whole)/ms(run), "ratio")
}

// shortDir is t.TempDir with a path short enough for a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcpb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// fakePodman puts a shell script in podman's place.
func fakePodman(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/podman", []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}
