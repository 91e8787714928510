//go:build linux

package podman

import (
	"errors"
	"os"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// TestDefaultConnection asks a podman that has machines, in podman's own words.
func TestDefaultConnection(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		want   connection
	}{
		"machine": {
			`echo '[{"Name":"other","URI":"ssh://x@127.0.0.1:1/run/podman.sock","Identity":"","IsMachine":false,"Default":false},
{"Name":"podman-machine-default","URI":"ssh://core@127.0.0.1:51234/run/user/501/podman/podman.sock","Identity":"/k/machine","IsMachine":true,"Default":true,"ReadWrite":true}]'`,
			connection{URI: "ssh://core@127.0.0.1:51234/run/user/501/podman/podman.sock", Identity: "/k/machine", IsMachine: true, Default: true},
		},
		"none":   {"echo '[]'", connection{}},
		"broken": {"echo no >&2; exit 125", connection{}},
		"noise":  {"echo hello", connection{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script := "#!/bin/sh\n[ \"$*\" = 'system connection list --format json' ] || exit 1\n" + test.script + "\n"
			if err := os.WriteFile(dir+"/podman", []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			got, err := defaultConnection(t.Context())
			if got != test.want || (err == nil) != (test.want.URI != "") {
				t.Errorf("connection %+v, %v, want %+v", got, err, test.want)
			}
			if err != nil && (!errors.Is(err, runtime.ErrUnavailable) || runtime.HintOf(err) == "") {
				t.Errorf("error %v without a hint, or not ErrUnavailable", err)
			}
		})
	}
}
