package podman

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// failure returns err as an error of this engine.
func failure(op string, err error, hint string) error {
	return &runtime.Error{Engine: name, Op: op, Err: err, Hint: hint}
}

// wrap returns err as an error of this engine, unless it is nil or one already.
func wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*runtime.Error](err); ok {
		return err
	}
	return failure(op, err, "")
}

func imageMissing(op, image string) error {
	return failure(op, fmt.Errorf("%w: %s", runtime.ErrImageMissing, image),
		"build it with `make image`, get it with `podman pull "+image+"`, or name another one in MCP_BRIDGE_IMAGE")
}

// A known condition is recognised by what Podman and the OCI runtimes say, for
// the API gives nothing else: all of them are status 500.
type known struct {
	phrases  []string
	sentinel error
	hint     string
}

var knownConditions = []known{
	{
		phrases:  []string{"attempted to invoke a command that was not found", "executable file", "OCI permission denied"},
		sentinel: runtime.ErrNoProgram,
		hint:     "the image needs Python 3.10 or later: build one with `make image`, or name another one in MCP_BRIDGE_IMAGE",
	},
	{
		phrases:  []string{"cgroups in hybrid mode not supported"},
		sentinel: runtime.ErrUnsupported,
		hint:     "crun cannot work with this machine's mixed control groups: apt-get install runc, or boot with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1)",
	},
	{
		phrases:  []string{"setrlimit"},
		sentinel: runtime.ErrUnsupported,
		hint:     "the engine may not set resource limits: give it CAP_SYS_RESOURCE, or raise its hard limits (ulimit -H)",
	},
	{
		phrases:  []string{"newuidmap", "newgidmap", "subuid", "subgid", "insufficient UIDs", "uid_map"},
		sentinel: runtime.ErrUnsupported,
		hint:     "give the user 65536 subordinate ids in /etc/subuid and /etc/subgid: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER",
	},
}

// explain turns what the service answered to op into an error that a caller and
// an operator can act on.
func explain(op, image string, err error) error {
	if _, ours := errors.AsType[*runtime.Error](err); ours || err == nil {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return wrap(op, err)
	}
	if _, ok := errors.AsType[*url.Error](err); ok { // the transport's, not the service's
		return failure(op, fmt.Errorf("%w: the service does not answer: %s", runtime.ErrUnavailable, sanitize(err.Error())),
			"try again: the podman service ended, and the next call starts it anew; one named by CONTAINER_HOST is yours to start")
	}
	text := err.Error()
	if strings.Contains(text, "image not known") || strings.Contains(text, "no such image") {
		return imageMissing(op, image)
	}
	for _, k := range knownConditions {
		for _, phrase := range k.phrases {
			if strings.Contains(text, phrase) {
				return failure(op, fmt.Errorf("%w: %s", k.sentinel, sanitize(text)), k.hint)
			}
		}
	}
	return failure(op, errors.New(sanitize(text)), "")
}

// unreadable reports that /proc does not show what is to be attested.
func unreadable(err error) error {
	return failure("attest sandbox", fmt.Errorf("%w: %w", runtime.ErrUnsupported, err),
		"the engine must run on this machine, in the same PID namespace")
}

// attestFailure reports what the engine did not put in force.
func attestFailure(differences []runtime.Difference) error {
	texts := make([]string, len(differences))
	hint := "the engine changed the sandbox, or does not run on this machine: look for containers.conf, hooks and CONTAINER_HOST"
	for i, d := range differences {
		texts[i] = d.String()
		if strings.HasSuffix(d.Fact, " limit") {
			hint = "the engine does not put limits in force here: use cgroup v2 with cpu, memory and pids delegated to the user, or run as root"
		}
	}
	return failure("attest sandbox", fmt.Errorf("%w: %s", runtime.ErrUnsupported, strings.Join(texts, "; ")), hint)
}
