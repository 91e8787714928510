package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// finderHits is how many tools the finder shows for a query.
const finderHits = 100

// canFind reports whether there is a terminal for the finder: stdin to type on, and
// stderr to be drawn on, for stdout has the call that it prints.
func (r *root) canFind() bool {
	return isTerminal(r.io.In) && isTerminalOut(r.io.Err) && os.Getenv("TERM") != "dumb"
}

func isTerminalOut(w io.Writer) bool {
	file, ok := bare(w).(io.Reader)
	return ok && isTerminal(file)
}

// find has the user choose a tool and prints the call of it.
func (r *root) find(ctx context.Context) error {
	config := r.config()
	opts, err := r.proxyOptions(config, slog.New(slog.DiscardHandler)) // the window shows what fails
	if err != nil {
		return err
	}
	opts.SearchWait = time.Nanosecond // it searches again instead
	p := proxy.New(opts)
	defer p.Close()
	f := &finder{ctx: ctx, source: proxySource{p}, colour: r.settings.colour.colours(r.io.Err)}
	_, err = tea.NewProgram(f, tea.WithContext(ctx), tea.WithInput(r.io.In), tea.WithOutput(bare(r.io.Err)), tea.WithoutSignalHandler()).Run()
	switch {
	case ctx.Err() != nil:
		return &hintedError{err: errShown, code: exitInterrupted}
	case err != nil && !errors.Is(err, tea.ErrProgramKilled):
		return fmt.Errorf("the finder failed: %w", err)
	case f.chosen == nil:
		return &hintedError{err: errShown, code: exitInterrupted}
	}
	docs, err := p.Tools(ctx, f.chosen.server)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(docs, func(d discovery.ToolDoc) bool { return d.Name == f.chosen.tool })
	if i < 0 {
		return fmt.Errorf("server %s has no tool %q any more", f.chosen.server, f.chosen.tool)
	}
	_, err = fmt.Fprintln(r.io.Out, callLine(docs[i]))
	return err
}

// callLine is the command that calls a tool, with its required parameters to be
// filled in. No name in it does anything in a shell.
func callLine(doc discovery.ToolDoc) string {
	path, _, _ := strings.Cut(doc.Signature, "(")
	words := []string{"mcp-bridge tools call", shellQuoted(path)}
	for _, p := range doc.Params {
		if !p.Required {
			continue
		}
		name := spelling("", p.Name, p.Ident)
		if name == "" {
			name = p.Ident
		}
		equals := ":="
		if takesText(p) {
			equals = "="
		}
		words = append(words, shellQuoted(name)+equals+"…")
	}
	return strings.Join(words, " ")
}

// shellQuoted is a word as POSIX shells read it.
func shellQuoted(word string) string {
	if shellSafe(word) {
		return word
	}
	return "'" + strings.ReplaceAll(oneLined(word), "'", `'\''`) + "'"
}

// proxySource finds tools through the proxy, of which Options.SearchWait has to be
// next to nothing.
type proxySource struct{ p *proxy.Proxy }

func (s proxySource) Find(ctx context.Context, query string) (found, error) {
	result, err := s.p.Search(ctx, query, finderHits) // which has servers listed that are not
	if err != nil {
		return found{}, err
	}
	var all found
	for _, info := range s.p.Servers() {
		switch {
		case info.State == "disabled":
		case info.Tools != nil:
			all.total += *info.Tools
			if query == "" {
				docs, err := s.p.Tools(ctx, info.Name)
				if err != nil {
					return found{}, err
				}
				for _, doc := range docs {
					all.tools = append(all.tools, foundTool{info.Name, doc.Name, doc.Signature, doc.Description})
				}
			}
		case info.Error != "":
			all.failed++
		default:
			all.listing++
		}
	}
	if query != "" {
		for _, hit := range result.Hits {
			all.tools = append(all.tools, foundTool{hit.Server, hit.Tool, hit.Signature, hit.Description})
		}
	}
	return all, nil
}

func (s proxySource) About(ctx context.Context, of foundTool) string {
	text, err := s.p.Describe(ctx, of.server, of.tool, discovery.Help)
	if err != nil {
		return err.Error()
	}
	return text
}
