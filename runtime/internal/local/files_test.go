package local

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"
)

func TestArchive(t *testing.T) {
	files := fstest.MapFS{"a/b.txt": {Data: []byte("nested")}, "x.py": {Data: bytes.Repeat([]byte("x"), 100_000)}, "empty": {}}
	data, err := Archive(files)
	if err != nil {
		t.Fatal(err)
	}
	if size := binary.BigEndian.Uint32(data); int(size) != len(data)-4 {
		t.Fatalf("length says %d of %d", size, len(data)-4)
	}
	archive, err := zip.NewReader(bytes.NewReader(data[4:]), int64(len(data)-4))
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.File) != len(files) {
		t.Errorf("%d files are packed", len(archive.File))
	}
	for name, file := range files {
		got, err := fs.ReadFile(archive, name)
		if err != nil || !bytes.Equal(got, file.Data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if data, err := Archive(nil); err != nil || !bytes.Equal(data, make([]byte, 4)) {
		t.Errorf("no files: %x, %v", data, err)
	}
}

func TestArchiveBounds(t *testing.T) {
	many := fstest.MapFS{}
	for i := range maxFiles {
		many[fmt.Sprint(i)] = &fstest.MapFile{}
	}
	for name, files := range map[string]fs.FS{
		"many":    many,
		"large":   fstest.MapFS{"x": {Data: make([]byte, maxFileBytes)}, "y": {Data: []byte("y")}},
		"just":    fstest.MapFS{"x": {Data: make([]byte, maxFileBytes)}}, // the archive is larger
		"symlink": fstest.MapFS{"x": {Data: []byte("/etc/shadow"), Mode: 0o777 | fs.ModeSymlink}},
	} {
		if _, err := Archive(files); err == nil {
			t.Errorf("%s: packed, %v", name, err)
		}
	}
}
