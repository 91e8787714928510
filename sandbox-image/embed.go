// Package sandboximage carries the Python that runs inside a sandbox and the
// seccomp profile it runs under. Any image with Python 3.10 or newer will do:
// the kernel is delivered at start, so it and this binary are of one version.
package sandboximage

import (
	"embed"
	"encoding/json"
	"fmt"
)

// Explicit pattern: `mcpbridge` alone would drop __init__.py or take caches in.
//
//go:embed mcpbridge/*.py
var files embed.FS

//go:embed seccomp.json
var seccomp []byte

// Files returns the kernel's sources, to be shown to the sandbox in one
// directory.
func Files() embed.FS { return files }

// Seccomp returns the profile in the JSON format that Podman and Docker read.
func Seccomp() []byte { return seccomp }

// Protocol is the version of the control protocol that the kernel speaks.
const Protocol = 1

// Settings are what the kernel needs to know of its sandbox.
type Settings struct {
	// DataLimit bounds the private memory of each process of a cell in bytes,
	// below the container's limit, so that MemoryError comes before the OOM
	// killer. Zero sets no bound.
	DataLimit int64 `json:"data_limit"`
}

// boot runs before anything else of ours is parsed, in whatever Python there is.
//
//go:embed boot.py
var boot string

// Command returns the argv of PID 1 for a sandbox in which [Files] appear at
// filesDir, or come in on stdin. The engine appends one argument, the transport:
// see runtime.Transport.
func Command(filesDir string, settings Settings) ([]string, error) {
	data, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("encode kernel settings: %w", err)
	}
	return []string{"python3", "-I", "-c", boot, filesDir, string(data)}, nil
}
