//go:build linux

package podman_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// TestWeakenedSandbox puts a service in between that creates containers other
// than it is asked to, as a configuration file, a hook or a defect may. Whatever
// is not in force must be noticed, and be named.
func TestWeakenedSandbox(t *testing.T) {
	dir := shortDir(t)
	real := startService(t, dir+"/real")
	type body = map[string]any
	host := map[string]string{"nsmode": "host"}
	hostIDs := []body{{"container_id": 0, "host_id": 0, "size": 65536}}
	set := func(key string, value any) func(body) { return func(b body) { b[key] = value } }
	mount := func(m body) func(body) {
		return func(b body) { b["mounts"] = append(b["mounts"].([]any), m) }
	}
	shown, other := t.TempDir(), t.TempDir()
	shows := func(key string, value any) func(body) { // of the folder that is to be shown
		return func(b body) {
			for _, m := range b["mounts"].([]any) {
				if m.(body)["destination"] == "/mnt/data" {
					m.(body)[key] = value
				}
			}
		}
	}
	for name, test := range map[string]struct {
		weaken func(body)
		says   string // "" where the engine itself refuses
	}{
		"nothing":            {func(body) {}, "started"},
		"seccomp":            {set("seccomp_profile_path", "unconfined"), "seccomp mode is 0"},
		"privileges":         {func(b body) { b["no_new_privileges"] = false; b["seccomp_profile_path"] = "unconfined" }, "no_new_privs is false"},
		"capabilities":       {func(b body) { b["cap_drop"] = nil }, "bounding capabilities"},
		"network":            {set("netns", host), ""},
		"pid namespace":      {set("pidns", host), ""},
		"ipc namespace":      {set("ipcns", host), ""},
		"uts namespace":      {func(b body) { b["utsns"] = host; b["hostname"] = "" }, "uts namespace is the host's"},
		"cgroup namespace":   {set("cgroupns", host), "cgroup namespace is the host's"},
		"user namespace":     {func(b body) { b["userns"] = host; delete(b, "idmappings") }, "user namespace is the host's"},
		"user":               {set("user", "1001:1001"), "uid is 1001"},
		"groups":             {set("groups", []string{"42"}), "supplementary group is 42"},
		"writable root":      {set("read_only_filesystem", false), "mount / is overlay,rw"},
		"limits":             {set("resource_limits", body{}), "memory limit is unlimited"},
		"no process limit":   {func(b body) { b["resource_limits"].(body)["pids"] = body{"limit": -1} }, "process limit is unlimited"},
		"no cpu limit":       {func(b body) { delete(b["resource_limits"].(body), "cpu") }, "cpu limit is unlimited"},
		"more memory":        {func(b body) { b["resource_limits"].(body)["memory"] = body{"limit": 1 << 30, "swap": 1 << 30} }, "memory limit is 1073741824"},
		"swap":               {func(b body) { b["resource_limits"].(body)["memory"] = body{"limit": 1 << 28, "swap": 1 << 29} }, "swap limit is 268435456"},
		"rlimits":            {set("r_limits", []body{{"type": "nofile", "soft": 4096, "hard": 4096}, {"type": "nproc", "soft": 9, "hard": 9}}), "rlimit nofile is 4096"},
		"shared memory":      {set("shm_size", 1<<30), "mount /dev/shm"},
		"environment":        {func(b body) { b["env"].(body)["LD_DEBUG"] = "help-not" }, "environment variable LD_DEBUG is set"},
		"changed variable":   {func(b body) { b["env"].(body)["HOME"] = "/tmp" }, "environment variable HOME"},
		"nothing masked":     {set("mask", []string{}), "mount /dev/mqueue"},
		"daemon's profile":   {func(b body) { delete(b, "seccomp_profile_path") }, "seccomp profile is another"},
		"another profile":    {set("seccomp_profile_path", anotherProfile(t)), "seccomp profile is another"},
		"logs":               {set("log_configuration", body{"driver": "k8s-file"}), "log driver is k8s-file"},
		"left behind":        {set("remove", false), "automatic removal is false"},
		"restarts":           {func(b body) { b["remove"] = false; b["restart_policy"] = "always" }, "restart policy is always"},
		"health check":       {set("healthconfig", body{"Test": []string{"CMD", "true"}, "Interval": 1 << 40}), "health check is on"},
		"device":             {set("devices", []body{{"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229}}), "/dev/fuse"},
		"privileged":         {set("privileged", true), "privileged is true"},
		"host's ids":         {set("idmappings", body{"UIDMap": hostIDs, "GIDMap": hostIDs}), "uid on the host is"},
		"kernel's symbols":   {func(b body) { b["mask"] = []string{"/dev/mqueue", "/sys/fs/cgroup"} }, "mount /proc/kallsyms is missing"},
		"writable /proc/sys": {set("unmask", []string{"ALL"}), "mount /proc/sys"},
		"foreign directory":  {mount(body{"destination": "/host", "type": "bind", "source": "/etc", "options": []string{"ro"}}), "mount /host"},
		"another folder":     {shows("source", other), "want the folder that was asked for"},
		"folder executable":  {shows("options", []string{"bind", "ro", "nosuid", "nodev"}), "mount /mnt/data is"},
		"executable tmp":     {mount(body{"destination": "/opt", "type": "tmpfs", "source": "tmpfs", "options": []string{"rw", "size=4096"}}), "mount /opt"},
	} {
		t.Run(name, func(t *testing.T) {
			uri := interpose(t, shortDir(t)+"/api", real, test.weaken)
			engine, err := podman.New(podman.Options{URI: uri, RuntimeDir: dir + "/rt"})
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			spec := runtimetest.Spec(image(), seccomp(t))
			spec.Binds = []runtime.Bind{{Source: shown, Target: "/mnt/data"}}
			sandbox, err := engine.Start(t.Context(), spec)
			if err == nil {
				defer sandbox.Close()
				if test.says != "started" {
					t.Error("a weakened sandbox was started")
				}
				return
			}
			t.Log(err)
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("error does not say %q", test.says)
			}
		})
	}
	if left := containers(t, "io.mcp-bridge.pid", strconv.Itoa(os.Getpid())); len(left) > 0 {
		t.Errorf("containers left: %v", left)
	}
}

// anotherProfile is the profile with one more call allowed.
func anotherProfile(t *testing.T) string {
	t.Helper()
	file := shortDir(t) + "/seccomp.json"
	weaker := bytes.Replace(seccomp(t), []byte(`"memfd_create"`), []byte(`"memfd_create","mount"`), 1)
	if bytes.Equal(weaker, seccomp(t)) {
		t.Fatal("the profile does not allow memfd_create")
	}
	if err := os.WriteFile(file, weaker, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// startService runs podman's API service for the test, and returns its socket.
func startService(t testing.TB, socket string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "podman", "--runtime", "runc", "system", "service", "--time", "600", "unix://"+socket)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	within(t, 10*time.Second, "the service listens", func() bool {
		conn, err := net.Dial("unix", socket) // the file is there a moment earlier
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return socket
}

// interpose listens on socket and hands all requests to the service at real,
// those for new containers changed by change.
func interpose(t *testing.T, socket, real string, change func(map[string]any)) (uri string) {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "d"})
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", real)
	}}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) { w.WriteHeader(http.StatusBadGateway) }
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/containers/create") {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			change(body)
			data, err := json.Marshal(body)
			if err != nil {
				t.Error(err)
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		}
		proxy.ServeHTTP(w, r)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return "unix://" + socket
}
