package runtimetest

import (
	_ "embed"
	"os"
	"path/filepath"
	"testing"
)

//go:embed hostile.Dockerfile
var hostile []byte

// HostileImage writes what an image is built from that asks for everything an
// image can: volumes, an entrypoint, variables that change programs, root, a
// health check, labels like ours, and a large layer. It returns the directory
// and the file in it; the build argument BASE is the image to build it on.
func HostileImage(t testing.TB) (dir, file string) {
	t.Helper()
	const largeLayer = 32 << 20
	dir = t.TempDir()
	file = filepath.Join(dir, "Dockerfile")
	script := append([]byte("#!/bin/sh\n: > /tmp/hostile-was-here\nexec sleep 60\n"), make([]byte, largeLayer)...)
	for path, data := range map[string][]byte{file: hostile, filepath.Join(dir, "hostile.sh"): script} {
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "hostile.sh"), os.ModeSetuid|0o755); err != nil {
		t.Fatal(err)
	}
	return dir, file
}
