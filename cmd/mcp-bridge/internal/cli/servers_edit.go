package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/configedit"
	"github.com/mcp-bridge/mcp-bridge/cmd/mcp-bridge/internal/importer"
	"github.com/mcp-bridge/mcp-bridge/discovery"
)

// maxDefinition bounds what `servers add --from-json -` reads, in bytes.
const maxDefinition = 1 << 20

// addFlags are those of `servers add`.
type addFlags struct {
	env, header []string
	url, kind   string
	description string
	cwd         string
	fromJSON    string
}

func (r *root) serversAddCommand() *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add NAME {-- COMMAND [ARGS...] | --url URL | --from-json FILE}",
		Short: "Add a server to ~/MCPs/servers.json",
		Example: "  mcp-bridge servers add files -- npx -y @modelcontextprotocol/server-filesystem ~/Documents\n" +
			"  mcp-bridge servers add github --env 'TOKEN=${GITHUB_TOKEN}' -- npx -y @modelcontextprotocol/server-github\n" +
			"  mcp-bridge servers add docs --url https://docs.example/mcp --header 'Authorization=Bearer ${DOCS_TOKEN}'\n" +
			"  mcp-bridge servers add --from-json - < definition.json",
		RunE: func(cmd *cobra.Command, args []string) error { return r.addServer(f, args, cmd.ArgsLenAtDash()) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.env, "env", nil, "variable of the server, as NAME=VALUE; repeatable")
	flags.StringVar(&f.url, "url", "", "address of a server that is reached over HTTP")
	flags.StringVar(&f.kind, "type", "", "how a server with --url is reached: http (the default) or sse")
	flags.StringArrayVar(&f.header, "header", nil, "header of the requests to --url, as NAME=VALUE; repeatable")
	flags.StringVar(&f.cwd, "cwd", "", "folder that the server is started in")
	flags.StringVar(&f.description, "description", "", "what the server is for")
	flags.StringVar(&f.fromJSON, "from-json", "", "file with the definitions, as any client has them; - is stdin")
	return cmd
}

func (r *root) addServer(f addFlags, args []string, dash int) error {
	definitions, err := r.given(f, args, dash)
	if err != nil {
		return err
	}
	for _, def := range definitions {
		if file, ok := r.definedIn(def.Server.Name); ok {
			return usageError("mcp-bridge servers remove "+def.Server.Name, "there is a server %q already, in %s", def.Server.Name, file)
		}
	}
	dir, err := r.ownDir()
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "servers.json")
	before, err := os.ReadFile(file) //nolint:gosec // in the user's folder of definitions
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	after, mode := before, fs.FileMode(0o600)
	if info, err := os.Stat(file); err == nil {
		mode = info.Mode().Perm()
	}
	var wanted []discovery.Input
	for _, def := range definitions {
		object, err := objectOf(def.Server)
		if err == nil {
			after, err = configedit.Put(configedit.JSON, after, object, "mcpServers", def.Server.Name)
		}
		if err != nil {
			return cannotEdit(file, err)
		}
		wanted = append(wanted, def.Inputs...)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := importer.Replace(file, before, after, mode); err != nil {
		return err
	}
	for _, def := range definitions {
		fmt.Fprintf(r.io.Err, "added %s to %s\n", oneLined(def.Server.Name), oneLined(file))
	}
	var names []string
	for _, def := range definitions {
		names = append(names, def.Server.Name)
	}
	if len(wanted) == 0 || !isTerminal(r.io.In) {
		r.tellUnready(names)
		return nil
	}
	defer r.tellUnready(names)
	store, err := r.inputStore()
	if err != nil {
		return err
	}
	return r.askInputs(store, wanted, false)
}

// given are the servers that the command line describes.
func (r *root) given(f addFlags, args []string, dash int) ([]discovery.Definition, error) {
	const hint = "mcp-bridge servers add --help"
	if f.fromJSON != "" {
		if len(args) > 1 || f.url != "" || len(f.env)+len(f.header) > 0 {
			return nil, usageError(hint, "--from-json has the whole definition: give no more than a name with it")
		}
		return r.fromJSON(f.fromJSON, args)
	}
	if len(args) == 0 || dash == 0 {
		return nil, usageError(hint, "the server's name is missing")
	}
	if len(args) > 1 && f.url == "" && (strings.HasPrefix(args[1], "https://") || strings.HasPrefix(args[1], "http://")) {
		return nil, usageError(fmt.Sprintf("mcp-bridge servers add %s --url %s", args[0], args[1]), "%q is an address, and no command", args[1])
	}
	if dash > 1 || dash < 0 && len(args) > 1 {
		return nil, usageError(hint, "put -- before the server's command, so that its flags are its own")
	}
	s := discovery.Server{Name: args[0], Description: f.description, Cwd: f.cwd, URL: f.url}
	command := args[1:]
	switch {
	case f.url == "" && len(command) == 0:
		return nil, usageError(hint, "give the server's command after --, or --url")
	case f.url != "" && (len(command) > 0 || len(f.env) > 0 || f.cwd != ""):
		return nil, usageError(hint, "a server with --url is not started: it has no command, --env or --cwd")
	case f.url == "" && (len(f.header) > 0 || f.kind != ""):
		return nil, usageError(hint, "--header and --type are for servers with --url")
	}
	var err error
	if f.url != "" {
		if u, err := url.Parse(f.url); err != nil || !strings.Contains(f.url, "${") && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return nil, usageError(hint, "--url: %q is no address such as https://example.com/mcp", f.url)
		}
		if s.Type = f.kind; s.Type == "" {
			s.Type = discovery.TypeHTTP
		}
		if s.Type != discovery.TypeHTTP && s.Type != discovery.TypeSSE {
			return nil, usageError(hint, "--type: %q is neither http nor sse", f.kind)
		}
		if s.Headers, err = pairs("--header", f.header); err != nil {
			return nil, err
		}
	} else {
		s.Command, s.Args = command[0], command[1:]
		if s.Env, err = pairs("--env", f.env); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	if err := discovery.WriteServers(&b, []discovery.Server{s}); err != nil {
		return nil, err
	}
	return r.parsed(b.Bytes(), s.Name) // with the checks of every definition
}

