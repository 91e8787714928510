package container

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/mcp-bridge/mcp-bridge/runtime"
)

// DockerfileName is the Dockerfile's in a build's context: one that no file of
// the caller's is likely to have.
const DockerfileName = ".mcp-bridge.Dockerfile"

// WriteContext writes the context of a build as a tar archive.
func WriteContext(w io.Writer, opts runtime.BuildOptions) error {
	archive := tar.NewWriter(w)
	if opts.Context != nil {
		if err := fs.WalkDir(opts.Context, ".", func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && !entry.Type().IsRegular() {
				err = fmt.Errorf("%s is not a regular file", name)
			}
			return err
		}); err != nil {
			return err
		}
		if err := archive.AddFS(opts.Context); err != nil {
			return err
		}
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: DockerfileName, Mode: 0o644, Size: int64(len(opts.Dockerfile))}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.WriteString(archive, opts.Dockerfile); err != nil {
		return err
	}
	return archive.Close()
}

// A Message is one line of what an engine tells of a pull or a build.
type Message struct {
	ID       string `json:"id"` // of a layer
	Status   string `json:"status"`
	Stream   string `json:"stream"`
	Progress struct {
		Current int64 `json:"current"`
		Total   int64 `json:"total"`
	} `json:"progressDetail"`
	Error string `json:"error"`
}

// maxMessage bounds a line.
const maxMessage = 1 << 20

// ReadMessages calls each with every message until the stream ends or reports
// an error.
func ReadMessages(r io.Reader, each func(Message)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		var m Message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return fmt.Errorf("unexpected answer: %w", err)
		}
		if m.Error != "" {
			return errors.New(m.Error)
		}
		each(m)
	}
	return lines.Err()
}
