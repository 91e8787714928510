package cli

import (
	"context"
	"encoding/json"
	"fmt"
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
		Use:     "search WORDS...",
		Short:   "Find tools by what they do",
		Example: "  mcp-bridge tools search create jira issue --limit 3",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usageError("", "--limit must be at least 1, not %d", limit)
			}
			return r.withProxy(func(p *proxy.Proxy, config *discovery.Config) error {
				result, err := p.Search(cmd.Context(), strings.Join(args, " "), limit)
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
				return r.writeHits(result)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 8, "most tools to show")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
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
func (r *root) writeHits(result discovery.Result) error {
	for _, hit := range result.Hits {
		if _, err := fmt.Fprintf(r.io.Out, "%-*s  %s\n", widest(result.Hits), hit.Server, oneLine(hit.Signature, hit.Description)); err != nil {
			return err
		}
	}
	if result.Note != "" {
		fmt.Fprintln(r.io.Err, result.Note)
	}
	if len(result.Hits) == 0 {
		return errShown
	}
	return nil
}

func widest(hits []discovery.Hit) int {
	width := 0
	for _, hit := range hits {
		width = max(width, len(hit.Server))
	}
	return min(width, 24)
}

func (r *root) toolsListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [SERVER]",
		Short: "List the tools of one server, or of all",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.withProxy(func(p *proxy.Proxy, config *discovery.Config) error {
				if len(config.Servers) == 0 {
					fmt.Fprintln(r.io.Err, r.noServers(config))
				}
				return r.listTools(cmd.Context(), p, args, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listTools prints the tools of the named servers, or of all; a server that
// fails is reported and does not keep the others away.
func (r *root) listTools(ctx context.Context, p *proxy.Proxy, servers []string, asJSON bool) error {
	if len(servers) == 0 {
		for _, info := range p.Servers() {
			if info.State != "disabled" {
				servers = append(servers, info.Name)
			}
		}
	}
	failed := false
	all := map[string][]discovery.ToolDoc{}
	for _, server := range servers {
		docs, err := p.Tools(ctx, server)
		if err != nil {
			report(r.io.Err, err)
			failed = true
			continue
		}
		all[server] = docs
		if asJSON {
			continue
		}
		for _, doc := range docs {
			if _, err := fmt.Fprintln(r.io.Out, oneLine(doc.Signature, doc.Description)); err != nil {
				return err
			}
		}
	}
	if asJSON {
		if err := r.writeJSON(all); err != nil {
			return err
		}
	}
	if failed {
		return errShown
	}
	return nil
}

func (r *root) toolsDescribeCommand() *cobra.Command {
	var asJSON bool
	var detail string
	cmd := &cobra.Command{
		Use:     "describe SERVER.TOOL",
		Short:   "Show a tool's signature, parameters and description",
		Example: "  mcp-bridge tools describe github.create_issue --detail full",
		Args:    oneTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"brief", "signature", "help", "full"}, detail) {
				return usageError("", "--detail must be brief, signature, help or full, not %q", detail)
			}
			return r.withProxy(func(p *proxy.Proxy, _ *discovery.Config) error {
				server, doc, err := findTool(cmd.Context(), p, args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return r.writeJSON(doc)
				}
				text, err := p.Describe(cmd.Context(), server, doc.Name, discovery.Detail(detail))
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(r.io.Out, text)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&detail, "detail", "help", "how much: brief, signature, help or full")
	return cmd
}

func (r *root) toolsCallCommand() *cobra.Command {
	var arguments string
	var raw bool
	cmd := &cobra.Command{
		Use:     "call SERVER.TOOL [--json ARGUMENTS]",
		Short:   "Call a tool and print what it returns",
		Example: `  mcp-bridge tools call everything.get_sum --json '{"a": 2, "b": 3}'`,
		Args:    oneTool,
		RunE: func(cmd *cobra.Command, args []string) error {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal([]byte(arguments), &fields); err != nil || fields == nil {
				return usageError(`for example --json '{"title": "x"}'`, "--json must be a JSON object: %s", arguments)
			}
			return r.withProxy(func(p *proxy.Proxy, _ *discovery.Config) error {
				server, doc, err := findTool(cmd.Context(), p, args[0])
				if err != nil {
					return err
				}
				result, err := p.Call(cmd.Context(), server, doc.Name, json.RawMessage(arguments))
				if err != nil {
					return err
				}
				return r.writeResult(result, raw)
			})
		},
	}
	cmd.Flags().StringVar(&arguments, "json", "{}", "the arguments, a JSON object")
	cmd.Flags().BoolVar(&raw, "raw", false, "print the whole CallToolResult as JSON")
	return cmd
}

// writeResult prints a CallToolResult: text as it is, other content as a note.
// That of a failed call goes to stderr.
func (r *root) writeResult(result json.RawMessage, raw bool) error {
	var parsed struct {
		Content []struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			MIMEType string `json:"mimeType"`
			Data     []byte `json:"data"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(result, &parsed); err != nil {
		return fmt.Errorf("the server's result is not a CallToolResult: %w", err)
	}
	out := r.io.Out
	if parsed.IsError {
		out = r.io.Err
	}
	switch {
	case raw:
		fmt.Fprintf(r.io.Out, "%s\n", result)
	case len(parsed.Content) == 0 && parsed.Structured != nil:
		fmt.Fprintf(out, "%s\n", parsed.Structured)
	}
	for _, block := range parsed.Content {
		switch {
		case raw:
		case block.Type == "text":
			fmt.Fprintln(out, block.Text)
		default:
			fmt.Fprintf(out, "[%s %s, %d bytes; --raw shows it]\n", block.Type, block.MIMEType, len(block.Data))
		}
	}
	if parsed.IsError {
		return errShown
	}
	return nil
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
		return "", discovery.ToolDoc{}, &hintedError{
			err:  fmt.Errorf("server %s has no tool %q%s", server, tool, didYouMean(similar(tool, idents)...)),
			code: exitFailure, hint: "mcp-bridge tools list " + server,
		}
	}
	return "", discovery.ToolDoc{}, noSuchServer(path, known)
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
	log := r.logger()
	config := r.config()
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

func (r *root) writeJSON(v any) error {
	encoder := json.NewEncoder(r.io.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}

// oneLine is a signature with the first line of a description.
func oneLine(signature, description string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	return strings.TrimRight(signature+"   "+first, " ")
}
