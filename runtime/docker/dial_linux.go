package docker

import (
	"os"
	"path/filepath"

	dockerclient "github.com/docker/docker/client"
)

// dial returns a client for the daemon at host. It connects to nothing yet.
func dial(host string) (*dockerclient.Client, error) {
	opts := []dockerclient.Opt{dockerclient.WithAPIVersionNegotiation(), dockerclient.WithTLSClientConfigFromEnv()}
	if host != "" {
		opts = append(opts, dockerclient.WithHost(host))
	}
	return dockerclient.NewClientWithOpts(opts...)
}

// defaultHost returns the first of docker's usual sockets that is there, or ""
// for the client's own default.
func defaultHost() string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/nonexistent"
	}
	candidates := []string{"/var/run/docker.sock"}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		candidates = append(candidates, filepath.Join(dir, "docker.sock")) // a rootless daemon's
	}
	candidates = append(candidates,
		filepath.Join(home, ".docker/run/docker.sock"), // Docker Desktop's
		filepath.Join(home, ".docker/desktop/docker.sock"),
	)
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			return "unix://" + path
		}
	}
	return ""
}
