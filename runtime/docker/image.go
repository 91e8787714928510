package docker

import (
	"context"
	"fmt"
	"path"
	"slices"

	dockerclient "github.com/docker/docker/client"
)

// imageFacts are what an image would bring into a container unasked.
type imageFacts struct {
	id      string
	env     []string // KEY=VALUE
	volumes []string // mount points
}

// Bounds on what an image may declare.
const (
	maxImageEnv     = 256
	maxImageVolumes = 32
)

// inspectImage returns what is to be known of an image before a container is
// made of it.
func inspectImage(ctx context.Context, c *dockerclient.Client, image string) (imageFacts, error) {
	found, err := c.ImageInspect(ctx, image)
	if err != nil {
		return imageFacts{}, err
	}
	facts := imageFacts{id: found.ID}
	if found.Config == nil {
		return facts, nil
	}
	facts.env = found.Config.Env
	for point := range found.Config.Volumes {
		facts.volumes = append(facts.volumes, path.Clean("/"+point)) // as Docker does
	}
	slices.Sort(facts.volumes)
	if len(facts.env) > maxImageEnv || len(facts.volumes) > maxImageVolumes {
		return imageFacts{}, fmt.Errorf("the image declares %d variables and %d volumes, at most %d and %d are possible",
			len(facts.env), len(facts.volumes), maxImageEnv, maxImageVolumes)
	}
	return facts, nil
}
