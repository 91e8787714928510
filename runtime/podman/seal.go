package podman

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/container"
)

const (
	// sealedName names images that we have given a seccomp profile.
	sealedName = "localhost/mcp-bridge-sealed"
	// profileLabel is where Podman looks for an image's own profile.
	profileLabel = "io.containers.seccomp.profile"
	// profileOfImage makes it look there.
	profileOfImage = "image"
)

// seal returns the name of an image that is the given one, with the profile in a
// label. A request can only name a profile by its path on the service's machine,
// where nothing of ours is; an image can bring it along.
func (c *client) seal(ctx context.Context, image string, profile []byte) (string, error) {
	var found struct {
		ID string `json:"Id"`
	}
	if err := c.call(ctx, http.MethodGet, "/images/%s/json", nil, nil, &found, image); err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte(found.ID+"\n"), profile...))
	name := sealedName + ":" + hex.EncodeToString(sum[:16])
	if exists, err := c.imageExists(ctx, name); exists || err != nil {
		return name, err
	}
	labels, err := json.Marshal(map[string]string{profileLabel: string(profile)})
	if err != nil {
		return "", err
	}
	query := url.Values{
		"t": {name}, "dockerfile": {container.DockerfileName}, "rm": {"1"}, "forcerm": {"1"},
		"labels": {string(labels)}, "networkmode": {strconv.Itoa(noNetwork)},
	}
	reader, writer := io.Pipe()
	defer reader.Close() // ends the goroutine, should the service not read all
	go func() {
		writer.CloseWithError(container.WriteContext(writer, runtime.BuildOptions{Dockerfile: "FROM " + found.ID + "\n"}))
	}()
	return name, c.stream(ctx, "/build", query, reader, func(container.Message) {})
}
