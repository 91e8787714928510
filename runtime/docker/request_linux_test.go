package docker

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
)

var update = flag.Bool("update", false, "write the golden files anew")

func placement() container.Placement {
	spec := runtime.Spec{
		Image: "i", Command: []string{"python3", "-I"}, Env: []string{"LANG=C.UTF-8"},
		Seccomp: []byte(`{"defaultAction": "SCMP_ACT_ERRNO", "architectures": []}`), Limits: runtime.Limits{}.WithDefaults(),
		Binds: []runtime.Bind{{Source: "/home/u/data", Target: "/mnt/data"}},
	}
	return container.Placement{
		ID: "mcpb-x", Spec: spec, UID: 2000, Labels: map[string]string{local.LabelSandbox: "mcpb-x"},
		Command:   append(slices.Clone(spec.Command), "socket:"+runtime.SocketPath),
		Transport: runtime.TransportSocket,
		Dir:       &local.SandboxDir{Path: "/d", Files: "/d/files", Seccomp: "/d/seccomp.json", Socket: "/d/socket"},
		Rlimits:   map[string]int64{"core": 0, "nofile": 1024, "nproc": 128},
	}
}

// TestRequest compares all that the daemon is asked for with what was reviewed.
// Much of it a running sandbox does not show, so that neither the contract suite
// nor attestation would miss it.
func TestRequest(t *testing.T) {
	image := imageFacts{
		id:      "sha256:i",
		env:     []string{"PATH=/image", "HTTP_PROXY=http://user:secret@proxy", "LANG=C", "HOSTNAME=x", "HTTP_PROXY=again", "=odd", "NOVALUE"},
		volumes: []string{"/data", "/tmp"},
	}
	stdio := placement()
	stdio.Command[len(stdio.Command)-1] = string(runtime.TransportStdio)
	stdio.Transport = runtime.TransportStdio
	for name, p := range map[string]container.Placement{"socket": placement(), "stdio": stdio} {
		t.Run(name, func(t *testing.T) {
			request, err := newCreateRequest(p, image, "x86_64")
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(struct{ Config, HostConfig any }{request.config, request.host}, "", "\t")
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

func TestSeccompProfile(t *testing.T) {
	for _, test := range []struct{ profile, architecture, want string }{
		{`{"architectures": []}`, "x86_64", `{"architectures":["SCMP_ARCH_X86_64"]}`},
		{`{"architectures": [ ], "a": 1}`, "aarch64", `{"a":1,"architectures":["SCMP_ARCH_AARCH64"]}`},
		{`{"architectures": []}`, "riscv64", `{"architectures":[]}`},
		{`{"architectures": ["SCMP_ARCH_ARM"]}`, "x86_64", `{"architectures":["SCMP_ARCH_ARM"]}`},
		{`{"archMap": []}`, "x86_64", `{"archMap":[]}`},
	} {
		if got, err := seccompProfile([]byte(test.profile), test.architecture); err != nil || got != test.want {
			t.Errorf("%s on %s became %s, %v, want %s", test.profile, test.architecture, got, err, test.want)
		}
	}
	if got, err := seccompProfile([]byte(`[]`), "x86_64"); err == nil {
		t.Errorf("a list became %s", got)
	}
}
