package podman

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// listTimeout bounds podman's reading of its own configuration.
const listTimeout = 10 * time.Second

// defaultConnection is the one that the podman command uses where its service is
// in a virtual machine. It only asks: whether the machine runs is the user's.
func defaultConnection(ctx context.Context) (connection, error) {
	const op = "look for podman's connection"
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, "system", "connection", "list", "--format", "json")
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return connection{}, failures.New(op, fmt.Errorf("%w: podman is not installed", runtime.ErrUnavailable),
			"install podman, then run: podman machine init && podman machine start")
	}
	if err != nil {
		return connection{}, failures.New(op, fmt.Errorf("%w: %w: %s", runtime.ErrUnavailable, err, container.Sanitize(stderr.String())),
			"run `podman system connection list` and mend what it reports")
	}
	var all []connection
	if err := json.Unmarshal(out.Bytes(), &all); err != nil {
		return connection{}, failures.New(op, fmt.Errorf("%w: unexpected answer: %w", runtime.ErrUnavailable, err), "podman 4.3 or later is needed: see `podman version`")
	}
	i := slices.IndexFunc(all, func(c connection) bool { return c.Default })
	if i < 0 {
		return connection{}, failures.New(op, fmt.Errorf("%w: podman has no default connection", runtime.ErrUnavailable),
			"run: podman machine init && podman machine start, or name a service in CONTAINER_HOST")
	}
	return all[i], nil
}
