package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/mcp-bridge/mcp-bridge/discovery"
	"github.com/mcp-bridge/mcp-bridge/proxy"
)

// checksAtATime is how many servers `servers check` starts at a time: each may be
// a package that is installed just now.
const checksAtATime = 4

// A checkedServer is what `servers check` has to say of one.
type checkedServer struct {
	Name    string  `json:"name"`
	File    string  `json:"file,omitempty"`
	State   string  `json:"state"`             // ok, failed, invalid or disabled
	Seconds float64 `json:"seconds,omitempty"` // from the start until it has listed its tools
	Tools   int     `json:"tools"`
	Tokens  int     `json:"tokens"` // of its tools as a client would give them to a model, in o200k_base
	Error   string  `json:"error,omitempty"`
	Hint    string  `json:"hint,omitempty"`

	Unused []string `json:"unusedPatterns,omitempty"` // that match none of its tools
}

func (r *root) serversCheckCommand() *cobra.Command {
	var asJSON bool
	limit := seconds(60 * time.Second)
	cmd := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Start each server, or those named, and count its tools and their tokens",
		Long: "Start each server, or those named, time it until it has listed its tools, and count these and\n" +
			"what a client that loads them itself pays for them in tokens (o200k_base). The exit code is 1\n" +
			"if a server fails.",
		ValidArgsFunction: r.completeServers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.checkServers(cmd.Context(), args, time.Duration(limit), asJSON)
		},
	}
	addJSON(cmd.Flags(), &asJSON)
	cmd.Flags().Var(&limit, "within", "seconds that each server has")
	return cmd
}

func (r *root) checkServers(ctx context.Context, names []string, limit time.Duration, asJSON bool) (err error) {
	config := r.loadConfig() // what is wrong with it is among the results
	if len(config.Servers)+len(config.Problems) == 0 {
		fmt.Fprintln(r.io.Err, r.noServers(config))
	}
	p, err := r.proxy(config, slog.New(slog.DiscardHandler), himself{}) // the results say all of it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	list, err := chosenServers(listed(p.Servers(), config), names)
	if err != nil {
		return err
	}
	return r.writeChecks(checkAll(ctx, p, config, list, limit), asJSON)
}

// chosenServers are those with these names or identifiers; all, if there are none.
func chosenServers(list []listedServer, names []string) ([]listedServer, error) {
	if len(names) == 0 {
		return list, nil
	}
	var chosen []listedServer
	for _, name := range names {
		i := slices.IndexFunc(list, func(s listedServer) bool { return s.Name == name || s.Ident == name })
		if i < 0 {
			var known []string
			for _, s := range list {
				known = append(known, s.Name)
			}
			return nil, usageError("mcp-bridge servers list", "there is no server %q%s", name, didYouMean(similar(name, known)...))
		}
		chosen = append(chosen, list[i])
	}
	return chosen, nil
}

// checkAll starts servers, a few at a time; results are in the same order.
func checkAll(ctx context.Context, p *proxy.Proxy, config *discovery.Config, list []listedServer, limit time.Duration) []checkedServer {
	results := make([]checkedServer, len(list))
	count := newTokenCounter()
	places := make(chan struct{}, checksAtATime)
	var work sync.WaitGroup
	for i, s := range list {
		results[i] = checkedServer{Name: s.Name, File: s.File, State: s.State, Error: s.Error}
		if s.State == stateInvalid || s.State == "disabled" {
			continue
		}
		work.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			checkServer(ctx, p, config, &results[i], limit, count)
		})
	}
	work.Wait()
	return results
}

func checkServer(ctx context.Context, p *proxy.Proxy, config *discovery.Config, c *checkedServer, limit time.Duration, count *tokenCounter) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begun := time.Now()
	tools, err := p.Probe(ctx, c.Name)
	c.Seconds = time.Since(begun).Round(time.Millisecond).Seconds()
	c.State, c.Error, c.Hint = "ok", "", ""
	if err != nil {
		c.State, c.Error, c.Hint = "failed", err.Error(), hintOf(err)
		return
	}
	c.Tools = len(tools)
	c.Tokens = count.tools(tools)
	c.Unused = unusedPatterns(config, c.Name, tools)
	for _, info := range p.Servers() {
		if info.Name == c.Name && info.Changed > 0 {
			c.Error = info.Error
		}
	}
}

// unusedPatterns are those of a server's definition that match none of its tools.
func unusedPatterns(config *discovery.Config, server string, tools []discovery.Tool) []string {
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = tool.Name
	}
	for _, s := range config.Servers {
		if s.Name == server {
			return s.UnusedPatterns(names)
		}
	}
	return nil
}

// A tokenCounter counts tokens in o200k_base. Its vocabulary is made when it is
// needed first, as that takes a fifth of a second.
type tokenCounter struct {
	get func() *codec.Codec
}

func newTokenCounter() *tokenCounter { return &tokenCounter{sync.OnceValue(codec.NewO200kBase)} }

// tools counts what a client gives to a model for these tools.
func (t *tokenCounter) tools(tools []discovery.Tool) int {
	total := 0
	for _, tool := range tools {
		text, err := json.Marshal(struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			InputSchema json.RawMessage `json:"input_schema,omitempty"`
		}{tool.Name, tool.Description, tool.InputSchema})
		if err != nil {
			continue // a schema that is no JSON; a model cannot get it either
		}
		n, err := t.get().Count(string(text))
		if err == nil {
			total += n
		}
	}
	return total
}

func (r *root) writeChecks(results []checkedServer, asJSON bool) error {
	failed := slices.ContainsFunc(results, func(c checkedServer) bool { return c.State == "failed" || c.State == stateInvalid })
	if asJSON {
		if err := r.writeJSON(results); err != nil {
			return err
		}
	} else if err := r.writeCheckTable(results); err != nil {
		return err
	}
	if failed {
		return errShown
	}
	return nil
}

func (r *root) writeCheckTable(results []checkedServer) error {
	if len(results) == 0 {
		return nil
	}
	t := r.display().newTable("SERVER", "STATE", "SECONDS", "TOOLS", "TOKENS")
	tools, tokens := 0, 0
	for _, c := range results {
		if c.State != "ok" {
			t.add(styledCell(c.Name, bold), styledCell(c.State, stateStyle(c.State)))
			continue
		}
		tools, tokens = tools+c.Tools, tokens+c.Tokens
		t.add(styledCell(c.Name, bold), styledCell("ok", green), plainCell(fmt.Sprintf("%.1f", c.Seconds)),
			plainCell(fmt.Sprint(c.Tools)), plainCell(fmt.Sprint(c.Tokens)))
	}
	if len(results) > 1 {
		t.add(styledCell("all", faint), cell{}, cell{}, plainCell(fmt.Sprint(tools)), plainCell(fmt.Sprint(tokens)))
	}
	if err := t.write(); err != nil {
		return err
	}
	for _, c := range results {
		for _, pattern := range c.Unused {
			fmt.Fprintf(r.io.Err, "mcp-bridge: warning: %s: %s: %s matches no tool of it\n", oneLined(c.File), oneLined(c.Name), oneLined(pattern))
		}
		switch c.State {
		case "failed":
			report(r.io.Err, &hintedError{err: errors.New(c.Error), hint: c.Hint})
		case stateInvalid:
			report(r.io.Err, &hintedError{err: fmt.Errorf("%s: %s: %s", c.File, c.Name, c.Error), hint: "mend or remove the definition"})
		}
	}
	return nil
}
