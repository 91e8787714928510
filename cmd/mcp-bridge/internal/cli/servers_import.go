package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/importer"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// importFlags are those of `servers import`.
type importFlags struct {
	from   []string
	dryRun bool
	move   bool
	undo   bool
	force  bool
	json   bool
}

func (r *root) serversImportCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Copy the servers of the other MCP clients on this machine to ~/MCPs",
		Long: "Copy the servers of the other MCP clients on this machine to ~/MCPs: a file for each client,\n" +
			"in the form that most clients read, with placeholders and secrets as they are. A server that\n" +
			"several clients have is copied once. With --move, the clients keep the bridge only.\n" +
			"What is changed is copied to the state directory first; --undo takes the last import back.",
		Example: "  mcp-bridge servers import --dry-run\n  mcp-bridge servers import --from claude,cursor --move",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case f.undo && (f.dryRun || f.move || len(f.from) > 0):
				return usageError("", "--undo takes the last import back as a whole: leave --from, --move and --dry-run out")
			case f.force && !f.undo:
				return usageError("", "--force is for --undo only")
			case f.undo:
				return r.undoImport(f)
			}
			return r.importServers(f)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.from, "from", nil, "clients to import from: claude, cursor, vscode and so on, or all (the default)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be done, and change nothing")
	flags.BoolVar(&f.move, "move", false, "leave only the bridge in the clients' files")
	flags.BoolVar(&f.undo, "undo", false, "take the last import back")
	flags.BoolVar(&f.force, "force", false, "with --undo: also where a file was changed since, and the edit alone cannot be undone; what was changed is lost from it, and copied to the state directory")
	addJSON(flags, &f.json)
	_ = cmd.RegisterFlagCompletionFunc("from", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		from := []cobra.Completion{"all"}
		for _, c := range discovery.Clients(goruntime.GOOS, os.LookupEnv) {
			from = append(from, c.Key)
		}
		return from, cobra.ShellCompDirectiveNoFileComp
	}) // fails if there is no such flag
	return cmd
}

// clientsNamed returns those that --from names.
func clientsNamed(from []string) ([]discovery.Client, error) {
	all := discovery.Clients(goruntime.GOOS, os.LookupEnv)
	if len(from) == 0 {
		return all, nil
	}
	var keys []string
	for _, c := range all {
		keys = append(keys, c.Key)
	}
	chosen := make([]bool, len(all))
	for _, name := range from {
		name = strings.ToLower(strings.TrimSpace(name))
		known := name == "all"
		for i, key := range keys {
			if name == "all" || key == name || strings.HasPrefix(key, name+"-") {
				chosen[i], known = true, true
			}
		}
		if !known {
			return nil, usageError("the clients are "+anyOf(append(keys, "all")), "--from: no client %q is known%s", name, didYouMean(similar(name, keys)...))
		}
	}
	var clients []discovery.Client
	for i, c := range all {
		if chosen[i] {
			clients = append(clients, c)
		}
	}
	return clients, nil
}

// ownDir is the folder that definitions are written to.
func (r *root) ownDir() (string, error) {
	dir := "~/MCPs"
	if len(r.settings.configDirs) > 0 {
		dir = r.settings.configDirs[0]
	}
	if below, ok := strings.CutPrefix(dir, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", configError("set HOME, or give --config-dir", "%v", err)
		}
		dir = filepath.Join(home, below)
	}
	return filepath.Abs(dir)
}

