//go:build linux

package docker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// TestWeakenedSandbox puts a daemon in between that creates containers other
// than it is asked to, as an authorization plugin, a configuration file or a
// defect may. Whatever is not in force must be noticed, and be named.
func TestWeakenedSandbox(t *testing.T) {
	type body = map[string]any
	set := func(key string, value any) func(body) { return func(b body) { b[key] = value } }
	host := func(key string, value any) func(body) {
		return func(b body) { b["HostConfig"].(body)[key] = value }
	}
	env := func(kv string) func(body) {
		return func(b body) { b["Env"] = append(b["Env"].([]any), kv) }
	}
	tmpfs := func(point, options string) func(body) {
		return func(b body) { b["HostConfig"].(body)["Tmpfs"].(body)[point] = options }
	}
	mount := func(m body) func(body) {
		return func(b body) {
			h := b["HostConfig"].(body)
			h["Mounts"] = append(h["Mounts"].([]any), m)
		}
	}
	unmask := func(path string) func(body) {
		return func(b body) {
			h := b["HostConfig"].(body)
			var left []any
			for _, p := range h["MaskedPaths"].([]any) {
				if p != path {
					left = append(left, p)
				}
			}
			h["MaskedPaths"] = left
		}
	}
	shown, other := t.TempDir(), t.TempDir()
	shows := func(option, value string) func(body) { // of the folder that is to be shown
		return func(b body) {
			for _, m := range b["HostConfig"].(body)["Mounts"].([]any) {
				if o, ok := m.(body)["VolumeOptions"].(body); ok {
					o["DriverConfig"].(body)["Options"].(body)[option] = value
				}
			}
		}
	}
	all := func(changes ...func(body)) func(body) {
		return func(b body) {
			for _, change := range changes {
				change(b)
			}
		}
	}
	for name, test := range map[string]struct {
		weaken func(body)
		says   string // "" where the daemon itself refuses
	}{
		"nothing":            {func(body) {}, "started"},
		"seccomp":            {host("SecurityOpt", []string{"no-new-privileges", "seccomp=unconfined"}), "seccomp mode is 0"},
		"daemon's profile":   {host("SecurityOpt", []string{"no-new-privileges"}), "seccomp profile is another"},
		"privileges":         {host("SecurityOpt", []string{"seccomp=unconfined"}), "no_new_privs is false"},
		"capabilities":       {host("CapDrop", nil), "bounding capabilities"},
		"one capability":     {host("CapAdd", []string{"NET_RAW"}), "bounding capabilities is 8192"},
		"privileged":         {host("Privileged", true), "bounding capabilities"},
		"network":            {all(host("NetworkMode", "host"), set("NetworkDisabled", false)), "net namespace is the host's"},
		"pid namespace":      {host("PidMode", "host"), "pid namespace is the host's"},
		"ipc namespace":      {host("IpcMode", "host"), "ipc namespace is the host's"},
		"uts namespace":      {all(host("UTSMode", "host"), set("Hostname", "")), "uts namespace is the host's"},
		"cgroup namespace":   {host("CgroupnsMode", "host"), "cgroup namespace is the host's"},
		"user":               {set("User", "1001:1001"), "uid is 1001"},
		"root":               {set("User", "0:0"), "uid is 0, want not 0"},
		"group":              {func(b body) { b["User"] = strings.Split(b["User"].(string), ":")[0] + ":42" }, "gid is 42"},
		"groups":             {host("GroupAdd", []string{"42"}), "supplementary group is 42"},
		"writable root":      {host("ReadonlyRootfs", false), "mount / is overlay,rw"},
		"no memory limit":    {all(host("Memory", 0), host("MemorySwap", 0)), "memory limit is unlimited"},
		"more memory":        {all(host("Memory", 1<<30), host("MemorySwap", 1<<30)), "memory limit is 1073741824"},
		"swap":               {all(host("Memory", 1<<28), host("MemorySwap", 1<<29)), "swap limit is 268435456"},
		"no process limit":   {host("PidsLimit", -1), "process limit is unlimited"},
		"no cpu limit":       {host("CpuQuota", 0), "cpu limit is unlimited"},
		"rlimits":            {host("Ulimits", []body{{"Name": "nofile", "Soft": 4096, "Hard": 4096}, {"Name": "nproc", "Soft": 9, "Hard": 9}}), "rlimit nofile is 4096"},
		"core files":         {host("Ulimits", []body{{"Name": "nofile", "Soft": 64, "Hard": 64}, {"Name": "nproc", "Soft": 9, "Hard": 9}}), "rlimit core is"},
		"shared memory":      {tmpfs("/dev/shm", "rw,noexec,nosuid,nodev,size=1g"), "mount /dev/shm"},
		"endless tmp":        {tmpfs("/tmp", "rw,noexec,nosuid,nodev"), "mount /tmp"},
		"executable tmp":     {tmpfs("/tmp", "rw,exec,nosuid,nodev,size=4096"), "mount /tmp"},
		"another tmp":        {tmpfs("/opt", "rw,noexec,nosuid,nodev,size=4096"), "mount /opt"},
		"workspace on disk":  {func(b body) { delete(b["HostConfig"].(body)["Tmpfs"].(body), runtime.Workspace) }, "mount /workspace is missing"},
		"environment":        {env("LD_DEBUG=help-not"), "environment variable LD_DEBUG is set"},
		"proxy":              {env("HTTP_PROXY=http://user:secret@proxy"), "environment variable HTTP_PROXY is set"},
		"changed variable":   {env("HOME=/tmp"), "environment variable HOME"},
		"queues":             {unmask("/dev/mqueue"), "mount /dev/mqueue"},
		"writable /proc/sys": {host("ReadonlyPaths", []string{}), "path /proc/sys is writable"},
		"unmasked":           {unmask("/proc/kcore"), "path /proc/kcore is visible"},
		"logs":               {host("LogConfig", body{"Type": "json-file"}), "log driver is json-file"},
		"restarts":           {all(host("AutoRemove", false), host("RestartPolicy", body{"Name": "always"})), "restart policy is always"},
		"left behind":        {host("AutoRemove", false), "automatic removal is false"},
		"health check":       {set("Healthcheck", body{"Test": []string{"CMD", "true"}}), "health check is on"},
		"no OOM killer":      {host("OomKillDisable", true), "out-of-memory killer is off"},
		"sysctl":             {host("Sysctls", body{"kernel.msgmax": "65536"}), "sysctls is set"},
		"foreign directory":  {mount(body{"Type": "bind", "Target": "/host", "Source": "/etc", "ReadOnly": true}), "mount /host"},
		"writable directory": {mount(body{"Type": "bind", "Target": "/srv", "Source": "/tmp"}), "mount /srv"},
		"daemon's socket":    {mount(body{"Type": "bind", "Target": "/run/docker.sock", "Source": hostPath(t), "ReadOnly": true}), "mount /run/docker.sock"},
		"volume":             {set("Volumes", body{"/var/lib/data": body{}}), "mount /var/lib/data"},
		"device":             {host("Devices", []body{{"PathOnHost": "/dev/null", "PathInContainer": "/dev/x", "CgroupPermissions": "rwm"}}), "devices is added"},
		"terminal":           {set("Tty", true), "TERM"},
		"another folder":     {shows("device", other), "want the folder that was asked for"},
		"folder executable":  {shows("o", "bind,ro,nosuid,nodev"), "mount /mnt/data is"},
		"folder writable":    {shows("o", "bind,nosuid,nodev,noexec"), "mount /mnt/data is"},
		"daemon's init":      {host("Init", true), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			engine, err := docker.New(docker.Options{Host: interpose(t, dir+"/api", test.weaken), RuntimeDir: dir + "/rt"})
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
			if strings.Contains(err.Error(), "secret") {
				t.Error("error tells a secret")
			}
		})
	}
	if left := containers(t, "io.mcp-bridge.pid", strconv.Itoa(os.Getpid())); len(left) > 0 {
		t.Errorf("containers left: %v", left)
	}
}

