package podman

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

// TestRequest holds what a running sandbox does not show, so that neither the
// contract suite nor attestation would miss it.
func TestRequest(t *testing.T) {
	spec := runtime.Spec{Image: "i", Command: []string{"python3", "-I"}, Files: fstest.MapFS{}, Limits: runtime.Limits{}.WithDefaults()}
	rlimits := map[string]int64{"core": 0, "nofile": 100, "nproc": 64}
	owner := local.Owner{UID: 1, Boot: "b", PID: 2, PIDNS: 3, Start: 4}
	request := new(client).newCreateRequest(container.Placement{
		ID: "mcpb-x", UID: 2000, Spec: spec, Command: append(spec.Command, "socket:x"), Labels: owner.Labels(), Rlimits: rlimits,
		Dir: &local.SandboxDir{Path: "/d", Files: "/d/files", Seccomp: "/d/seccomp.json", Socket: "/d/socket"},
	})
	data, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"log_configuration":      `{"driver":"none"}`,
		"healthconfig":           `{"Test":["NONE"]}`,
		"remove":                 `true`,
		"httpproxy":              `false`,
		"env_host":               `false`,
		"unsetenvall":            `true`,
		"image_volume_mode":      `"ignore"`,
		"read_write_tmpfs":       `false`,
		"use_image_hosts":        `true`,
		"use_image_resolve_conf": `true`,
		"privileged":             `false`,
		"systemd":                `"false"`,
		"stop_signal":            `9`,
		"entrypoint":             `["python3"]`,
		"command":                `["-I","socket:x"]`,
		"labels": `{"io.mcp-bridge.boot":"b","io.mcp-bridge.owner":"1","io.mcp-bridge.pid":"2",` +
			`"io.mcp-bridge.pidns":"3","io.mcp-bridge.start":"4"}`,
		"resource_limits": `{"memory":{"limit":536870912,"swap":536870912},"cpu":{"quota":100000,"period":100000},"pids":{"limit":128}}`,
	} {
		if string(got[key]) != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
	for _, l := range request.Rlimits {
		if want := rlimits[l.Type]; l.Soft != want || l.Hard != want {
			t.Errorf("rlimit %s is %d:%d, want %d", l.Type, l.Soft, l.Hard, want)
		}
	}
	if len(request.Rlimits) != len(rlimits) {
		t.Errorf("rlimits: %v", request.Rlimits)
	}
}
