//go:build !linux

package docker

import (
	"context"
	goruntime "runtime"

	"github.com/docker/docker/api/types/system"
)

// elsewhere says why this kernel does not show the daemon's containers: it is
// not the one that runs them.
func elsewhere(context.Context, string, system.Info) (string, error) {
	return "containers do not run on the kernel of " + goruntime.GOOS, nil
}
