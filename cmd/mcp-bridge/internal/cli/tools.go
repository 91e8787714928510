package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

func (r *root) toolsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "Find, describe and call the tools of the configured servers",
		RunE:  needsSubcommand,
	}
	cmd.AddCommand(r.toolsSearchCommand(), r.toolsListCommand(), r.toolsDescribeCommand(), r.toolsCallCommand())
	return cmd
}

func (r *root) toolsSearchCommand() *cobra.Command {
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "search {WORDS... | -}",
		Short:             "Find tools by what they do",
		ValidArgsFunction: cobra.NoFileCompletions,
		Long:              "Find tools by what they do. Words are searched for in all servers, with - those on stdin.",
		Example: "  mcp-bridge tools search create jira issue --limit 3\n" +
			"  echo create jira issue | mcp-bridge tools search -",
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usageError("", "--limit must be at least 1, not %d", limit)
			}
			if len(args) == 0 && !asJSON && r.canFind() {
				return r.find(cmd.Context())
			}
			words, err := r.searchWords(args)
			if err != nil {
				return err
			}
			return r.withProxy(func(p *proxy.Proxy, config *discovery.Config) error {
				result, err := p.Search(cmd.Context(), words, limit)
				if err != nil {
					return err
				}
				result.Note = shellNote.Replace(result.Note)
				if len(config.Servers) == 0 {
					result.Note = r.noServers(config)
				}
				if asJSON {
					return r.writeJSON(result)
				}
				return r.writeHits(cmd.Context(), result)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 8, "most tools to show")
	addJSON(cmd.Flags(), &asJSON)
	r.settings.addPager(cmd.Flags())
	return cmd
}

// maxSearchWords bounds what is read from stdin to be searched for, in bytes; a
// search takes less, and says so.
const maxSearchWords = 64 << 10

// searchWords is what to search for: the arguments, or stdin for "-".
func (r *root) searchWords(args []string) (string, error) {
	switch {
	case len(args) == 0:
		return "", usageError("mcp-bridge tools search --help", "tools search requires words to search for, or a terminal to type them on")
	case !slices.Equal(args, []string{"-"}):
		return strings.Join(args, " "), nil
	}
	data, err := io.ReadAll(io.LimitReader(r.io.In, maxSearchWords))
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	return strings.Join(strings.Fields(string(data)), " "), nil
}

// shellNote has the ways of a shell for those of Python, in what a search says.
var shellNote = strings.NewReplacer("see tools.servers()", "`mcp-bridge tools list SERVER` says why")

// shellHint has them in what mends a server.
var shellHint = strings.NewReplacer(
	"see tools.servers()", "mcp-bridge servers list",
	"tools.servers()", "mcp-bridge servers list",
	"the user has to ", "",
	"the user can ", "",
)

// writeHits prints a line for each hit; what else there is to say goes to stderr.
func (r *root) writeHits(ctx context.Context, result discovery.Result) error {
	err := r.page(ctx, func(d *display) error {
		t := d.newTable()
		for _, hit := range result.Hits {
			t.add(styledCell(hit.Server, faint), signatureCell(hit.Signature), plainCell(firstLine(hit.Description)))
		}
		return t.write()
	})
	if err != nil {
		return err
	}
	if result.Note != "" {
		fmt.Fprintln(r.io.Err, result.Note)
	}
	if len(result.Hits) == 0 {
		return errShown
	}
	return nil
}

func (r *root) toolsListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [SERVER]",
		Short: "List the tools of one server, or of all",
		Args:  cobra.MaximumNArgs(1),

		ValidArgsFunction: r.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.withProxy(func(p *proxy.Proxy, config *discovery.Config) error {
				if len(config.Servers) == 0 {
					fmt.Fprintln(r.io.Err, r.noServers(config))
				}
				return r.listTools(cmd.Context(), p, config, args, asJSON)
			})
		},
	}
	addJSON(cmd.Flags(), &asJSON)
	r.settings.addPager(cmd.Flags())
	return cmd
}

