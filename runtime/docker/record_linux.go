package docker

import (
	"fmt"
	"slices"

	containertypes "github.com/docker/docker/api/types/container"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// recordDifferences compares the daemon's record of a container with what every
// request of ours asks for, as far as neither the host's /proc nor the sandbox
// itself shows it.
func recordDifferences(c containertypes.InspectResponse) []runtime.Difference {
	if c.ContainerJSONBase == nil || c.HostConfig == nil || c.Config == nil {
		return []runtime.Difference{{Fact: "the daemon's record", Got: "incomplete", Want: "whole"}}
	}
	h := c.HostConfig
	var found []runtime.Difference
	want := func(holds bool, fact string, got, want any) {
		if !holds {
			found = append(found, runtime.Difference{Fact: fact, Got: fmt.Sprint(got), Want: fmt.Sprint(want)})
		}
	}
	want(!h.Privileged, "privileged", true, false)
	want(len(h.CapAdd) == 0, "added capabilities", h.CapAdd, "none")
	want(len(h.Devices)+len(h.DeviceRequests)+len(h.DeviceCgroupRules) == 0, "devices", "added", "none")
	want(len(h.Sysctls) == 0, "sysctls", "set", "none")
	want(h.LogConfig.Type == "none", "log driver", h.LogConfig.Type, "none")
	want(h.RestartPolicy.IsNone(), "restart policy", h.RestartPolicy.Name, "no")
	want(h.AutoRemove, "automatic removal", false, true)
	want(h.OomKillDisable == nil || !*h.OomKillDisable, "out-of-memory killer", "off", "on")
	want(h.OomScoreAdj >= 0, "out-of-memory score", h.OomScoreAdj, "0 or more")
	want(c.Config.Healthcheck != nil && slices.Equal(c.Config.Healthcheck.Test, []string{"NONE"}), "health check", "on", "off")
	for _, path := range maskedPaths {
		want(slices.Contains(h.MaskedPaths, path), "path "+path, "visible", "masked")
	}
	for _, path := range readonlyPaths {
		want(slices.Contains(h.ReadonlyPaths, path), "path "+path, "writable", "read-only")
	}
	return found
}