// bridgeCommand is how a client starts this program: by an absolute path, as
// programs with windows do not have a shell's PATH.
func (r *root) bridgeCommand(dir string) (command string, args []string, err error) {
	command, err = os.Executable()
	if err != nil {
		return "", nil, err
	}
	if found, err := exec.LookPath("mcp-bridge"); err == nil && sameFile(found, command) {
		if command, err = filepath.Abs(found); err != nil { // a name that outlives an update
			return "", nil, err
		}
	}
	args = []string{"run"}
	if len(r.settings.configDirs) > 0 {
		args = append(args, "--config-dir", dir)
	}
	if strings.Contains(command, "go-build") && strings.HasPrefix(command, os.TempDir()) {
		command, args = "go", append([]string{"run", "github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge@latest"}, args...)
	}
	return command, args, nil
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

func (r *root) importServers(f importFlags) error {
	clients, err := clientsNamed(f.from)
	if err != nil {
		return err
	}
	dir, err := r.ownDir()
	if err != nil {
		return err
	}
	stateDir, err := r.stateDir()
	if err != nil {
		return err
	}
	opts := importer.Options{Clients: clients, Dir: dir, StateDir: stateDir, Move: f.move}
	if opts.Command, opts.Args, err = r.bridgeCommand(dir); err != nil {
		return err
	}
	opts.Executable, _ = os.Executable() // known by its name otherwise
	plan, err := importer.Make(opts)
	if err != nil {
		return err
	}
	if !f.dryRun {
		if err := plan.Apply(); err != nil {
			return &hintedError{
				err: fmt.Errorf("the import was not finished: %w", err), code: exitFailure,
				hint: "no server is lost; `mcp-bridge servers import --undo` takes back what was done, and a further import does the rest",
			}
		}
	}
	if f.json {
		return r.writeJSON(importResult{DryRun: f.dryRun, Servers: slices.Concat([]importer.Item{}, plan.Items), Bridges: slices.Concat([]string{}, plan.Bridges)})
	}
	return r.writeImport(plan, clients, dir, f)
}

type importResult struct {
	DryRun  bool            `json:"dryRun"`
	Servers []importer.Item `json:"servers"`
	Bridges []string        `json:"bridges"` // files that have the bridge now
}

// writeImport shows what was done, or would be.
func (r *root) writeImport(plan *importer.Plan, clients []discovery.Client, dir string, f importFlags) error {
	home, _ := os.UserHomeDir() // "" shortens nothing
	if len(plan.Items) == 0 {
		var names []string
		for _, c := range clients {
			names = append(names, c.Name)
		}
		fmt.Fprintf(r.io.Err, "nothing to import: none of these has a server: %s\n", anyOf(names))
		return nil
	}
	d := r.display()
	file := ""
	copied := map[string]int{}
	var names []string
	var t *table
	flush := func() error {
		if t == nil {
			return nil
		}
		return t.write()
	}
	for _, item := range plan.Items {
		if item.File != file {
			if err := flush(); err != nil {
				return err
			}
			file = item.File
			fmt.Fprintf(r.io.Out, "%s, %s\n", oneLined(item.Client), oneLined(importer.Short(file, home)))
			t = d.newTable()
		}
		t.add(importRow(item, home)...)
		if isNew(item) {
			copied[item.To]++
			names = append(names, item.As)
		}
	}
	if err := flush(); err != nil {
		return err
	}
	done, would := "", ""
	if f.dryRun {
		done, would = "would be ", "; nothing was changed"
	}
	n := 0
	var files []string
	for path, count := range copied {
		n += count
		files = append(files, filepath.Base(path))
	}
	slices.Sort(files)
	summary := "no server is new"
	if n > 0 {
		summary = fmt.Sprintf("%s %scopied to %s (%s)", counted(n, "server"), done, importer.Short(dir, home), strings.Join(files, ", "))
	}
	if len(plan.Bridges) > 0 {
		summary += fmt.Sprintf("; the bridge %sput into %s", done, clientsFiles(len(plan.Bridges)))
	}
	fmt.Fprintln(r.io.Err, summary+would)
	if !f.dryRun {
		r.tellUnready(names)
	}
	if !f.dryRun && len(plan.Changes) > 0 {
		fmt.Fprintln(r.io.Err, "`mcp-bridge servers import --undo` takes this back; `mcp-bridge servers check` starts each server")
	}
	return nil
}

// isNew reports whether a server is in the folder from now on.
func isNew(item importer.Item) bool {
	return item.Result == importer.Copied || item.Result == importer.Moved
}

func clientsFiles(n int) string {
	if n == 1 {
		return "1 client's file"
	}
	return fmt.Sprintf("%d clients' files", n)
}

// tellUnready says which of these servers will not work yet, and what is to do.
func (r *root) tellUnready(names []string) {
	config := r.loadConfig()
	for _, name := range names {
		why := ""
		for _, problem := range config.Problems {
			if problem.Server == name && why == "" && !errors.Is(problem.Err, discovery.ErrSelf) {
				why = problem.Err.Error()
			}
		}
		for _, s := range config.Servers {
			if s.Name != name {
				continue
			}
			if why = ""; s.Remote() && !s.Disabled {
				why = "it has a url, which the bridge does not connect to yet"
			}
		}
		if why != "" {
			fmt.Fprintf(r.io.Err, "%s does not work yet: %s\n", oneLined(name), oneLined(why))
		}
	}
}

func importRow(item importer.Item, home string) []cell {
	name := styledCell(item.Server, bold)
	if item.Server == "" {
		name = plainCell("(the file)")
	}
	if item.Project != "" {
		name = append(name, span{" in " + importer.Short(item.Project, home), faint})
	}
	what := cell{{item.Result, map[string]style{importer.Copied: green, importer.Moved: green, importer.Left: yellow}[item.Result]}}
	note := item.Note
	if isNew(item) {
		to := importer.Short(item.To, home)
		if item.As != item.Server {
			to += " as " + item.As
		}
		if note = to; item.Note != "" {
			note += ": " + item.Note
		}
	}
	return []cell{{}, name, what, plainCell(note)}
}

func (r *root) undoImport(f importFlags) error {
	stateDir, err := r.stateDir()
	if err != nil {
		return err
	}
	files, keptIn, err := importer.Undo(stateDir, f.force)
	if changed, ok := errors.AsType[*importer.ChangedError](err); ok {
		return &hintedError{err: changed, code: exitFailure, hint: "--force puts back what was there before the import: what was changed since is lost from these files, and copied to the state directory"}
	}
	if err != nil {
		return err
	}
	if f.json {
		return r.writeJSON(struct {
			Restored []string `json:"restored"`
			Kept     string   `json:"kept,omitempty"` // the folder that has what was overwritten
		}{slices.Concat([]string{}, files), keptIn})
	}
	home, _ := os.UserHomeDir() // "" shortens nothing
	for _, file := range files {
		what := "restored"
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			what = "removed"
		}
		fmt.Fprintf(r.io.Out, "%s %s\n", what, oneLined(importer.Short(file, home)))
	}
	if keptIn != "" {
		fmt.Fprintf(r.io.Err, "what was overwritten is in %s\n", oneLined(keptIn))
	}
	return nil
}

// counted is "1 server" or "3 servers".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
