package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

func (r *root) toolsCallCommand() *cobra.Command {
	var object string
	var raw, asJSON bool
	cmd := &cobra.Command{
		Use:   "call SERVER.TOOL [KEY=TEXT | KEY:=JSON]... [--json ARGUMENTS | -]",
		Short: "Call a tool and print what it returns",
		Long: "Call a tool and print what it returns. KEY=TEXT is a string, or what the tool's schema wants\n" +
			"instead and the text can be, such as a number; KEY:=JSON is JSON as it stands. --json takes the\n" +
			"arguments as an object, - (or --json -) reads that from stdin. Wrong arguments are refused before the\n" +
			"tool is called. The exit code is 1 if the tool fails; what it says is then on stderr.",
		Example: "  mcp-bridge tools call everything.get_sum a=2 b=3\n" +
			"  mcp-bridge tools call github.create_issue title='It broke' labels:='[\"bug\"]'\n" +
			"  mcp-bridge tools call everything.get_sum --json '{\"a\": 2, \"b\": 3}'\n" +
			"  mcp-bridge tools call files.write_file - < arguments.json",
		Args: aTool,

		ValidArgsFunction: r.completeCall,
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := r.callArguments(args[1:], object, cmd.Flags().Changed("json"))
			if err != nil {
				return err
			}
			return r.withProxyOf(args[0], func(p *proxy.Proxy, _ *discovery.Config) error {
				server, doc, err := findTool(cmd.Context(), p, args[0])
				if err != nil {
					return err
				}
				arguments, err := given.of(doc)
				if err != nil {
					return err
				}
				result, err := p.Call(cmd.Context(), server, doc.Name, arguments)
				if err != nil {
					return err
				}
				return r.writeResult(cmd.Context(), result, raw, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&object, "json", "{}", "the arguments, a JSON object; - reads it from stdin")
	cmd.Flags().BoolVar(&raw, "raw", false, "print the whole CallToolResult as the server sent it")
	addOutput(cmd.Flags(), &asJSON)
	r.settings.addPager(cmd.Flags())
	return cmd
}

// aTool is for commands that take SERVER.TOOL and more.
func aTool(cmd *cobra.Command, args []string) error {
	return oneTool(cmd, args[:min(len(args), 1)])
}

// writeResult prints a CallToolResult: text as it is, other content as a note.
// That of a failed call goes to stderr; as JSON, and raw, it is whole and on stdout.
func (r *root) writeResult(ctx context.Context, result json.RawMessage, raw, asJSON bool) error {
	var parsed callResult
	if err := json.Unmarshal(result, &parsed); err != nil {
		return fmt.Errorf("the server's result is not a CallToolResult: %w", err)
	}
	var err error
	switch {
	case raw:
		_, err = fmt.Fprintf(r.io.Out, "%s\n", result)
	case asJSON:
		err = r.writeJSON(result)
	case parsed.IsError:
		_, err = io.WriteString(r.io.Err, parsed.text())
	default:
		err = r.page(ctx, func(d *display) error {
			text := parsed.text()
			if d.columns > 0 {
				text = printable(text)
			}
			_, err := io.WriteString(d.w, text)
			return err
		})
	}
	if err == nil && parsed.IsError {
		err = errShown
	}
	return err
}

// A callResult is what is shown of a CallToolResult.
type callResult struct {
	Content []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		MIMEType string `json:"mimeType"`
		Data     []byte `json:"data"`
		Name     string `json:"name"` // of a link
		URI      string `json:"uri"`
		Resource struct {
			URI      string `json:"uri"`
			MIMEType string `json:"mimeType"`
			Text     string `json:"text"`
			Blob     []byte `json:"blob"`
		} `json:"resource"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

func (c callResult) text() string {
	if len(c.Content) == 0 && c.Structured != nil {
		return string(c.Structured) + "\n"
	}
	var b strings.Builder
	for _, block := range c.Content {
		switch {
		case block.Type == "text":
			fmt.Fprintln(&b, block.Text)
		case block.Type == "resource" && block.Resource.Text != "":
			fmt.Fprintln(&b, block.Resource.Text)
		case block.Type == "resource":
			fmt.Fprintf(&b, "[resource %s %s, %d bytes; --raw shows it]\n", block.Resource.URI, block.Resource.MIMEType, len(block.Resource.Blob))
		case block.Type == "resource_link":
			fmt.Fprintf(&b, "[link %s: %s]\n", block.Name, block.URI)
		default:
			fmt.Fprintf(&b, "[%s %s, %d bytes; --raw shows it]\n", block.Type, block.MIMEType, len(block.Data))
		}
	}
	return b.String()
}
