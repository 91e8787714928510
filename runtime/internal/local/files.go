package local

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"path"
)

// Bounds on what a spec may ask us to deliver.
const (
	maxFiles     = 4096
	maxFileBytes = 64 << 20
)

// walkFiles calls visit for every directory of src and for every file, which
// must be regular, with its content. A directory comes before what is in it.
func walkFiles(src fs.FS, visit func(name string, dir bool, data []byte) error) error {
	count, bytes := 0, 0
	return fs.WalkDir(src, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if count++; count > maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		name = path.Clean(name)
		if entry.IsDir() {
			return visit(name, true, nil)
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", name)
		}
		data, err := fs.ReadFile(src, name)
		if err != nil {
			return err
		}
		if bytes += len(data); bytes > maxFileBytes {
			return fmt.Errorf("more than %d bytes", maxFileBytes)
		}
		return visit(name, false, data)
	})
}

// Archive returns what a program over stdio reads first: 4 bytes of length,
// big-endian, and that much of a zip archive of its files. Without files there
// is no archive either, and the length is 0.
func Archive(files fs.FS) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 4))
	if files == nil {
		return buf.Bytes(), nil
	}
	archive := zip.NewWriter(buf)
	err := walkFiles(files, func(name string, dir bool, data []byte) error {
		if dir {
			return nil
		}
		// Deflating would take longer than it saves on the way.
		w, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("pack the sandbox's files: %w", err)
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("pack the sandbox's files: %w", err)
	}
	size := buf.Len() - 4
	if size > maxFileBytes {
		return nil, fmt.Errorf("pack the sandbox's files: more than %d bytes", maxFileBytes)
	}
	binary.BigEndian.PutUint32(buf.Bytes(), uint32(size)) //nolint:gosec // just checked
	return buf.Bytes(), nil
}
