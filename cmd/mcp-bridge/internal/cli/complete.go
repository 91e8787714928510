package cli

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// Completion works from the definitions and the catalog of tools alone: no server
// is started while somebody types. What is offered is written to a shell, so it is
// names that no shell reads as anything else; see [shellSafe].

// maxCompletions bounds what is offered at once.
const maxCompletions = 2_000

// maxAbout bounds what is said of a completion, in columns.
const maxAbout = 60

// completeServers offers the enabled servers, for a command's only argument. Below
// `servers` it offers disabled ones, too, and again after others.
func (r *root) completeServers(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all := cmd.HasParent() && cmd.Parent().Name() == "servers"
	var found []cobra.Completion
	if len(args) == 0 || all {
		for _, s := range r.completionConfig(cmd).Servers {
			name := spelling(typed, s.Name, s.Ident)
			if name != "" && (all || !s.Disabled) && !slices.Contains(args, name) {
				found = offer(found, name, s.Description)
			}
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeTool offers SERVER.TOOL, for a command's only argument.
func (r *root) completeTool(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var servers, tools []cobra.Completion
	for _, s := range r.completionConfig(cmd).Servers {
		if s.Disabled {
			continue
		}
		if name := spelling(typed, s.Name+".", s.Ident+"."); name != "" {
			servers = offer(servers, name, s.Description)
		}
		for _, name := range []string{s.Name, s.Ident} {
			tool, ok := strings.CutPrefix(typed, name+".")
			if !ok || !shellSafe(name) {
				continue
			}
			for _, doc := range r.cachedTools(s) {
				if t := spelling(tool, doc.Ident, doc.Name); t != "" {
					tools = offer(tools, name+"."+t, doc.Description)
				}
			}
			break
		}
	}
	if len(tools) > 0 {
		return tools, cobra.ShellCompDirectiveNoFileComp
	}
	return servers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeCall offers SERVER.TOOL, and then KEY= for parameters that are not there
// yet, or KEY=VALUE where the values are known.
func (r *root) completeCall(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp
	if len(args) == 0 {
		return r.completeTool(cmd, args, typed)
	}
	doc, ok := r.cachedTool(cmd, args[0])
	if !ok {
		return nil, directive
	}
	key, value, valued := strings.Cut(typed, "=")
	if valued {
		var found []cobra.Completion
		if p := findParam(doc, key); p != nil {
			for _, v := range knownValues(*p) {
				if strings.HasPrefix(v, value) && shellSafe(v) {
					found = offer(found, key+"="+v, "")
				}
			}
		}
		return found, directive
	}
	given := map[string]bool{}
	for _, word := range args[1:] {
		if key, _, _, ok := splitPair(word); ok {
			if p := findParam(doc, key); p != nil {
				given[p.Name] = true
			}
		}
	}
	var found []cobra.Completion
	for _, p := range doc.Params {
		if name := spelling(key, p.Name, p.Ident); name != "" && !given[p.Name] {
			about := p.Type
			if p.Required {
				about += ", required"
			}
			found = offer(found, name+"=", strings.TrimSuffix(about+": "+p.Description, ": "))
		}
	}
	return found, directive | cobra.ShellCompDirectiveNoSpace
}

// completionConfig reads the definitions. What is wrong with them is not said
// while somebody types.
func (r *root) completionConfig(cmd *cobra.Command) *discovery.Config {
	if err := r.settings.complete(cmd.Flags()); err != nil { // cobra does not, where it completes
		return &discovery.Config{}
	}
	return r.loadConfig()
}

// cachedTools are those that the catalog knows of a server.
func (r *root) cachedTools(server discovery.Server) []discovery.ToolDoc {
	dir, err := r.catalogDir()
	if err != nil {
		return nil
	}
	catalog, err := discovery.OpenCatalog(dir)
	if err != nil {
		return nil
	}
	entry, _ := catalog.Get(server)
	return discovery.Document(server, entry.Tools)
}

// cachedTool finds SERVER.TOOL, each by its name or identifier, in the catalog.
func (r *root) cachedTool(cmd *cobra.Command, path string) (discovery.ToolDoc, bool) {
	for _, s := range r.completionConfig(cmd).Servers {
		for _, name := range []string{s.Name, s.Ident} {
			tool, ok := strings.CutPrefix(strings.TrimPrefix(path, "tools."), name+".")
			if !ok {
				continue
			}
			for _, doc := range r.cachedTools(s) {
				if doc.Name == tool || doc.Ident == tool {
					return doc, true
				}
			}
			break
		}
	}
	return discovery.ToolDoc{}, false
}

// knownValues are those that a parameter may have, if there are only some.
func knownValues(p discovery.Param) []string {
	var values []string
	for _, literal := range p.Enum {
		text := strings.Trim(literal, `'"`)
		if unquoted, err := strconv.Unquote(literal); err == nil {
			text = unquoted
		}
		values = append(values, text)
	}
	for _, part := range unionParts(p.Type) {
		if part == "bool" {
			values = append(values, "true", "false")
		}
	}
	return values
}

// spelling is the first of the names that begins with what was typed and that no
// shell misreads; empty if there is none.
func spelling(typed string, names ...string) string {
	for _, name := range names {
		if strings.HasPrefix(name, typed) && shellSafe(name) {
			return name
		}
	}
	return ""
}

// shellSafe reports whether every shell takes a word for nothing but itself.
func shellSafe(word string) bool {
	for _, c := range word {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.ContainsRune("_-./", c):
		default:
			return false
		}
	}
	return word != "" && !strings.HasPrefix(word, "-")
}

// offer adds a completion and what it is.
func offer(list []cobra.Completion, word, about string) []cobra.Completion {
	if len(list) >= maxCompletions {
		return list
	}
	if about = cut(oneLined(firstLine(about)), maxAbout); about != "" {
		return append(list, cobra.CompletionWithDesc(word, about))
	}
	return append(list, word)
}

// completeFlag offers words for a flag of the command, if it has that flag.
func completeFlag(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails if there is no such flag
}

// addCompletion adds cobra's command that writes the scripts for shells, and words
// for flags that several commands have.
func (r *root) addCompletion() {
	completeFlag(r.Command, "color", "auto", "always", "never")
	completeFlag(r.Command, "on-change", "flag", "block")
	completeFlag(r.Command, "log-level", "debug", "info", "warn", "error")
	completeOutput(r.Command) // and flags that some commands have
	r.InitDefaultCompletionCmd()
	for _, cmd := range r.Commands() {
		if cmd.Name() == "completion" {
			cmd.Short = "Print a script that completes commands, servers, tools and their arguments in a shell"
			cmd.Args, cmd.RunE = nil, needsSubcommand
		}
	}
}

func completeOutput(cmd *cobra.Command) {
	completeFlag(cmd, "output", "text", "json")
	completeFlag(cmd, "runtime", "auto", "podman", "docker", "gvisor")
	for _, sub := range cmd.Commands() {
		completeOutput(sub)
	}
}
