package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

func (r *root) serversCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "Show the configured MCP servers",
		RunE:  needsSubcommand,
	}
	cmd.AddCommand(r.serversListCommand())
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (r *root) writeServers(infos []proxy.ServerInfo, config *discovery.Config) error {
	if len(infos) == 0 {
		fmt.Fprintln(r.io.Err, r.noServers(config))
		return nil
	}
	w := tabwriter.NewWriter(r.io.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tPYTHON\tTOOLS\tSTATE\tDESCRIPTION")
	for _, info := range infos {
		count := "?"
		if info.Tools != nil {
			count = fmt.Sprint(*info.Tools)
		}
		fmt.Fprintf(w, "%s\ttools.%s\t%s\t%s\t%s\n", info.Name, info.Ident, count, info.State, info.Description)
	}
	return w.Flush()
}