// listTools prints the tools of the named servers, or of all; a server that
// fails is reported and does not keep the others away.
func (r *root) listTools(ctx context.Context, p *proxy.Proxy, config *discovery.Config, servers []string, asJSON bool) error {
	if len(servers) == 0 {
		for _, info := range p.Servers() {
			if info.State != "disabled" {
				servers = append(servers, info.Name)
			}
		}
	}
	failed, code := false, 0
	all := map[string][]discovery.ToolDoc{}
	for _, server := range servers {
		docs, err := p.Tools(ctx, server)
		if err != nil {
			report(r.io.Err, err)
			failed = true
			if !slices.ContainsFunc(p.Servers(), func(info proxy.ServerInfo) bool {
				return server == info.Name || server == info.Ident || slices.Contains(info.Aliases, server)
			}) {
				code = exitUsage // as of other commands
			}
			continue
		}
		if len(docs) == 0 {
			fmt.Fprintln(r.io.Err, noTools(server, config))
		}
		all[server] = docs
	}
	err := r.writeTools(ctx, servers, all, asJSON)
	switch {
	case err == nil && code != 0:
		err = &hintedError{err: errShown, code: code}
	case err == nil && failed:
		err = errShown
	}
	return err
}

// noTools says why a server, given by any name, has no tools.
func noTools(server string, config *discovery.Config) string {
	for _, s := range config.Servers {
		if (s.Name == server || s.Ident == server) && len(s.AllowTools)+len(s.DenyTools) > 0 {
			return oneLined("server " + s.Name + " has no tools: \"tools\" of its definition allows none of them")
		}
	}
	return oneLined("server " + server + " has no tools")
}

// writeTools prints the tools of servers, in that order.
func (r *root) writeTools(ctx context.Context, servers []string, all map[string][]discovery.ToolDoc, asJSON bool) error {
	if asJSON {
		return r.writeJSON(all)
	}
	return r.page(ctx, func(d *display) error {
		t := d.newTable()
		for _, server := range servers {
			for _, doc := range all[server] {
				t.add(signatureCell(doc.Signature), plainCell(firstLine(doc.Description)))
			}
		}
		return t.write()
	})
}

func (r *root) toolsDescribeCommand() *cobra.Command {
	var asJSON bool
	var detail string
	cmd := &cobra.Command{
		Use:     "describe SERVER.TOOL",
		Short:   "Show a tool's signature, parameters and description",
		Example: "  mcp-bridge tools describe github.create_issue --detail full",
		Args:    oneTool,

		ValidArgsFunction: r.completeTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"brief", "signature", "help", "full"}, detail) {
				return usageError("", "--detail must be brief, signature, help or full, not %q", detail)
			}
			return r.withProxyOf(args[0], func(p *proxy.Proxy, _ *discovery.Config) error {
				server, doc, err := findTool(cmd.Context(), p, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return r.writeJSON(describedTool{server, doc})
				}
				text, err := p.Describe(cmd.Context(), server, doc.Name, discovery.Detail(detail))
				if err != nil {
					return err
				}
				return r.page(cmd.Context(), func(d *display) error { return d.describe(text) })
			})
		},
	}
	addJSON(cmd.Flags(), &asJSON)
	r.settings.addPager(cmd.Flags())
	cmd.Flags().StringVar(&detail, "detail", "help", "how much: brief, signature, help or full")
	completeFlag(cmd, "detail", "brief", "signature", "help", "full")
	return cmd
}

// A describedTool is what `tools describe --json` prints.
type describedTool struct {
	Server string `json:"server"`
	discovery.ToolDoc
}

// describe writes the documentation of a tool, which begins with its signature.
func (d *display) describe(text string) error {
	first, rest, _ := strings.Cut(printable(text), "\n")
	line := ""
	for _, s := range signatureCell(first) {
		line += d.paint(s.text, s.style)
	}
	_, err := fmt.Fprintln(d.w, strings.TrimSuffix(line+"\n"+rest, "\n"))
	return err
}

// oneTool is for commands that take SERVER.TOOL.
func oneTool(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("mcp-bridge tools list SERVER", "%s takes one tool, as SERVER.TOOL", cmd.CommandPath())
	}
	return nil
}

