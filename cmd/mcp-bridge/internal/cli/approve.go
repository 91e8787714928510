package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// onChange is what becomes of tools that are not what the user approved.
type onChange string

const (
	changeFlag  onChange = "flag"
	changeBlock onChange = "block"
)

func (c *onChange) Set(text string) error {
	switch mode := onChange(strings.ToLower(text)); mode {
	case changeFlag, changeBlock:
		*c = mode
		return nil
	}
	return fmt.Errorf("%q is not flag or block", text)
}

func (c *onChange) String() string { return string(*c) }

// Type names the value in help texts.
func (*onChange) Type() string { return "what" }

// A changedTool is one of which `servers approve` tells.
type changedTool struct {
	Tool   string    `json:"tool"`
	Since  time.Time `json:"since"`
	Before string    `json:"before"` // its description when it was approved
	Now    string    `json:"now"`    // and as it was seen last
}

func (r *root) serversApproveCommand() *cobra.Command {
	var asJSON, dryRun bool
	cmd := &cobra.Command{
		Use:   "approve SERVER [TOOL...]",
		Short: "Show the tools of a server that changed since you approved them, and approve them",
		Long: "Show the tools of a server whose description, parameters or hints changed since you approved them, and\n" +
			"approve them as they were seen last; all of them, or those named. A tool counts as approved as it is when it\n" +
			"is first seen. Starts no server.",
		Example:           "  mcp-bridge servers approve github --dry-run\n  mcp-bridge servers approve github",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: r.completeServers,
		RunE: func(_ *cobra.Command, args []string) error {
			return r.withProxy(func(p *proxy.Proxy, config *discovery.Config) error {
				chosen, err := chosenServers(listed(p.Servers(), config), args[:1])
				if err != nil {
					return err
				}
				i := slices.IndexFunc(config.Servers, func(s discovery.Server) bool { return s.Name == chosen[0].Name })
				if i < 0 {
					return configError("mcp-bridge servers list", "the definition of %q cannot be used", args[0])
				}
				return r.approve(config.Servers[i], args[1:], dryRun, asJSON)
			})
		},
	}
	addJSON(cmd.Flags(), &asJSON)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show them, and approve nothing")
	return cmd
}

func (r *root) approve(server discovery.Server, names []string, dryRun, asJSON bool) error {
	dir, err := r.catalogDir()
	if err != nil {
		return err
	}
	catalog, err := discovery.OpenCatalog(dir)
	if err != nil {
		return configError("set --cache-dir to a folder that you own", "%v", err)
	}
	changed, err := changedTools(catalog, server, names)
	if err != nil {
		return err
	}
	if !dryRun && len(changed) > 0 {
		names = nil // those that are shown, and no others
		for _, tool := range changed {
			names = append(names, tool.Tool)
		}
		if _, err := catalog.Approve(server, names); err != nil {
			return err
		}
	}
	if asJSON {
		return r.writeJSON(changed)
	}
	if len(changed) == 0 {
		fmt.Fprintf(r.io.Err, "no tool of %s changed since you approved it\n", oneLined(server.Name))
		return nil
	}
	for _, tool := range changed {
		fmt.Fprintf(r.io.Out, "%s, changed since %s\n", oneLined(tool.Tool), tool.Since.Local().Format(time.DateOnly))
		if tool.Before == tool.Now {
			fmt.Fprintln(r.io.Out, "  its parameters, results or hints; the description is the same")
			continue
		}
		fmt.Fprintf(r.io.Out, "  - %s\n  + %s\n", tool.Before, tool.Now)
	}
	if !dryRun {
		fmt.Fprintf(r.io.Err, "approved: %d of %s\n", len(changed), oneLined(server.Name))
	}
	return nil
}

// changedTools are those that changed, of these names, if there are any.
func changedTools(catalog *discovery.Catalog, server discovery.Server, names []string) ([]changedTool, error) {
	entry, _ := catalog.Get(server)
	var known []string
	changed := []changedTool{}
	for _, change := range catalog.Changes(server) {
		known = append(known, change.Tool)
		if len(names) > 0 && !slices.Contains(names, change.Tool) {
			continue
		}
		tool := changedTool{Tool: change.Tool, Since: change.Since, Before: change.Before}
		if i := slices.IndexFunc(entry.Tools, func(t discovery.Tool) bool { return t.Name == change.Tool }); i >= 0 {
			tool.Now = entry.Tools[i].Shortly()
		}
		changed = append(changed, tool)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, usageError("mcp-bridge servers approve "+server.Name+" --dry-run", "no tool %q of %s changed%s",
				name, server.Name, didYouMean(similar(name, known)...))
		}
	}
	return changed, nil
}
