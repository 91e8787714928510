package runtime_test

import (
	"context"
	"errors"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/docker"
	"github.com/mcp-bridge/mcp-bridge/runtime/gvisor"
	"github.com/mcp-bridge/mcp-bridge/runtime/podman"
)

// TestTransportOfOthers holds that all engines say the same of a transport that
// they do not have, and that it is not about the hardening.
func TestTransportOfOthers(t *testing.T) {
	_, ofPodman := podman.New(podman.Options{Transport: runtime.TransportFD, RuntimeDir: t.TempDir()})
	_, ofDocker := docker.New(docker.Options{Transport: runtime.TransportFD, RuntimeDir: t.TempDir()})
	_, ofGVisor := gvisor.New(gvisor.Options{Transport: runtime.TransportSocket, RuntimeDir: t.TempDir(), CacheDir: t.TempDir()})
	for _, test := range []struct {
		err        error
		says, mend string
	}{
		{ofPodman, "podman: open engine: podman has no transport fd: use auto, socket or stdio", "use --transport auto, socket or stdio"},
		{ofDocker, "docker: open engine: docker has no transport fd: use auto, socket or stdio", "use --transport auto, socket or stdio"},
		{ofGVisor, "gvisor: open engine: gvisor has no transport socket: use auto, fd or stdio", "use --transport auto, fd or stdio"},
	} {
		if test.err == nil || test.err.Error() != test.says || runtime.HintOf(test.err) != test.mend || errors.Is(test.err, runtime.ErrUnsupported) {
			t.Errorf("error %v (hint %q), want %q", test.err, runtime.HintOf(test.err), test.says)
		}
	}

	able := &scripted{name: "gvisor"}
	e := runtime.NewFirstOf([]runtime.Engine{&scripted{name: "podman", err: ofPodman}, able}, nil)
	box, err := e.Start(context.Background(), runtime.Spec{})
	if err != nil || able.starts.Load() != 1 {
		t.Fatalf("the next engine is not tried: %v", err)
	}
	if box.ID() != "gvisor" {
		t.Errorf("started on %s", box.ID())
	}
	if _, err := e.Sweep(t.Context()); err != nil {
		t.Errorf("sweep: %v", err)
	}
}
