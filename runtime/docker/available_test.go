//go:build linux

package docker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

func TestUnavailable(t *testing.T) {
	dir := shortDir(t)
	for name, test := range map[string]struct{ host, says, hint string }{
		"no daemon":       {"unix://" + dir + "/none", "Is the docker daemon running?", "apt-get install docker.io"},
		"nobody at port":  {"tcp://127.0.0.1:1", "Is the docker daemon running?", "DOCKER_HOST"},
		"not a host":      {"nonsense", "unable to parse docker host", "DOCKER_HOST"},
		"unknown scheme":  {"gopher://127.0.0.1:1", "", "DOCKER_HOST"},
		"no ssh to there": {"ssh://127.0.0.1:1", "", "DOCKER_HOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOCKER_HOST", test.host)
			engine := open(t, dir+"/rt")
			defer engine.Close()
			_, startErr := engine.Start(t.Context(), runtimetest.Spec(image(), []byte("{}")))
			for _, err := range []error{startErr, engine.Check(t.Context(), image())} {
				if !errors.Is(err, runtime.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), test.says) || !strings.Contains(runtime.HintOf(err), test.hint) {
					t.Errorf("error %q (hint %q), want ErrUnavailable that says %q, and hints at %q", err, runtime.HintOf(err), test.says, test.hint)
				}
			}
			findings := engine.(runtime.Diagnoser).Diagnose(t.Context(), image())
			if len(findings) != 1 || findings[0].Level != runtime.LevelFail || !strings.Contains(findings[0].Fix, test.hint) {
				t.Errorf("diagnosis: %+v", findings)
			}
		})
	}
}

// TestForbidden is a user who may not use the daemon.
func TestForbidden(t *testing.T) {
	if os.Getenv("MCPB_TEST_FORBIDDEN") != "" {
		engine, err := docker.New(docker.Options{RuntimeDir: os.Getenv("MCPB_TEST_FORBIDDEN")})
		if err != nil {
			t.Fatal(err)
		}
		err = engine.Check(t.Context(), image())
		fmt.Printf("unavailable %v, error %v, hint %s\n", errors.Is(err, runtime.ErrUnavailable), err, runtime.HintOf(err))
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/test", self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", dir+"/test", "-test.run=^TestForbidden$")
	cmd.Env = append(os.Environ(), "MCPB_TEST_FORBIDDEN="+dir+"/rt")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "unavailable true") || !strings.Contains(string(out), "usermod -aG docker") || !strings.Contains(string(out), "as good as root") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestHungDaemon talks to a daemon that accepts and never answers.
func TestHungDaemon(t *testing.T) {
	dir := shortDir(t)
	l, err := net.Listen("unix", dir+"/hung")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("DOCKER_HOST", "unix://"+dir+"/hung")
	engine := open(t, dir+"/rt")
	defer engine.Close()
	begin := time.Now()
	if err := engine.Check(t.Context(), image()); !errors.Is(err, runtime.ErrUnavailable) || runtime.HintOf(err) == "" || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("error %v (hint %q), want ErrUnavailable with a hint", err, runtime.HintOf(err))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := engine.Sweep(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("sweep: %v, want the context's error", err)
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

// TestRuntimeDir refuses directories that others could enter.
func TestRuntimeDir(t *testing.T) {
	dir := shortDir(t)
	if err := os.Mkdir(dir+"/open", 0o755); err != nil {
		t.Fatal(err)
	}
	engine := open(t, dir+"/open")
	defer engine.Close()
	if _, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t))); err == nil || runtime.HintOf(err) == "" {
		t.Errorf("error %v without a hint, want a refusal with one", err)
	}
}

// TestClientConfiguration has a configuration of docker's client that would put
// a proxy with its password into every container, and another daemon in use.
func TestClientConfiguration(t *testing.T) {
	home := t.TempDir()
	const config = `{"currentContext": "elsewhere", "proxies": {"default": {"httpProxy": "http://user:secret@proxy:1"}}}`
	if err := os.MkdirAll(home+"/.docker", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home+"/.docker/config.json", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	host := "unix://" + hostPath(t)
	t.Setenv("HOME", home)
	t.Setenv("DOCKER_CONFIG", home+"/.docker")
	t.Setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:1")
	t.Setenv("DOCKER_HOST", host)
	// Docker's own command line would, or this test proves nothing.
	if env := cli(t, "run", "--rm", "--network", "none", image(), "env"); !strings.Contains(env, "secret") {
		t.Fatalf("docker run has the environment %q", env)
	}
	engine := open(t, shortDir(t))
	defer engine.Close()
	sandbox, err := engine.Start(t.Context(), runtimetest.Spec(image(), seccomp(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer sandbox.Close()
	if env := runtimetest.NewPeer(sandbox).Eval(t, "import os; result = repr(os.environ)").(string); strings.Contains(strings.ToLower(env), "proxy") {
		t.Errorf("environment: %s", env)
	}
}

func TestDiagnose(t *testing.T) {
	dir := shortDir(t)
	engine := open(t, dir+"/rt")
	defer engine.Close()
	findings := engine.(runtime.Diagnoser).Diagnose(t.Context(), image())
	if _, err := os.Stat(dir + "/rt"); err == nil {
		t.Error("looking has made a directory")
	}
	level := map[string]runtime.Level{}
	for _, f := range findings {
		t.Logf("%-14s %-4s %s [%s]", f.Name, f.Level, f.Detail, f.Fix)
		level[f.Name] = f.Level
		if f.Detail == "" || (f.Fix == "") != (f.Level == runtime.LevelOK) {
			t.Errorf("%s has no detail, or a fix where nothing is wrong: %+v", f.Name, f)
		}
	}
	for _, name := range []string{"daemon", "user", "transport", "cgroup limits", "seccomp", "user namespace", "image"} {
		if level[name] == "" {
			t.Errorf("nothing about %s", name)
		}
	}
	findings = engine.(runtime.Diagnoser).Diagnose(t.Context(), "localhost/none:none")
	i := slices.IndexFunc(findings, func(f runtime.Finding) bool { return f.Name == "image" })
	if i < 0 || findings[i].Level != runtime.LevelFail || !strings.Contains(findings[i].Fix, "mcp-bridge image build --runtime docker --name localhost/none:none") {
		t.Errorf("missing image: %+v", findings)
	}
	err := engine.Check(t.Context(), "docker-archive:/home/someone/image.tar")
	if !errors.Is(err, runtime.ErrImageMissing) || !strings.Contains(runtime.HintOf(err), "docker load -i FILE") {
		t.Errorf("an archive: %v (hint %q)", err, runtime.HintOf(err))
	}
}
