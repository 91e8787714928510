package podman

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestElsewhere tells services on this kernel from others.
func TestElsewhere(t *testing.T) {
	var uts unix.Utsname
	var memory unix.Sysinfo_t
	if err := unix.Uname(&uts); err != nil {
		t.Fatal(err)
	}
	if err := unix.Sysinfo(&memory); err != nil {
		t.Fatal(err)
	}
	var here hostInfo
	here.Host.Kernel = unix.ByteSliceToString(uts.Release[:])
	here.Host.Hostname = unix.ByteSliceToString(uts.Nodename[:])
	here.Host.MemTotal = memory.Totalram * uint64(memory.Unit)
	changed := func(change func(*hostInfo)) hostInfo {
		info := here
		change(&info)
		return info
	}
	self := &listener{pid: os.Getpid()} // which is not called podman, as an ssh that forwards is not
	for name, test := range map[string]struct {
		uri  string
		peer *listener
		info hostInfo
		says string
	}{
		"forwarded from here":     {"unix:///s", self, here, ""},
		"another kernel":          {"unix:///s", self, changed(func(i *hostInfo) { i.Host.Kernel += "x" }), "another kernel"},
		"another machine":         {"unix:///s", self, changed(func(i *hostInfo) { i.Host.Hostname = "localhost.localdomain" }), "another machine"},
		"the same but for memory": {"unix:///s", self, changed(func(i *hostInfo) { i.Host.MemTotal /= 2 }), "another machine"},
		"outside":                 {"unix:///s", &listener{}, here, "outside of this container"},
		"tcp":                     {"tcp://127.0.0.1:1", nil, here, "by tcp"},
		"ssh":                     {"ssh://core@127.0.0.1:1/run/podman.sock", nil, here, "by ssh"},
	} {
		if got := elsewhere(test.uri, test.peer, test.info); !strings.Contains(got, test.says) || (got == "") != (test.says == "") {
			t.Errorf("%s: %q, want %q", name, got, test.says)
		}
	}
}

// TestMemTotal wants the service to count memory as we do.
func TestMemTotal(t *testing.T) {
	dir, err := os.MkdirTemp("", "mcpb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	service, err := startService(t.Context(), dir, pickOCIRuntime())
	if err != nil {
		t.Fatal(err)
	}
	defer service.stop()
	c, err := newClient(t.Context(), connection{URI: service.uri})
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name, _ := os.Hostname()
	if !sameMachine(info, name) {
		t.Errorf("service on this machine says %q with %d bytes", info.Host.Hostname, info.Host.MemTotal)
	}
}
