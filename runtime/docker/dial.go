package docker

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/connhelper"
	dockerclient "github.com/docker/docker/client"
)

// dial returns a client for the daemon at host. It connects to nothing yet.
func dial(host string) (*dockerclient.Client, error) {
	opts := []dockerclient.Opt{dockerclient.WithAPIVersionNegotiation()}
	remote, err := connhelper.GetConnectionHelper(host)
	switch {
	case err != nil:
		return nil, err
	case remote != nil: // ssh://
		opts = append(opts, dockerclient.WithHost(remote.Host), dockerclient.WithDialContext(remote.Dialer))
	case strings.HasPrefix(host, "tcp://"):
		opts = append(opts, dockerclient.WithTLSClientConfigFromEnv(), dockerclient.WithHost(host))
	default:
		opts = append(opts, dockerclient.WithHost(host))
	}
	return dockerclient.NewClientWithOpts(opts...)
}

// host is where the daemon is: where the options say, or at the first of
// docker's usual sockets that is there.
func (o Options) host() string {
	if o.Host != "" {
		return o.Host
	}
	var candidates []string
	if path, ok := strings.CutPrefix(dockerclient.DefaultDockerHost, "unix://"); ok {
		candidates = append(candidates, path)
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		candidates = append(candidates, filepath.Join(dir, "docker.sock")) // a rootless daemon's
	}
	if home, err := os.UserHomeDir(); err == nil { // Docker Desktop's
		candidates = append(candidates, filepath.Join(home, ".docker/run/docker.sock"), filepath.Join(home, ".docker/desktop/docker.sock"))
	}
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 { //nolint:gosec // the user's own environment
			return "unix://" + path
		}
	}
	return dockerclient.DefaultDockerHost
}
