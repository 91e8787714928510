package container

import (
	"strings"

	"github.com/distribution/reference"
)

// MissingHint says how to get an image that the engine does not have. It repeats
// a name only where that is an image's: hints are shown to models, and others
// can be paths of the host.
func MissingHint(engine, image string) string {
	const another = ", or name another one in MCP_BRIDGE_IMAGE"
	if IsArchive(image) {
		return "it is an archive: load it with `" + engine + " load -i FILE`, and name the image as that says"
	}
	if strings.HasPrefix(image, LocalPrefix) {
		return "build it with `" + buildCommand(engine, image) + "`" + another
	}
	called := Printable(image)
	return "get it with `" + engine + " pull " + called + "` or `mcp-bridge image pull --runtime " + engine + " " + called + "`" + another
}

// PullHint says what to do about an image that could not be pulled.
func PullHint(engine, image string) string {
	if IsArchive(image) || strings.HasPrefix(image, LocalPrefix) {
		return MissingHint(engine, image)
	}
	return "check the name, and whether the registry answers: `" + engine + " pull " + Printable(image) + "`"
}

// LocalPrefix begins the names of images that were built here: no registry has them.
const LocalPrefix = "localhost/"

// IsArchive reports whether what is called an image is a file with one, in the
// words of podman and skopeo.
func IsArchive(image string) bool {
	return strings.HasPrefix(image, "docker-archive:") || strings.HasPrefix(image, "oci-archive:")
}

// buildCommand builds an image with the name, with what mcp-bridge carries.
func buildCommand(engine, image string) string {
	command := "mcp-bridge image build --runtime " + engine
	switch strings.TrimSuffix(image, ":latest") {
	case LocalPrefix + "mcp-bridge-sandbox":
		return command
	case LocalPrefix + "mcp-bridge-sandbox-data":
		return command + " --target data"
	}
	return command + " --name " + Printable(image)
}

// Printable is the image's name, or NAME where it is no name, and so can be a
// path of the host.
func Printable(image string) string {
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return "NAME"
	}
	return image
}
