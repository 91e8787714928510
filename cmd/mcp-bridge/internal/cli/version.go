package cli

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker for builds of a checkout; see the Makefile.
var version string

// programVersion is that of this program: the linker's, or the module's.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func (r *root) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(r.io.Out, "mcp-bridge %s (%s, %s/%s)\n", programVersion(), goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
			return err
		},
	}
}