// findTool resolves SERVER.TOOL, either by name or by identifier. Names may
// contain dots, so every split is tried.
func findTool(ctx context.Context, p *proxy.Proxy, path string) (string, discovery.ToolDoc, error) {
	path = strings.TrimPrefix(path, "tools.") // as Python writes it
	known := map[string]string{}
	for _, info := range p.Servers() {
		for _, alias := range info.Aliases {
			known[alias] = info.Name
		}
	}
	for _, info := range p.Servers() {
		known[info.Ident] = info.Name
	}
	for _, info := range p.Servers() {
		known[info.Name] = info.Name
	}
	for i := 0; i < len(path); i++ {
		server, ok := known[path[:i]]
		if path[i] != '.' || !ok {
			continue
		}
		docs, err := p.Tools(ctx, server)
		if err != nil {
			return "", discovery.ToolDoc{}, err
		}
		tool := path[i+1:]
		var idents []string
		for _, doc := range docs {
			if doc.Name == tool || doc.Ident == tool || slices.Contains(doc.Aliases, tool) {
				return server, doc, nil
			}
			idents = append(idents, doc.Ident)
		}
		if err := deniedTool(ctx, p, server, tool); err != nil {
			return "", discovery.ToolDoc{}, err
		}
		return "", discovery.ToolDoc{}, &hintedError{
			err:  fmt.Errorf("server %s has no tool %q%s", server, tool, didYouMean(similar(tool, idents)...)),
			code: exitFailure, hint: "mcp-bridge tools list " + server,
		}
	}
	return "", discovery.ToolDoc{}, noSuchServer(path, known)
}

// deniedTool says of a tool that is not listed if its server's definition is why.
func deniedTool(ctx context.Context, p *proxy.Proxy, server, tool string) error {
	_, err := p.Describe(ctx, server, tool, discovery.Brief)
	if e, ok := errors.AsType[*proxy.Error](err); ok && e.Kind == proxy.Policy {
		return err
	}
	return nil
}

// noSuchServer is the error for what does not begin with a server and a dot.
func noSuchServer(path string, known map[string]string) error {
	if server, ok := known[path]; ok {
		return usageError("mcp-bridge tools list "+server, "%q is a server: name one of its tools, as SERVER.TOOL", path)
	}
	names := slices.Sorted(maps.Keys(known))
	server, tool, dotted := strings.Cut(path, ".")
	meant := similar(server, names)
	if dotted && len(meant) > 0 {
		meant[0] += "." + tool
	}
	return usageError("mcp-bridge servers list", "%q is not SERVER.TOOL with a configured server%s", path, didYouMean(meant...))
}

// himself approves of every call: who types it in is the user, and a question
// whether he means it would be answered before it is read. (What his definitions
// deny is denied all the same: that is no question.)
type himself struct{}

// Approve implements [proxy.Approver].
func (himself) Approve(context.Context, proxy.ApprovalRequest) (bool, error) { return true, nil }

// withProxy runs f with the configured servers, and ends those it started.
func (r *root) withProxy(f func(*proxy.Proxy, *discovery.Config) error) error {
	return r.withProxyOf("", f)
}

// withProxyOf is withProxy for one tool, as SERVER.TOOL: what is wrong with other
// servers is not told, if that server is there.
func (r *root) withProxyOf(tool string, f func(*proxy.Proxy, *discovery.Config) error) error {
	log := r.logger()
	config := r.loadConfig()
	r.warn(aboutTool(config, tool))
	p, err := r.proxy(config, log, himself{})
	if err != nil {
		return err
	}
	defer func() {
		if err := p.Close(); err != nil {
			log.Warn("servers not closed", "error", err)
		}
	}()
	return f(p, config)
}

// aboutTool are the problems of the tool's server, and all if there is no such
// server: one of them may be why.
func aboutTool(config *discovery.Config, tool string) []discovery.Problem {
	tool = strings.TrimPrefix(tool, "tools.")
	i := slices.IndexFunc(config.Servers, func(s discovery.Server) bool {
		return strings.HasPrefix(tool, s.Name+".") || strings.HasPrefix(tool, s.Ident+".")
	})
	if i < 0 {
		return config.Problems
	}
	var own []discovery.Problem
	for _, problem := range config.Problems {
		if problem.Server == config.Servers[i].Name {
			own = append(own, problem)
		}
	}
	return own
}

// signatureCell is a signature like github.create_issue(title: str), its names in
// styles.
func signatureCell(signature string) cell {
	path, rest, ok := strings.Cut(signature, "(")
	server, tool, dotted := strings.Cut(path, ".")
	if !ok || !dotted || strings.ContainsRune(path, ' ') { // a server that is not listed yet
		return styledCell(signature, faint)
	}
	return cell{{server + ".", faint}, {tool, bold}, {"(" + rest, unstyled}}
}

// firstLine is that of a description.
func firstLine(description string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	return first
}