// TestUnlimited uses a daemon that can put no limits in force, as a rootless one
// on cgroup v1, and takes them out of requests.
func TestUnlimited(t *testing.T) {
	drop := func(b map[string]any) {
		for _, limit := range []string{"Memory", "MemorySwap", "CpuQuota", "CpuPeriod", "PidsLimit"} {
			b["HostConfig"].(map[string]any)[limit] = 0
		}
	}
	admit := func(info map[string]any) {
		info["MemoryLimit"], info["PidsLimit"], info["CpuCfsQuota"] = false, false, false
	}
	for _, allow := range []bool{false, true} {
		t.Run(strconv.FormatBool(allow), func(t *testing.T) {
			dir := shortDir(t)
			engine, err := docker.New(docker.Options{Host: interposeBoth(t, dir+"/api", drop, admit), RuntimeDir: dir + "/rt", AllowUnlimited: allow})
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			spec := runtimetest.Spec(image(), seccomp(t))
			spec.AllowUnlimited = allow
			checkErr := engine.Check(t.Context(), image())
			sandbox, startErr := engine.Start(t.Context(), spec)
			if startErr == nil {
				defer sandbox.Close()
			}
			for _, err := range []error{checkErr, startErr} {
				refused := errors.Is(err, runtime.ErrUnsupported) && strings.Contains(err.Error(), "memory limit") && runtime.HintOf(err) != ""
				if allow && err != nil || !allow && !refused {
					t.Errorf("error %v (hint %q)", err, runtime.HintOf(err))
				}
			}
			if !allow || startErr != nil {
				return
			}
			const code = "import resource; result = resource.getrlimit(resource.RLIMIT_DATA)[1] > 0"
			if got := runtimetest.NewPeer(sandbox).Eval(t, code); got != true {
				t.Errorf("data is limited: %v", got)
			}
		})
	}
}

// hostPath is the socket of the daemon that the tests use.
func hostPath(t testing.TB) string {
	t.Helper()
	host := os.Getenv(client.EnvOverrideHost)
	if host == "" {
		host = client.DefaultDockerHost
	}
	path, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		t.Fatalf("DOCKER_HOST=%s: the tests need a daemon on this machine", host)
	}
	return path
}

// interpose listens on socket and hands all requests to the daemon, those for
// new containers changed by change.
func interpose(t *testing.T, socket string, change func(map[string]any)) (host string) {
	t.Helper()
	return interposeBoth(t, socket, change, nil)
}

// interposeBoth also has the daemon's answers about itself changed by inform.
func interposeBoth(t *testing.T, socket string, change, inform func(map[string]any)) (host string) {
	t.Helper()
	real := hostPath(t)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "d"})
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", real)
	}}
	proxy.ModifyResponse = func(r *http.Response) error {
		if inform == nil || !strings.HasSuffix(r.Request.URL.Path, "/info") {
			return nil
		}
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return err
		}
		inform(body)
		data, err := json.Marshal(body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		r.Header.Set("Content-Length", strconv.Itoa(len(data)))
		return err
	}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
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
