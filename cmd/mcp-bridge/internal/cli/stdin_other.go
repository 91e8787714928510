//go:build !unix

package cli

import "io"

func pollable(in io.Reader) (io.Reader, func()) { return in, func() {} }
