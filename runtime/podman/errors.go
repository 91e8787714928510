package podman

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// failures makes the errors of this engine.
const failures = container.Failures(name)

func imageMissing(op, image string) error {
	return failures.New(op, fmt.Errorf("%w: %s", runtime.ErrImageMissing, image),
		container.MissingHint(name, image))
}

// noLimitsHint is for limits that a rootless engine cannot put in force.
const noLimitsHint = "use cgroup v2 with cpu, memory and pids delegated to the user (systemctl edit user@.service: Delegate=cpu memory pids), " +
	"run as root, or accept a sandbox on rlimits alone with --allow-unlimited"

// knownConditions are those that the API tells by words alone: all of them are
// status 500.
var knownConditions = []container.Condition{
	{
		Phrases:  []string{"attempted to invoke a command that was not found", "executable file", "OCI permission denied"},
		Sentinel: runtime.ErrNoProgram,
		Hint:     "the image needs Python 3.10 or later: build one with `mcp-bridge image build`, or name another one in MCP_BRIDGE_IMAGE",
	},
	{
		Phrases:  []string{"cgroups in hybrid mode not supported"},
		Sentinel: runtime.ErrUnsupported,
		Hint:     "crun cannot work with this machine's mixed control groups: apt-get install runc, or boot with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1)",
	},
	{
		Phrases:  []string{"requested cgroup controller", "can't be set: controller"},
		Sentinel: runtime.ErrUnsupported,
		Hint:     noLimitsHint,
	},
	{
		Phrases:  []string{"setrlimit"},
		Sentinel: runtime.ErrUnsupported,
		Hint:     "the engine may not set resource limits: give it CAP_SYS_RESOURCE, or raise its hard limits (ulimit -H)",
	},
	{
		Phrases:  []string{"newuidmap", "newgidmap", "subuid", "subgid", "insufficient UIDs", "uid_map"},
		Sentinel: runtime.ErrUnsupported,
		Hint:     "give the user 65536 subordinate ids in /etc/subuid and /etc/subgid: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER",
	},
}

// explain turns what the service answered to op into an error that a caller and
// an operator can act on.
func explain(op, image string, err error) error {
	if err == nil || container.IsFailure(err) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return failures.Wrap(op, err)
	}
	if unanswered(err) {
		return failures.New(op, fmt.Errorf("%w: the service does not answer: %s", runtime.ErrUnavailable, container.Sanitize(err.Error())),
			"try again: the podman service ended, and the next call starts it anew; one named by CONTAINER_HOST is yours to start")
	}
	text := err.Error()
	if strings.Contains(text, "image not known") || strings.Contains(text, "no such image") || container.IsArchive(image) {
		return imageMissing(op, image)
	}
	if known, ok := container.Match(knownConditions, text); ok {
		return failures.New(op, fmt.Errorf("%w: %s", known.Sentinel, container.Sanitize(text)), known.Hint)
	}
	return failures.New(op, errors.New(container.Sanitize(text)), "")
}

// unanswered reports whether err is the transport's, and not the service's.
func unanswered(err error) bool {
	_, ok := errors.AsType[*url.Error](err)
	return ok
}
