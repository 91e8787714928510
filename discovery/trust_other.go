//go:build !unix

package discovery

import "io/fs"

// Elsewhere the system's own rules say who may write where.

func requireTrusted(string, fs.FileInfo) error { return nil }

func requireTrustedTarget(string) error { return nil }
