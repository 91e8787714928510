package workspace

import (
	"errors"
	"os"
	"time"

	"github.com/mcp-bridge/mcp-bridge/bridge/internal/filelock"
)

const (
	lockPatience = 10 * time.Second // with a process that holds the lock and does not go on
	lockPause    = 2 * time.Millisecond
)

// lock waits until no other process changes the workspace, and keeps them from
// it until it is unlocked. s.mu is held.
func (s *Store) lock() (unlock func(), err error) {
	f, err := s.root.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for begin := time.Now(); ; time.Sleep(lockPause) {
		locked, err := filelock.Try(f)
		switch {
		case locked:
			return func() { _ = f.Close() }, nil
		case err == nil && time.Since(begin) < lockPatience:
			continue
		case err == nil:
			err = &Error{Kind: Refused, Text: "another mcp-bridge is busy with the workspace"}
		}
		return nil, errors.Join(err, f.Close())
	}
}
