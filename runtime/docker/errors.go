package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/containerd/errdefs"
	dockerclient "github.com/docker/docker/client"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// failures makes the errors of this engine.
const failures = container.Failures(name)

func imageMissing(op, image string) error {
	return failures.New(op, fmt.Errorf("%w: %s", runtime.ErrImageMissing, image),
		container.MissingHint(name, image))
}

// unreachable is the error for a daemon at host that does not answer.
func unreachable(host string, err error) error {
	text := err.Error()
	hint := "see what listens where DOCKER_HOST points to, or point it to a daemon that answers"
	switch {
	case errors.Is(err, os.ErrPermission) || strings.Contains(text, "permission denied"):
		hint = "this user may not use Docker: sudo usermod -aG docker $USER, and log in again; " +
			"know that members of that group are as good as root. Rootless podman needs no such right: --runtime podman"
	case errors.Is(err, os.ErrNotExist) || strings.Contains(text, "no such file") || dockerclient.IsErrConnectionFailed(err):
		hint = "start it, for example by `sudo systemctl start docker`, install it (apt-get install docker.io), " +
			"or point DOCKER_HOST to one that runs"
	}
	return failures.New("connect to "+host, fmt.Errorf("%w: %w", runtime.ErrUnavailable, err), hint)
}

// knownConditions are told by what Docker and the OCI runtimes say, for the API
// gives nothing else.
var knownConditions = []container.Condition{
	{
		Phrases:  []string{"executable file not found", "no such file or directory: unknown", "permission denied: unknown", "exec format error"},
		Sentinel: runtime.ErrNoProgram,
		Hint:     "the image needs Python 3.10 or later, of this machine's architecture: name another one in MCP_BRIDGE_IMAGE",
	},
	{
		Phrases:  []string{"error setting rlimit", "setrlimit"},
		Sentinel: runtime.ErrUnsupported,
		Hint:     "the daemon may not set resource limits: give it CAP_SYS_RESOURCE, or raise its hard limits (ulimit -H)",
	},
	{
		Phrases:  []string{"cgroup namespace", "cgroupns", "Unknown runtime", "seccomp"},
		Sentinel: runtime.ErrUnsupported,
		Hint:     "Docker 20.10 or later on a kernel with seccomp and cgroup namespaces is needed: see `docker version` and `docker info`",
	},
}

// explain turns what the daemon answered to op into an error that a caller and
// an operator can act on.
func explain(op, image string, err error) error {
	if err == nil || container.IsFailure(err) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return failures.Wrap(op, err)
	}
	text := container.Sanitize(err.Error())
	if dockerclient.IsErrConnectionFailed(err) {
		return failures.New(op, fmt.Errorf("%w: the daemon does not answer: %s", runtime.ErrUnavailable, text),
			"see whether it runs (`docker info`), and try again")
	}
	if errdefs.IsNotFound(err) && strings.Contains(strings.ToLower(text), "no such image") || container.IsArchive(image) {
		return imageMissing(op, image)
	}
	if c, ok := container.Match(knownConditions, text); ok {
		return failures.New(op, fmt.Errorf("%w: %s", c.Sentinel, text), c.Hint)
	}
	return failures.New(op, errors.New(text), "")
}
