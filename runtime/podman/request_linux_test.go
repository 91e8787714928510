package podman

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

var update = flag.Bool("update", false, "write the golden files anew")

func placement() container.Placement {
	spec := runtime.Spec{
		Image: "i", Command: []string{"python3", "-I"}, Env: []string{"LANG=C.UTF-8"}, Files: fstest.MapFS{},
		Seccomp: []byte(`{"defaultAction": "SCMP_ACT_ERRNO"}`), Limits: runtime.Limits{}.WithDefaults(),
		Binds: []runtime.Bind{{Source: "/home/u/data", Target: "/mnt/data"}},
	}
	owner := local.Owner{UID: 1, Boot: "b", PID: 2, PIDNS: 3, Start: 4}
	return container.Placement{
		ID: "mcpb-x", Spec: spec, UID: 2000, Labels: owner.Labels(), Transport: runtime.TransportSocket,
		Command: append(slices.Clone(spec.Command), "socket:"+runtime.SocketPath),
		Dir:     &local.SandboxDir{Path: "/d", Files: "/d/files", Seccomp: "/d/seccomp.json", Socket: "/d/socket"},
		Rlimits: map[string]int64{"core": 0, "fsize": 1 << 27, "memlock": 0, "nofile": 100, "nproc": 64},
	}
}

// TestRequest compares all that the service is asked for with what was reviewed.
// Part of it a running sandbox does not show, so that neither the contract suite
// nor attestation would miss it: see TestMutations.
func TestRequest(t *testing.T) {
	stdio := placement()
	stdio.Transport = runtime.TransportStdio
	stdio.Command[len(stdio.Command)-1] = string(runtime.TransportStdio)
	for name, test := range map[string]struct {
		client    client
		placement container.Placement
	}{
		"rootful":  {client{}, placement()},
		"rootless": {client{rootless: true, ociRuntime: "crun"}, placement()},
		"stdio":    {client{}, stdio},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(test.client.newCreateRequest(test.placement), "", "\t")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			file := "testdata/request-" + name + ".json"
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the request is not that of %s; if it should be another one: go test -run TestRequest -update\n%s", file, got)
			}
		})
	}
}
