package gvisor

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

// interposer stands in for runsc: it shows the test the configuration and the
// flags of a sandbox, and runs runsc with what it gets back.
const interposer = `#!/usr/bin/python3 -I
import json, os, socket, sys
here = os.path.dirname(os.path.abspath(sys.argv[0]))
args = sys.argv[1:]
if "run" in args:
    run = args.index("run")
    path = next(a for a in args if a.startswith("--bundle="))[len("--bundle="):] + "/config.json"
    with open(path) as f:
        request = {"config": json.load(f), "flags": [a for a in args[:run] if not a.startswith("--root=")]}
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(here + "/socket")
        s.sendall(json.dumps(request).encode())
        s.shutdown(socket.SHUT_WR)
        answer = json.load(s.makefile())
    with open(path, "w") as f:
        json.dump(answer["config"], f)
    args = [a for a in args[:run] if a.startswith("--root=")] + answer["flags"] + args[run:]
os.execv("RUNSC", ["RUNSC"] + args)
`

// interpose returns a program in place of runsc that lets change have a say.
func interpose(t *testing.T, change func(map[string]any)) string {
	t.Helper()
	dir := privateDir(t)
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var request map[string]any
			err = json.NewDecoder(c).Decode(&request)
			if err == nil {
				change(request)
				err = json.NewEncoder(c).Encode(request)
			}
			if err != nil {
				t.Error(err)
			}
			c.Close()
		}
	}()
	path := filepath.Join(dir, "runsc")
	script := []byte(strings.ReplaceAll(interposer, "RUNSC", helperPath(t)))
	if err := os.WriteFile(path, script, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMutations weakens every setting of the configuration and every flag in turn.
func TestMutations(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "x"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	runtimetest.Mutate(t, runtimetest.MutateOptions{
		Start: func(t *testing.T, change func(map[string]any)) (runtime.Sandbox, error) {
			engine := open(t, Options{})
			engine.helper = interpose(t, change)
			wanted := spec()
			wanted.Binds = []runtime.Bind{{Source: folder, Target: "/mnt/data"}}
			return engine.Start(t.Context(), wanted)
		},
		Unnoticed: unnoticed(),
		Weaker: map[string]string{
			"--network=none":   "--network=host",
			"--host-uds=none":  "--host-uds=all",
			"--host-fifo=none": "--host-fifo=open",
			"--overlay2=none":  "--overlay2=all:memory",
		},
	})
}

// unnoticed are the settings of which a sandbox shows nothing when they are
// weakened, and why that is no harm.
func unnoticed() map[string]string {
	m := map[string]string{
		"config.ociVersion":                               "runsc does not look at it",
		"config.process.args.[-I]":                        "the spec's own",
		"config.process.capabilities":                     "none is the default; others are attested",
		"config.mounts.[/dev].type":                       "gVisor has one kind of file system at /dev",
		"config.mounts.[/dev/pts].type":                   "gVisor has one kind of file system at /dev/pts",
		"config.mounts.[/sys].options.[size]":             "nothing can be written there",
		"flags.[--allow-flag-override=false]":             "no annotation of ours overrides a flag",
		"flags.[--allow-suid=false]":                      "no_new_privs, which is attested, rules them out",
		"flags.[--character-device-policy=emulated-only]": "for devices in the configuration, and there are none",
		"flags.[--debug=false]":                           "for logs, and no folder is named for them",
		"flags.[--gofer-network-namespace=new]":           "there is no gofer",
		"flags.[--host-settings=ignore]":                  "for tuning the host, at which the default only looks",
		"flags.[--host-uds=none]":                         "for sockets in mounts of the host, and there are none",
		"flags.[--host-fifo=none]":                        "for named pipes in mounts of the host, and there are none",
		"flags.[--overlay2=none]":                         "the root is EROFS and read-only, which is attested",
		"flags.[--net-raw=false]":                         "for capabilities, and there are none",
		"flags.[--platform=systrap]":                      "the default",
		"flags.[--watchdog-action=log]":                   "the default",
	}
	for _, point := range []string{"/dev", "/dev/pts", "/dev/shm", "/proc", "/sys", "/tmp", runtime.Workspace} {
		m["config.mounts.["+point+"].source"] = "none of these has one"
		switch point {
		case "/dev", "/dev/pts", "/proc":
		default:
			m["config.mounts.["+point+"].options.[nodev]"] = "gVisor's default"
		}
		switch point {
		case "/dev/pts", "/proc":
		default:
			m["config.mounts.["+point+"].options.[mode]"] = "who may write there is the sandbox's one user, or nobody for it is read-only"
		}
	}
	for _, point := range []string{"/proc", "/mnt", "/mnt/data"} {
		m["config.mounts.["+point+"].options.[nodev]"] = "gVisor's default"
	}
	for _, point := range []string{"/dev/shm", "/tmp", runtime.Workspace} {
		m["config.mounts.["+point+"].options.[rw]"] = "the default"
	}
	for _, kind := range []string{"ipc", "mount", "network", "pid", "uts"} {
		m["config.linux.namespaces.["+kind+"]"] = "the Sentry has its own all the same; they are attested"
		m["config.linux.namespaces.["+kind+"].type"] = m["config.linux.namespaces.["+kind+"]"]
	}
	return m
}

// TestFlags holds the flags that every runsc gets: TestMutations says of which a
// sandbox shows nothing.
func TestFlags(t *testing.T) {
	want := strings.Fields(`--root=/s --platform=systrap --network=none --host-uds=none --host-fifo=none --overlay2=none
		--oci-seccomp=true --directfs=false --ignore-cgroups=true --character-device-policy=emulated-only
		--gofer-network-namespace=new --allow-flag-override=false --allow-suid=false --net-raw=false --debug=false
		--watchdog-action=log --host-settings=ignore`)
	if got := flags("/s"); !slices.Equal(got, want) {
		t.Errorf("flags %q, want %q", got, want)
	}
}
