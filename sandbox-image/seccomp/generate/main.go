// Command generate writes the profile to the file that is named.
package main

import (
	"fmt"
	"os"

	"github.com/mcp-bridge/mcp-bridge/sandbox-image/seccomp"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the file to write, not %d", len(args))
	}
	data, err := seccomp.Build().JSON()
	if err != nil {
		return err
	}
	return os.WriteFile(args[0], data, 0o644) //nolint:gosec // it is no secret, and goes into the repository
}
