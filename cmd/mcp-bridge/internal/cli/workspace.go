package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/bridge"
)

func (r *root) workspaceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "Show the files that cells keep across sessions",
		RunE:  needsSubcommand,
	}
	cmd.AddCommand(r.workspaceListCommand(), r.workspacePathCommand())
	return cmd
}

func (r *root) workspaceListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the files of the workspace",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, files, err := r.keptFiles(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return r.writeJSON(append([]bridge.KeptFile{}, files...))
			}
			return r.writeFiles(files)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	r.settings.addState(cmd.Flags())
	return cmd
}

func (r *root) workspacePathCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "path",
		Short: "Print the folder of the workspace's files: what is put there appears in /workspace",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, _, err := r.keptFiles(cmd.Context())
			if err == nil {
				_, err = fmt.Fprintln(r.io.Out, dir)
			}
			return err
		},
	}
	r.settings.addState(cmd.Flags())
	return cmd
}

func (r *root) keptFiles(ctx context.Context) (string, []bridge.KeptFile, error) {
	state, err := r.stateDir()
	if err == nil && state == "" {
		err = configError("set --state-dir", "%v", errors.New("there is no folder for what is kept"))
	}
	if err != nil {
		return "", nil, err
	}
	dir, files, err := bridge.KeptFiles(ctx, state)
	if err != nil {
		err = configError("set --state-dir to a folder that you own", "%v", err)
	}
	return dir, files, err
}

func (r *root) writeFiles(files []bridge.KeptFile) error {
	if len(files) == 0 {
		fmt.Fprintln(r.io.Err, "the workspace is empty")
		return nil
	}
	w := tabwriter.NewWriter(r.io.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FILE\tSIZE\tMODIFIED")
	for _, f := range files {
		fmt.Fprintf(w, "%s\t%s\t%s\n", printable(f.Path), bridge.Size(f.Size), f.Modified.Format(time.DateTime))
	}
	return w.Flush()
}
