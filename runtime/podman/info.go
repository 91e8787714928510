package podman

import (
	"context"
	"net/http"
	"slices"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// hostInfo is the part of GET /info that we look at.
type hostInfo struct {
	Host struct {
		Arch              string   `json:"arch"`
		Hostname          string   `json:"hostname"`
		Kernel            string   `json:"kernel"`
		MemTotal          uint64   `json:"memTotal"`
		CgroupVersion     string   `json:"cgroupVersion"`
		CgroupControllers []string `json:"cgroupControllers"`
		OCIRuntime        struct {
			Name string `json:"name"`
		} `json:"ociRuntime"`
		Security struct {
			Rootless       bool `json:"rootless"`
			SeccompEnabled bool `json:"seccompEnabled"`
		} `json:"security"`
	} `json:"host"`
	Store struct {
		GraphDriverName string `json:"graphDriverName"`
	} `json:"store"`
	Version struct {
		Version string
	} `json:"version"`
}

func (c *client) info(ctx context.Context) (hostInfo, error) {
	var info hostInfo
	return info, c.call(ctx, http.MethodGet, "/info", nil, nil, &info)
}

// controllers are those that a sandbox's limits need, with the limits.
var controllers = []struct{ name, fact string }{
	{"memory", "memory limit"}, {"pids", "process limit"}, {"cpu", "cpu limit"},
}

// missingLimits are those that the service cannot put in force.
func (i hostInfo) missingLimits() []runtime.Difference {
	if !i.Host.Security.Rootless {
		return nil
	}
	var missing []runtime.Difference
	for _, c := range controllers {
		switch {
		case i.Host.CgroupVersion == "v1":
			missing = append(missing, runtime.Difference{Fact: c.fact, Got: "ignored by rootless podman on cgroup v1", Want: "in force"})
		case !slices.Contains(i.Host.CgroupControllers, c.name):
			missing = append(missing, runtime.Difference{Fact: c.fact, Got: "without a controller that is delegated to the user", Want: "in force"})
		}
	}
	return missing
}
