package podman_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/runtimetest"
)

func TestImages(t *testing.T) {
	engine := open(t, shortDir(t))
	defer engine.Close()
	runtimetest.Images(t, engine.(runtime.ImageStore), false, func(t testing.TB, image string) {
		cli(t, "rmi", "--force", "--ignore", image)
	})
}

// TestBuildNetwork wants builds to have another network than the host's.
func TestBuildNetwork(t *testing.T) {
	engine := open(t, shortDir(t))
	defer engine.Close()
	host, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	ref := "localhost/mcpb-test-network:" + strconv.FormatInt(time.Now().UnixNano(), 36)
	t.Cleanup(func() { cli(t, "rmi", "--force", "--ignore", ref) })
	var networks []string
	err = engine.(runtime.ImageStore).Build(t.Context(), runtime.BuildOptions{
		Name: ref, Dockerfile: "FROM " + image() + "\nUSER 0\nRUN readlink /proc/self/ns/net\n",
	}, func(line string) {
		if strings.HasPrefix(line, "net:[") {
			networks = append(networks, line)
		}
	})
	if err != nil || len(networks) != 1 || networks[0] == host {
		t.Errorf("networks %q, %v, want one other than the host's %s", networks, err, host)
	}
}
