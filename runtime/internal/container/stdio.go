package container

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mcp-bridge/mcp-bridge/runtime"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/local"
	"github.com/mcp-bridge/mcp-bridge/runtime/internal/mux"
)

// The streams of an attached program, see [API].
const (
	attachedStdout = 1
	attachedStderr = 2
)

var errUnknownStream = errors.New("unknown stream from the engine")

// A stdio is an attached program's: reading gives its stdout, while its stderr
// goes aside. One goroutine may read.
type stdio struct {
	io.WriteCloser
	in     *bufio.Reader
	left   uint32 // of the frame that is being read
	stderr io.Writer
	ended  chan struct{} // closed when there is no more to read
	end    sync.Once
}

func newStdio(stream io.ReadWriteCloser, stderr io.Writer) *stdio {
	return &stdio{WriteCloser: stream, in: bufio.NewReaderSize(stream, 64<<10), stderr: stderr, ended: make(chan struct{})}
}

// Read implements [io.Reader].
func (s *stdio) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := s.read(p)
	if err != nil {
		s.end.Do(func() { close(s.ended) })
		if !errors.Is(err, errUnknownStream) {
			err = io.EOF // however the way to the program was lost, the program is
		}
	}
	return n, err
}

func (s *stdio) read(p []byte) (int, error) {
	for s.left == 0 {
		var header [8]byte
		if _, err := io.ReadFull(s.in, header[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(header[4:])
		switch header[0] {
		case attachedStdout:
			s.left = size
		case attachedStderr:
			if _, err := io.CopyN(s.stderr, s.in, int64(size)); err != nil {
				return 0, err
			}
		default:
			return 0, fmt.Errorf("%w: %d", errUnknownStream, header[0])
		}
	}
	n, err := s.in.Read(p[:min(len(p), int(s.left))])
	s.left -= uint32(n) //nolint:gosec // at most left
	return n, err
}

// converse gives the program its files over stdio, and takes its report.
func (s *sandbox) converse(ctx context.Context, spec runtime.Spec) (err error) {
	files, err := local.Archive(spec.Files)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errStopped) { // what it has written is still on its way
			select {
			case <-s.stdio.ended:
			case <-time.After(stderrTimeout):
			}
		}
		s.stdio.Close()
	})
	defer func() {
		if !stop() {
			err = context.Cause(ctx)
		}
	}()
	if _, err := s.stdio.Write(files); err != nil {
		go io.Copy(io.Discard, s.stdio) //nolint:errcheck // for the program's last words; destroy ends it
		return fmt.Errorf("send the program's files: %w", err)
	}
	s.mux = mux.New(s.stdio)
	s.control, s.callback = s.mux.Control(), s.mux.Callback()
	if s.report, err = local.ReadReport(s.control); err != nil {
		if errors.Is(err, io.EOF) { // the engine may tell the program's end a little later
			select {
			case <-s.ended:
			case <-time.After(endTimeout):
			}
		}
		return err
	}
	return nil
}