func pairs(flag string, list []string) (map[string]string, error) {
	m := make(map[string]string, len(list))
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usageError("mcp-bridge servers add --help", "%s: want NAME=VALUE", flag) // the text may be a secret
		}
		m[name] = value
	}
	return m, nil
}

// fromJSON reads definitions as any client has them.
func (r *root) fromJSON(file string, args []string) ([]discovery.Definition, error) {
	in := r.io.In
	if file != "-" {
		f, err := os.Open(file) //nolint:gosec // the file that the user named
		if err != nil {
			return nil, usageError("", "--from-json: %v", err)
		}
		defer func() { _ = f.Close() }() // nothing was written
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxDefinition+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxDefinition {
		return nil, usageError("", "--from-json: more than %d KiB", maxDefinition>>10)
	}
	name := "-"
	if len(args) > 0 {
		name = args[0]
	}
	definitions, err := r.parsed(data, name)
	switch {
	case err != nil:
		return nil, err
	case len(definitions) == 0:
		return nil, usageError("", "--from-json: there is no server in it")
	case len(args) > 0 && len(definitions) > 1:
		return nil, usageError("leave the name out to add all of them", "--from-json: there are %d servers in it", len(definitions))
	case len(args) > 0:
		definitions[0].Server.Name = name
	case definitions[0].Server.Name == "-":
		return nil, usageError("mcp-bridge servers add NAME --from-json …", "--from-json: the definition has no name")
	}
	return definitions, nil
}

// parsed reads definitions in the way of files; a definition without a name
// gets this one.
func (r *root) parsed(data []byte, name string) (definitions []discovery.Definition, err error) {
	dir, err := os.MkdirTemp("", "mcp-bridge-") // of mode 0700
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if name != filepath.Base(name) || len(name) > 200 {
		name = "-"
	}
	file := filepath.Join(dir, name+".json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, err
	}
	definitions, problems := discovery.ReadFile(file)
	if len(problems) > 0 {
		return nil, usageError("mcp-bridge servers add --help", "%s", strings.TrimPrefix(problems[0].String(), file+": "))
	}
	return definitions, nil
}

// objectOf is a server in our own dialect.
func objectOf(s discovery.Server) (configedit.Object, error) {
	var b bytes.Buffer
	if err := discovery.WriteServers(&b, []discovery.Server{s}); err != nil {
		return nil, err
	}
	d := json.NewDecoder(&b)
	value, err := decoded(d)
	if err != nil {
		return nil, err
	}
	servers, _ := value.(configedit.Object)
	for _, f := range servers {
		if inner, ok := f.Value.(configedit.Object); ok && f.Key == "mcpServers" && len(inner) == 1 {
			object, ok := inner[0].Value.(configedit.Object)
			if ok {
				return object, nil
			}
		}
	}
	return nil, errors.New("the definition cannot be written")
}

// decoded reads one value, with the members of objects in their order. It knows
// what definitions have: objects, lists of strings, strings, numbers and booleans.
func decoded(d *json.Decoder) (any, error) {
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			list := []string{}
			for d.More() {
				var s string
				if err := d.Decode(&s); err != nil {
					return nil, err
				}
				list = append(list, s)
			}
			_, err = d.Token()
			return list, err
		}
		object := configedit.Object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := decoded(d)
			if err != nil {
				return nil, err
			}
			object = append(object, configedit.Field{Key: fmt.Sprint(key), Value: value})
		}
		_, err = d.Token()
		return object, err
	case json.Number:
		n, err := token.Int64()
		return int(n), err
	}
	return token, nil
}

func (r *root) serversRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME",
		Short:             "Remove a server from the file that defines it",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.completeServers,
		RunE: func(_ *cobra.Command, args []string) error {
			return r.editServer(args[0], "removed %s from %s\n", func(format configedit.Format, data []byte, p importer.Place) ([]byte, error) {
				if p.Whole {
					return nil, nil // the file goes
				}
				return configedit.Remove(format, data, p.Path, p.Key)
			}, nil)
		},
	}
}

