package docker

import (
	"strings"

	containertypes "github.com/docker/docker/api/types/container"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// settings are what the daemon says of how a container was made.
func settings(found containertypes.InspectResponse) *runtime.Settings {
	s := &runtime.Settings{Seccomp: []byte{}}
	if health := found.Config; health != nil && health.Healthcheck != nil {
		test := health.Healthcheck.Test
		s.Healthcheck = len(test) > 0 && test[0] != "NONE"
	}
	if found.ContainerJSONBase == nil || found.HostConfig == nil {
		return s
	}
	host := found.HostConfig
	s.Privileged, s.AutoRemove = host.Privileged, host.AutoRemove
	s.LogDriver, s.Restart = host.LogConfig.Type, string(host.RestartPolicy.Name)
	s.Devices = len(host.Devices) + len(host.DeviceCgroupRules) + len(host.DeviceRequests)
	for _, option := range host.SecurityOpt {
		if profile, ok := strings.CutPrefix(option, "seccomp="); ok {
			s.Seccomp = []byte(profile)
		}
	}
	return s
}
