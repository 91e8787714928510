package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/importer"
	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

func (r *root) serversCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "Show, check and change the configured MCP servers",
		RunE:  needsSubcommand,
	}
	cmd.AddCommand(r.serversListCommand(), r.serversCheckCommand(), r.serversImportCommand(), r.serversAddCommand(),
		r.serversRemoveCommand(), r.serversSwitchCommand(true), r.serversSwitchCommand(false), r.serversInputCommand(), r.serversApproveCommand())
	return cmd
}

func (r *root) serversListCommand() *cobra.Command {
	var asJSON, watch bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the configured servers; starts none",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return r.watchServers(cmd.Context(), asJSON)
			}
			return r.withProxy(func(p *proxy.Proxy, config *discovery.Config) error {
				return r.writeServers(r.display(), listed(p.Servers(), config), config, asJSON)
			})
		},
	}
	addJSON(cmd.Flags(), &asJSON)
	cmd.Flags().BoolVar(&watch, "watch", false, "go on, and show changes of the definitions: on a terminal the list anew, else a line for each")
	return cmd
}

// stateInvalid is the state of a server whose definition cannot be used.
const stateInvalid = "invalid"

// A listedServer is a server as `servers list` has it.
type listedServer struct {
	proxy.ServerInfo

	Type string `json:"type,omitempty"` // how it is reached
	File string `json:"file,omitempty"` // that defines it
}

// listed joins what is known of the servers with those that cannot be used. A
// file that cannot be read at all is one without a name.
func listed(infos []proxy.ServerInfo, config *discovery.Config) []listedServer {
	list := make([]listedServer, 0, len(infos)+len(config.Problems))
	for _, info := range infos {
		entry := listedServer{ServerInfo: info}
		if i := slices.IndexFunc(config.Servers, func(s discovery.Server) bool { return s.Name == info.Name }); i >= 0 {
			entry.Type, entry.File = cmp.Or(config.Servers[i].Type, discovery.TypeStdio), config.Servers[i].File
		}
		list = append(list, entry)
	}
	for _, problem := range config.Problems {
		if errors.Is(problem.Err, discovery.ErrSelf) || problem.File == "" {
			continue // left out on purpose; of no file
		}
		list = append(list, listedServer{
			ServerInfo: proxy.ServerInfo{Name: problem.Server, State: stateInvalid, Error: problem.Err.Error()}, File: problem.File,
		})
	}
	return list
}

func (r *root) writeServers(d *display, list []listedServer, config *discovery.Config, asJSON bool) error {
	if asJSON {
		return r.writeJSON(list)
	}
	if len(config.Servers) == 0 {
		fmt.Fprintln(r.io.Err, r.noServers(config))
	}
	if len(list) == 0 {
		return nil
	}
	home, _ := os.UserHomeDir() // "" shortens nothing
	t := d.newTable("SERVER", "PYTHON", "TOOLS", "STATE", "FILE", "DESCRIPTION")
	for _, s := range list {
		count, ident, about := "?", "tools."+s.Ident, plainCell(s.Description)
		if s.Tools != nil {
			count = fmt.Sprint(*s.Tools)
		}
		if s.State == stateInvalid {
			count, ident = "-", "-"
		}
		if s.Error != "" {
			about = styledCell(s.Error, red)
		}
		t.add(styledCell(cmp.Or(s.Name, "-"), bold), plainCell(ident), plainCell(count), styledCell(s.State, stateStyle(s.State)),
			styledCell(importer.Short(s.File, home), faint), about)
	}
	return t.write()
}

// watchServers shows the servers, and again whenever their definitions change,
// until ctx is done.
func (r *root) watchServers(ctx context.Context, asJSON bool) error {
	_, onTerminal := r.io.Out.(terminal)
	before := map[string]string{}
	var failed error
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	show := func(config *discovery.Config) error {
		p, err := r.proxy(config, r.logger(), himself{})
		if err != nil {
			return err
		}
		list := listed(p.Servers(), config)
		if err := p.Close(); err != nil {
			return err
		}
		switch {
		case asJSON:
			return r.writeJSONLine(list)
		case onTerminal:
			d := r.display()
			if _, err := fmt.Fprint(d.w, "\x1b[H\x1b[2J"); err != nil {
				return err
			}
			return r.writeServers(d, list, config, false)
		}
		return r.writeChanges(before, list, config)
	}
	err := discovery.Watch(ctx, r.loadOptions(), func(config *discovery.Config) {
		if failed = show(config); failed != nil {
			stop()
		}
	})
	if failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		return nil // it was told to end
	}
	return err
}

// writeChanges writes a line for each server that is not as before.
func (r *root) writeChanges(before map[string]string, list []listedServer, config *discovery.Config) error {
	prints := map[string]string{}
	for _, s := range config.Servers {
		prints[s.Name] = s.Fingerprint()
	}
	now := map[string]string{}
	var lines []string
	for _, s := range list {
		key := s.Name
		if s.State == stateInvalid {
			key = strings.TrimSuffix(s.File+": "+s.Name, ": ")
		}
		now[key] = strings.Join([]string{s.State, s.Error, s.Description, s.File, prints[s.Name]}, "\x00")
		if was, ok := before[key]; !ok || was != now[key] {
			sign := "+"
			if ok {
				sign = "~"
			}
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", sign, cmp.Or(s.Name, "-"), s.State, s.File, s.Error)))
		}
	}
	for key := range before {
		if _, ok := now[key]; !ok {
			lines = append(lines, "- "+key)
		}
	}
	clear(before)
	maps.Copy(before, now)
	for _, line := range lines {
		if _, err := fmt.Fprintln(r.io.Out, oneLined(line)); err != nil {
			return err
		}
	}
	return nil
}

// stateStyle is how a server's state looks.
func stateStyle(state string) style {
	switch state {
	case "ready":
		return green
	case "starting":
		return yellow
	case "failed", stateInvalid:
		return red
	case "disabled":
		return faint
	}
	return unstyled
}
