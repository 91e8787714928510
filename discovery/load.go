package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Bounds of one configuration.
const (
	maxDirEntries = 20_000
	maxFiles      = 1_000
	maxFileBytes  = 1 << 20
	maxServers    = 10_000
	maxProblems   = 1_000
)

// LoadOptions says where to look. The zero value reads ~/MCPs.
type LoadOptions struct {
	// Dirs are the folders to read, in order; default ~/MCPs. A leading ~ is
	// the home folder.
	Dirs []string
	// Files are read after the folders, whatever their names.
	Files []string
	// Project is a folder whose .mcp.json is read last, so that nothing in it
	// takes the place of a server of the user's; empty for none. One without that
	// file has no servers.
	Project string
	// Executable is the path of the running bridge. Servers that are this very
	// program are left out.
	Executable string
	// AllowSelf keeps servers that look like the bridge itself.
	AllowSelf bool
	// LookupEnv finds the variables that definitions refer to; default
	// os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// Input gives the value of ${input:id}, and false if there is none, which
	// leaves the server out. It must not block for long: whoever wants to ask the
	// user does so elsewhere. in is what the file says of the input; its ID is
	// always set. nil has no values.
	Input func(id string, in Input) (string, bool)
	// InputFiles are files that change when what Input gives does, for Watch.
	InputFiles []string
	// Workspace is the folder that ${workspaceFolder} means; default Project, and
	// without one the working directory. In the blocks of projects of
	// ~/.claude.json it is the folder of each.
	Workspace string
}

// Load reads every *.json, *.jsonc, *.toml, *.yaml and *.yml file in the
// folders, files in order of their names (those beginning with a dot are
// skipped), then Files, then the project's file. Dialects are told by their
// shape; see README. It never fails as a whole: what
// cannot be used is left out and reported in Config.Problems, and hides
// nothing else. Files and folders that others than the user and root own or can
// write are not used. A folder that does not exist is empty. Of several
// definitions with the same name the first usable one counts.
func Load(opts LoadOptions) *Config {
	l := newLoader(opts)
	for _, dir := range l.dirs {
		l.loadDir(dir)
	}
	for _, file := range opts.Files {
		l.loadNamed(file)
	}
	l.loadProject(opts.Project)
	l.config.assignIdents()
	return &l.config
}

type loader struct {
	dirs   []string
	expand expander
	self   *selfMatcher // nil if the bridge may serve itself
	files  int
	byName map[string]int // index into config.Servers
	config Config
}

func newLoader(opts LoadOptions) *loader {
	lookup := opts.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	l := &loader{expand: newExpander(lookup), byName: make(map[string]int)}
	l.expand.input, l.expand.workspace = opts.Input, cmp.Or(opts.Workspace, opts.Project)
	if !opts.AllowSelf {
		l.self = newSelfMatcher(opts.Executable)
	}
	dirs := opts.Dirs
	if len(dirs) == 0 {
		dirs = []string{"~/MCPs"}
	}
	for _, dir := range dirs {
		path, err := l.expand.tilde(dir)
		if err != nil {
			l.problem(dir, "", err)
			continue
		}
		if path = filepath.Clean(path); !slices.Contains(l.dirs, path) {
			l.dirs = append(l.dirs, path)
		}
	}
	return l
}

func (l *loader) loadDir(dir string) {
	names, err := configFiles(dir)
	if err != nil {
		l.problem(dir, "", err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if l.files++; l.files > maxFiles {
			l.problem(path, "", fmt.Errorf("this file and those after it are not read: more than %d files", maxFiles))
			return
		}
		l.loadFile(path)
	}
}

// configFiles lists the names of a folder's configuration files, sorted. With an
// error it may still return names.
func configFiles(dir string) ([]string, error) {
	info, err := os.Stat(dir) // first, because opening a pipe would block
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, withoutPath(err)
	}
	if !info.IsDir() {
		return nil, errors.New("is not a directory")
	}
	f, err := os.Open(dir) //nolint:gosec // the folder the user named
	if err != nil {
		return nil, withoutPath(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	if info, err = f.Stat(); err != nil {
		return nil, withoutPath(err)
	}
	if err := requireTrusted(dir, info); err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(maxDirEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, withoutPath(err)
	}
	err = nil
	if len(entries) == maxDirEntries {
		err = fmt.Errorf("more than %d entries; some are not read", maxDirEntries-1)
	}
	var names []string
	for _, e := range entries {
		if IsConfigFile(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, err
}

// loadNamed reads a file that was asked for by its name.
func (l *loader) loadNamed(file string) {
	path, err := l.expand.tilde(file)
	if err != nil {
		l.problem(file, "", err)
		return
	}
	l.loadFile(filepath.Clean(path))
}

// errDuplicate is why a definition does not count whose name an earlier one has.
var errDuplicate = errors.New("already defined")

// projectFile is where Claude Code keeps the servers of a project.
const projectFile = ".mcp.json"

// loadProject reads the file of a project.
func (l *loader) loadProject(dir string) {
	if dir == "" {
		return
	}
	path := filepath.Join(dir, projectFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		l.loadFile(path)
	}
}

func (l *loader) loadFile(path string) {
	data, err := readRegular(path, maxFileBytes)
	if err == nil {
		err = requireTrustedTarget(path)
	}
	if err != nil {
		l.problem(path, "", err)
		return
	}
	definitions, err := parseConfig(path, data)
	if err != nil {
		l.problem(path, "", err)
		return
	}
	for i, def := range definitions {
		if len(l.config.Servers) >= maxServers {
			l.problem(path, "", fmt.Errorf("%d servers are not read: more than %d in all", len(definitions)-i, maxServers))
			return
		}
		l.add(path, def)
	}
}

// add takes one definition over into the configuration, or reports why not.
func (l *loader) add(path string, def definition) {
	server := def.server
	err := def.err
	if err == nil && !server.Disabled {
		err = l.expand.of(def).server(&server)
	}
	if err != nil {
		l.problem(path, server.Name, err)
		return
	}
	if l.self.matches(server) {
		l.problem(path, server.Name, ErrSelf)
		return
	}
	if i, ok := l.byName[server.Name]; ok {
		if def.project != "" && l.config.Servers[i].Fingerprint() == server.Fingerprint() {
			return // many projects use the same server
		}
		l.problem(path, server.Name, fmt.Errorf("%w in %s; the first definition counts", errDuplicate, nameFrom(path, l.config.Servers[i].File)))
		return
	}
	l.byName[server.Name] = len(l.config.Servers)
	l.config.Servers = append(l.config.Servers, server)
}

// nameFrom names another file as short as is clear to a reader of this one.
func nameFrom(this, other string) string {
	switch {
	case this == other:
		return "this file"
	case filepath.Dir(this) == filepath.Dir(other):
		return filepath.Base(other)
	}
	return other
}

func (l *loader) problem(file, server string, err error) {
	switch n := len(l.config.Problems); {
	case n < maxProblems:
		l.config.Problems = append(l.config.Problems, Problem{File: file, Server: server, Err: err})
	case n == maxProblems:
		l.config.Problems = append(l.config.Problems, Problem{Err: errors.New("more problems are not listed")})
	}
}

func (c *Config) assignIdents() {
	names := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		names[i] = s.Name
	}
	for i, ident := range ServerIdents(names) {
		c.Servers[i].Ident = ident
	}
}
