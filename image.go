// Package mcpbridge holds what the sandbox's images are built from, for builds
// without a clone of this repository.
package mcpbridge

import "embed"

//go:embed Dockerfile.sandbox sandbox-image/build/*.sh sandbox-image/build/requirements/*.txt
var image embed.FS

// Image returns Dockerfile.sandbox and the files that it copies, by their paths
// in the repository.
func Image() embed.FS { return image }