func (r *root) serversSwitchCommand(on bool) *cobra.Command {
	use, short, done := "enable NAME", "Enable a server in the file that defines it", "enabled %s in %s\n"
	if !on {
		use, short, done = "disable NAME", "Disable a server in the file that defines it, which keeps its definition", "disabled %s in %s\n"
	}
	return &cobra.Command{
		Use: use, Short: short,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.completeServers,
		RunE: func(_ *cobra.Command, args []string) error {
			return r.editServer(args[0], done, func(format configedit.Format, data []byte, p importer.Place) ([]byte, error) {
				return importer.Switch(format, data, p, on)
			}, func(s discovery.Server) bool { return s.Disabled != on })
		},
	}
}

// ownFiles are all files of definitions, in the order in which they count.
func (r *root) ownFiles() []string {
	dirs := r.settings.configDirs
	if len(dirs) == 0 {
		dirs = []string{"~/MCPs"}
	}
	home, _ := os.UserHomeDir() // then ~ leads nowhere
	var files []string
	for _, dir := range dirs {
		if below, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(home, below)
		}
		entries, _ := os.ReadDir(dir) // what cannot be read has no servers
		for _, e := range entries {
			if discovery.IsConfigFile(e.Name()) {
				files = append(files, filepath.Join(dir, e.Name()))
			}
		}
	}
	for _, file := range moreFiles() {
		if below, ok := strings.CutPrefix(file, "~/"); ok {
			file = filepath.Join(home, below)
		}
		files = append(files, file)
	}
	return files
}

// definition finds the definition of a server, as it is written.
func (r *root) definition(name string) (discovery.Definition, error) {
	var known []string
	for _, file := range r.ownFiles() {
		definitions, problems := discovery.ReadFile(file)
		for _, def := range definitions {
			if def.Server.Name == name {
				return def, nil
			}
			known = append(known, def.Server.Name)
		}
		for _, problem := range problems {
			if problem.Server != "" && problem.Server == name {
				return discovery.Definition{Server: discovery.Server{Name: name, File: file}}, nil // in whichever dialect
			}
		}
	}
	return discovery.Definition{}, usageError("mcp-bridge servers list", "there is no server %q%s", name, didYouMean(similar(name, known)...))
}

// definedIn is the file that defines a server, if one does.
func (r *root) definedIn(name string) (string, bool) {
	def, err := r.definition(name)
	return def.Server.File, err == nil
}

// editServer changes the file that defines a server. check, if it is not nil,
// says whether the server is then what was wanted.
func (r *root) editServer(name, done string, change func(configedit.Format, []byte, importer.Place) ([]byte, error), check func(discovery.Server) bool) error {
	def, err := r.definition(name)
	if err != nil {
		return err
	}
	file := def.Server.File
	before, err := os.ReadFile(file) //nolint:gosec // in the user's folder of definitions
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	format := configedit.FormatOf(file)
	place, ok := importer.Locate(file, before, def)
	if !ok {
		return cannotEdit(file, errors.New("the definition is not found in it"))
	}
	after, err := change(format, before, place)
	if err != nil {
		return cannotEdit(file, err)
	}
	if check != nil && def.Dialect != "" { // else what it says cannot be read, before or after
		if now, err := definitionIn(file, after, def); err != nil || !check(now) {
			return configError("change the definition by hand", "%s is left as it is: another setting of it decides whether %s is enabled", file, name)
		}
	}
	if after == nil {
		err = os.Remove(file)
	} else if !bytes.Equal(before, after) {
		err = importer.Replace(file, before, after, info.Mode().Perm())
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(r.io.Err, done, oneLined(name), oneLined(file))
	if i := slices.Index(r.ownFiles(), file); i >= 0 && after != nil && check == nil {
		if other, ok := r.definedIn(name); ok {
			fmt.Fprintf(r.io.Err, "there is another %s, in %s, which counts from now on\n", oneLined(name), oneLined(other))
		}
	}
	return nil
}

// definitionIn reads a server from what its file is to be.
func definitionIn(file string, text []byte, def discovery.Definition) (server discovery.Server, err error) {
	dir, err := os.MkdirTemp("", "mcp-bridge-") // of mode 0700
	if err != nil {
		return server, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, filepath.Base(file)) // some are named after their file
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return server, err
	}
	definitions, _ := discovery.ReadFile(path)
	for _, now := range definitions {
		if now.Server.Name == def.Server.Name && now.Project == def.Project {
			return now.Server, nil
		}
	}
	return server, errors.New("the definition is not found in it")
}

// cannotEdit says what to change by hand.
func cannotEdit(file string, err error) error {
	if unsafe, ok := errors.AsType[*configedit.UnsafeError](err); ok && unsafe.Line > 0 {
		return configError(fmt.Sprintf("change line %d of %s by hand", unsafe.Line, file), "%s is left as it is: %s", file, unsafe.Why)
	}
	return configError("change the file by hand", "%s is left as it is: %v", file, err)
}
