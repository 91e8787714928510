package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
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
	Tool    string    `json:"tool"`
	New     bool      `json:"new"` // it came later than the server's other tools
	Since   time.Time `json:"since"`
	Before  string    `json:"before"`            // its description when it was approved
	Now     string    `json:"now"`               // and as it was seen last
	Added   []string  `json:"added,omitempty"`   // parameters
	Removed []string  `json:"removed,omitempty"` // parameters
}

type approveFlags struct{ json, dryRun, yes bool }

func (r *root) serversApproveCommand() *cobra.Command {
	var f approveFlags
	cmd := &cobra.Command{
		Use:   "approve SERVER [TOOL...]",
		Short: "Show the tools of a server that changed since you approved them, and approve them",
		Long: "Show the tools of a server whose description, parameters or hints changed since you approved them, and those\n" +
			"that are new, and approve them as they are shown; all of them, or those named. On a terminal you are asked\n" +
			"first; elsewhere it takes --yes, or the names of tools. A tool counts as approved as it is when it is first\n" +
			"seen. Starts no server.",
		Example:           "  mcp-bridge servers approve github --dry-run\n  mcp-bridge servers approve github --yes",
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
				return r.approve(config.Servers[i], args[1:], f)
			})
		},
	}
	addJSON(cmd.Flags(), &f.json)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show them, and approve nothing")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "approve them without a question")
	return cmd
}

func (r *root) approve(server discovery.Server, names []string, f approveFlags) error {
	dir, err := r.catalogDir()
	if err != nil {
		return err
	}
	catalog, err := discovery.OpenCatalog(dir)
	if err != nil {
		return configError("set --cache-dir to a folder that you own", "%v", err)
	}
	changes, err := chosenChanges(catalog.Changes(server), server, names)
	if err != nil {
		return err
	}
	if err := r.showChanges(changes, server, f.json); err != nil || len(changes) == 0 || f.dryRun {
		return err
	}
	if !f.yes {
		ok, err := r.mayApprove(server, names, len(changes))
		if err != nil || !ok {
			return err
		}
	}
	n, err := catalog.Approve(server, changes)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.io.Err, "approved: %d of %s\n", n, oneLined(server.Name))
	if n < len(changes) {
		return configError("run it again to see them as they are now", "%d of the tools changed again meanwhile, and are not approved", len(changes)-n)
	}
	return nil
}

// mayApprove asks the person at the terminal whether what was shown is approved. Where
// there is none, the names of the tools say so.
func (r *root) mayApprove(server discovery.Server, names []string, count int) (bool, error) {
	if !isTerminal(r.io.In) {
		if len(names) > 0 {
			return true, nil
		}
		return false, usageError("mcp-bridge servers approve "+oneLined(server.Name)+" --yes", "nothing is approved: nobody can be asked here")
	}
	fmt.Fprintf(r.io.Err, "approve %d of %s as shown? [y/N] ", count, oneLined(server.Name))
	answer, err := r.readValue(bufio.NewReader(r.io.In), false)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if answer = strings.ToLower(answer); answer == "y" || answer == "yes" {
		return true, nil
	}
	fmt.Fprintln(r.io.Err, "nothing is approved")
	return false, nil
}

func (r *root) showChanges(changes []discovery.Change, server discovery.Server, asJSON bool) error {
	if asJSON {
		tools := []changedTool{}
		for _, c := range changes {
			tools = append(tools, changedTool{c.Tool, c.New, c.Since, c.Before, c.Now, c.Added, c.Removed})
		}
		return r.writeJSON(tools)
	}
	if len(changes) == 0 {
		fmt.Fprintf(r.io.Err, "no tool of %s changed since you approved it\n", oneLined(server.Name))
	}
	for _, c := range changes {
		what := "changed"
		if c.New {
			what = "new"
		}
		fmt.Fprintf(r.io.Out, "%s, %s since %s\n", oneLined(c.Tool), what, c.Since.Local().Format(time.DateOnly))
		if c.Before != "" && c.Before != c.Now {
			fmt.Fprintf(r.io.Out, "  - %s\n", c.Before)
		}
		switch {
		case c.Now == "" && c.Before == "":
			fmt.Fprintln(r.io.Out, "  it has no description, or is not in the catalog")
		case c.Now == "":
			fmt.Fprintln(r.io.Out, "  + no description, or not in the catalog")
		case c.Now != c.Before:
			fmt.Fprintf(r.io.Out, "  + %s\n", c.Now)
		case len(c.Added)+len(c.Removed) == 0:
			fmt.Fprintln(r.io.Out, "  its parameters, results or hints; the description is the same")
		}
		if len(c.Removed) > 0 {
			fmt.Fprintf(r.io.Out, "  - parameters: %s\n", oneLined(strings.Join(c.Removed, ", ")))
		}
		if len(c.Added) > 0 {
			fmt.Fprintf(r.io.Out, "  + parameters: %s\n", oneLined(strings.Join(c.Added, ", ")))
		}
	}
	return nil
}

// chosenChanges are those of tools of these names, all for none.
func chosenChanges(changes []discovery.Change, server discovery.Server, names []string) ([]discovery.Change, error) {
	var known []string
	var chosen []discovery.Change
	for _, change := range changes {
		known = append(known, change.Tool)
		if len(names) == 0 || slices.Contains(names, change.Tool) {
			chosen = append(chosen, change)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, usageError("mcp-bridge servers approve "+oneLined(server.Name)+" --dry-run", "no tool %q of %s changed%s",
				name, server.Name, didYouMean(similar(name, known)...))
		}
	}
	return chosen, nil
}
