package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds the files that are edited, in bytes.
const maxFile = 64 << 20

// ErrChanged is why a file is left as it is: it is not what it was when it was
// read.
var ErrChanged = errors.New("was changed meanwhile")

// Replace writes a file in one step, so that it is never there in part: with
// mode, in place of a file that has to be as before. Links are followed. before
// is nil where no file may be there.
func Replace(path string, before, after []byte, mode fs.FileMode) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".mcp-bridge-*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // nothing refers to it
		}
	}()
	_, err = f.Write(after)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if before == nil {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s %w: it is there now", path, ErrChanged)
		}
	} else if now, err := read(path); err != nil || !bytes.Equal(now, before) {
		return errors.Join(fmt.Errorf("%s %w", path, ErrChanged), err)
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	syncDir(filepath.Dir(path))
	return nil
}

// syncDir has the names in a folder outlast a power failure, as far as its file
// system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil { //nolint:gosec // a folder that was just written to
		_ = d.Sync()
		_ = d.Close()
	}
}

// read reads a regular file of bounded size.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxFile>>20)
	}
	return os.ReadFile(path) //nolint:gosec // the user's own configuration
}

func sum(data []byte) string {
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:])
}
