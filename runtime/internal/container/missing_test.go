package container

import (
	"strings"
	"testing"
)

func TestMissingHint(t *testing.T) {
	for _, test := range []struct {
		image string
		says  string
		lacks []string
	}{
		{"localhost/mcp-bridge-sandbox:latest", "`mcp-bridge image build --runtime podman`", []string{"pull"}},
		{"localhost/mcp-bridge-sandbox-data", "`mcp-bridge image build --runtime podman --target data`", []string{"pull"}},
		{"localhost/mine:1", "`mcp-bridge image build --runtime podman --name localhost/mine:1`", []string{"pull"}},
		{"nosuch", "`podman pull nosuch` or `mcp-bridge image pull --runtime podman nosuch`", []string{"build"}},
		{"127.0.0.1:5000/team/tool:1", "podman pull 127.0.0.1:5000/team/tool:1", []string{"build"}},
		{"docker-archive:/home/ann/image.tar", "podman load -i FILE", []string{"ann", "pull"}},
		{"oci-archive:image.tar", "podman load -i FILE", []string{"image.tar", "pull"}},
		{"/home/ann/image.tar", "podman pull NAME", []string{"ann"}},
		{"dir:/home/ann/image", "podman pull NAME", []string{"ann"}},
		{"localhost/../home/ann", "--name NAME", []string{"ann"}},
		{"", "podman pull NAME", nil},
	} {
		got := MissingHint("podman", test.image)
		if !strings.Contains(got, test.says) {
			t.Errorf("%q: %q, want %q", test.image, got, test.says)
		}
		for _, no := range append(test.lacks, "make image") {
			if strings.Contains(got, no) || no == "ann" && strings.Contains(PullHint("podman", test.image), no) {
				t.Errorf("%q: %q contains %q", test.image, got, no)
			}
		}
	}
}
