package podman

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

// TestRequest holds what a running sandbox does not show, so that neither the
// contract suite nor attestation would miss it.
func TestRequest(t *testing.T) {
	spec := runtime.Spec{Image: "i", Command: []string{"python3", "-I"}, Files: fstest.MapFS{}, Limits: runtime.Limits{}.WithDefaults()}
	limits := map[string]int64{"core": runtime.Unlimited, "fsize": runtime.Unlimited, "memlock": 1 << 23, "nofile": 100, "nproc": 64}
	request, err := newCreateRequest(spec, placement{
		id: "mcpb-x", uid: 2000, owner: local.Owner{UID: 1, Boot: "b", PID: 2, PIDNS: 3, Start: 4},
		dir:       &local.SandboxDir{Path: "/d", Files: "/d/files", Seccomp: "/d/seccomp.json", Socket: "/d/socket"},
		hardLimit: func(name string) (int64, error) { return limits[name], nil },
	})
	if err != nil {
		t.Fatal(err)
	}
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
		"command":                `["-I","socket:/run/mcp-bridge/socket/s"]`,
		"labels": `{"io.mcp-bridge.boot":"b","io.mcp-bridge.owner":"1","io.mcp-bridge.pid":"2",` +
			`"io.mcp-bridge.pidns":"3","io.mcp-bridge.sandbox":"mcpb-x","io.mcp-bridge.start":"4"}`,
		"resource_limits": `{"memory":{"limit":536870912,"swap":536870912},"cpu":{"quota":100000,"period":100000},"pids":{"limit":128}}`,
	} {
		if string(got[key]) != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
	for _, l := range request.Rlimits {
		want := min(spec.Limits.Rlimits()[l.Type], orMax(limits[l.Type]))
		if l.Soft != want || l.Hard != want {
			t.Errorf("rlimit %s is %d:%d, want %d", l.Type, l.Soft, l.Hard, want)
		}
	}
	if len(request.Rlimits) != len(limits) {
		t.Errorf("rlimits: %v", request.Rlimits)
	}
}

func orMax(limit int64) int64 {
	if limit == runtime.Unlimited {
		return 1<<63 - 1
	}
	return limit
}

func TestTail(t *testing.T) {
	var long tail
	for range 100 {
		long.Write(make([]byte, 1000))
	}
	long.Write([]byte("end"))
	if got := long.String(); got != "end" || len(long.data) != tailBytes {
		t.Errorf("tail is %q of %d bytes", got, len(long.data))
	}
	for text, want := range map[string]string{
		"a\nb\tc":                         "a\nb\tc",
		"\x1b[31mred\x1b]8;;x\x07\x00":    "[31mred]8;;x",
		"\u202eabc\u2066\u200b\U000e0041": "abc",
		"ok\xff\xfe\u009b1m":              "ok1m",
		"naïve 日本 🙂":                      "naïve 日本 🙂",
	} {
		if got := sanitize(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
