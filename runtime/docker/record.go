package docker

import (
	"fmt"
	"slices"

	containertypes "github.com/docker/docker/api/types/container"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// recordDifferences compares the daemon's record of a container with what every
// request of ours asks for, as far as neither the host's /proc nor the sandbox
// itself shows it, and no [runtime.Settings] are for it.
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
	want(len(h.CapAdd) == 0, "added capabilities", h.CapAdd, "none")
	want(len(h.Sysctls) == 0, "sysctls", "set", "none")
	want(h.OomKillDisable == nil || !*h.OomKillDisable, "out-of-memory killer", "off", "on")
	want(h.OomScoreAdj >= 0, "out-of-memory score", h.OomScoreAdj, "0 or more")
	for _, path := range maskedPaths {
		want(slices.Contains(h.MaskedPaths, path), "path "+path, "visible", "masked")
	}
	for _, path := range readonlyPaths {
		want(slices.Contains(h.ReadonlyPaths, path), "path "+path, "writable", "read-only")
	}
	return found
}

// recordLimits are the limits of the control group in the daemon's record, from
// which it takes those that it cannot put in force.
func recordLimits(c containertypes.InspectResponse) runtime.CgroupLimits {
	none := runtime.CgroupLimits{
		MemoryBytes: runtime.Unlimited, SwapBytes: runtime.Unlimited, PIDs: runtime.Unlimited, MilliCPUs: runtime.Unlimited,
	}
	if c.ContainerJSONBase == nil || c.HostConfig == nil {
		return none
	}
	h, l := c.HostConfig, none
	if h.Memory > 0 {
		l.MemoryBytes = h.Memory
		if h.MemorySwap > 0 { // both together
			l.SwapBytes = max(0, h.MemorySwap-h.Memory)
		}
	}
	if h.PidsLimit != nil && *h.PidsLimit > 0 {
		l.PIDs = *h.PidsLimit
	}
	if h.CPUQuota > 0 && h.CPUPeriod > 0 {
		l.MilliCPUs = h.CPUQuota * 1000 / h.CPUPeriod
	}
	return l
}
