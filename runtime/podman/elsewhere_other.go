//go:build !linux

package podman

import (
	"context"
	"net"
	goruntime "runtime"

	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// A service of our own there is not: Podman's runs in a virtual machine.
type service struct{}

func (*service) stop() {}

// connectDefault connects to what podman itself would use.
func (d *driver) connectDefault(ctx context.Context, _ func() (string, error)) (container.API, error) {
	at, err := defaultConnection(ctx)
	if err != nil {
		return nil, err
	}
	return d.connectTo(ctx, at)
}

// probe connects to the unix socket at path once.
func probe(ctx context.Context, path string) (*listener, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return nil, c.Close()
}

// elsewhere says why this kernel does not show the service's containers: it is
// not the one that runs them.
func elsewhere(string, *listener, hostInfo) string {
	return "containers do not run on the kernel of " + goruntime.GOOS
}
