package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

func (r *root) serversCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "Show, check and change the configured MCP servers",
		RunE:  needsSubcommand,
	}
	cmd.AddCommand(r.serversListCommand(), r.serversImportCommand())
	return cmd
}

func (r *root) serversListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the configured servers; starts none",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return r.withProxy(func(p *proxy.Proxy, config *discovery.Config) error {
				infos := p.Servers()
				if asJSON {
					return r.writeJSON(infos)
				}
				return r.writeServers(infos, config)
			})
		},
	}
	addJSON(cmd.Flags(), &asJSON)
	return cmd
}

func (r *root) writeServers(infos []proxy.ServerInfo, config *discovery.Config) error {
	if len(infos) == 0 {
		fmt.Fprintln(r.io.Err, r.noServers(config))
		return nil
	}
	t := r.display().newTable("SERVER", "PYTHON", "TOOLS", "STATE", "DESCRIPTION")
	for _, info := range infos {
		count := "?"
		if info.Tools != nil {
			count = fmt.Sprint(*info.Tools)
		}
		t.add(styledCell(info.Name, bold), plainCell("tools."+info.Ident), plainCell(count), styledCell(info.State, stateStyle(info.State)), plainCell(info.Description))
	}
	return t.write()
}

// stateStyle is how a server's state looks.
func stateStyle(state string) style {
	switch state {
	case "ready":
		return green
	case "starting":
		return yellow
	case "failed":
		return red
	case "disabled":
		return faint
	}
	return unstyled
}
