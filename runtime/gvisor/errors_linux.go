package gvisor

import (
	"fmt"
	"strings"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

// failures makes the errors of this engine.
const failures = container.Failures(engineName)

// noHelper reports that there is no runsc to use.
func noHelper(op string, err error) error {
	return failures.New(op, err, "`make build` leaves "+helperName+" beside mcp-bridge; elsewhere get it with `"+InstallHint+"`")
}

// refuse is the error for what is not in force.
func refuse(differences ...runtime.Difference) error {
	texts := make([]string, len(differences))
	hint := "gVisor did not do as it was told: is it the version that mcp-bridge comes with?"
	for i, d := range differences {
		texts[i] = d.String()
		if strings.HasSuffix(d.Fact, " limit") {
			hint = noLimitsHint
		}
	}
	return failures.New("attest sandbox", fmt.Errorf("%w: %s", runtime.ErrUnsupported, strings.Join(texts, "; ")), hint)
}

// noLimitsHint is what to do where this user has no control group to limit.
const noLimitsHint = "run as root, or with cgroup v2 as `systemd-run --user --scope -p Delegate=yes mcp-bridge …`; --allow-unlimited does without the limits"

// conditions are those that runsc tells by words alone.
var conditions = []container.Condition{
	{
		Phrases:  []string{"failed to find executable", "executable file not found", "error finding executable", "failed to load", "exec format error"},
		Sentinel: runtime.ErrNoProgram,
		Hint:     "the image needs Python 3.10 or later: name another one in MCP_BRIDGE_IMAGE, or none to use the host's Python",
	},
	{
		Phrases:  []string{"operation not permitted"},
		Sentinel: runtime.ErrUnsupported,
		Hint:     "unprivileged user namespaces are off here, or ptrace is restricted: see `sysctl kernel.unprivileged_userns_clone user.max_user_namespaces kernel.apparmor_restrict_unprivileged_userns`",
	},
}
