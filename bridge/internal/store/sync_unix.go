//go:build unix

package store

import (
	"errors"
	"os"
)

// syncDir makes what was renamed in a directory outlast a power failure.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the user's state directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
